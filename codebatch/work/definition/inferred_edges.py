"""Edges that `strategy = "auto"` infers, by built-in rules or by a command."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal, NamedTuple

import msgspec

from codebatch.model.program_call import ProgramFailed
from codebatch.model.work.command import CommandId
from codebatch.model.work.work_batch import InferredEdge, RejectedEdge, WorkEdge
from codebatch.scheduling.inference.edges import CandidateEdge, InferenceTask, infer_edges, select_edges
from codebatch.system.processes.programs import run_with_input
from codebatch.work.definition.commands import DefinedTask
from codebatch.work.definition.settings import BatchSettings, WorkOptions
from codebatch.work.definition.tables import InferTable
from codebatch.work.definition.validation import EDGES_MAX

ANSWER_BYTES_MAX = 16 << 20
_EVIDENCE_CHARACTERS_MAX = 500
_INVALID_EDGES_SHOWN_MAX = 5


class InferredEdges(NamedTuple):
    """All edges of a task list, the inferred edges with their evidence, and the edges that were rejected."""

    edges: list[WorkEdge]
    inferred: list[InferredEdge]
    rejected_edges: list[RejectedEdge]


class _AnsweredEdge(msgspec.Struct, frozen=True, kw_only=True):
    task: str
    needs: str
    why: str = ""
    confidence: float = 1.0


class _InferenceAnswer(msgspec.Struct, frozen=True, kw_only=True):
    edges: list[_AnsweredEdge]


def add_inferred_edges(
    tasks: Sequence[DefinedTask],
    edges: Sequence[WorkEdge],
    groups: Mapping[str, Mapping[str, CommandId]],
    settings: BatchSettings,
    options: WorkOptions,
) -> InferredEdges:
    """Return the edges of the work files and the inferred edges.

    If the `infer` command fails, a warning has the reason.
    """
    names = {task.id: task.group or task.id for task in tasks}
    first = {names[task.id]: task for task in reversed(tasks)}
    written: dict[str, list[str]] = {name: [] for name in dict.fromkeys(names.values())}
    for edge in edges:
        written[names[edge.task]].append(names[edge.on])
    described = [_inference_task(name, first[name]) for name in written]
    candidates: list[CandidateEdge] | None = None
    if settings.infer is not None and not options.infer_command:
        settings.notes.append(
            f"the `infer` command {settings.infer.command[0]!r} was not run, so its dependencies are not shown"
        )
    elif settings.infer is not None:
        candidates = _edges_from_command(settings.infer, described, written, settings.root, settings.warnings)
    accepted = select_edges(
        infer_edges(described) if candidates is None else candidates, written, confidence_min=options.infer_confidence
    )
    rejected_edges = [
        RejectedEdge(
            task=candidate.task, on=candidate.on, confidence=candidate.confidence, evidence=candidate.why, reason=reason
        )
        for candidate, reason in accepted.rejections
    ]
    inferred = [edge for candidate in accepted.edges for edge in _member_edges(candidate, groups)]
    if len(edges) + len(inferred) > EDGES_MAX:
        settings.warnings.append(f"no dependencies are inferred: there would be more than {EDGES_MAX:,}")
        return InferredEdges([*edges], [], rejected_edges)
    return InferredEdges(
        [*edges, *(WorkEdge(candidate.task, candidate.on) for candidate in inferred)], inferred, rejected_edges
    )


def _inference_task(name: str, task: DefinedTask) -> InferenceTask:
    text = "" if task.command is None else task.command.text
    return InferenceTask(name, task.title, text, task.inputs, task.outputs)


def _member_edges(edge: CandidateEdge, groups: Mapping[str, Mapping[str, CommandId]]) -> list[InferredEdge]:
    """Return the edges between tasks for an edge between tasks or groups.

    A group stands for all its members: there is one edge for each pair of a source and a target.
    """
    source: Literal["inferred", "command"] = "command" if edge.source == "command" else "inferred"
    return [
        InferredEdge(
            task=CommandId(task), on=CommandId(on), source=source, evidence=edge.why, confidence=edge.confidence
        )
        for task in (groups[edge.task].values() if edge.task in groups else [edge.task])
        for on in (groups[edge.on].values() if edge.on in groups else [edge.on])
    ]


def _edges_from_command(
    table: InferTable,
    tasks: Sequence[InferenceTask],
    written: Mapping[str, Sequence[str]],
    root: Path,
    warnings: list[str],
) -> list[CandidateEdge] | None:
    """Run the `infer` command and return the edges that it prints. Return None if it fails.

    Each invalid edge is dropped, with a warning.
    """
    descriptions = [{**task._asdict(), "needs": written[task.id]} for task in tasks]
    try:
        answer = run_with_input(
            table.command,
            root,
            msgspec.json.encode({"tasks": descriptions}),
            seconds=table.timeout_seconds,
            bytes_max=ANSWER_BYTES_MAX,
        )
        edges = msgspec.json.decode(answer, type=_InferenceAnswer).edges
    except ProgramFailed as error:
        warnings.append(f"the `infer` command {table.command[0]!r} failed: {error}; using the built-in rules")
        return None
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        warnings.append(
            f"the `infer` command {table.command[0]!r} printed invalid output: {error}; using the built-in rules"
        )
        return None
    dropped: list[str] = []
    best: dict[tuple[str, str], CandidateEdge] = {}
    for edge in edges:
        if (reason := _edge_problem(edge, written)) is not None:
            dropped.append(f"{edge.task[:60]!r} needs {edge.needs[:60]!r}: {reason}")
            continue
        candidate = CandidateEdge(
            edge.task, edge.needs, edge.confidence, edge.why.strip()[:_EVIDENCE_CHARACTERS_MAX], "command"
        )
        previous = best.get((candidate.task, candidate.on))
        if previous is None or previous.confidence < candidate.confidence:
            best[candidate.task, candidate.on] = candidate
    if dropped:
        more = (
            f"; and {len(dropped) - _INVALID_EDGES_SHOWN_MAX:,} more" if len(dropped) > _INVALID_EDGES_SHOWN_MAX else ""
        )
        dropped_text = f"{'; '.join(dropped[:_INVALID_EDGES_SHOWN_MAX])}{more}"
        warnings.append(f"ignored dependencies from the `infer` command {table.command[0]!r}: {dropped_text}")
    return sorted(best.values(), key=lambda each: (-each.confidence, each.task, each.on))


def _edge_problem(edge: _AnsweredEdge, written: Mapping[str, Sequence[str]]) -> str | None:
    """Return the reason why an edge is invalid, or None."""
    for id_ in (edge.task, edge.needs):
        if id_ not in written:
            return f"no task {id_[:60]!r}"
    if edge.task == edge.needs:
        return "it is the same task"
    return None if 0 <= edge.confidence <= 1 else "its confidence is not between 0 and 1"
