"""Types of the written parts of SARIF 2.1.0 (OASIS, docs.oasis-open.org/sarif/sarif/v2.1.0), with its names."""

from __future__ import annotations

from typing import Literal

import msgspec

Level = Literal["error", "warning", "note"]
BaselineState = Literal["new", "updated", "unchanged"]


class _SarifPart(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True, gc=False):
    """Base of SARIF objects: camel case, and unset properties are omitted."""


class Message(_SarifPart, frozen=True):
    text: str


class Region(_SarifPart, frozen=True):
    start_line: int
    start_column: int | None = None
    end_line: int | None = None
    end_column: int | None = None


class ArtifactLocation(_SarifPart, frozen=True):
    uri: str
    uri_base_id: str


class PhysicalLocation(_SarifPart, frozen=True):
    artifact_location: ArtifactLocation
    region: Region | None = None


class Location(_SarifPart, frozen=True):
    physical_location: PhysicalLocation


class Suppression(_SarifPart, frozen=True):
    kind: Literal["inSource", "external"]


class Properties(_SarifPart, frozen=True):
    severity: str


class Result(_SarifPart, frozen=True):
    rule_id: str
    rule_index: int
    level: Level
    message: Message
    locations: tuple[Location, ...]
    partial_fingerprints: dict[str, str] | None = None
    baseline_state: BaselineState | None = None
    suppressions: tuple[Suppression, ...] | None = None
    properties: Properties | None = None


class Rule(_SarifPart, frozen=True):
    id: str
    default_configuration: dict[str, Level]
    short_description: Message
    full_description: Message
    help: Message


class ToolDriver(_SarifPart, frozen=True):
    name: str
    rules: tuple[Rule, ...]
    version: str | None = None


class Tool(_SarifPart, frozen=True):
    driver: ToolDriver


class Notification(_SarifPart, frozen=True):
    level: Level
    message: Message


class Invocation(_SarifPart, frozen=True):
    execution_successful: bool
    tool_execution_notifications: tuple[Notification, ...] | None = None


class AutomationDetails(_SarifPart, frozen=True):
    id: str


class Run(_SarifPart, frozen=True):
    tool: Tool
    automation_details: AutomationDetails
    column_kind: Literal["unicodeCodePoints"]
    invocations: tuple[Invocation, ...]
    results: tuple[Result, ...]


class Log(_SarifPart, frozen=True):
    schema: str = msgspec.field(name="$schema")
    version: Literal["2.1.0"]
    runs: tuple[Run, ...]
