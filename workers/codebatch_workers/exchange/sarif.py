"""SARIF 2.1.0 (OASIS): the results of its runs. What may be null is taken as not said."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
from msgspec import UNSET, Raw, UnsetType

from codebatch.model.record import Severity
from codebatch_workers.exchange.reported import (
    Report,
    Reported,
    ReportedSpan,
    Unit,
    Unreadable,
    bounded,
    decoded,
    whole,
)
from codebatch_workers.exchange.sarif_log import (
    Bag,
    ReadArtifactLocation,
    ReadLocation,
    ReadLog,
    ReadMessage,
    ReadPhysicalLocation,
    ReadRegion,
    ReadResult,
    ReadRun,
)
from codebatch_workers.exchange.sarif_rules import Named, SarifRules, at, message_of

_VERSION = "2.1."
_BASES_MAX = 16
_ROOTS = ("%SRCROOT%", "SRCROOT")
"""Bases that are the tree by their very name, wherever that lay."""
_LEVELS: dict[str, Severity] = {"error": "error", "warning": "warning", "note": "info", "none": "hint"}
# CodeQL's, of rules without a level.
_PROBLEMS: dict[str, Severity] = {"error": "error", "warning": "warning", "recommendation": "info"}
_SECURITY_ERROR_MIN, _SECURITY_WARNING_MIN = 7.0, 4.0
_NO_FINDINGS = ("pass", "notApplicable")
_UNITS: dict[str | None, Unit] = {"unicodeCodePoints": "characters"}
_COUNTING_CHARACTERS = ("ruff",)
"""Tools that count code points and do not say so."""

_decoder = msgspec.json.Decoder(ReadLog)


def read_sarif(data: bytes) -> Report:
    """The results of all runs of a log. Raises Unreadable."""
    log = decoded(data, _decoder)
    if not (log.version or "").startswith(_VERSION):
        raise Unreadable(f"its version is {log.version!r}; only 2.1.0 is supported")
    readings = [_SarifReading(run) for run in log.runs or () if run is not None]
    findings = list(bounded(each for reading in readings for each in reading.iter_reported()))
    return Report(
        findings,
        dismissed=sum(each.dismissed for each in readings),
        has_failed=any(each.has_failed for each in readings),
    )


class _SarifReading:
    """A run, and what in it is found by a place of its own."""

    def __init__(self, run: ReadRun) -> None:
        if run.external_property_file_references and run.external_property_file_references.results:
            raise Unreadable("its results are in other files, which is not supported")
        self._run = run
        self._rules = SarifRules(run)
        self._tool = self._rules.driver.name or ""
        counts_characters = run.column_kind is None and self._tool in _COUNTING_CHARACTERS
        self._unit: Unit = "characters" if counts_characters else _UNITS.get(run.column_kind, "utf-16")
        self.dismissed = 0
        self.has_failed = any(each and each.execution_successful is False for each in run.invocations or ())

    def iter_reported(self) -> Iterator[Reported]:
        """The results that are findings; the others are counted."""
        for result in self._run.results or ():
            if result is None:
                continue
            if _is_none(result):
                self.dismissed += 1
            else:
                yield self._reported(result)

    def _reported(self, result: ReadResult) -> Reported:
        named = self._rules.of(result)
        location = next(filter(None, result.locations or ()), ReadLocation())
        place = location.physical_location or ReadPhysicalLocation()
        region = place.region or ReadRegion()
        return Reported(
            paths=self._paths(place.artifact_location),
            message=message_of(result.message or ReadMessage(), named),
            severity=self._severity(result, named),
            code=result.rule_id or (result.rule and result.rule.id) or named.rule.id or "",
            tool=self._tool,
            line=whole(region.start_line),
            column=whole(region.start_column),
            end_line=whole(region.end_line),
            end_column=whole(region.end_column),
            unit=self._unit,
            is_uri=True,
            span=_span(region),
        )

    def _severity(self, result: ReadResult, named: Named) -> Severity:
        """By the result's own word, else by its rule's, else by what CodeQL and others say of a rule."""
        own = _text(result.properties.severity) if result.properties is not None else ""
        if own == "hint" and result.level == "note":  # As we write it: there is no level for it.
            return "hint"
        if result.level is None and result.kind not in (None, "fail"):
            return "info"
        level = result.level or self._rules.level(result, named)
        if level is not None:
            return _LEVELS.get(level, "warning")
        bag = named.rule.properties or Bag()
        problem = _PROBLEMS.get(_text(bag.problem))
        return problem or _of_score(_text(bag.security)) or "warning"

    def _paths(self, location: ReadArtifactLocation | None) -> tuple[str, ...]:
        """What the file is called, by its base where that is said; by itself too, where the base is the tree."""
        if location is not None and location.uri is None:
            artifact = at(self._run.artifacts, location.index)
            location = artifact.location if artifact is not None else None
        if location is None or not location.uri:
            return ()
        uri, base = location.uri, location.uri_base_id
        bases = self._run.original_uri_base_ids or {}
        for _ in range(_BASES_MAX):
            found = bases.get(base or "")
            if found is None or not found.uri:
                break
            uri, base = f"{found.uri.rstrip('/')}/{uri}", found.uri_base_id
        is_of_tree = location.uri_base_id in _ROOTS and uri != location.uri
        return (uri, location.uri) if is_of_tree else (uri,)


def _span(region: ReadRegion) -> ReportedSpan | None:
    """What a region says by offsets, of characters first; -1 is as nothing said."""
    if region.char_offset is not None and region.char_offset >= 0:
        return ReportedSpan(whole(region.char_offset), whole(region.char_length), is_of_bytes=False)
    if region.byte_offset is not None and region.byte_offset >= 0:
        return ReportedSpan(whole(region.byte_offset), whole(region.byte_length), is_of_bytes=True)
    return None


def _is_none(result: ReadResult) -> bool:
    """Whether a result says itself that it is no finding: it passed, is suppressed, or is not there any more."""
    if result.kind in _NO_FINDINGS or result.baseline_state == "absent":
        return True
    suppressions = [each for each in result.suppressions or () if each is not None]
    return bool(suppressions) and all(each.status in (None, "accepted") for each in suppressions)


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
