"""What of a SARIF log is read. Any part and any element may be null, and is as not said then."""

from __future__ import annotations

import msgspec
from msgspec import UNSET, Raw, UnsetType

from codebatch_workers.exchange.reported import Whole


class ReadPart(msgspec.Struct, rename="camel"):
    """Of a log; what else stands in it is not looked at."""


class ReadText(ReadPart):
    """A text, which may be a pattern for arguments."""

    text: str | None = None


class ReadMessage(ReadText):
    """What a result says, by itself or by the name of a text of its rule or tool."""

    id: str | None = None
    markdown: str | None = None
    arguments: list[str | None] | None = None


class Bag(msgspec.Struct):
    """A property bag: whoever makes one puts into it what he likes."""

    severity: Raw | UnsetType = UNSET
    problem: Raw | UnsetType = msgspec.field(default=UNSET, name="problem.severity")
    security: Raw | UnsetType = msgspec.field(default=UNSET, name="security-severity")


class RuleConfiguration(ReadPart):
    """How a rule is set."""

    level: str | None = None


class ReadRule(ReadPart):
    """A rule as its component tells of it."""

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
    """Who looked."""

    driver: Component | None = None
    extensions: list[Component | None] | None = None


class ComponentReference(ReadPart):
    """Which component; without any, the driver."""

    index: Whole | None = None
    guid: str | None = None


class RuleReference(ReadPart):
    """Which rule of which component."""

    id: str | None = None
    index: Whole | None = None
    guid: str | None = None
    tool_component: ComponentReference | None = None


class ReadArtifactLocation(ReadPart):
    """Which file."""

    uri: str | None = None
    uri_base_id: str | None = None
    index: Whole | None = None


class ReadRegion(ReadPart):
    """Where in it, by lines and columns or by offsets."""

    start_line: Whole | None = None
    start_column: Whole | None = None
    end_line: Whole | None = None
    end_column: Whole | None = None
    char_offset: Whole | None = None
    char_length: Whole | None = None
    byte_offset: Whole | None = None
    byte_length: Whole | None = None


class ReadPhysicalLocation(ReadPart):
    """A place in a file."""

    artifact_location: ReadArtifactLocation | None = None
    region: ReadRegion | None = None


class ReadLocation(ReadPart):
    """A place."""

    physical_location: ReadPhysicalLocation | None = None


class ReadSuppression(ReadPart):
    """That a result is silenced, or was to be."""

    status: str | None = None


class Provenance(ReadPart):
    """Where a result comes from."""

    invocation_index: Whole | None = None


class ReadResult(ReadPart):
    """What was found, or looked for in vain."""

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
    """A file that results name by its number."""

    location: ReadArtifactLocation | None = None


class Override(ReadPart):
    """How a rule was set when it looked."""

    descriptor: RuleReference | None = None
    configuration: RuleConfiguration | None = None


class ReadInvocation(ReadPart):
    """One time that the tool was run."""

    execution_successful: bool | None = None
    rule_configuration_overrides: list[Override | None] | None = None


class External(ReadPart):
    """What of a run stands in other files."""

    results: list[Raw] | None = None


class ReadRun(ReadPart):
    """What one tool found."""

    tool: ReadTool | None = None
    results: list[ReadResult | None] | None = None
    column_kind: str | None = None
    original_uri_base_ids: dict[str, ReadArtifactLocation | None] | None = None
    artifacts: list[Artifact | None] | None = None
    invocations: list[ReadInvocation | None] | None = None
    external_property_file_references: External | None = None


class ReadLog(ReadPart):
    """The whole."""

    version: str | None
    runs: list[ReadRun | None] | None
