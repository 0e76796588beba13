"""Import of findings of another tool.

The findings become a task of a new batch over the same snapshot (SPEC.md "Imported findings"). The batch is hidden
until the file was read completely. Only then it gets its name. So queries never find a batch with a failed import, and
a file that cannot be read does not replace the latest batch.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Literal

import msgspec

from codebatch.coordinator.analysis.planning import check_tools, resolve_tasks
from codebatch.coordinator.analysis.progress_counter import RunScope
from codebatch.errors import BatchIncomplete, CodebatchError, InvalidInput
from codebatch.interchange.reports import UnreadableReport
from codebatch.model.analysis.imports import (
    IMPORT_BYTES_MAX,
    ExcludedRecords,
    ImportConfig,
    join_files,
)
from codebatch.model.analysis.report_formats import ReportFormat, format_name
from codebatch.model.task import TASK_NAME_PATTERN
from codebatch.operations.project.project_snapshot import ProjectSnapshot
from codebatch.operations.queries.failure_evidence import parse_traceback
from codebatch.operations.runs.execution import ExecutionSettings, Listener
from codebatch.operations.runs.planning import BatchPlanner, PlanMatch
from codebatch.query.status.batch_status import CurrentState, read_current_state
from codebatch.scheduling.lifecycle import BatchState
from codebatch.store.batches.batch_directory import BatchDir, Checkout, hidden_batch, iter_batches, load_batch_snapshot
from codebatch.store.batches.journal import Committed, Failed, read_journal
from codebatch.store.batches.store_directory import StoreDir
from codebatch.store.objects.pack_writer import PackWriter
from codebatch.store.results.bases import BASES_MAX, find_bases
from codebatch.system.clock import wall_ns

_UNREADABLE_PREFIX = f"{UnreadableReport.__name__}: "
_HINT_BY_REASON = {
    "memory": "nothing was imported; raise the limit with --memory-mb",
    "timeout": "nothing was imported; raise `project_seconds_max` in the configuration",
}


class InvalidImport(InvalidInput):
    """The error for a file to import that is not in the given format, or that exceeds a limit.

    The message does not contain the name of the file. Callers put the name before the message.
    """


class ImportResult(msgspec.Struct, frozen=True, kw_only=True):
    """The result of an import.

    - `batch`: the new batch with the imported findings.
    - `findings`: the number of imported findings.
    - `left_out`: the number of findings that were not imported, by reason. None if unknown, because the journal
      with these numbers was deleted.
    - `signal_status`: set if a signal ended the import. No new batch exists then, and `batch` is the batch from which
      the import started.
    """

    batch: BatchDir
    action: Literal["new", "up to date"]
    standing: CurrentState
    findings: int = 0
    left_out: ExcludedRecords | None = None
    signal_status: int = 0

    @property
    def shortfall(self) -> BatchIncomplete | None:
        """The error that describes results that are missing from the batch, or None.

        Findings that were not imported do not count; they are in `left_out`.
        """
        if self.standing.state is BatchState.COMPLETED:
            return None
        hint = f"see: codebatch errors --batch {self.batch.id}"
        return BatchIncomplete(f"batch {self.batch.id} is {self.standing.state.value}", hint=hint)


def import_into(
    execution: ExecutionSettings,
    store: StoreDir,
    start: BatchDir,
    files: Sequence[bytes],
    *,
    form: ReportFormat,
    task: str,
    root: bytes | None = None,
    allow_failed: bool = False,
    check: Callable[[], None] = lambda: None,
    listener: Listener,
) -> ImportResult:
    """Create a batch with all tasks of `start`, and with the findings in `files` as an additional task `task`.

    - `root`: the path of the source tree when the other tool ran; by default its present path.
    - `allow_failed`: accept a file that reports a failure of its tool.
    - `check`: called before the batch gets its name, while no other process can create a batch; its exceptions
      propagate.

    On return the batch is durable. Raises InvalidInput (InvalidImport if caused by a file), ToolMismatch,
    BatchIncomplete or StoreError.
    """
    _check_arguments(execution, files, task)
    with store.writing() as lock:
        config = _store_config(store, start, join_files(files), form, root)
        planner = _make_import_planner(execution, store, start, config, task, listener)
        existing = planner.find(listener.note)
        if existing is not None and existing[1].is_settled:
            return _import_result(store, _current_batch(planner, *existing, start, check), "up to date", task)
        plan = planner.plan()
        bases = tuple(dict.fromkeys((start.id, *find_bases(store, start.about.sources, plan.pipeline, plan.tasks))))[
            :BASES_MAX
        ]
        with hidden_batch(
            store, plan, sources=start.about.sources, bases=bases, programs=start.about.programs, at_ns=wall_ns()
        ) as hidden:
            executed = execution.execute(store, lock, hidden, RunScope(), listener, planner.frozen.snapshot)
            if executed.signal_status:
                status = executed.signal_status
                return ImportResult(batch=start, action="new", standing=read_current_state(start), signal_status=status)
            _refuse_failed(hidden, task, format_name(form), allow_failed=allow_failed)
            with store.making_batch():
                check()
                batch = planner.adopt(hidden, _read_checkout(start))
        if execution.builds_index:
            _index_batch(store, batch, listener)
        return _import_result(store, batch, "new", task)


def _index_batch(store: StoreDir, batch: BatchDir, listener: Listener) -> None:
    from codebatch.operations.runs.indexing import build_index  # Deferred: LMDB is only needed for an index.

    listener.phase("indexing")
    try:
        build_index(store, batch, note=listener.note)
    except CodebatchError as error:  # For example, another process has removed the batch.
        listener.note(f"index not updated: {error.message}")


def _current_batch(
    planner: BatchPlanner, batch: BatchDir, match: PlanMatch, start: BatchDir, check: Callable[[], None]
) -> BatchDir:
    """Return the batch to use for the plan of an import.

    It is `batch` if queries about the snapshot already use it and its commit is that of `start`. Otherwise, it is a new
    batch that adopts the results of `batch`.
    """
    if match.has_same_plan and _read_checkout(batch) == _read_checkout(start):
        return batch
    with planner.store.making_batch():
        check()
        return planner.adopt(batch, _read_checkout(start))


def _read_checkout(batch: BatchDir) -> Checkout:
    return Checkout(batch.about.commit, batch.about.is_clean)


def _check_arguments(execution: ExecutionSettings, files: Sequence[bytes], task: str) -> None:
    """Check the arguments of an import before anything is written. Raises InvalidInput."""
    catalogue = execution.configuration.catalogue
    if not TASK_NAME_PATTERN.match(task):
        raise InvalidInput(
            f"{task!r} is not a valid task name",
            hint="use at most 64 characters of a-z, 0-9, '-' and '_', starting with a letter",
        )
    if task in catalogue.installed or task in catalogue.locations:
        raise InvalidInput(f"{task} is the name of a built-in task", hint="choose another name with --as")
    if sum(map(len, files)) > IMPORT_BYTES_MAX:
        subject = "the file has" if len(files) == 1 else "together, the files have"
        raise InvalidImport(f"{subject} more than {IMPORT_BYTES_MAX:,} bytes, the limit for imports")


def _store_config(
    store: StoreDir, start: BatchDir, data: bytes, form: ReportFormat, root: bytes | None
) -> ImportConfig:
    """Store the file as an object. Return the configuration of the import task, which names the object.

    On return the object is durable.
    """
    with PackWriter(store.objects()) as objects:
        digest = objects.add(data)
        objects.seal_packs()
    sources = start.about.sources
    if root is None:
        root = os.path.commonpath(sources) if sources else b""
    return ImportConfig(format=form, object=digest, root=root)


def _make_import_planner(
    execution: ExecutionSettings, store: StoreDir, start: BatchDir, config: ImportConfig, task: str, listener: Listener
) -> BatchPlanner:
    """Return the planner of the new batch. Its tasks are those of `start`, followed by all imports sorted by name.

    Raises ToolMismatch.
    """
    plan, about = start.plan(), start.about
    catalogue = execution.configuration.catalogue.with_imports({*about.imports, task})
    check_tools(catalogue, plan, about.programs)
    imports = {*about.imports, task}
    names = [*(name for name in plan.task_names if name not in imports), *sorted(imports)]
    overrides = {planned_task.name: planned_task.config for planned_task in plan.tasks} | {
        task: msgspec.to_builtins(config)
    }
    frozen = ProjectSnapshot(
        snapshot=load_batch_snapshot(store, start),
        sources=about.sources,
        files=plan.item_count,
        size_bytes=sum(shard.bytes for shard in plan.shards),
        paths=plan.paths,
        stat_cache=about.stat_cache,
    )
    return BatchPlanner(
        store=store,
        frozen=frozen,
        pipeline=plan.pipeline,
        tasks=resolve_tasks(catalogue, names, overrides),
        shard_rule=plan.shard_rule,
        catalogue=catalogue,
        note=listener.note,
    )


def _refuse_failed(batch: BatchDir, task: str, form: str, *, allow_failed: bool) -> None:
    """Raise an error if an import failed.

    Raises InvalidImport if the file is unreadable or reports a failure of its tool, and BatchIncomplete if the task
    failed.
    """
    events = [line.event for line in read_journal(batch.files, batch.root)]
    failed = [event for event in events if isinstance(event, Failed) and event.task == task]
    if failed:
        exception_text = " ".join(parse_traceback(failed[-1].evidence or "").exception_lines)
        if _UNREADABLE_PREFIX in exception_text:
            raise InvalidImport(
                f"cannot read the findings as {form}: {exception_text.partition(_UNREADABLE_PREFIX)[2]}"
            )
        reason = f"reading it as {form} failed ({failed[-1].reason})"
        hint = _HINT_BY_REASON.get(failed[-1].reason or "", "nothing was imported")
        raise BatchIncomplete(f"{reason}: {exception_text}" if exception_text else reason, hint=hint)
    excluded = _read_excluded(batch, task)
    if excluded is not None and excluded.unread and not allow_failed and not _has_results(batch, task, excluded):
        raise InvalidImport(
            f"no part of the report can be read as {form}: {excluded.unread_sample}",
            hint="if this text reports no problem, import the report with --allow-failed",
        )
    if excluded is not None and excluded.tool_failed and not allow_failed:
        raise InvalidImport(
            "the report is marked as incomplete: findings may be missing",
            hint="import the report anyway with --allow-failed",
        )


def _has_results(batch: BatchDir, task: str, excluded: ExcludedRecords) -> bool:
    """Return whether an import read any finding, also one that is not part of the batch."""
    outputs = read_current_state(batch).outputs
    output = outputs.manifest.task_output(task) if outputs is not None else None
    records = sum(shard.counts.records for shard in output.shards) if output is not None else 0
    return records + excluded.unknown_files + excluded.unknown_locations + excluded.dismissed > 0


def _import_result(store: StoreDir, batch: BatchDir, action: Literal["new", "up to date"], task: str) -> ImportResult:
    state = read_current_state(batch)
    output = state.outputs.manifest.task_output(task) if state.outputs is not None else None
    return ImportResult(
        batch=batch,
        action=action,
        standing=state,
        findings=sum(shard.counts.records for shard in output.shards) if output is not None else 0,
        left_out=_find_excluded(store, batch, task),
    )


def _find_excluded(store: StoreDir, batch: BatchDir, task: str) -> ExcludedRecords | None:
    """Return the findings that an import left out, or None if they are unknown.

    If the batch reused the import, they are read from the older batch that recorded them.
    """
    (planned,) = (candidate for candidate in batch.plan().tasks if candidate.name == task)
    place = batch.about.snapshot_id, batch.about.paths, batch.about.imports[task]
    for candidate in (batch, *iter_batches(store)):
        if (candidate.about.snapshot_id, candidate.about.paths, candidate.about.imports.get(task)) == place:
            excluded = _read_excluded(candidate, task)
            if excluded is not None and planned in candidate.plan().tasks:
                return excluded
    return None


def _read_excluded(batch: BatchDir, task: str) -> ExcludedRecords | None:
    """Return the findings that the import task left out, as recorded in the journal, or None."""
    for line in reversed(read_journal(batch.files, batch.root)):
        event = line.event
        if isinstance(event, Committed) and event.task == task and event.evidence:
            try:
                return msgspec.json.decode(event.evidence, type=ExcludedRecords)
            except ValueError:
                return None
    return None
