"""Importing: what another program found, as a task of a new batch over the same snapshot (SPEC.md "Imported findings").

The batch is made out of sight and gets its name once the file was read: whoever asks meets no batch with an import that
failed, and a file that cannot be read leaves the latest batch the latest.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Literal

import msgspec

from codebatch.coordinator.analysis.planning import check_tools, resolve_tasks
from codebatch.coordinator.analysis.progress_counter import RunScope
from codebatch.errors import BatchIncomplete, InvalidInput, StoreError
from codebatch.model.analysis.imports import (
    FORMATS,
    IMPORT_BYTES_MAX,
    ExcludedRecords,
    ImportConfig,
    ImportFormat,
    join_files,
)
from codebatch.model.task import TASK_NAME_PATTERN
from codebatch.operations.project.project_snapshot import ProjectSnapshot
from codebatch.operations.queries.failure_evidence import taken_apart
from codebatch.operations.runs.execution import ExecutionSettings, Listener
from codebatch.operations.runs.planning import Planner
from codebatch.query.status.batch_status import CurrentState, read_current_state
from codebatch.scheduling.lifecycle import BatchState
from codebatch.store.batches.batches import BatchDir, Checkout, hidden_batch, iter_batches, snapshot_of
from codebatch.store.batches.journal import Committed, Failed, read_journal
from codebatch.store.batches.store import StoreDir
from codebatch.store.objects.pack_writer import PackWriter
from codebatch.store.results.bases import BASES_MAX, find_bases
from codebatch.system.clock import wall_ns

_UNREADABLE = "Unreadable: "
_HINTS = {
    "memory": "nothing was imported; raise the limit with --memory-mb",
    "timeout": "nothing was imported; raise `project_seconds_max` in the configuration",
}


class InvalidImport(InvalidInput):
    """A file that cannot be read in its format or exceeds a limit. Callers put the file name before the message."""


class ImportResult(msgspec.Struct, frozen=True, kw_only=True):
    """The result of an import. `batch` is the new batch with the imported findings, and `findings` is their number.

    `left_out` describes findings that were not imported. It is None if this is no longer known. If a signal ended the
    import, `signal_status` is set. No new batch exists then, and `batch` is the batch from which the import started.
    """

    batch: BatchDir
    action: Literal["new", "up to date"]
    standing: CurrentState
    findings: int = 0
    left_out: ExcludedRecords | None = None
    signal_status: int = 0

    @property
    def shortfall(self) -> BatchIncomplete | None:
        """The error that describes data that is missing from the batch, or None.

        It does not describe findings that were not imported.
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
    form: ImportFormat,
    task: str,
    root: bytes | None = None,
    allow_failed: bool = False,
    check: Callable[[], None] = lambda: None,
    listener: Listener,
) -> ImportResult:
    """Make the latest batch one with all tasks of `start` and what files say that another program wrote, as `task`.

    `root` is where the tree lay for that program, by default where it does here. `allow_failed`: files are taken of
    which one says itself that the program did not do all. `check` is called before the batch gets its name, when nobody
    else can make one; what it raises is raised. On return the batch is on disk. Raises InvalidInput for what cannot be
    imported, of it InvalidImport for such a file, and ToolMismatch, BatchIncomplete or StoreError.
    """
    _check(execution, files, form, task)
    with store.writing() as lock:
        config = _config(store, start, join_files(files), form, root)
        planner = _planner(execution, store, start, config, task, listener)
        found = planner.find(listener.note)
        if found is not None and (stands := read_current_state(found)).is_over and not stands.holders:
            return _imported(store, _answering(planner, found, start, check), "up to date", task)
        plan = planner.plan()
        bases = tuple(dict.fromkeys((start.id, *find_bases(store, start.about.sources, plan.pipeline))))[:BASES_MAX]
        with hidden_batch(store, plan, sources=start.about.sources, bases=bases, at_ns=wall_ns()) as hidden:
            executed = execution.execute(store, lock, hidden, RunScope(), listener, planner.frozen.snapshot)
            if executed.signal_status:
                status = executed.signal_status
                return ImportResult(batch=start, action="new", standing=read_current_state(start), signal_status=status)
            _refuse_failed(hidden, task, form, allow_failed=allow_failed)
            with store.making_batch():
                check()
                batch = planner.adopt(hidden, _checkout_of(start))
        if execution.configuration.settings.index.build == "run":
            _index(store, batch, listener)
        return _imported(store, batch, "new", task)


def _index(store: StoreDir, batch: BatchDir, listener: Listener) -> None:
    from codebatch.operations.runs.indexing import build_index  # LMDB, for those who want an index alone

    listener.phase("indexing")
    try:
        build_index(store, batch, note=listener.note)
    except StoreError as error:
        listener.note(f"index not updated: {error.message}")


def _answering(planner: Planner, found: BatchDir, start: BatchDir, check: Callable[[], None]) -> BatchDir:
    """The batch of the plan where it is the latest and of the same commit, else one that adopts it."""
    if planner.is_answered_by(found) and _checkout_of(found) == _checkout_of(start):
        return found
    with planner.store.making_batch():
        check()
        return planner.adopt(found, _checkout_of(start))


