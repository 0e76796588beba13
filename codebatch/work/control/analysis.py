"""Analysis of a task list for `work analyze`: dependencies, critical path, estimated durations, binding pools."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from codebatch.model.work.work_batch import InferredEdge, RejectedEdge, WorkEdge
from codebatch.scheduling.work.command_plan import SLOTS_POOL, CommandPlan, make_command_plan
from codebatch.scheduling.work.makespan import critical_path, estimate_makespan, schedule_items
from codebatch.work.definition.work_list import WorkList

_SLOTS_COMPARED_MAX = 64
_BINDING_SHARE_MIN = 0.01
_SECONDS_ASSUMED = 1.0
"""Duration in seconds that is assumed for a command without `expected_seconds`."""


class AnalyzedTask(msgspec.Struct, frozen=True, kw_only=True):
    """A task of an analysed task list.

    `level` is the number of tasks in the longest chain of dependencies before the task. It is for display only: the
    scheduler does not use it. `expected_seconds` is null if the task does not define it.
    """

    id: str
    title: str
    level: int
    expected_seconds: float | None


class AnalyzedEdge(msgspec.Struct, frozen=True, kw_only=True):
    """A dependency of the task `task` on the task `on`.

    `source` is the origin of the dependency: `file`, `inferred`, or the `command` of the setting `infer`.
    """

    task: str
    on: str
    kind: str
    source: str
    evidence: str
    confidence: float


class SlotsMakespan(msgspec.Struct, frozen=True, kw_only=True):
    """The estimated duration of a task list, if at most `max_parallel` tasks run at once."""

    max_parallel: int
    seconds: float


class BindingPool(msgspec.Struct, frozen=True, kw_only=True):
    """A pool that makes the task list slower. Without this pool, the task list would take `seconds_without` seconds."""

    pool: str
    size: int
    seconds_without: float


class WorkAnalysis(msgspec.Struct, frozen=True, kw_only=True):
    """The answer of `codebatch work analyze`.

    - `with_estimate`: the number of tasks that define `expected_seconds`. For other tasks, one second is assumed.
    - `seconds`: the estimated duration with the current settings.
    - `critical_seconds`: the duration of the critical path. No number of parallel tasks can make the list faster than
      this.
    """

    source: str
    strategy: str
    max_parallel: int
    with_estimate: int
    seconds: float
    critical_path: tuple[str, ...]
    critical_seconds: float
    makespans: tuple[SlotsMakespan, ...]
    binding_pools: tuple[BindingPool, ...]
    tasks: tuple[AnalyzedTask, ...]
    edges: tuple[AnalyzedEdge, ...]
    rejected_edges: tuple[RejectedEdge, ...]


def analyze_list(listed: WorkList) -> WorkAnalysis:
    """Analyse a list of tasks. Nothing is run."""
    work = listed.work
    estimates = [work.task_policy(id_).expected_seconds for id_ in work.order]
    seconds = [_SECONDS_ASSUMED if estimate is None else estimate for estimate in estimates]
    agenda = make_command_plan(work, work.order, seconds=seconds)
    path = critical_path(agenda, seconds)
    total = estimate_makespan(agenda, seconds)
    levels = _task_levels(agenda)
    return WorkAnalysis(
        source=work.source,
        strategy=work.strategy,
        max_parallel=agenda.capacity[SLOTS_POOL],
        with_estimate=len(estimates) - estimates.count(None),
        seconds=total,
        critical_path=tuple(work.order[item] for item in path),
        critical_seconds=sum(seconds[item] for item in path),
        makespans=tuple(_makespans(agenda, seconds)),
        binding_pools=tuple(_binding_pools(agenda, seconds, total)),
        tasks=tuple(
            AnalyzedTask(id=id_, title=work.titles.get(id_, ""), level=levels[item], expected_seconds=estimates[item])
            for item, id_ in enumerate(work.order)
        ),
        edges=tuple(_analyzed_edges(listed)),
        rejected_edges=listed.rejected_edges,
    )


def _makespans(agenda: CommandPlan, seconds: Sequence[float]) -> list[SlotsMakespan]:
    """Return the estimated durations for 1, 2, 4, … parallel tasks, and for the number in the settings.

    The numbers double until one is at least the number of tasks, or `_SLOTS_COMPARED_MAX`.
    """
    counts = [1]
    while counts[-1] < min(len(seconds), _SLOTS_COMPARED_MAX):
        counts.append(2 * counts[-1])
    slot_counts = sorted({*counts, agenda.capacity[SLOTS_POOL]})
    return [
        SlotsMakespan(max_parallel=slots, seconds=_seconds_with(agenda, seconds, {SLOTS_POOL: slots}))
        for slots in slot_counts
    ]


def _binding_pools(agenda: CommandPlan, seconds: Sequence[float], total: float) -> list[BindingPool]:
    binding: list[BindingPool] = []
    for pool, size in agenda.capacity.items():
        demanded = sum(amount for demand in agenda.demands for name, amount in demand if name == pool)
        if pool != SLOTS_POOL and demanded > size:
            seconds_without_pool = _seconds_with(agenda, seconds, {pool: demanded})
            if seconds_without_pool < total * (1 - _BINDING_SHARE_MIN):
                binding.append(BindingPool(pool=pool, size=size, seconds_without=seconds_without_pool))
    return binding


def _seconds_with(agenda: CommandPlan, seconds: Sequence[float], capacity: Mapping[str, int]) -> float:
    return estimate_makespan(agenda, seconds, {**agenda.capacity, **capacity})


def _task_levels(agenda: CommandPlan) -> list[int]:
    placed = schedule_items(agenda, dict.fromkeys(range(len(agenda.needs)), 1.0), capacity=_unbounded_pools(agenda))
    return [round(task.start) for task in sorted(placed)]


def _unbounded_pools(agenda: CommandPlan) -> dict[str, int]:
    """Return pool sizes with which all tasks can run at the same time, even tasks that exclude each other.

    They serve to estimate how much time the pools cost.
    """
    room = dict.fromkeys(agenda.capacity, 0)
    for demand in agenda.demands:
        for pool, amount in demand:
            room[pool] += amount
    return {pool: max(1, amount) for pool, amount in room.items()}


def _analyzed_edges(listed: WorkList) -> list[AnalyzedEdge]:
    inferred = {(each.task, each.on): each for each in listed.work.inferred}
    return [_analyzed_edge(edge, inferred.get((edge.task, edge.on))) for edge in listed.work.edges]


def _analyzed_edge(edge: WorkEdge, why: InferredEdge | None) -> AnalyzedEdge:
    if why is not None:
        return AnalyzedEdge(
            task=edge.task,
            on=edge.on,
            kind=edge.kind,
            source=why.source,
            evidence=why.evidence,
            confidence=why.confidence,
        )
    return AnalyzedEdge(task=edge.task, on=edge.on, kind=edge.kind, source="file", evidence="", confidence=1.0)


def edges_as_toml(edges: Sequence[AnalyzedEdge]) -> str:
    """Return inferred dependencies as text for a work file.

    Each task has a table with its `needs`. Comments give the reasons for each dependency.
    """
    lines = ["# Inferred dependencies, to be added to the `needs` of these tasks.", ""]
    by_task: dict[str, dict[str, str]] = {}
    for edge in edges:
        if edge.source != "file":  # In a work file, groups have dependencies, but their members do not.
            by_task.setdefault(edge.task.partition("/")[0], {})[edge.on.partition("/")[0]] = edge.evidence
    for task, needs in by_task.items():
        lines += [f"[tasks.{_quote_json(task)}]", "needs = ["]
        lines += [f"    {_quote_json(on)}, # {printable_text(why)}" for on, why in needs.items()]
        lines += ["]", ""]
    return "\n".join(lines)


def _quote_json(text: str) -> str:
    return msgspec.json.encode(text).decode()


def printable_text(text: str) -> str:
    """Return a text with a space in place of each character that is not printable."""
    return "".join(character if character.isprintable() else " " for character in text)
