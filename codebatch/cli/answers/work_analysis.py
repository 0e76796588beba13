"""What a list of tasks comes to, for people and for programs that draw graphs: `work analyze`."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal

import click
import msgspec

from codebatch.cli.framework.context import CommandContext
from codebatch.cli.output.tables import table
from codebatch.errors import InvalidInput
from codebatch.model.text.quantities import count_of, human_seconds
from codebatch.model.work.work_batch import InferredEdge, RejectedEdge, Work
from codebatch.work.control.analysis import Analysis, AnalyzedEdge, analyze, toml_of
from codebatch.work.definition.work_list import WorkList

Form = Literal["text", "json", "dot", "mermaid"]

_PATH_SHOWN_MAX = 20
_EDGES_TOLD_MAX = 100
_MERMAID = str.maketrans(
    {"#": "#35;", '"': "#quot;", "<": "#lt;", ">": "#gt;", "&": "#amp;", "`": "#96;", "\\": "#92;"}
)


def answer_listed(answering: CommandContext, listed: WorkList, form: Form, written: Path | None) -> None:
    """Say what a list of tasks comes to; `written` is the file that gets what was inferred."""
    for text in listed.notes:
        answering.note(text)
    found = analyze(listed)
    if written is not None:
        _write_needs(written, found)
        answering.note(f"wrote {written}")
    _answer(msgspec.structs.replace(answering, as_json=True) if form == "json" else answering, found, form)


def is_agreed(answering: CommandContext, work: Work, left_out: Sequence[RejectedEdge], *, is_sure: bool) -> bool:
    """Tell what was inferred; on a terminal ask whether that is right, unless that is sure."""
    if not (is_sure and answering.quiet):
        _tell_inferred(answering, work.inferred, left_out)
    if is_sure or not work.inferred or not (sys.stdin.isatty() and sys.stderr.isatty()):
        return True
    with answering.display.aside():
        return click.confirm("Run with these dependencies?", default=True, err=True)


def _answer(answering: CommandContext, found: Analysis, form: Form) -> None:
    if form == "dot":
        answering.print(found, _dot(found))
    elif form == "mermaid":
        answering.print(found, _mermaid(found))
    else:
        answering.print(found, _lines(found))


def _write_needs(path: Path, found: Analysis) -> None:
    """Write what was inferred to a file that there is not yet. Raises InvalidInput."""
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(toml_of(found.edges))
    except OSError as error:
        raise InvalidInput(f"cannot write {path}: {error.strerror}") from error


def _tell_inferred(
    answering: CommandContext, inferred: Sequence[InferredEdge], left_out: Sequence[RejectedEdge]
) -> None:
    """Tell, before anything runs, which edges were inferred and why, and which are none."""
    if inferred or left_out:
        answering.tell(f"inferred: {count_of(len(inferred), 'dependency', 'dependencies')}")
        rows = ((each.task, each.on, f"{each.confidence:.2f}", each.evidence) for each in inferred[:_EDGES_TOLD_MAX])
        for line in table(rows, ("task", "needs", "confidence", "why")) if inferred else ():
            answering.tell(line)
        if len(inferred) > _EDGES_TOLD_MAX:
            answering.tell(
                f"and {len(inferred) - _EDGES_TOLD_MAX:,} more; `work analyze` with the same options shows all"
            )
    for line in _left_out_lines(left_out[:_EDGES_TOLD_MAX]):
        answering.tell(line)


def _left_out_lines(left_out: Sequence[RejectedEdge]) -> Iterator[str]:
    for each in left_out:
        why = f", {each.evidence}" if each.evidence else ""
        yield f"rejected: {each.task} needs {each.on} ({each.confidence:.2f}{why}): {each.reason}"


def _lines(found: Analysis) -> Iterator[str]:
    at_once = f", {found.max_parallel} at once" if found.max_parallel > 1 else ""
    yield f"source    {found.source}"
    yield f"tasks     {len(found.tasks):,}, {count_of(len(found.edges), 'dependency', 'dependencies')}"
    yield f"strategy  {found.strategy}{at_once}"
    unit = "" if found.with_estimate else " (assuming one second per task: there are no estimates)"
    yield f"duration  {human_seconds(found.seconds)}{unit}"
    path = found.critical_path
    shown = [*path[:_PATH_SHOWN_MAX], *(["…"] if len(path) > _PATH_SHOWN_MAX else [])]
    yield f"critical  {human_seconds(found.critical_seconds)}: {' → '.join(shown)}"
    yield ""
    yield from table(
        ((f"-j {each.max_parallel}", human_seconds(each.seconds)) for each in found.makespans), ("slots", "duration")
    )
    for pool in found.binding_pools:
        size = count_of(pool.size, "token")
        unlimited = human_seconds(pool.seconds_without)
        yield f"pool {pool.pool} ({size}) is the bottleneck: without its limit, the estimated duration is {unlimited}"
    yield ""
    yield from table(
        ((str(each.level), each.id, each.title or "-") for each in found.tasks), ("level", "task", "title")
    )
    if found.edges:
        yield ""
        yield from table(
            ((each.task, _kind(each), each.on, _source(each), each.evidence or "-") for each in found.edges),
            ("task", "", "depends on", "source", "why"),
        )
    yield from _left_out_lines(found.rejected_edges)


def _kind(edge: AnalyzedEdge) -> str:
    return "needs" if edge.kind == "needs" else "after"


def _source(edge: AnalyzedEdge) -> str:
    return "file" if edge.source == "file" else f"{edge.source} {edge.confidence:.2f}"


def _dot(found: Analysis) -> Iterator[str]:
    critical = set(found.critical_path)
    yield "digraph work {"
    yield "  rankdir=LR; node [shape=box];"
    for task in found.tasks:
        label = f"{task.id}\n{task.title}" if task.title else task.id
        bold = ", penwidth=2" if task.id in critical else ""
        yield f"  {_dot_text(task.id)} [label={_dot_text(label)}{bold}];"
    for edge in found.edges:
        marks = [] if edge.kind == "needs" else ["arrowhead=odot"]
        if edge.source != "file":
            marks += ["style=dashed", f'label="{edge.confidence:.2f}"', f"tooltip={_dot_text(edge.evidence)}"]
        shown = f" [{', '.join(marks)}]" if marks else ""
        yield f"  {_dot_text(edge.on)} -> {_dot_text(edge.task)}{shown};"
    yield "}"


def _dot_text(text: str) -> str:
    """A text as Graphviz takes it in quotes: it looks at backslashes and quotes alone."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    told = "\\n".join(_printable(line) for line in escaped.split("\n"))
    return f'"{told}"'


def _mermaid(found: Analysis) -> Iterator[str]:
    names = {task.id: f"t{place}" for place, task in enumerate(found.tasks)}
    yield "graph LR"
    for task in found.tasks:
        label = f"{task.id}: {task.title}" if task.title else task.id
        yield f'  {names[task.id]}["{_mermaid_text(label)}"]'
    for edge in found.edges:
        arrow = "-->" if edge.kind == "needs" else "--o"
        if edge.source != "file":
            arrow = f'-. "{edge.confidence:.2f}" .->'
        yield f"  {names[edge.on]} {arrow} {names[edge.task]}"


def _mermaid_text(text: str) -> str:
    """A text as Mermaid takes it in quotes, where it knows codes of characters."""
    return _printable(" ".join(text.split("\n"))).translate(_MERMAID)


def _printable(text: str) -> str:
    return "".join(each if each.isprintable() else " " for each in text)
