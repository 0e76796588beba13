"""Edges that nobody wrote, under `strategy = "auto"`: by our rules, or by a command that is asked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal, NamedTuple

import msgspec

from codebatch.model.work.command import CommandId
from codebatch.model.work.work_batch import InferredEdge, RejectedEdge, WorkEdge
from codebatch.scheduling.inference.edges import CandidateEdge, Described, infer, take
from codebatch.system.processes.programs import ProgramFailed, run_with_input
from codebatch.work.definition.commands import Task
from codebatch.work.definition.settings import BatchSettings, WorkOptions
from codebatch.work.definition.tables import InferTable
from codebatch.work.definition.validation import EDGES_MAX

ANSWER_BYTES_MAX = 16 << 20
_WHY_CHARACTERS_MAX = 500
_TOLD_MAX = 5


class Inferred(NamedTuple):
    """All edges of a list, and of which of them we say why they are there."""

    edges: list[WorkEdge]
    inferred: list[InferredEdge]
    left_out: list[RejectedEdge]


class _AnsweredEdge(msgspec.Struct, frozen=True, kw_only=True):
    task: str
    needs: str
    why: str = ""
    confidence: float = 1.0


class _InferenceAnswer(msgspec.Struct, frozen=True, kw_only=True):
    edges: list[_AnsweredEdge]


def with_inferred(
    tasks: Sequence[Task],
    edges: Sequence[WorkEdge],
    groups: Mapping[str, Mapping[str, CommandId]],
    settings: BatchSettings,
    options: WorkOptions,
) -> Inferred:
    """The edges that are written, and those that are inferred. What went wrong is a note."""
    names = {task.id: task.group or task.id for task in tasks}
    first = {names[task.id]: task for task in reversed(tasks)}
    written: dict[str, list[str]] = {name: [] for name in dict.fromkeys(names.values())}
    for edge in edges:
        written[names[edge.task]].append(names[edge.on])
    described = [_described(name, first[name]) for name in written]
    candidates: list[CandidateEdge] | None = None
    if settings.infer is not None and not options.infer_command:
        settings.notes.append(
            f"the `infer` command {settings.infer.command[0]!r} was not run, so its dependencies are not shown"
        )
    elif settings.infer is not None:
        candidates = _asked(settings.infer, described, written, settings.root, settings.notes)
    found = take(
        infer(described) if candidates is None else candidates, written, confidence_min=options.infer_confidence
    )
    left_out = [
        RejectedEdge(task=each.task, on=each.on, confidence=each.confidence, evidence=each.why, reason=reason)
        for each, reason in found.left_out
    ]
    inferred = [edge for each in found.edges for edge in _of_members(each, groups)]
    if len(edges) + len(inferred) > EDGES_MAX:
        settings.notes.append(f"no dependencies are inferred: there would be more than {EDGES_MAX:,}")
        return Inferred([*edges], [], left_out)
    return Inferred([*edges, *(WorkEdge(each.task, each.on) for each in inferred)], inferred, left_out)


def _described(name: str, task: Task) -> Described:
    text = "" if task.command is None else task.command.text
    return Described(name, task.title, text, task.inputs, task.outputs)


def _of_members(edge: CandidateEdge, groups: Mapping[str, Mapping[str, CommandId]]) -> list[InferredEdge]:
    """An edge of groups is one of all members."""
    source: Literal["inferred", "command"] = "command" if edge.source == "command" else "inferred"
    return [
        InferredEdge(
            task=CommandId(task), on=CommandId(on), source=source, evidence=edge.why, confidence=edge.confidence
        )
        for task in (groups[edge.task].values() if edge.task in groups else [edge.task])
        for on in (groups[edge.on].values() if edge.on in groups else [edge.on])
    ]


def _asked(
    table: InferTable, tasks: Sequence[Described], written: Mapping[str, Sequence[str]], root: Path, notes: list[str]
) -> list[CandidateEdge] | None:
    """What a command answers, None where it does not; what cannot be is dropped, and told."""
    asked = [{**task._asdict(), "needs": written[task.id]} for task in tasks]
    try:
        answer = run_with_input(
            table.command,
            root,
            msgspec.json.encode({"tasks": asked}),
            seconds=table.timeout_seconds,
            bytes_max=ANSWER_BYTES_MAX,
        )
        edges = msgspec.json.decode(answer, type=_InferenceAnswer).edges
    except ProgramFailed as error:
        notes.append(f"the `infer` command {table.command[0]!r} failed: {error}; using the built-in rules")
        return None
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        notes.append(
            f"the `infer` command {table.command[0]!r} printed invalid output: {error}; using the built-in rules"
        )
        return None
    dropped: list[str] = []
    best: dict[tuple[str, str], CandidateEdge] = {}
    for edge in edges:
        if (reason := _wrong(edge, written)) is not None:
            dropped.append(f"{edge.task[:60]!r} needs {edge.needs[:60]!r}: {reason}")
            continue
        made = CandidateEdge(edge.task, edge.needs, edge.confidence, edge.why.strip()[:_WHY_CHARACTERS_MAX], "command")
        known = best.get((made.task, made.on))
        if known is None or known.confidence < made.confidence:
            best[made.task, made.on] = made
    if dropped:
        more = f"; and {len(dropped) - _TOLD_MAX:,} more" if len(dropped) > _TOLD_MAX else ""
        shown = f"{'; '.join(dropped[:_TOLD_MAX])}{more}"
        notes.append(f"ignored dependencies from the `infer` command {table.command[0]!r}: {shown}")
    return sorted(best.values(), key=lambda each: (-each.confidence, each.task, each.on))


def _wrong(edge: _AnsweredEdge, written: Mapping[str, Sequence[str]]) -> str | None:
    """Why there can be no such edge."""
    for id_ in (edge.task, edge.needs):
        if id_ not in written:
            return f"no task {id_[:60]!r}"
    if edge.task == edge.needs:
        return "it is the same task"
    return None if 0 <= edge.confidence <= 1 else "its confidence is not between 0 and 1"
