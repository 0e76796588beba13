"""A determinism check of a task. The task runs twice, and both runs must have equal output.

The two runs use different shards, orders of work and hash seeds.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from itertools import zip_longest
from pathlib import Path

import msgspec
from msgspec.structs import replace

from codebatch.coordinator.analysis.progress_counter import RunScope
from codebatch.model.entry import Entry
from codebatch.model.shard import ShardRule
from codebatch.model.task import Pipeline, task_name
from codebatch.operations.project.pipelines import complete_tasks
from codebatch.operations.project.project_snapshot import rules_for, take_project_snapshot
from codebatch.operations.project.stores import StoreLocator
from codebatch.operations.runs.call_totals import read_call_totals
from codebatch.operations.runs.execution import ExecutionSettings, Listener
from codebatch.operations.runs.planning import BatchPlanner, make_planner
from codebatch.plugins.catalogue import TaskCatalogue
from codebatch.query.sources.records import BatchRecords, restrict_to_task
from codebatch.snapshotting.roots import resolve_sources
from codebatch.store.batches.batch_directory import BatchDir
from codebatch.store.batches.store_directory import StoreDir

_SECOND_HASH_SEED = 1
_SECOND_RUN_SHARDS = 8
_SECOND_RUN_SHARD_FILES_MAX = 64


class OutputDifference(msgspec.Struct, frozen=True, kw_only=True):
    """A file for which two runs of a task gave different results.

    `first` and `second` are the first lines that differ. If one run has fewer lines, its line is empty.
    """

    path: str
    first: str
    second: str


class DeterminismResult(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a determinism check.

    `failures` counts results of the task that failed in the first run. `is_called` is not set if the task calls a
    program, and no file matches its settings. `signal_status` is as in `RunResult`.
    """

    task: str
    files: int
    records: int
    failures: int
    differences: tuple[OutputDifference, ...]
    is_called: bool = True
    signal_status: int = 0


def run_task_twice(
    execution: ExecutionSettings, name: str, paths: Sequence[Path], listener: Listener
) -> DeterminismResult:
    """Run a task and its dependencies twice over paths, the second time with small shards, another order and hash seed.

    The runs use a temporary store. Raises CodebatchError.
    """
    configuration = execution.configuration
    task = task_name(name)
    resolve_sources(tuple(paths), None)
    pipeline = task_pipeline(configuration.catalogue, task)
    with tempfile.TemporaryDirectory(prefix="codebatch-") as directory:
        store = StoreLocator(Path(directory) / "store").open_or_create_store()
        with store.writing():
            frozen = take_project_snapshot(
                store, paths, rules_for(configuration, (), ()), listener.note, allow_empty=False, phase=listener.phase
            )
            planner = make_planner(configuration, store, frozen, pipeline, listener.note)
        first, status = run_new_batch(execution, planner, store, listener)
        if status:
            return DeterminismResult(
                task=task, files=frozen.files, records=0, failures=0, differences=(), signal_status=status
            )
        average = min(max(frozen.files // _SECOND_RUN_SHARDS, 1), _SECOND_RUN_SHARD_FILES_MAX)
        other_execution = replace(execution, shuffle_seed=_SECOND_HASH_SEED, hash_seed=_SECOND_HASH_SEED)
        small = ShardRule(files_average=average, files_min=1, files_max=2 * average)
        second, status = run_new_batch(other_execution, replace(planner, shard_rule=small), store, listener)
        return DeterminismResult(
            task=task,
            files=frozen.files,
            records=first.counts(task).records,
            failures=first.source.count_outcomes((task,)).failed,
            differences=() if status else tuple(_output_differences(task, first, second)),
            is_called=_is_called(configuration.catalogue, first.batch, task),
            signal_status=status,
        )


def _is_called(catalogue: TaskCatalogue, batch: BatchDir, task: str) -> bool:
    totals = read_call_totals(batch, catalogue.commands.keys() & {task}).get(task)
    return totals is None or bool(totals.files)


def task_pipeline(catalogue: TaskCatalogue, task: str) -> Pipeline:
    """Return a pipeline with a task and its dependencies. Its name is `full`.

    Raises InvalidConfiguration or InvalidInput.
    """
    return Pipeline(name="full", summary="", tasks=complete_tasks(catalogue, (task,)))


def run_new_batch(
    execution: ExecutionSettings, planner: BatchPlanner, store: StoreDir, listener: Listener
) -> tuple[BatchRecords, int]:
    """Create a new batch of a plan and execute it without reuse.

    Return its records and the exit status of a signal, or 0.
    """
    with store.writing() as lock:
        batch = planner.make_batch(planner.plan(), reuses=False)
        executed = execution.execute(store, lock, batch, RunScope(), listener)
    return BatchRecords(store, batch), executed.signal_status


def _output_differences(task: str, first: BatchRecords, second: BatchRecords) -> Iterator[OutputDifference]:
    for item, entry in enumerate(first.items):
        first_lines, second_lines = (
            restrict_to_task(records, task).source.item_lines(task, item) or b"" for records in (first, second)
        )
        if first_lines != second_lines:
            yield first_difference(entry, first_lines, second_lines)


def first_difference(entry: Entry, first_lines: bytes, second_lines: bytes) -> OutputDifference:
    """Return the first pair of lines that differ. The two contents must not be equal."""
    pairs = zip_longest(first_lines.splitlines(), second_lines.splitlines(), fillvalue=b"")
    first, second = next((pair for pair in pairs if pair[0] != pair[1]), (first_lines, second_lines))
    return OutputDifference(
        path=entry.text, first=first.decode("utf-8", "replace"), second=second.decode("utf-8", "replace")
    )
