"""Types for the parts of a SARIF log that codebatch reads or writes.

The version is SARIF 2.1.0 (OASIS, docs.oasis-open.org/sarif/sarif/v2.1.0). Names are those of the standard. In a log
that is read, any part or element may be null, which counts as missing. If a member is unset, it is not written. Parts
of type `Raw` are read without checking their content.
"""

from __future__ import annotations

from typing import Literal

import msgspec
from msgspec import UNSET, Raw, UnsetType

from codebatch.interchange.reports import WholeNumber

SarifLevel = Literal["error", "warning", "note"]
BaselineState = Literal["new", "updated", "unchanged"]


class SarifPart(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True, gc=False):
    """A part of a log. Unknown members are ignored. Members are written in the order of their definition."""


class SarifText(SarifPart, frozen=True):
    """A text, which may contain placeholders for arguments."""

    text: str | None = None


class SarifMessage(SarifText, frozen=True):
    """The message of a result: a text, or the ID of a text that its rule or tool defines."""

    id: str | None = None
    markdown: str | None = None
    arguments: tuple[str | None, ...] | None = None


class PropertyBag(msgspec.Struct, frozen=True, gc=False):
    """A property bag: an object whose members the standard does not define."""

    severity: Raw | UnsetType = UNSET
    problem: Raw | UnsetType = msgspec.field(default=UNSET, name="problem.severity")
    security: Raw | UnsetType = msgspec.field(default=UNSET, name="security-severity")


class RuleConfiguration(SarifPart, frozen=True):
    """The configuration of a rule."""

    level: str | None = None


class SarifRule(SarifPart, frozen=True):
    """A rule, as described by the component that defines it."""

    id: str | None = None
    guid: str | None = None
    default_configuration: RuleConfiguration | None = None
    message_strings: dict[str, SarifText | None] | None = None
    short_description: SarifText | None = None
    full_description: Raw | UnsetType = UNSET
    help: Raw | UnsetType = UNSET
    properties: PropertyBag | None = None


class ToolComponent(SarifPart, frozen=True):
    """A driver or an extension of a tool."""

    name: str | None = None
    guid: str | None = None
    rules: tuple[SarifRule | None, ...] | None = None
    global_message_strings: dict[str, SarifText | None] | None = None
    version: Raw | UnsetType = UNSET


class SarifTool(SarifPart, frozen=True):
    """The tool of a run."""

    driver: ToolComponent | None = None
    extensions: tuple[ToolComponent | None, ...] | None = None


class ComponentReference(SarifPart, frozen=True):
    """A reference to a component. If it is empty, it denotes the driver."""

    index: WholeNumber | None = None
    guid: str | None = None


class RuleReference(SarifPart, frozen=True):
    """A reference to a rule of a component."""

    id: str | None = None
    index: WholeNumber | None = None
    guid: str | None = None
    tool_component: ComponentReference | None = None


class ArtifactLocation(SarifPart, frozen=True):
    """The location of a file."""

    uri: str | None = None
    uri_base_id: str | None = None
    index: WholeNumber | None = None


class FileRegion(SarifPart, frozen=True):
    """A region of a file, by lines and columns or by offsets."""

    start_line: WholeNumber | None = None
    start_column: WholeNumber | None = None
    end_line: WholeNumber | None = None
    end_column: WholeNumber | None = None
    char_offset: WholeNumber | None = None
    char_length: WholeNumber | None = None
    byte_offset: WholeNumber | None = None
    byte_length: WholeNumber | None = None


class PhysicalLocation(SarifPart, frozen=True):
    """A region in a file."""

    artifact_location: ArtifactLocation | None = None
    region: FileRegion | None = None


class ResultLocation(SarifPart, frozen=True):
    """A location of a result."""

    physical_location: PhysicalLocation | None = None


class ResultSuppression(SarifPart, frozen=True):
    """A suppression of a result. `status` shows whether it was accepted."""

    kind: Raw | UnsetType = UNSET
    status: str | None = None


class ResultProvenance(SarifPart, frozen=True):
    """The origin of a result."""

    invocation_index: WholeNumber | None = None


class SarifResult(SarifPart, frozen=True):
    """A result of a tool. Not every result is a finding."""

    rule_id: str | None = None
    rule_index: WholeNumber | None = None
    rule: RuleReference | None = None
    level: str | None = None
    kind: str | None = None
    message: SarifMessage | None = None
    locations: tuple[ResultLocation | None, ...] | None = None
    partial_fingerprints: Raw | UnsetType = UNSET
    baseline_state: str | None = None
    suppressions: tuple[ResultSuppression | None, ...] | None = None
    provenance: ResultProvenance | None = None
    properties: PropertyBag | None = None


class FileArtifact(SarifPart, frozen=True):
    """A file that results refer to by index."""

    location: ArtifactLocation | None = None


class RuleOverride(SarifPart, frozen=True):
    """A changed configuration of a rule that applies during one invocation."""

    descriptor: RuleReference | None = None
    configuration: RuleConfiguration | None = None


class ToolInvocation(SarifPart, frozen=True):
    """An invocation of the tool."""

    execution_successful: bool | None = None
    rule_configuration_overrides: tuple[RuleOverride | None, ...] | None = None
    tool_execution_notifications: Raw | UnsetType = UNSET


class ExternalFiles(SarifPart, frozen=True):
    """References to files outside the log that contain parts of a run."""

    results: tuple[Raw, ...] | None = None


class SarifRun(SarifPart, frozen=True):
    """A run of one tool."""

    tool: SarifTool | None = None
    automation_details: Raw | UnsetType = UNSET
    column_kind: str | None = None
    original_uri_base_ids: dict[str, ArtifactLocation | None] | None = None
    artifacts: tuple[FileArtifact | None, ...] | None = None
    invocations: tuple[ToolInvocation | None, ...] | None = None
    results: tuple[SarifResult | None, ...] | None = None
    external_property_file_references: ExternalFiles | None = None


class SarifLog(SarifPart, frozen=True, kw_only=True):
    """A complete log."""

    schema: Raw | UnsetType = msgspec.field(default=UNSET, name="$schema")
    version: str | None
    runs: tuple[SarifRun | None, ...] | None
