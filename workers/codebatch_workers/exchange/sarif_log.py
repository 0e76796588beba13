"""The parts of a SARIF log that are read. Any part or element may be null, which counts as missing."""

from __future__ import annotations

import msgspec
from msgspec import UNSET, Raw, UnsetType

from codebatch_workers.exchange.reported import Whole


class ReadPart(msgspec.Struct, rename="camel"):
    """A part of a log. Unknown members are ignored."""


class ReadText(ReadPart):
    """A text, which may contain placeholders for arguments."""

    text: str | None = None


class ReadMessage(ReadText):
    """The message of a result: a text, or the name of a text of its rule or tool."""

    id: str | None = None
    markdown: str | None = None
    arguments: list[str | None] | None = None


class Bag(msgspec.Struct):
    """A property bag with arbitrary members."""

    severity: Raw | UnsetType = UNSET
    problem: Raw | UnsetType = msgspec.field(default=UNSET, name="problem.severity")
    security: Raw | UnsetType = msgspec.field(default=UNSET, name="security-severity")


class RuleConfiguration(ReadPart):
    """The configuration of a rule."""

    level: str | None = None


class ReadRule(ReadPart):
    """A rule as its component describes it."""

    id: str | None = None
    guid: str | None = None
    default_configuration: RuleConfiguration | None = None
    message_strings: dict[str, ReadText | None] | None = None
    short_description: ReadText | None = None
    properties: Bag | None = None


class Component(ReadPart):
    """A driver or an extension of a tool."""

    name: str | None = None
    guid: str | None = None
    rules: list[ReadRule | None] | None = None
    global_message_strings: dict[str, ReadText | None] | None = None


class ReadTool(ReadPart):
    """The tool of a run."""

    driver: Component | None = None
    extensions: list[Component | None] | None = None


class ComponentReference(ReadPart):
    """A reference to a component. If it is empty, it denotes the driver."""

    index: Whole | None = None
    guid: str | None = None


class RuleReference(ReadPart):
    """A reference to a rule of a component."""

    id: str | None = None
    index: Whole | None = None
    guid: str | None = None
    tool_component: ComponentReference | None = None


class ReadArtifactLocation(ReadPart):
    """The location of a file."""

    uri: str | None = None
    uri_base_id: str | None = None
    index: Whole | None = None


class ReadRegion(ReadPart):
    """A region of a file, by lines and columns or by offsets."""

    start_line: Whole | None = None
    start_column: Whole | None = None
    end_line: Whole | None = None
    end_column: Whole | None = None
    char_offset: Whole | None = None
    char_length: Whole | None = None
    byte_offset: Whole | None = None
    byte_length: Whole | None = None


class ReadPhysicalLocation(ReadPart):
    """A region in a file."""

    artifact_location: ReadArtifactLocation | None = None
    region: ReadRegion | None = None


class ReadLocation(ReadPart):
    """A location of a result."""

    physical_location: ReadPhysicalLocation | None = None


class ReadSuppression(ReadPart):
    """A suppression of a result, which may be accepted or not."""

    status: str | None = None


class Provenance(ReadPart):
    """The origin of a result."""

    invocation_index: Whole | None = None


class ReadResult(ReadPart):
    """A result, which may be a finding or not."""

    rule_id: str | None = None
    rule_index: Whole | None = None
    rule: RuleReference | None = None
    level: str | None = None
    kind: str | None = None
    message: ReadMessage | None = None
    locations: list[ReadLocation | None] | None = None
    suppressions: list[ReadSuppression | None] | None = None
    baseline_state: str | None = None
    provenance: Provenance | None = None
    properties: Bag | None = None


class Artifact(ReadPart):
    """A file that results refer to by index."""

    location: ReadArtifactLocation | None = None


class Override(ReadPart):
    """The configuration of a rule during an invocation."""

    descriptor: RuleReference | None = None
    configuration: RuleConfiguration | None = None


class ReadInvocation(ReadPart):
    """An invocation of the tool."""

    execution_successful: bool | None = None
    rule_configuration_overrides: list[Override | None] | None = None


class External(ReadPart):
    """References to parts of a run in other files."""

    results: list[Raw] | None = None


class ReadRun(ReadPart):
    """A run of one tool."""

    tool: ReadTool | None = None
    results: list[ReadResult | None] | None = None
    column_kind: str | None = None
    original_uri_base_ids: dict[str, ReadArtifactLocation | None] | None = None
    artifacts: list[Artifact | None] | None = None
    invocations: list[ReadInvocation | None] | None = None
    external_property_file_references: External | None = None


class ReadLog(ReadPart):
    """A complete log."""

    version: str | None
    runs: list[ReadRun | None] | None
