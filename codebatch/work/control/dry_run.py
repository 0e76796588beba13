"""A dry run of a task list. It shows the expected start times. Nothing is run or written."""

from __future__ import annotations

import functools
import os
from pathlib import Path

import msgspec

from codebatch.coordinator.work.duration_estimates import DefinedCommand, DurationEstimator
from codebatch.model.digest import digest_bytes
from codebatch.model.work.command import Isolation, encode_command
from codebatch.operations.project.stores import StoreLocator
from codebatch.scheduling.work.command_plan import make_command_plan
from codebatch.scheduling.work.makespan import schedule_items
from codebatch.store.work.durations import CommandDurations, program_name
from codebatch.work.control.run import list_files
from codebatch.work.definition.settings import WorkOptions
from codebatch.work.definition.work_list import WorkList


class DryRunTask(msgspec.Struct, frozen=True, kw_only=True):
    """A task and its expected start: seconds after the start of the first task, and the slot, counted from 1.

    `seconds` is the expected duration of the task, or null if unknown. A task of unknown duration is planned with a
    typical duration of the other tasks, or with one second if all durations are unknown. `isolation` is the tree in
    which the task works, or null if it works in the root.
    """

    task: str
    title: str
    slot: int
    start_seconds: float
    seconds: float | None
    needs: tuple[str, ...]
    after: tuple[str, ...]
    isolation: Isolation | None


class DryRunAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """The answer of `codebatch work run --dry-run`: the tasks in the order in which they would start.

    - `makespan_seconds`: the expected duration, or null if no task has a known duration.
    - `range_seconds`: three estimates. The batch ends within these times with a probability of 10%, 50% and 90%. It is
      null if no task has a known duration.
    - `without_estimate`: the number of tasks of unknown duration.
    - `warnings`: what was left out, ignored or replaced by a default. `notes`: other remarks.
    """

    source: str
    strategy: str
    max_parallel: int
    tasks: tuple[DryRunTask, ...]
    makespan_seconds: float | None
    range_seconds: tuple[float, float, float] | None
    without_estimate: int
    warnings: tuple[str, ...]
    notes: tuple[str, ...]


def dry_run(paths: tuple[Path, ...], options: WorkOptions, place: StoreLocator) -> DryRunAnswer:
    """Return the schedule that `run_files` would be expected to produce. Raises CodebatchError.

    Durations are estimated from earlier batches, if the store exists.
    """
    listed = list_files(paths, options, place)
    work = listed.work
    estimator = _make_estimator(listed, place)
    items = sorted(work.order)
    seconds = [estimator.expected(item) for item in range(len(items))]
    is_known = any(estimate is not None for estimate in seconds)
    agenda = make_command_plan(work, items, seconds=estimator.estimated_seconds if is_known else ())
    placed = schedule_items(agenda, dict(enumerate(estimator.estimated_seconds)))
    forecast = estimator.make_forecast(agenda, range(len(items)), {})
    waits: dict[str, dict[str, list[str]]] = {"needs": {}, "after": {}}
    for edge in work.edges:
        waits[edge.kind].setdefault(edge.task, []).append(edge.on)
    isolations = {command.id: command.isolation or None for command in listed.commands}
    tasks = tuple(
        DryRunTask(
            task=items[task.item],
            title=work.titles.get(items[task.item], ""),
            slot=task.slot + 1,
            start_seconds=round(task.start, 3),
            seconds=seconds[task.item],
            needs=tuple(waits["needs"].get(items[task.item], ())),
            after=tuple(waits["after"].get(items[task.item], ())),
            isolation=isolations[items[task.item]],
        )
        for task in placed
    )
    low, middle, high = (0.0, 0.0, 0.0) if forecast is None else forecast.seconds
    return DryRunAnswer(
        source=work.source,
        strategy=work.strategy,
        max_parallel=work.max_parallel,
        tasks=tasks,
        makespan_seconds=round(max(task.end for task in placed), 3) if is_known else None,
        range_seconds=None if forecast is None else (round(low, 1), round(middle, 1), round(high, 1)),
        without_estimate=sum(estimate is None for estimate in seconds),
        warnings=listed.warnings,
        notes=listed.notes,
    )


def _make_estimator(listed: WorkList, place: StoreLocator) -> DurationEstimator:
    commands = sorted(listed.commands, key=lambda command: command.id)
    defined = [
        DefinedCommand(command.id, digest_bytes(encode_command(command)), functools.partial(program_name, command))
        for command in commands
    ]
    place = place.for_directory(Path(os.fsdecode(listed.work.root)))
    store = place.open() if place.has_store() else None
    return DurationEstimator(CommandDurations(store, listed.work.root), listed.work, defined)
