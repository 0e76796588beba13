"""Queries for the batches of a store, and for the progress of a batch."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Literal

import msgspec

from codebatch.errors import BatchIncomplete, InvalidInput, StoreError, UnknownId
from codebatch.model.entry import display_path
from codebatch.model.shard import ShardId
from codebatch.model.text.instants import instant_text
from codebatch.operations import NoteCallback, ignore_note
from codebatch.operations.queries.batch_query import displayed_restriction
from codebatch.query.sources.records import BatchRecords
from codebatch.query.status.batch_status import CurrentState, read_current_state
from codebatch.scheduling.lifecycle import CommandState
from codebatch.scheduling.outcome_counts import OutcomeCounts
from codebatch.store.batches.batch_directory import BatchDir, batch_ids, is_work, open_batch
from codebatch.store.batches.holders import LeaseReader
from codebatch.store.batches.store_directory import StoreDir
from codebatch.store.results.outputs import current_outputs

ShardState = Literal["open", "running", "done", "failed"]
"""States of a shard. A shard is `running` if it is open and a live process holds a lease on it.

If the lease covers all tasks of the shard, the shard is `running` for each of these tasks.
"""


class TaskStatus(msgspec.Struct, frozen=True, kw_only=True):
    """A task of a batch and its progress, counted in files. A project task counts as one file.

    - `shards_done`: the number of shards that have ended.
    - `shards_failed`: the number of ended shards with a failure.
    """

    task_id: str
    type: str
    status: str
    depends_on: tuple[str, ...]
    files_total: int
    files_done: int
    files_failed: int
    shards_total: int
    shards_done: int
    shards_failed: int


class BatchStatus(msgspec.Struct, frozen=True, kw_only=True):
    """The state of a batch and of each of its tasks."""

    batch: BatchDir
    standing: CurrentState
    tasks: tuple[TaskStatus, ...]


class ListedBatch(msgspec.Struct, frozen=True, kw_only=True):
    """A batch in a list. If it cannot be read, `state` is DAMAGED and `batch` may be None.

    `is_active` is set if the batch has not ended, is running, or waits for an answer.
    """

    id: str
    batch: BatchDir | None
    state: str
    is_active: bool


class BatchRow(msgspec.Struct, frozen=True, kw_only=True):
    """A batch in the answer of `codebatch batch list`."""

    batch_id: str
    created_at: str
    snapshot_id: str
    pipeline: str
    status: str
    files: int
    source: str
    paths: tuple[str, ...]
    names: tuple[str, ...]


class ShardStatus(msgspec.Struct, frozen=True, kw_only=True):
    """The progress of a task in a shard, in files and records."""

    shard_id: ShardId
    status: ShardState
    files: int
    files_processed: int
    files_failed: int
    outputs_written: int
    bytes: int
    first_path: str


def list_batches(
    store: StoreDir,
    note: NoteCallback = ignore_note,
    *,
    pipeline: str | None = None,
    latest_first: bool = False,
    before: str | None = None,
) -> Iterator[ListedBatch]:
    """Yield the batches, oldest first or latest first. A batch is read only when it is reached.

    If `pipeline` is given, yield only its batches. If `before` is given, yield only batches older than the batch with
    this ID. A damaged batch is yielded with the state DAMAGED, and a note has the reason.
    """
    ids = sorted((id_ for id_ in batch_ids(store) if before is None or id_ < before), reverse=latest_first)
    for batch_id in ids:
        batch = None
        state, is_active = "DAMAGED", False
        try:
            batch = open_batch(store, batch_id)
            if pipeline not in (None, batch.about.pipeline):
                continue
            state, is_active = read_batch_state(store, batch)
        except UnknownId:  # The batch was deleted by prune after it was listed.
            continue
        except StoreError as error:
            note(f"{batch_id}: {error.message}")
        yield ListedBatch(id=batch_id, batch=batch, state=state, is_active=is_active)


def batch_row(listed_batch: ListedBatch, names: Mapping[str, str]) -> BatchRow:
    """Return a row about a batch. If the batch is unreadable, the row has only its ID, state and names.

    `names` maps each name of the store to a batch ID, as `read_batch_names` returns it.
    """
    about = None if listed_batch.batch is None else listed_batch.batch.about
    return BatchRow(
        batch_id=listed_batch.id,
        created_at="" if about is None else instant_text(about.created_at_ns),
        snapshot_id="" if about is None else about.snapshot_id,
        pipeline="" if about is None else about.pipeline,
        status=listed_batch.state,
        files=0 if about is None else about.items,
        source="" if about is None else ", ".join(map(display_path, about.sources)),
        paths=() if listed_batch.batch is None else displayed_restriction(listed_batch.batch),
        names=names_of_batch(listed_batch.id, names),
    )


def names_of_batch(batch_id: str, names: Mapping[str, str]) -> tuple[str, ...]:
    """Return the names of a batch, of all names of the store."""
    return tuple(name for name, named in names.items() if named == batch_id)


def read_batch_state(store: StoreDir, batch: BatchDir) -> tuple[str, bool]:
    """Return the state of a batch, and whether it is active.

    It is active if it has open work, is running, or waits for an answer. Raises StoreCorrupt.
    """
    if not is_work(batch):
        current_state = read_current_state(batch)
        return current_state.state.value, bool(current_state.holders) or not current_state.state.is_final
    from codebatch.query.status.work_status import read_work_status  # Deferred: only work batches need the scheduler.

    work = read_work_status(store, batch)
    is_asking = CommandState.BLOCKED.value in work.counts
    is_at_work = work.coordinator is not None or bool(work.workers)
    return work.state.value, is_asking or is_at_work or not work.state.is_final


def read_batch_status(store: StoreDir, batch: BatchDir) -> BatchStatus:
    """Return the state of a batch with its live processes, and the progress of each task. Raises StoreCorrupt."""
    return BatchStatus(batch=batch, standing=read_current_state(batch), tasks=tuple(task_states(store, batch)))


def task_states(store: StoreDir, batch: BatchDir) -> list[TaskStatus]:
    """Return the progress of each task in plan order. If the outputs are merged, it is read from their manifest.

    Raises StoreCorrupt.
    """
    records = BatchRecords(store, batch)
    rows: list[TaskStatus] = []
    for task in records.plan.tasks:
        tally = records.source.count_outcomes((task.name,))
        shards = [_shard_status(1 - tally.open_count, 1, tally.failed)]
        if task.scope == "file":
            shard_counts = zip(records.plan.shards, records.source.iter_shards(task.name), strict=True)
            shards = [_shard_status(so_far.items, shard.items, so_far.failed) for shard, so_far in shard_counts]
        rows.append(
            TaskStatus(
                task_id=task.name,
                type=task.scope,
                status=_task_status(tally),
                depends_on=task.needs,
                files_total=tally.planned,
                files_done=tally.results,
                files_failed=tally.failed,
                shards_total=len(shards),
                shards_done=len(shards) - shards.count("open"),
                shards_failed=shards.count("failed"),
            )
        )
    return rows


def _task_status(tally: OutcomeCounts) -> str:
    if tally.open_count:
        return "running" if tally.open_count < tally.planned else "pending"
    return "done" if tally.results == tally.planned else "failed"


def _shard_status(done: int, planned: int, failed: int, *, is_leased: bool = False) -> ShardState:
    if done < planned:
        return "running" if is_leased else "open"
    return "failed" if failed else "done"


def shard_states(store: StoreDir, batch: BatchDir, task: str) -> Iterator[ShardStatus]:
    """Yield the progress of a task in each shard, in path order. Raises InvalidInput for a project task."""
    records = BatchRecords(store, batch)
    (name,) = records.choose_tasks(task)
    if name in records.plan.project_tasks:
        raise InvalidInput(f"the task {name} runs once per project and has no shards", hint="see: codebatch tasks")
    leases = LeaseReader(batch.files, batch.root).read_leases().values()
    leased = {lease.shard for lease in leases if lease.is_live}
    for shard, so_far in zip(records.plan.shards, records.source.iter_shards(name), strict=True):
        yield ShardStatus(
            shard_id=shard.id,
            status=_shard_status(so_far.items, shard.items, so_far.failed, is_leased=shard.id in leased),
            files=shard.items,
            files_processed=so_far.items,
            files_failed=so_far.failed,
            outputs_written=so_far.counts.records,
            bytes=shard.bytes,
            first_path=records.items[shard.start].text,
        )


def outputs_directory(batch: BatchDir) -> Path:
    """Return the directory of the merged outputs of a batch. Raises BatchIncomplete if the batch has no outputs yet."""
    outputs = current_outputs(batch)
    if outputs is None:
        hint = f"resume it with: codebatch resume --batch {batch.id}"
        raise BatchIncomplete(f"batch {batch.id} has no outputs yet", hint=hint)
    return outputs.root
