"""SARIF 2.1.0 (OASIS): the results of its runs. What may be null is taken as not said."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TypeVar

import msgspec
from msgspec import UNSET, Raw, UnsetType

from codebatch.model.record import SEVERITIES, Severity
from codebatch_workers.exchange.reported import (
    MESSAGE_CHARACTERS_MAX,
    Report,
    Reported,
    Unit,
    Unreadable,
    bounded,
    decoded,
)

_VERSION = "2.1."
_BASES_MAX = 16
_ROOTS = ("%SRCROOT%", "SRCROOT")
"""Bases that are the tree by their very name, wherever that lay."""
_LEVELS: dict[str, Severity] = {"error": "error", "warning": "warning", "note": "info", "none": "hint"}
# CodeQL's, of rules without a level.
_PROBLEMS: dict[str, Severity] = {"error": "error", "warning": "warning", "recommendation": "info"}
_SECURITY_ERROR_MIN, _SECURITY_WARNING_MIN = 7.0, 4.0
_NO_FINDINGS = ("pass", "notApplicable")
_BRACES = re.compile(r"\{\{|\}\}|\{(\d{1,3})\}")
_UNITS: dict[str | None, Unit] = {"unicodeCodePoints": "characters"}
_COUNTING_CHARACTERS = ("ruff",)
"""Tools that count code points and do not say so."""

T = TypeVar("T")


class _Part(msgspec.Struct, rename="camel"):
    """Of a log; what else stands in it is not looked at."""


class _Text(_Part):
    text: str | None = None


class _Message(_Text):
    id: str | None = None
    markdown: str | None = None
    arguments: list[str] | None = None


class _Bag(msgspec.Struct):
    """A property bag: whoever makes one puts into it what he likes."""

    severity: Raw | UnsetType = UNSET
    problem: Raw | UnsetType = msgspec.field(default=UNSET, name="problem.severity")
    security: Raw | UnsetType = msgspec.field(default=UNSET, name="security-severity")


class _Configuration(_Part):
    level: str | None = None


class _Rule(_Part):
    id: str | None = None
    default_configuration: _Configuration | None = None
    message_strings: dict[str, _Text] | None = None
    short_description: _Text | None = None
    properties: _Bag | None = None


class _Component(_Part):
    name: str | None = None
    rules: list[_Rule] | None = None


class _Tool(_Part):
    driver: _Component | None = None
    extensions: list[_Component] | None = None


class _ComponentReference(_Part):
    index: int | None = None


class _RuleReference(_Part):
    id: str | None = None
    index: int | None = None
    tool_component: _ComponentReference | None = None


class _ArtifactLocation(_Part):
    uri: str | None = None
    uri_base_id: str | None = None
    index: int | None = None


class _Region(_Part):
    start_line: int | None = None
    start_column: int | None = None
    end_line: int | None = None
    end_column: int | None = None


class _PhysicalLocation(_Part):
    artifact_location: _ArtifactLocation | None = None
    region: _Region | None = None


class _Location(_Part):
    physical_location: _PhysicalLocation | None = None


class _Suppression(_Part):
    status: str | None = None


class _Result(_Part):
    rule_id: str | None = None
    rule_index: int | None = None
    rule: _RuleReference | None = None
    level: str | None = None
    kind: str | None = None
    message: _Message | None = None
    locations: list[_Location] | None = None
    suppressions: list[_Suppression] | None = None
    baseline_state: str | None = None
    properties: _Bag | None = None


class _Artifact(_Part):
    location: _ArtifactLocation | None = None


class _Invocation(_Part):
    execution_successful: bool | None = None


class _External(_Part):
    results: list[Raw] | None = None


class _Run(_Part):
    tool: _Tool | None = None
    results: list[_Result] | None = None
    column_kind: str | None = None
    original_uri_base_ids: dict[str, _ArtifactLocation] | None = None
    artifacts: list[_Artifact] | None = None
    invocations: list[_Invocation] | None = None
    external_property_file_references: _External | None = None


class _Log(_Part):
    version: str | None
    runs: list[_Run] | None


_decoder = msgspec.json.Decoder(_Log)


def read_sarif(data: bytes) -> Report:
    """The results of all runs of a log. Raises Unreadable."""
    log = decoded(data, _decoder)
    if not (log.version or "").startswith(_VERSION):
        raise Unreadable(f"it is of version {log.version!r}, and 2.1.0 is what is read")
    readings = [_Reading(run) for run in log.runs or ()]
    findings = list(bounded(each for reading in readings for each in reading.iter_reported()))
    return Report(
        findings,
        dismissed=sum(each.dismissed for each in readings),
        has_failed=any(each.has_failed for each in readings),
    )


class _Reading:
    """A run, and what in it is found by a place of its own."""

    def __init__(self, run: _Run) -> None:
        if run.external_property_file_references and run.external_property_file_references.results:
            raise Unreadable("its results stand in other files, which are not read")
        tool = run.tool or _Tool()
        self._run = run
        self._driver = tool.driver or _Component()
        self._components = [self._driver, *(tool.extensions or ())]
        self._rules = {rule.id: rule for part in reversed(self._components) for rule in part.rules or ()}
        counts_characters = run.column_kind is None and self._driver.name in _COUNTING_CHARACTERS
        self._unit: Unit = "characters" if counts_characters else _UNITS.get(run.column_kind, "utf-16")
        self.dismissed = 0
        self.has_failed = any(each.execution_successful is False for each in run.invocations or ())

    def iter_reported(self) -> Iterator[Reported]:
        """The results that are findings; the others are counted."""
        for result in self._run.results or ():
            if _is_none(result):
                self.dismissed += 1
            else:
                yield self._reported(result)

    def _reported(self, result: _Result) -> Reported:
        rule = self._rule_of(result)
        location = _at(result.locations, 0) or _Location()
        place = location.physical_location or _PhysicalLocation()
        region = place.region or _Region()
        code = result.rule_id or (result.rule and result.rule.id) or rule.id or ""
        return Reported(
            paths=self._paths(place.artifact_location),
            message=_message(result.message or _Message(), rule),
            severity=_severity(result, rule),
            code=code,
            tool=self._driver.name or "",
            line=region.start_line or 0,
            column=region.start_column or 0,
            end_line=region.end_line or 0,
            end_column=region.end_column or 0,
            unit=self._unit,
            is_uri=True,
        )

    def _rule_of(self, result: _Result) -> _Rule:
        reference = result.rule or _RuleReference()
        component: _Component | None = self._driver
        if reference.tool_component is not None and reference.tool_component.index is not None:
            component = _at(self._components, reference.tool_component.index + 1)
        index = reference.index if result.rule_index is None else result.rule_index
        found = _at(component.rules, index) if component is not None else None
        if found is not None:
            return found
        code = result.rule_id or reference.id or ""
        while code and code not in self._rules:  # `CA1000/1` is of the rule `CA1000`.
            code = code.rpartition("/")[0]
        return self._rules.get(code) or _Rule()

    def _paths(self, location: _ArtifactLocation | None) -> tuple[str, ...]:
        """What the file is called, by its base where that is said; by itself too, where the base is the tree."""
        if location is not None and location.uri is None:
            artifact = _at(self._run.artifacts, location.index)
            location = artifact.location if artifact is not None else None
        if location is None or not location.uri:
            return ()
        whole, base = location.uri, location.uri_base_id
        bases = self._run.original_uri_base_ids or {}
        for _ in range(_BASES_MAX):
            found = bases.get(base or "")
            if found is None or not found.uri:
                break
            whole, base = f"{found.uri.rstrip('/')}/{whole}", found.uri_base_id
        is_of_tree = location.uri_base_id in _ROOTS and whole != location.uri
        return (whole, location.uri) if is_of_tree else (whole,)


def _at(values: Sequence[T] | None, index: int | None) -> T | None:
    return values[index] if values and index is not None and 0 <= index < len(values) else None


def _is_none(result: _Result) -> bool:
    """Whether a result says itself that it is no finding: it passed, is suppressed, or is not there any more."""
    if result.kind in _NO_FINDINGS or result.baseline_state == "absent":
        return True
    return bool(result.suppressions) and all(each.status in (None, "accepted") for each in result.suppressions or ())


def _message(message: _Message, rule: _Rule) -> str:
    text = message.text
    if text is None and message.id is not None and rule.message_strings:
        named = rule.message_strings.get(message.id)
        text = named.text if named is not None else None
    if text is None:
        return message.markdown or (rule.short_description and rule.short_description.text) or ""
    return _filled(text, message.arguments) if message.arguments else text


def _filled(text: str, arguments: Sequence[str]) -> str:
    """A text with its arguments, as far as a message goes: a short one may name a long argument a million times."""
    parts: list[str] = []
    size = end = 0
    for match in _BRACES.finditer(text):
        found = match[0][0] if match[1] is None else _at(arguments, int(match[1]))
        parts += [text[end : match.start()], match[0] if found is None else found[:MESSAGE_CHARACTERS_MAX]]
        size, end = size + len(parts[-2]) + len(parts[-1]), match.end()
        if size > MESSAGE_CHARACTERS_MAX:
            return "".join(parts)
    return "".join([*parts, text[end:]])


def _severity(result: _Result, rule: _Rule) -> Severity:
    """By the result's own word, else by its rule's, else by what CodeQL and others say of a rule."""
    own = _text(result.properties.severity) if result.properties is not None else ""
    said = next((each for each in SEVERITIES if each == own), None)
    if said == "hint" and result.level == "note":  # As we write it: there is no level for it.
        return said
    configured = rule.default_configuration.level if rule.default_configuration is not None else None
    level = result.level or configured
    if level is not None:
        return _LEVELS.get(level, "warning")
    if result.kind not in (None, "fail"):
        return "info"
    bag = rule.properties or _Bag()
    problem = _PROBLEMS.get(_text(bag.problem))
    return problem or _of_score(_text(bag.security)) or "warning"


def _of_score(text: str) -> Severity | None:
    """A score of CVSS, from 0 to 10, as GitHub reads it."""
    try:
        score = float(text)
    except ValueError:
        return None
    if score >= _SECURITY_ERROR_MIN:
        return "error"
    return "warning" if score >= _SECURITY_WARNING_MIN else "info"


def _text(raw: Raw | UnsetType) -> str:
    """A property that is a text or a number."""
    if raw is UNSET:
        return ""
    try:
        value = msgspec.json.decode(raw)
    except (ValueError, RecursionError):
        return ""
    return str(value) if isinstance(value, (str, float, int)) else ""
