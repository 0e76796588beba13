"""SARIF 2.1.0 (OASIS): a writer of the form that GitHub's code scanning accepts, and a reader of results.

The writer makes one run for each tool, with an `automationDetails.id` that is the same in each export. If a later
upload with the same ID does not contain an alert, GitHub closes this alert. So a tool without findings gets a run too,
with no results.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import get_args
from urllib.parse import quote

import msgspec
from msgspec import UNSET, Raw, UnsetType

from codebatch.interchange.findings import Export, ExportedFinding, ExportedFindings
from codebatch.interchange.locations import path_uri
from codebatch.interchange.reports import (
    NO_MESSAGE,
    ImportedFinding,
    ImportedReport,
    ImportedSpan,
    UnreadableReport,
    decode_report,
    int_or_zero,
    limit_findings,
    sample_text,
)
from codebatch.interchange.sarif_log import (
    ArtifactLocation,
    BaselineState,
    FileRegion,
    PhysicalLocation,
    PropertyBag,
    ResultLocation,
    ResultSuppression,
    RuleConfiguration,
    SarifLevel,
    SarifLog,
    SarifMessage,
    SarifResult,
    SarifRule,
    SarifRun,
    SarifText,
    SarifTool,
    ToolComponent,
    ToolInvocation,
)
from codebatch.interchange.sarif_rules import ResolvedRule, RuleResolver, item_at, message_text
from codebatch.interchange.scanning_limits import FindingsByTool, fits_upload_limit, group_by_tool, omission_notes
from codebatch.model.analysis.report_formats import ColumnUnit
from codebatch.model.record import Diagnostic, Severity

_ROOT_ID = "%SRCROOT%"
_ROOT_IDS = (_ROOT_ID, "SRCROOT")
"""Values of `uriBaseId` that mean the root of the source tree."""
_SCHEMA_URL = "https://json.schemastore.org/sarif-2.1.0.json"
_FINGERPRINT_KEY = "codebatch/v1"
_WRITTEN_LEVELS: Mapping[Severity, SarifLevel] = {
    "error": "error",
    "warning": "warning",
    "info": "note",
    "hint": "note",
}
_LEVELS_BY_SEVERITY: tuple[SarifLevel, ...] = get_args(SarifLevel)
_BASELINE_STATES: Mapping[str | None, BaselineState] = {
    "new": "new",
    "severity_raised": "updated",
    "suppressed": "unchanged",
}

_VERSION_PREFIX = "2.1."
_BASE_DEPTH_MAX = 16
_SEVERITY_BY_LEVEL: dict[str, Severity] = {"error": "error", "warning": "warning", "note": "info", "none": "hint"}
# The severities that CodeQL writes as a property of a rule. They are used for rules without a level.
_SEVERITY_BY_PROBLEM: dict[str, Severity] = {"error": "error", "warning": "warning", "recommendation": "info"}
_SECURITY_ERROR_MIN, _SECURITY_WARNING_MIN = 7.0, 4.0
_KINDS_WITHOUT_FINDING = ("pass", "notApplicable")
_COLUMN_UNITS: dict[str | None, ColumnUnit] = {"unicodeCodePoints": "characters"}
_TOOLS_COUNTING_CHARACTERS = ("ruff",)
"""Tools that write columns in code points without declaring it in `columnKind`."""
_decoder = msgspec.json.Decoder(SarifLog)

RuleSummaries = Mapping[tuple[str, str], str]
"""The summaries of rules, by (tool, rule ID)."""


def export_sarif(exported: ExportedFindings, findings: FindingsByTool, summaries: RuleSummaries) -> Export:
    """Return findings as a SARIF log, one run for each tool. Within a run, the order of the findings is kept.

    If the log would be too large, it contains only the first findings of each tool.
    """
    most = max(map(len, findings.values()), default=0)
    while not fits_upload_limit(data := _encode_log(exported, findings, most, summaries)) and most > 1:
        most //= 2
    included = {tool: tool_findings[:most] for tool, tool_findings in findings.items()}
    everything = group_by_tool(exported.findings, exported.tools)
    return Export(
        data=data, count=sum(map(len, included.values())), excluded=tuple(omission_notes(everything, included))
    )


def _encode_log(exported: ExportedFindings, findings: FindingsByTool, most: int, summaries: RuleSummaries) -> bytes:
    runs = tuple(_tool_run(exported, tool, tool_findings[:most], summaries) for tool, tool_findings in findings.items())
    return msgspec.json.encode(SarifLog(schema=_raw_json(_SCHEMA_URL), version="2.1.0", runs=runs)) + b"\n"


def _tool_run(
    exported: ExportedFindings, tool: str, findings: Sequence[ExportedFinding], summaries: RuleSummaries
) -> SarifRun:
    levels: dict[str, SarifLevel] = {}
    for finding in findings:
        level = _WRITTEN_LEVELS[finding.diagnostic.severity]
        levels[finding.diagnostic.code] = min(
            levels.get(finding.diagnostic.code, level), level, key=_LEVELS_BY_SEVERITY.index
        )
    places = {code: place for place, code in enumerate(levels)}
    rules = tuple(_described_rule(tool, code, level, summaries) for code, level in levels.items())
    severity = "warning" if exported.is_accepted else "error"
    lacks = [{"level": severity, "message": {"text": exported.incomplete}}] if exported.incomplete else UNSET
    version = exported.tools.get(tool) or UNSET
    invocation = ToolInvocation(
        execution_successful=not exported.incomplete, tool_execution_notifications=_raw_json(lacks)
    )
    return SarifRun(
        tool=SarifTool(driver=ToolComponent(name=tool, version=_raw_json(version), rules=rules)),
        automation_details=_raw_json({"id": f"codebatch/{quote(tool, safe='')}/"}),
        column_kind="unicodeCodePoints",
        invocations=(invocation,),
        results=tuple(_finding_result(finding, places[finding.diagnostic.code]) for finding in findings),
    )


def _described_rule(tool: str, code: str, level: SarifLevel, summaries: RuleSummaries) -> SarifRule:
    """Return the description of a rule, with the three texts that GitHub requires.

    If the rule has no summary, all three are its name.
    """
    summary = summaries.get((tool, code))
    short_text = SarifText(text=summary or f"{code} of {tool}")
    more = SarifText(text=f"{summary}. Details: codebatch rules show {code}") if summary else short_text
    return SarifRule(
        id=code,
        default_configuration=RuleConfiguration(level=level),
        short_description=short_text,
        full_description=_raw_json(short_text),
        help=_raw_json(more),
    )


def _finding_result(outgoing: ExportedFinding, rule_index: int) -> SarifResult:
    diagnostic = outgoing.diagnostic
    place = PhysicalLocation(
        artifact_location=ArtifactLocation(uri=path_uri(outgoing.path), uri_base_id=_ROOT_ID),
        region=_finding_region(diagnostic),
    )
    return SarifResult(
        rule_id=diagnostic.code,
        rule_index=rule_index,
        level=_WRITTEN_LEVELS[diagnostic.severity],
        message=SarifMessage(text=diagnostic.message),
        locations=(ResultLocation(physical_location=place),),
        partial_fingerprints=_raw_json({_FINGERPRINT_KEY: outgoing.fingerprint} if outgoing.fingerprint else UNSET),
        baseline_state=_BASELINE_STATES.get(outgoing.state),
        suppressions=_finding_suppressions(outgoing) if outgoing.state == "suppressed" else None,
        properties=PropertyBag(severity=_raw_json(diagnostic.severity)) if diagnostic.severity == "hint" else None,
    )


def _finding_suppressions(outgoing: ExportedFinding) -> tuple[ResultSuppression, ...]:
    return (ResultSuppression(kind=_raw_json("inSource" if outgoing.reason == "suppressed" else "external")),)


def _finding_region(diagnostic: Diagnostic) -> FileRegion | None:
    """Return the region of a finding, or None if its location is invalid."""
    if diagnostic.line < 1 or diagnostic.column < 1:
        return None
    if diagnostic.end_column < 1 or (diagnostic.end_line, diagnostic.end_column) < (diagnostic.line, diagnostic.column):
        return FileRegion(start_line=diagnostic.line, start_column=diagnostic.column)
    return FileRegion(
        start_line=diagnostic.line,
        start_column=diagnostic.column,
        end_line=diagnostic.end_line,
        end_column=diagnostic.end_column,
    )


def _raw_json(value: object) -> Raw | UnsetType:
    """Return a value encoded as Raw, the type of parts whose content is not checked when they are read."""
    return UNSET if value is UNSET else Raw(msgspec.json.encode(value))


def read_sarif(data: bytes) -> ImportedReport:
    """Read the results of all runs in a SARIF log. Raises UnreadableReport."""
    log = decode_report(data, _decoder)
    if not (log.version or "").startswith(_VERSION_PREFIX):
        raise UnreadableReport(f"its version is {log.version!r}; only 2.1.0 is supported")
    if log.runs is None:
        raise UnreadableReport("it has no `runs`")
    readings = [_RunReader(run) for run in log.runs if run is not None]
    findings = list(limit_findings(finding for reading in readings for finding in reading.iter_reported()))
    return ImportedReport(
        findings,
        dismissed=sum(reading.dismissed for reading in readings),
        has_failed=any(reading.has_failed for reading in readings),
        other_text=next((f"a run of {reading.tool} without `results`" for reading in readings if reading.is_empty), ""),
    )


class _RunReader:
    """A reader of one run. It has the lists of the run to which results refer by index, such as rules and artifacts."""

    def __init__(self, run: SarifRun) -> None:
        if run.external_property_file_references and run.external_property_file_references.results:
            raise UnreadableReport("its results are in other files, which is not supported")
        self._run = run
        self._rules = RuleResolver(run)
        self.tool = self._rules.driver.name or ""
        self.is_empty = run.results is None
        counts_characters = run.column_kind is None and self.tool in _TOOLS_COUNTING_CHARACTERS
        self._unit: ColumnUnit = "characters" if counts_characters else _COLUMN_UNITS.get(run.column_kind, "utf-16")
        self.dismissed = 0
        self.has_failed = any(
            invocation and invocation.execution_successful is False for invocation in run.invocations or ()
        )

    def iter_reported(self) -> Iterator[ImportedFinding]:
        """Yield the results that report a problem. Count all others in `dismissed`."""
        for result in self._run.results or ():
            if result is None:
                continue
            if _is_dismissed(result):
                self.dismissed += 1
            else:
                yield self._convert_result(result)

    def _convert_result(self, result: SarifResult) -> ImportedFinding:
        rule = self._rules.resolve(result)
        location = next(filter(None, result.locations or ()), ResultLocation())
        physical_location = location.physical_location or PhysicalLocation()
        region = physical_location.region or FileRegion()
        severity, unknown_level = self._result_severity(result, rule)
        message = message_text(result.message or SarifMessage(), rule)
        return ImportedFinding(
            paths=self._result_paths(physical_location.artifact_location),
            message=message,
            severity=severity,
            code=result.rule_id or (result.rule and result.rule.id) or rule.rule.id or "",
            tool=self.tool,
            line=int_or_zero(region.start_line),
            column=int_or_zero(region.start_column),
            end_line=int_or_zero(region.end_line),
            end_column=int_or_zero(region.end_column),
            unit=self._unit,
            is_uri=True,
            span=_region_span(region),
            replaced=unknown_level or ("" if message else NO_MESSAGE),
        )

    def _result_severity(self, result: SarifResult, rule: ResolvedRule) -> tuple[Severity, str]:
        """Return the severity of a result, and a description of its level if the level is unknown.

        It is the level of the result itself, otherwise the level of its rule, otherwise a severity in the properties of
        its rule.
        """
        own_severity = _text_property(result.properties.severity) if result.properties is not None else ""
        # SARIF has no member for hints, so codebatch writes a hint in this way.
        if own_severity == "hint" and result.level == "note":
            return "hint", ""
        if result.level is None and result.kind not in (None, "fail"):
            return "info", ""
        level = result.level or self._rules.configured_level(result, rule)
        if level is not None:
            severity = _SEVERITY_BY_LEVEL.get(level)
            return severity or "warning", "" if severity else f"level {sample_text(level)!r}"
        bag = rule.rule.properties or PropertyBag()
        problem = _SEVERITY_BY_PROBLEM.get(_text_property(bag.problem))
        return problem or _score_severity(_text_property(bag.security)) or "warning", ""

    def _result_paths(self, location: ArtifactLocation | None) -> tuple[str, ...]:
        """Return the URI of a file, resolved against its base URI.

        If the base is the root of the source tree, also return the unresolved URI, as a second possible name.
        """
        if location is not None and location.uri is None:
            artifact = item_at(self._run.artifacts, location.index)
            location = artifact.location if artifact is not None else None
        if location is None or not location.uri:
            return ()
        uri, base = location.uri, location.uri_base_id
        bases = self._run.original_uri_base_ids or {}
        for _ in range(_BASE_DEPTH_MAX):
            base_location = bases.get(base or "")
            if base_location is None or not base_location.uri:
                break
            uri, base = f"{base_location.uri.rstrip('/')}/{uri}", base_location.uri_base_id
        is_in_tree = location.uri_base_id in _ROOT_IDS and uri != location.uri
        return (uri, location.uri) if is_in_tree else (uri,)


def _region_span(region: FileRegion) -> ImportedSpan | None:
    """Return the offset and length of a region as a span, or None if the region has no offset.

    Character offsets take precedence over byte offsets. An offset of -1 counts as missing.
    """
    if region.char_offset is not None and region.char_offset >= 0:
        return ImportedSpan(int_or_zero(region.char_offset), int_or_zero(region.char_length), is_of_bytes=False)
    if region.byte_offset is not None and region.byte_offset >= 0:
        return ImportedSpan(int_or_zero(region.byte_offset), int_or_zero(region.byte_length), is_of_bytes=True)
    return None


def _is_dismissed(result: SarifResult) -> bool:
    """Return whether the report does not count a result as a problem: it passed, is suppressed, or is absent."""
    if result.kind in _KINDS_WITHOUT_FINDING or result.baseline_state == "absent":
        return True
    suppressions = [suppression for suppression in result.suppressions or () if suppression is not None]
    return bool(suppressions) and all(suppression.status in (None, "accepted") for suppression in suppressions)


def _score_severity(text: str) -> Severity | None:
    """Return the severity for a CVSS score from 0 to 10, as GitHub maps it. None if the text is not a number."""
    try:
        score = float(text)
    except ValueError:
        return None
    if score >= _SECURITY_ERROR_MIN:
        return "error"
    return "warning" if score >= _SECURITY_WARNING_MIN else "info"


def _text_property(raw: Raw | UnsetType) -> str:
    """Return a property as text. If it is neither a text nor a number, return an empty text."""
    if raw is UNSET:
        return ""
    try:
        value = msgspec.json.decode(raw)
    except (ValueError, RecursionError):
        return ""
    return str(value) if isinstance(value, (str, float, int)) else ""
