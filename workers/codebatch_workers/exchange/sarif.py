"""A reader of the results in SARIF 2.1.0 logs (OASIS). A null value counts as missing."""

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
"""Base ids that denote the root of the tree."""
_LEVELS: dict[str, Severity] = {"error": "error", "warning": "warning", "note": "info", "none": "hint"}
# CodeQL's severities, for rules without a level.
_PROBLEMS: dict[str, Severity] = {"error": "error", "warning": "warning", "recommendation": "info"}
_SECURITY_ERROR_MIN, _SECURITY_WARNING_MIN = 7.0, 4.0
_NO_FINDINGS = ("pass", "notApplicable")
_UNITS: dict[str | None, Unit] = {"unicodeCodePoints": "characters"}
_COUNTING_CHARACTERS = ("ruff",)
"""Tools that count code points without declaring it."""

_decoder = msgspec.json.Decoder(ReadLog)


def read_sarif(data: bytes) -> Report:
    """Read the results of all runs of a log. Raises Unreadable."""
    log = decoded(data, _decoder)
    if not (log.version or "").startswith(_VERSION):
        raise Unreadable(f"its version is {log.version!r}; only 2.1.0 is supported")
    readings = [_RunReader(run) for run in log.runs or () if run is not None]
    findings = list(bounded(finding for reading in readings for finding in reading.iter_reported()))
    return Report(
        findings,
        dismissed=sum(reading.dismissed for reading in readings),
        has_failed=any(reading.has_failed for reading in readings),
    )


class _RunReader:
    """A reader of a run, with the data that results refer to by index."""

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
        """Yield the results that are findings. Others are counted."""
        for result in self._run.results or ():
            if result is None:
                continue
            if _is_dismissed(result):
                self.dismissed += 1
            else:
                yield self._convert(result)

    def _convert(self, result: ReadResult) -> Reported:
        rule = self._rules.of(result)
        location = next(filter(None, result.locations or ()), ReadLocation())
        physical_location = location.physical_location or ReadPhysicalLocation()
        region = physical_location.region or ReadRegion()
        return Reported(
            paths=self._paths(physical_location.artifact_location),
            message=message_of(result.message or ReadMessage(), rule),
            severity=self._severity(result, rule),
            code=result.rule_id or (result.rule and result.rule.id) or rule.rule.id or "",
            tool=self._tool,
            line=whole(region.start_line),
            column=whole(region.start_column),
            end_line=whole(region.end_line),
            end_column=whole(region.end_column),
            unit=self._unit,
            is_uri=True,
            span=_span(region),
        )

    def _severity(self, result: ReadResult, rule: Named) -> Severity:
        """Return the severity from the result, or else from its rule, or else from properties of the rule."""
        own_severity = _text(result.properties.severity) if result.properties is not None else ""
        # SARIF has no level for hints, so codebatch writes them in this way.
        if own_severity == "hint" and result.level == "note":
            return "hint"
        if result.level is None and result.kind not in (None, "fail"):
            return "info"
        level = result.level or self._rules.level(result, rule)
        if level is not None:
            return _LEVELS.get(level, "warning")
        bag = rule.rule.properties or Bag()
        problem = _PROBLEMS.get(_text(bag.problem))
        return problem or _severity_of_score(_text(bag.security)) or "warning"

    def _paths(self, location: ReadArtifactLocation | None) -> tuple[str, ...]:
        """Return the URI of a file resolved against its base.

        If the base is the root of the tree, also return the unresolved URI.
        """
        if location is not None and location.uri is None:
            artifact = at(self._run.artifacts, location.index)
            location = artifact.location if artifact is not None else None
        if location is None or not location.uri:
            return ()
        uri, base = location.uri, location.uri_base_id
        bases = self._run.original_uri_base_ids or {}
        for _ in range(_BASES_MAX):
            base_location = bases.get(base or "")
            if base_location is None or not base_location.uri:
                break
            uri, base = f"{base_location.uri.rstrip('/')}/{uri}", base_location.uri_base_id
        is_in_tree = location.uri_base_id in _ROOTS and uri != location.uri
        return (uri, location.uri) if is_in_tree else (uri,)


def _span(region: ReadRegion) -> ReportedSpan | None:
    """Return the span of a region with offsets.

    Character offsets take precedence. An offset of -1 counts as missing.
    """
    if region.char_offset is not None and region.char_offset >= 0:
        return ReportedSpan(whole(region.char_offset), whole(region.char_length), is_of_bytes=False)
    if region.byte_offset is not None and region.byte_offset >= 0:
        return ReportedSpan(whole(region.byte_offset), whole(region.byte_length), is_of_bytes=True)
    return None


def _is_dismissed(result: ReadResult) -> bool:
    """Return whether a result is marked as no finding: it passed, is suppressed, or is absent."""
    if result.kind in _NO_FINDINGS or result.baseline_state == "absent":
        return True
    suppressions = [suppression for suppression in result.suppressions or () if suppression is not None]
    return bool(suppressions) and all(suppression.status in (None, "accepted") for suppression in suppressions)


def _severity_of_score(text: str) -> Severity | None:
    """Return the severity for a CVSS score from 0 to 10, as GitHub maps it, or None if it is not a number."""
    try:
        score = float(text)
    except ValueError:
        return None
    if score >= _SECURITY_ERROR_MIN:
        return "error"
    return "warning" if score >= _SECURITY_WARNING_MIN else "info"


def _text(raw: Raw | UnsetType) -> str:
    """Return a property that is a text or a number as text."""
    if raw is UNSET:
        return ""
    try:
        value = msgspec.json.decode(raw)
    except (ValueError, RecursionError):
        return ""
    return str(value) if isinstance(value, (str, float, int)) else ""
