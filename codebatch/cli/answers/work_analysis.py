"""The answer of `work analyze`: as text, as JSON, and as graphs for Graphviz and Mermaid."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal

import click
import msgspec

from codebatch.cli.framework.context import CommandContext
from codebatch.cli.output.tables import table_lines
from codebatch.errors import InvalidInput
from codebatch.model.text.quantities import count_text, human_seconds
from codebatch.model.work.work_batch import InferredEdge, RejectedEdge, Work
from codebatch.work.control.analysis import AnalyzedEdge, WorkAnalysis, analyze_list, edges_as_toml, printable_text
from codebatch.work.definition.work_list import WorkList

AnalysisForm = Literal["text", "json", "dot", "mermaid"]

_CRITICAL_PATH_SHOWN_MAX = 20
_EDGES_SHOWN_MAX = 100
_MERMAID_ESCAPES = str.maketrans(
    {"#": "#35;", '"': "#quot;", "<": "#lt;", ">": "#gt;", "&": "#amp;", "`": "#96;", "\\": "#92;"}
)


def answer_work_analysis(context: CommandContext, listed: WorkList, form: AnalysisForm, written: Path | None) -> None:
    """Print the analysis of a task list.

    If `written` is set, also write the inferred dependencies to this file, which must not exist.
    """
    for text in listed.warnings:
        context.report(text)
    for text in listed.notes:
        context.note(text)
    analysis = analyze_list(listed)
    if written is not None:
        _write_inferred_needs(written, analysis)
        context.note(f"wrote {written}")
    _print_analysis(msgspec.structs.replace(context, as_json=True) if form == "json" else context, analysis, form)


def confirm_inferred(context: CommandContext, work: Work, rejected: Sequence[RejectedEdge], *, is_sure: bool) -> bool:
    """Print inferred dependencies, and return whether the run may use them.

    On a terminal, the user is asked, unless `is_sure` is set. Otherwise, return True.
    """
    if not (is_sure and context.quiet):
        _report_inferred(context, work.inferred, rejected)
    if is_sure or not work.inferred or not (sys.stdin.isatty() and sys.stderr.isatty()):
        return True
    with context.display.without_progress_line():
        return click.confirm("Run with these dependencies?", default=True, err=True)


def _print_analysis(context: CommandContext, analysis: WorkAnalysis, form: AnalysisForm) -> None:
    if form == "dot":
        context.print(analysis, _dot_lines(analysis))
    elif form == "mermaid":
        context.print(analysis, _mermaid_lines(analysis))
    else:
        context.print(analysis, _analysis_lines(analysis))


def _write_inferred_needs(path: Path, analysis: WorkAnalysis) -> None:
    """Write inferred dependencies to a new file. Raises InvalidInput if the file exists or cannot be written."""
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(edges_as_toml(analysis.edges))
    except OSError as error:
        raise InvalidInput(f"cannot write {path}: {error.strerror}") from error


def _report_inferred(
    context: CommandContext, inferred: Sequence[InferredEdge], rejected_edges: Sequence[RejectedEdge]
) -> None:
    """Print the accepted and the rejected inferred dependencies, so that users see them before any task runs."""
    if inferred or rejected_edges:
        context.report(f"inferred: {count_text(len(inferred), 'dependency', 'dependencies')}")
        rows = ((edge.task, edge.on, f"{edge.confidence:.2f}", edge.evidence) for edge in inferred[:_EDGES_SHOWN_MAX])
        for line in table_lines(rows, ("task", "needs", "confidence", "why")) if inferred else ():
            context.report(line)
        if len(inferred) > _EDGES_SHOWN_MAX:
            context.report(
                f"and {len(inferred) - _EDGES_SHOWN_MAX:,} more; `work analyze` with the same options shows all"
            )
    for line in _rejection_lines(rejected_edges[:_EDGES_SHOWN_MAX]):
        context.report(line)


def _rejection_lines(rejected_edges: Sequence[RejectedEdge]) -> Iterator[str]:
    for edge in rejected_edges:
        why = f", {edge.evidence}" if edge.evidence else ""
        yield f"rejected: {edge.task} needs {edge.on} ({edge.confidence:.2f}{why}): {edge.reason}"


def _analysis_lines(analysis: WorkAnalysis) -> Iterator[str]:
    at_once = f", {analysis.max_parallel} at once" if analysis.max_parallel > 1 else ""
    yield f"source    {analysis.source}"
    yield f"tasks     {len(analysis.tasks):,}, {count_text(len(analysis.edges), 'dependency', 'dependencies')}"
    yield f"strategy  {analysis.strategy}{at_once}"
    unit = "" if analysis.with_estimate else " (assuming one second per task: there are no estimates)"
    yield f"duration  {human_seconds(analysis.seconds)}{unit}"
    path = analysis.critical_path
    displayed_path = [*path[:_CRITICAL_PATH_SHOWN_MAX], *(["…"] if len(path) > _CRITICAL_PATH_SHOWN_MAX else [])]
    yield f"critical  {human_seconds(analysis.critical_seconds)}: {' → '.join(displayed_path)}"
    yield ""
    yield from table_lines(
        ((f"-j {makespan.max_parallel}", human_seconds(makespan.seconds)) for makespan in analysis.makespans),
        ("slots", "duration"),
    )
    for pool in analysis.binding_pools:
        size = count_text(pool.size, "token")
        unlimited = human_seconds(pool.seconds_without)
        yield f"pool {pool.pool} ({size}) is the bottleneck: without its limit, the estimated duration is {unlimited}"
    yield ""
    yield from table_lines(
        ((str(makespan.level), makespan.id, makespan.title or "-") for makespan in analysis.tasks),
        ("level", "task", "title"),
    )
    if analysis.edges:
        yield ""
        yield from table_lines(
            (
                (
                    makespan.task,
                    makespan.kind,
                    makespan.on,
                    _edge_source_text(makespan),
                    makespan.evidence or "-",
                )
                for makespan in analysis.edges
            ),
            ("task", "", "depends on", "source", "why"),
        )
    yield from _rejection_lines(analysis.rejected_edges)


def _edge_source_text(edge: AnalyzedEdge) -> str:
    return "file" if edge.source == "file" else f"{edge.source} {edge.confidence:.2f}"


def _dot_lines(analysis: WorkAnalysis) -> Iterator[str]:
    critical = set(analysis.critical_path)
    yield "digraph work {"
    yield "  rankdir=LR; node [shape=box];"
    for task in analysis.tasks:
        label = f"{task.id}\n{task.title}" if task.title else task.id
        bold = ", penwidth=2" if task.id in critical else ""
        yield f"  {_dot_text(task.id)} [label={_dot_text(label)}{bold}];"
    for edge in analysis.edges:
        marks = [] if edge.kind == "needs" else ["arrowhead=odot"]
        if edge.source != "file":
            marks += ["style=dashed", f'label="{edge.confidence:.2f}"', f"tooltip={_dot_text(edge.evidence)}"]
        mark_suffix = f" [{', '.join(marks)}]" if marks else ""
        yield f"  {_dot_text(edge.on)} -> {_dot_text(edge.task)}{mark_suffix};"
    yield "}"


def _dot_text(text: str) -> str:
    """Return a text as a quoted string of Graphviz. Backslashes and quotes are escaped."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    text_lines = "\\n".join(printable_text(line) for line in escaped.split("\n"))
    return f'"{text_lines}"'


def _mermaid_lines(analysis: WorkAnalysis) -> Iterator[str]:
    names = {task.id: f"t{place}" for place, task in enumerate(analysis.tasks)}
    yield "graph LR"
    for task in analysis.tasks:
        label = f"{task.id}: {task.title}" if task.title else task.id
        yield f'  {names[task.id]}["{_mermaid_text(label)}"]'
    for edge in analysis.edges:
        arrow = "-->" if edge.kind == "needs" else "--o"
        if edge.source != "file":
            arrow = f'-. "{edge.confidence:.2f}" .->'
        yield f"  {names[edge.on]} {arrow} {names[edge.task]}"


def _mermaid_text(text: str) -> str:
    """Return a text for a quoted string of Mermaid. Special characters are written as character codes."""
    return printable_text(" ".join(text.split("\n"))).translate(_MERMAID_ESCAPES)
