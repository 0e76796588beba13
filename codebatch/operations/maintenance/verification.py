"""Verifying: whether a sample of what a batch found is found again (SPEC.md "Reuse")."""

from __future__ import annotations

import hashlib
import heapq
import math
from collections.abc import Sequence
from contextlib import AbstractContextManager

import msgspec

from codebatch.coordinator.analysis.planning import make_plan
from codebatch.coordinator.analysis.progress_counter import RunScope
from codebatch.errors import BatchIncomplete
from codebatch.model.analysis.result_key import result_key
from codebatch.model.digest import Digest
from codebatch.model.entry import Entry
from codebatch.operations.maintenance.determinism_check import OutputDifference, first_difference
from codebatch.operations.runs.execution import ExecutionSettings, Listener
from codebatch.plugins.catalogue import TaskCatalogue
from codebatch.query.sources.records import BatchRecords
from codebatch.query.status.batch_status import read_current_state
from codebatch.store.batches.batches import BatchDir, hidden_batch
from codebatch.store.batches.store import StoreDir
from codebatch.store.results.bases import ReuseBase
from codebatch.store.results.untrusted import UntrustedKey, distrust, load_untrusted
from codebatch.system.clock import wall_ns


class Verified(msgspec.Struct, frozen=True, kw_only=True):
    """What became of it: so many `files` of the batch, and `results` of them that were found and held against it.

    `failed`: results of the batch that could not be had again. `differences` by task; `untrusted` are the keys of these
    tasks. `signal_status` as in `RunResult`: nothing was compared then.
    """

    files: int
    results: int = 0
    failed: int = 0
    differences: tuple[tuple[str, OutputDifference], ...] = ()
    untrusted: tuple[UntrustedKey, ...] = ()
    signal_status: int = 0


def verify(
    execution: ExecutionSettings, store: StoreDir, batch: BatchDir, share: float, listener: Listener
) -> Verified:
    """Execute a sample of a batch's files again in new workers, without taking anything over, and compare the results.

    `share` of its files, more than 0, at most 1: the same for the same batch. Where it is 1 tasks of project scope are
    done again too, else those of files alone. What differs makes the result key of its task untrusted: that is on disk
    on return. Raises BatchIncomplete where the batch has not ended, ToolMismatch or StoreError.
    """
    with store.writing() as lock:
        load_untrusted(store)  # One that is damaged is told before the work is done.
        if not read_current_state(batch).is_over:
            hint = f"resume it with: codebatch run --batch {batch.id}"
            raise BatchIncomplete(f"batch {batch.id} has not ended", hint=hint)
        said = BatchRecords(store, batch)
        chosen = sample(said.items, said.plan.digest, share)
        if not chosen:
            return Verified(files=0)
        paths = batch.about.paths if share >= 1 else tuple(entry.path for entry in chosen)
        catalogue = execution.configuration.catalogue.with_imports(batch.about.imports)
        with _hidden(catalogue, said, paths, is_whole=share >= 1) as again:
            executed = execution.execute(store, lock, again, RunScope(), listener)
            if executed.signal_status:
                return Verified(files=len(chosen), signal_status=executed.signal_status)
            verified = _compare(said, BatchRecords(store, again), len(chosen))
        distrust(store, verified.untrusted)
        return verified


def sample(items: Sequence[Entry], plan: Digest, share: float) -> list[Entry]:
    """A share of the items of a plan, in path order: those that come first by the hash of its digest and their path.

    At least one where there is any.
    """

    def place(entry: Entry) -> bytes:
        return hashlib.sha256(plan.encode() + entry.path).digest()

    return sorted(heapq.nsmallest(math.ceil(len(items) * share), items, key=place))


def _hidden(
    catalogue: TaskCatalogue, said: BatchRecords, paths: tuple[bytes, ...], *, is_whole: bool
) -> AbstractContextManager[BatchDir]:
    """A batch of the same tasks and snapshot restricted to paths, which nobody else finds, for the time being."""
    plan, store = said.plan, said.store
    tasks = [task for task in plan.tasks if is_whole or task.scope == "file"]
    restricted = make_plan(catalogue, said.snapshot, plan.pipeline, tasks, plan.shard_rule, paths)
    sources = said.batch.about.sources or (b"/",)
    return hidden_batch(store, restricted, sources=sources, at_ns=wall_ns())


def _compare(said: BatchRecords, again: BatchRecords, files: int) -> Verified:
    places = {entry.path: item for item, entry in enumerate(said.items)}
    old, new = ReuseBase(said.store, said.batch), ReuseBase(again.store, again.batch)
    results = failed = 0
    differences: list[tuple[str, OutputDifference]] = []
    for task in again.task_names:
        for item, entry in enumerate(again.items):
            place = places[entry.path]
            if old.state(task, place) != "result":
                continue
            if new.state(task, item) != "result":
                failed += 1
                continue
            results += 1
            before, after = said.source.item_lines(task, place) or b"", again.source.item_lines(task, item) or b""
            if before != after:
                differences.append((task, first_difference(entry, before, after)))
    caught = {task for task, _ in differences}
    return Verified(
        files=files,
        results=results,
        failed=failed,
        differences=tuple(differences),
        untrusted=tuple(
            UntrustedKey(key=result_key(task), task=task.name, batch_id=said.batch.id)
            for task in said.plan.tasks
            if task.name in caught
        ),
    )