def _checkout_of(batch: BatchDir) -> Checkout:
    return Checkout(batch.about.commit, batch.about.is_clean)


def _check(execution: ExecutionSettings, files: Sequence[bytes], form: str, task: str) -> None:
    """Refuse what cannot be imported before anything is written. Raises InvalidInput."""
    catalogue = execution.configuration.catalogue
    if form not in FORMATS:
        raise InvalidInput(f"unknown format {form!r}", hint=f"one of: {', '.join(FORMATS)}")
    if not TASK_NAME_PATTERN.match(task):
        raise InvalidInput(
            f"{task!r} is not a valid task name",
            hint="use at most 64 characters of a-z, 0-9, '-' and '_', starting with a letter",
        )
    if task in catalogue.installed or task in catalogue.own_places:
        raise InvalidInput(f"{task} is a task that codebatch runs itself", hint="choose another name with --as")
    if sum(map(len, files)) > IMPORT_BYTES_MAX:
        has = "the file has" if len(files) == 1 else "together, the files have"
        raise InvalidImport(f"{has} more than {IMPORT_BYTES_MAX:,} bytes, the limit for imports")


def _config(store: StoreDir, start: BatchDir, data: bytes, form: ImportFormat, root: bytes | None) -> ImportConfig:
    """The configuration of the import. On return the file is an object of the store."""
    with PackWriter(store.objects()) as objects:
        digest = objects.add(data)
        objects.seal()
    sources = start.about.sources
    if root is None:
        root = os.path.commonpath(sources) if sources else b""
    return ImportConfig(format=form, object=digest, root=root)


def _planner(
    execution: ExecutionSettings, store: StoreDir, start: BatchDir, config: ImportConfig, task: str, listener: Listener
) -> Planner:
    """From what the batch is planned: the tasks as they were, then all imports by name. Raises ToolMismatch."""
    plan, about = start.plan(), start.about
    catalogue = execution.configuration.catalogue.with_imports({*about.imports, task})
    check_tools(catalogue, plan)
    imports = {*about.imports, task}
    names = [*(name for name in plan.task_names if name not in imports), *sorted(imports)]
    overrides = {each.name: each.config for each in plan.tasks} | {task: msgspec.to_builtins(config)}
    frozen = ProjectSnapshot(
        snapshot=snapshot_of(store, start),
        sources=about.sources,
        files=plan.items,
        size_bytes=sum(shard.bytes for shard in plan.shards),
        paths=plan.paths,
        stat_cache=about.stat_cache,
    )
    return Planner(
        store=store,
        frozen=frozen,
        pipeline=plan.pipeline,
        tasks=resolve_tasks(catalogue, names, overrides),
        shard_rule=plan.shard_rule,
        catalogue=catalogue,
        note=listener.note,
    )


def _refuse_failed(batch: BatchDir, task: str, form: ImportFormat, *, allow_failed: bool) -> None:
    """Raise InvalidInput or BatchIncomplete where the file could not be read, or says that it is not whole."""
    events = [line.event for line in read_journal(batch.files, batch.root)]
    failed = [event for event in events if isinstance(event, Failed) and event.task == task]
    if failed:
        what = " ".join(taken_apart(failed[-1].evidence or "").what)
        if _UNREADABLE in what:
            raise InvalidImport(f"not readable as {form}: {what.partition(_UNREADABLE)[2]}")
        reason = f"reading it as {form} failed ({failed[-1].reason})"
        hint = _HINTS.get(failed[-1].reason or "", "nothing was imported")
        raise BatchIncomplete(f"{reason}: {what}" if what else reason, hint=hint)
    left_out = _left_out(batch, task)
    if left_out is not None and left_out.tool_failed and not allow_failed:
        raise InvalidImport(
            "the report is marked as incomplete: findings may be missing",
            hint="import the report anyway with --allow-failed",
        )


def _imported(store: StoreDir, batch: BatchDir, action: Literal["new", "up to date"], task: str) -> ImportResult:
    stands = read_current_state(batch)
    output = stands.outputs.manifest.task(task) if stands.outputs is not None else None
    return ImportResult(
        batch=batch,
        action=action,
        standing=stands,
        findings=sum(shard.counts.records for shard in output.shards) if output is not None else 0,
        left_out=_left_out_of(store, batch, task),
    )


def _left_out_of(store: StoreDir, batch: BatchDir, task: str) -> ExcludedRecords | None:
    """What was left out, as the batch tells of it or the one that it was taken over from; None where none does."""
    (planned,) = (each for each in batch.plan().tasks if each.name == task)
    place = batch.about.snapshot_id, batch.about.paths, batch.about.imports[task]
    for each in (batch, *iter_batches(store)):
        if (each.about.snapshot_id, each.about.paths, each.about.imports.get(task)) == place:
            found = _left_out(each, task)
            if found is not None and planned in each.plan().tasks:
                return found
    return None


def _left_out(batch: BatchDir, task: str) -> ExcludedRecords | None:
    """What the task told of it, None where the journal is lost."""
    for line in reversed(read_journal(batch.files, batch.root)):
        event = line.event
        if isinstance(event, Committed) and event.task == task and event.evidence:
            try:
                return msgspec.json.decode(event.evidence, type=ExcludedRecords)
            except ValueError:
                return None
    return None
