"""SARIF 2.1.0 in the form that GitHub's code scanning accepts.

Each tool is a run with a constant `automationDetails.id`. GitHub closes alerts that are missing in a later upload of
the same run. So a tool without findings has a run too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import get_args
from urllib.parse import quote

import msgspec

from codebatch.compare.matching.fingerprints import NAME
from codebatch.compare.states import State
from codebatch.exchange.findings import Outgoing
from codebatch.exchange.locations import uri_of
from codebatch.exchange.model import Export, ExportedFindings
from codebatch.exchange.sarif_log import (
    ArtifactLocation,
    AutomationDetails,
    BaselineState,
    Invocation,
    Level,
    Location,
    Log,
    Message,
    Notification,
    PhysicalLocation,
    Properties,
    Region,
    Result,
    Rule,
    Run,
    Suppression,
    Tool,
    ToolDriver,
)
from codebatch.exchange.scanning_limits import ByTool, by_tool, fits, left_out
from codebatch.model.record import Diagnostic, Severity

_ROOT = "%SRCROOT%"
_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
_LEVELS: Mapping[Severity, Level] = {"error": "error", "warning": "warning", "info": "note", "hint": "note"}
_LEVELS_BY_SEVERITY: tuple[Level, ...] = get_args(Level)
_BASELINE: Mapping[State | None, BaselineState] = {
    "new": "new",
    "severity_raised": "updated",
    "suppressed": "unchanged",
}

Summaries = Mapping[tuple[str, str], str]
"""Summaries of rules, by tool and rule ID."""


def export_sarif(exported: ExportedFindings, findings: ByTool, summaries: Summaries) -> Export:
    """Return findings by tool as SARIF, in the given order.

    If the file is too large, it contains only the first findings of each tool.
    """
    most = max(map(len, findings.values()), default=0)
    while not fits(data := _encoded(exported, findings, most, summaries)) and most > 1:
        most //= 2
    included = {tool: findings_of_tool[:most] for tool, findings_of_tool in findings.items()}
    everything = by_tool(exported.findings, exported.tools)
    return Export(data=data, count=sum(map(len, included.values())), excluded=tuple(left_out(everything, included)))


def _encoded(exported: ExportedFindings, findings: ByTool, most: int, summaries: Summaries) -> bytes:
    runs = tuple(
        _run(exported, tool, findings_of_tool[:most], summaries) for tool, findings_of_tool in findings.items()
    )
    return msgspec.json.encode(Log(schema=_SCHEMA, version="2.1.0", runs=runs)) + b"\n"


def _run(exported: ExportedFindings, tool: str, findings: Sequence[Outgoing], summaries: Summaries) -> Run:
    levels: dict[str, Level] = {}
    for finding in findings:
        level = _LEVELS[finding.found.severity]
        levels[finding.found.code] = min(levels.get(finding.found.code, level), level, key=_LEVELS_BY_SEVERITY.index)
    places = {code: place for place, code in enumerate(levels)}
    rules = tuple(_rule(tool, code, level, summaries) for code, level in levels.items())
    lacks = (Notification(level="error", message=Message(text=exported.incomplete)),) if exported.incomplete else None
    return Run(
        tool=Tool(driver=ToolDriver(name=tool, version=exported.tools.get(tool) or None, rules=rules)),
        automation_details=AutomationDetails(id=f"codebatch/{quote(tool, safe='')}/"),
        column_kind="unicodeCodePoints",
        invocations=(Invocation(execution_successful=not exported.incomplete, tool_execution_notifications=lacks),),
        results=tuple(_result(finding, places[finding.found.code]) for finding in findings),
    )


def _rule(tool: str, code: str, level: Level, summaries: Summaries) -> Rule:
    """Return a rule with the three texts that GitHub requires. If the rule has no summary, each text is its name."""
    summary = summaries.get((tool, code))
    short_text = Message(text=summary or f"{code} of {tool}")
    more = Message(text=f"{summary}. Details: codebatch rules show {code}") if summary else short_text
    return Rule(
        id=code,
        default_configuration={"level": level},
        short_description=short_text,
        full_description=short_text,
        help=more,
    )


def _result(outgoing: Outgoing, rule_index: int) -> Result:
    diagnostic = outgoing.found
    place = PhysicalLocation(
        artifact_location=ArtifactLocation(uri=uri_of(outgoing.path), uri_base_id=_ROOT), region=_region(diagnostic)
    )
    return Result(
        rule_id=diagnostic.code,
        rule_index=rule_index,
        level=_LEVELS[diagnostic.severity],
        message=Message(text=diagnostic.message),
        locations=(Location(physical_location=place),),
        partial_fingerprints={NAME: outgoing.fingerprint} if outgoing.fingerprint else None,
        baseline_state=_BASELINE.get(outgoing.state),
        suppressions=_suppressions(outgoing) if outgoing.state == "suppressed" else None,
        properties=Properties(severity=diagnostic.severity) if diagnostic.severity == "hint" else None,
    )


def _suppressions(outgoing: Outgoing) -> tuple[Suppression, ...]:
    return (Suppression(kind="inSource" if outgoing.reason == "suppressed" else "external"),)


def _region(diagnostic: Diagnostic) -> Region | None:
    """Return the region of a finding, or None if its location is invalid."""
    if diagnostic.line < 1 or diagnostic.column < 1:
        return None
    if diagnostic.end_column < 1 or (diagnostic.end_line, diagnostic.end_column) < (diagnostic.line, diagnostic.column):
        return Region(start_line=diagnostic.line, start_column=diagnostic.column)
    return Region(
        start_line=diagnostic.line,
        start_column=diagnostic.column,
        end_line=diagnostic.end_line,
        end_column=diagnostic.end_column,
    )
