"""What of a SARIF log is read. Any part and any element may be null, and is as not said then."""

from __future__ import annotations

import msgspec
from msgspec import UNSET, Raw, UnsetType

from codebatch_workers.exchange.reported import Whole


class Part(msgspec.Struct, rename="camel"):
    """Of a log; what else stands in it is not looked at."""


class Text(Part):
    """A text, which may be a pattern for arguments."""

    text: str | None = None


class Message(Text):
    """What a result says, by itself or by the name of a text of its rule or tool."""

    id: str | None = None
    markdown: str | None = None
    arguments: list[str | None] | None = None


class Bag(msgspec.Struct):
    """A property bag: whoever makes one puts into it what he likes."""

    severity: Raw | UnsetType = UNSET
    problem: Raw | UnsetType = msgspec.field(default=UNSET, name="problem.severity")
    security: Raw | UnsetType = msgspec.field(default=UNSET, name="security-severity")


class Configuration(Part):
    """How a rule is set."""

    level: str | None = None


class Rule(Part):
    """A rule as its component tells of it."""

    id: str | None = None
    guid: str | None = None
    default_configuration: Configuration | None = None
    message_strings: dict[str, Text | None] | None = None
    short_description: Text | None = None
    properties: Bag | None = None


class Component(Part):
    """A driver or an extension of a tool."""

    name: str | None = None
    guid: str | None = None
    rules: list[Rule | None] | None = None
    global_message_strings: dict[str, Text | None] | None = None


class Tool(Part):
    """Who looked."""

    driver: Component | None = None
    extensions: list[Component | None] | None = None


class ComponentReference(Part):
    """Which component; without any, the driver."""

    index: Whole | None = None
    guid: str | None = None


class RuleReference(Part):
    """Which rule of which component."""

    id: str | None = None
    index: Whole | None = None
    guid: str | None = None
    tool_component: ComponentReference | None = None


class ArtifactLocation(Part):
    """Which file."""

    uri: str | None = None
    uri_base_id: str | None = None
    index: Whole | None = None


class Region(Part):
    """Where in it, by lines and columns or by offsets."""

    start_line: Whole | None = None
    start_column: Whole | None = None
    end_line: Whole | None = None
    end_column: Whole | None = None
    char_offset: Whole | None = None
    char_length: Whole | None = None
    byte_offset: Whole | None = None
    byte_length: Whole | None = None


class PhysicalLocation(Part):
    """A place in a file."""

    artifact_location: ArtifactLocation | None = None
    region: Region | None = None


class Location(Part):
    """A place."""

    physical_location: PhysicalLocation | None = None


class Suppression(Part):
    """That a result is silenced, or was to be."""

    status: str | None = None


class Provenance(Part):
    """Where a result comes from."""

    invocation_index: Whole | None = None


class Result(Part):
    """What was found, or looked for in vain."""

    rule_id: str | None = None
    rule_index: Whole | None = None
    rule: RuleReference | None = None
    level: str | None = None
    kind: str | None = None
    message: Message | None = None
    locations: list[Location | None] | None = None
    suppressions: list[Suppression | None] | None = None
    baseline_state: str | None = None
    provenance: Provenance | None = None
    properties: Bag | None = None


class Artifact(Part):
    """A file that results name by its number."""

    location: ArtifactLocation | None = None


class Override(Part):
    """How a rule was set when it looked."""

    descriptor: RuleReference | None = None
    configuration: Configuration | None = None


class Invocation(Part):
    """One time that the tool was run."""

    execution_successful: bool | None = None
    rule_configuration_overrides: list[Override | None] | None = None


class External(Part):
    """What of a run stands in other files."""

    results: list[Raw] | None = None


class Run(Part):
    """What one tool found."""

    tool: Tool | None = None
    results: list[Result | None] | None = None
    column_kind: str | None = None
    original_uri_base_ids: dict[str, ArtifactLocation | None] | None = None
    artifacts: list[Artifact | None] | None = None
    invocations: list[Invocation | None] | None = None
    external_property_file_references: External | None = None


class Log(Part):
    """The whole."""

    version: str | None
    runs: list[Run | None] | None
