"""SARIF 2.1.0, as GitHub's code scanning takes it.

A tool is a run of its own, of the same `automationDetails.id` each time. What is not in it again is fixed, to GitHub:
so a tool that has found nothing has a run too.
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
_GRAVE: tuple[Level, ...] = get_args(Level)
_BASELINE: Mapping[State | None, BaselineState] = {
    "new": "new",
    "severity_raised": "updated",
    "suppressed": "unchanged",
}

Summaries = Mapping[tuple[str, str], str]
"""What a rule finds, by tool and code."""


def export_sarif(told: ExportedFindings, found: ByTool, summaries: Summaries) -> Export:
    """Findings by tool as SARIF, as they come; of each the first ones, where all would be too much."""
    most = max(map(len, found.values()), default=0)
    while not fits(data := _encoded(told, found, most, summaries)) and most > 1:
        most //= 2
    taken = {tool: each[:most] for tool, each in found.items()}
    everything = by_tool(told.findings, told.tools)
    return Export(data=data, count=sum(map(len, taken.values())), excluded=tuple(left_out(everything, taken)))


def _encoded(told: ExportedFindings, found: ByTool, most: int, summaries: Summaries) -> bytes:
    runs = tuple(_run(told, tool, each[:most], summaries) for tool, each in found.items())
    return msgspec.json.encode(Log(schema=_SCHEMA, version="2.1.0", runs=runs)) + b"\n"


def _run(told: ExportedFindings, tool: str, found: Sequence[Outgoing], summaries: Summaries) -> Run:
    levels: dict[str, Level] = {}
    for each in found:
        level = _LEVELS[each.found.severity]
        levels[each.found.code] = min(levels.get(each.found.code, level), level, key=_GRAVE.index)
    places = {code: place for place, code in enumerate(levels)}
    rules = tuple(_rule(tool, code, level, summaries) for code, level in levels.items())
    lacks = (Notification(level="error", message=Message(text=told.incomplete)),) if told.incomplete else None
    return Run(
        tool=Tool(driver=ToolDriver(name=tool, version=told.tools.get(tool) or None, rules=rules)),
        automation_details=AutomationDetails(id=f"codebatch/{quote(tool, safe='')}/"),
        column_kind="unicodeCodePoints",
        invocations=(Invocation(execution_successful=not told.incomplete, tool_execution_notifications=lacks),),
        results=tuple(_result(each, places[each.found.code]) for each in found),
    )


def _rule(tool: str, code: str, level: Level, summaries: Summaries) -> Rule:
    """A rule with the three texts that GitHub asks for; of one that is not known here they are its name."""
    summary = summaries.get((tool, code))
    told = Message(text=summary or f"{code} of {tool}")
    more = Message(text=f"{summary}. Details: codebatch rules show {code}") if summary else told
    return Rule(
        id=code, default_configuration={"level": level}, short_description=told, full_description=told, help=more
    )


def _result(each: Outgoing, rule_index: int) -> Result:
    found = each.found
    place = PhysicalLocation(
        artifact_location=ArtifactLocation(uri=uri_of(each.path), uri_base_id=_ROOT), region=_region(found)
    )
    return Result(
        rule_id=found.code,
        rule_index=rule_index,
        level=_LEVELS[found.severity],
        message=Message(text=found.message),
        locations=(Location(physical_location=place),),
        partial_fingerprints={NAME: each.fingerprint} if each.fingerprint else None,
        baseline_state=_BASELINE.get(each.state),
        suppressions=_suppressions(each) if each.state == "suppressed" else None,
        properties=Properties(severity=found.severity) if found.severity == "hint" else None,
    )


def _suppressions(each: Outgoing) -> tuple[Suppression, ...]:
    return (Suppression(kind="inSource" if each.reason == "suppressed" else "external"),)


def _region(found: Diagnostic) -> Region | None:
    """Where it stands; None where a record has no place that there can be."""
    if found.line < 1 or found.column < 1:
        return None
    if found.end_column < 1 or (found.end_line, found.end_column) < (found.line, found.column):
        return Region(start_line=found.line, start_column=found.column)
    return Region(
        start_line=found.line, start_column=found.column, end_line=found.end_line, end_column=found.end_column
    )
