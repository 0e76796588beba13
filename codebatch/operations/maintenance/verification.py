"""Verification of a batch: a sample of its results is computed again and compared with the stored results.

See SPEC.md "Reuse".
"""

from __future__ import annotations

import hashlib
import heapq
import math
from collections.abc import Sequence
from contextlib import AbstractContextManager

import msgspec
from msgspec.structs import asdict

from codebatch.coordinator.analysis.planning import make_plan
from codebatch.coordinator.analysis.progress_counter import RunScope
from codebatch.errors import BatchIncomplete
from codebatch.model.analysis.result_key import result_key
from codebatch.model.digest import Digest
from codebatch.model.entry import Entry
from codebatch.operations.maintenance.determinism_check import OutputDifference, first_difference
from codebatch.operations.runs.execution import ExecutionSettings, Listener
from codebatch.plugins.catalogue import TaskCatalogue
from codebatch.query.sources.records import BatchRecords, restrict_to_task
from codebatch.query.status.batch_status import read_current_state
from codebatch.store.batches.batch_directory import BatchDir, hidden_batch
from codebatch.store.batches.store_directory import StoreDir
from codebatch.store.results.bases import ReuseBase
from codebatch.store.results.untrusted import UntrustedKey, distrust_keys, load_untrusted
from codebatch.system.clock import wall_ns


class MismatchedResult(OutputDifference, frozen=True, kw_only=True):
    """A result of a task that was different when it was produced again. `first` and `second` are the first lines that
    differ.
    """

    task: str


class VerifyAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """The answer of `codebatch verify`.

    - `files`: the number of files in the sample.
    - `results`: the number of results that were compared.
    - `different`: the number of results that differ. `differences` lists the first of these results.
    - `failed`: the number of results that could not be produced again.
    - `untrusted`: the cache keys that are now untrusted: their results are not reused.
    """

    batch_id: str
    files: int
    results: int
    failed: int
    different: int
    differences: tuple[MismatchedResult, ...]
    untrusted: tuple[UntrustedKey, ...]


def verify_batch(
    execution: ExecutionSettings, store: StoreDir, batch: BatchDir, share: float, listener: Listener
) -> tuple[VerifyAnswer, int]:
    """Execute a sample of a batch's files again in new workers, without reuse, and compare the results.

    `share` is the fraction of the files, more than 0 and at most 1. The same batch has always the same sample. Project
    tasks are executed only if `share` is 1.

    Return the answer with all differences, and the exit status of a signal, or 0. After a signal, nothing is compared.

    If results differ, the cache key of their task becomes untrusted. On return, this is durable. Raises BatchIncomplete
    if the batch has not ended, ToolMismatch or StoreError.
    """
    with store.writing() as lock:
        load_untrusted(store)  # Called only because it raises if the file is damaged, before any work is done.
        if not read_current_state(batch).is_settled_and_merged:
            hint = f"resume it with: codebatch resume --batch {batch.id}"
            raise BatchIncomplete(f"batch {batch.id} has not ended", hint=hint)
        original = BatchRecords(store, batch)
        sampled = sample_items(original.items, original.plan.digest, share)
        nothing = VerifyAnswer(
            batch_id=batch.id, files=len(sampled), results=0, failed=0, different=0, differences=(), untrusted=()
        )
        if not sampled:
            return nothing, 0
        paths = batch.about.paths if share >= 1 else tuple(entry.path for entry in sampled)
        catalogue = execution.configuration.catalogue.with_imports(batch.about.imports)
        with _restricted_rerun(catalogue, original, paths, is_whole=share >= 1) as rerun:
            executed = execution.execute(store, lock, rerun, RunScope(), listener)
            if executed.signal_status:
                return nothing, executed.signal_status
            verified = _compare_runs(original, BatchRecords(store, rerun), len(sampled))
        distrust_keys(store, verified.untrusted)
        return verified, 0


def sample_items(items: Sequence[Entry], plan: Digest, share: float) -> list[Entry]:
    """Return a sample of the items of a plan in path order.

    It has a `share` of the items, but at least one item if there are any. The items with the smallest hashes of plan
    digest and path are chosen, so the sample is deterministic.
    """

    def sort_key(entry: Entry) -> bytes:
        return hashlib.sha256(plan.encode() + entry.path).digest()

    return sorted(heapq.nsmallest(math.ceil(len(items) * share), items, key=sort_key))


def _restricted_rerun(
    catalogue: TaskCatalogue, original: BatchRecords, paths: tuple[bytes, ...], *, is_whole: bool
) -> AbstractContextManager[BatchDir]:
    """Create a temporary hidden batch that executes the tasks of `original` again, only for `paths`.

    Its snapshot is that of `original`. Project tasks are included only if `is_whole` is set.
    """
    plan, store = original.plan, original.store
    tasks = [task for task in plan.tasks if is_whole or task.scope == "file"]
    restricted = make_plan(catalogue, original.snapshot, plan.pipeline, tasks, plan.shard_rule, paths)
    sources = original.batch.about.sources or (b"/",)
    programs = original.batch.about.programs
    return hidden_batch(store, restricted, sources=sources, programs=programs, at_ns=wall_ns())


def _compare_runs(original: BatchRecords, rerun: BatchRecords, files: int) -> VerifyAnswer:
    indexes = {entry.path: item for item, entry in enumerate(original.items)}
    old, new = ReuseBase(original.store, original.batch), ReuseBase(rerun.store, rerun.batch)
    results = failed = 0
    differences: list[MismatchedResult] = []
    for task in rerun.task_names:
        original_source, source = restrict_to_task(original, task).source, restrict_to_task(rerun, task).source
        for item, entry in enumerate(rerun.items):
            index = indexes[entry.path]
            if old.item_state(task, index) != "result":
                continue
            if new.item_state(task, item) != "result":
                failed += 1
                continue
            results += 1
            before, after = original_source.item_lines(task, index) or b"", source.item_lines(task, item) or b""
            if before != after:
                differences.append(MismatchedResult(task=task, **asdict(first_difference(entry, before, after))))
    failed_tasks = {difference.task for difference in differences}
    return VerifyAnswer(
        batch_id=original.batch.id,
        files=files,
        results=results,
        failed=failed,
        different=len(differences),
        differences=tuple(differences),
        untrusted=tuple(
            UntrustedKey(key=result_key(task), task=task.name, batch_id=original.batch.id)
            for task in original.plan.tasks
            if task.name in failed_tasks
        ),
    )
