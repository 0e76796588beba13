"""The parts of SARIF 2.1.0 that are written (OASIS, docs.oasis-open.org/sarif/sarif/v2.1.0): its own names."""

from __future__ import annotations

from typing import Literal

import msgspec

Level = Literal["error", "warning", "note"]
BaselineState = Literal["new", "updated", "unchanged"]


class _Part(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True, gc=False):
    """What has SARIF's spelling, and nothing written of what is not set."""


class Message(_Part, frozen=True):
    text: str


class Region(_Part, frozen=True):
    start_line: int
    start_column: int | None = None
    end_line: int | None = None
    end_column: int | None = None


class ArtifactLocation(_Part, frozen=True):
    uri: str
    uri_base_id: str


class PhysicalLocation(_Part, frozen=True):
    artifact_location: ArtifactLocation
    region: Region | None = None


class Location(_Part, frozen=True):
    physical_location: PhysicalLocation


class Suppression(_Part, frozen=True):
    kind: Literal["inSource", "external"]


class Properties(_Part, frozen=True):
    severity: str


class Result(_Part, frozen=True):
    rule_id: str
    rule_index: int
    level: Level
    message: Message
    locations: tuple[Location, ...]
    partial_fingerprints: dict[str, str] | None = None
    baseline_state: BaselineState | None = None
    suppressions: tuple[Suppression, ...] | None = None
    properties: Properties | None = None


class Rule(_Part, frozen=True):
    id: str
    default_configuration: dict[str, Level]
    short_description: Message
    full_description: Message
    help: Message


class Driver(_Part, frozen=True):
    name: str
    rules: tuple[Rule, ...]
    version: str | None = None


class Tool(_Part, frozen=True):
    driver: Driver


class Notification(_Part, frozen=True):
    level: Level
    message: Message


class Invocation(_Part, frozen=True):
    execution_successful: bool
    tool_execution_notifications: tuple[Notification, ...] | None = None


class AutomationDetails(_Part, frozen=True):
    id: str


class Run(_Part, frozen=True):
    tool: Tool
    automation_details: AutomationDetails
    column_kind: Literal["unicodeCodePoints"]
    invocations: tuple[Invocation, ...]
    results: tuple[Result, ...]


class Log(_Part, frozen=True):
    schema: str = msgspec.field(name="$schema")
    version: Literal["2.1.0"]
    runs: tuple[Run, ...]
