"""Runs of commands. A run creates a batch from work files, or continues an existing batch."""

from __future__ import annotations

import contextlib
import functools
import os
import shlex
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from msgspec import UNSET
from msgspec.structs import replace

from codebatch.coordinator.work.execution import run_work_batch
from codebatch.errors import BatchRunning, InvalidInput, NothingToDo, StoreUnwritable
from codebatch.model.work.command import CommandId
from codebatch.model.work.request import Open
from codebatch.model.work.work_batch import CONFIDENCE_MIN, Work
from codebatch.operations import NoteCallback, ignore_note
from codebatch.operations.project.stores import StoreLocator
from codebatch.operations.runs.collection import collect_garbage_after_run
from codebatch.operations.runs.requests import append_request
from codebatch.query.status.work_status import CommandStatus, read_work_status
from codebatch.scheduling.lifecycle import BatchState, CommandState
from codebatch.store.batches.batch_directory import BatchDir, iter_batches
from codebatch.store.batches.holders import has_live_holder
from codebatch.store.batches.store_directory import StoreDir
from codebatch.store.work.notifications import NotificationHistory, failed_notifications_text
from codebatch.store.work.work_batches import make_work_batch
from codebatch.system.clock import wall_ns
from codebatch.system.files.files import FileLock
from codebatch.system.files.os_errors import fix_hint, is_write_refusal
from codebatch.system.processes.garbage_collector import collector_paused
from codebatch.work.control.batches import WorkBatch, load_work_batch
from codebatch.work.control.history import add_previous_tasks, read_active_tasks, read_previous_tasks, undelivered_text
from codebatch.work.control.list_changes import NO_CHANGES, ListChanges, reload_list, warn_about_changes
from codebatch.work.control.listener import ListenerAdapter, WorkListener
from codebatch.work.control.orphaned_commands import find_orphaned_commands
from codebatch.work.control.requests import find_commands, visible_failures
from codebatch.work.control.tree_base import record_tree_base
from codebatch.work.control.trust import check_file_system, check_place_trusted, check_trusted
from codebatch.work.definition.selection import PreviousTask, abbreviated_ids
from codebatch.work.definition.settings import WorkOptions
from codebatch.work.definition.work_list import WorkList, read_work_files

_RERUN_STATES = (CommandState.FAILED, CommandState.CANCELLED)


class WorkRunResult(WorkBatch, frozen=True, kw_only=True):
    """A batch of a task list after this process ran it.

    - `seconds`: the duration of the run.
    - `signal_status`: the exit status of the signal that stopped the run, or 0 if no signal stopped it.
    - `changes`: for a resumed batch, the differences between the batch and its task list when the run began. If the
      list was reloaded, the batch now has the new definitions.
    """

    seconds: float
    signal_status: int
    changes: ListChanges = NO_CHANGES


def run_files(
    paths: tuple[Path, ...],
    options: WorkOptions,
    place: StoreLocator,
    *,
    keep: int,
    is_parallel: bool = False,
    is_trusted: bool = False,
    listener: WorkListener,
) -> WorkRunResult:
    """Create a batch of the commands in work files, and run it until it ends.

    - `is_parallel`: run even if another batch runs in the same root. Otherwise, BatchRunning is raised.
    - `is_trusted`: use a store even if it was not created on this machine by this user. Otherwise, StoreUntrusted is
      raised.
    - `keep`: as in `collect_garbage`.

    In the main thread, SIGINT and SIGTERM end the run early, and SIGHUP is ignored. If the listener does not agree,
    nothing is written or run. Raises CodebatchError. If an error occurs before the first command starts, no batch
    exists.
    """
    with make_batch(
        paths, options, place, is_parallel=is_parallel, is_trusted=is_trusted, listener=listener
    ) as new_batch:
        result = _run_coordinator(new_batch.store, new_batch.batch, listener, new_batch.lock, new_batch.leads)
    if not result.signal_status:
        collect_garbage_after_run(result.store, keep=keep, ran=result.batch, note=listener.note)
    return result


class NewWorkBatch(NamedTuple):
    """A new batch. `lock` is the lock of its store.

    The caller must call `leads` as soon as a process runs the batch. It releases the lock that keeps other processes
    from creating batches.
    """

    store: StoreDir
    batch: BatchDir
    lock: FileLock
    leads: Callable[[], None]


@contextlib.contextmanager
def make_batch(
    paths: tuple[Path, ...],
    options: WorkOptions,
    place: StoreLocator,
    *,
    is_parallel: bool,
    is_trusted: bool,
    listener: WorkListener,
) -> Iterator[NewWorkBatch]:
    """Create a batch of the commands in work files. Raises the errors of `run_files`."""
    listed = list_files(paths, options, place, note=listener.note)
    for text in listed.warnings:
        listener.warn(text)
    for text in listed.notes:
        listener.note(text)
    if not listener.agrees(listed.work, listed.rejected_edges):
        look = _analyze_command_line(
            paths, options, is_asked=any(edge.source == "command" for edge in listed.work.inferred)
        )
        hint = f"see where they come from with: {look}; write `needs`, or turn inference off with --no-infer"
        raise NothingToDo("aborted: inferred dependencies were rejected", hint=hint)
    place = place.for_directory(Path(os.fsdecode(listed.work.root)))
    check_file_system(place.store_root() or place.new_store_path())
    store = place.open_or_create_store(listener.note)
    check_place_trusted(store, is_trusted=is_trusted)
    with store.writing() as lock, contextlib.ExitStack() as making:
        # This lock is held until other processes see that the batch is running. So of two runs that start at the same
        # time in a directory, one is refused.
        making.enter_context(store.making_batch())
        if not is_parallel:
            _refuse_parallel_batch(store, listed.work.root)
        elif options.unfinished:
            _refuse_active_tasks(store, listed)
        for text in find_orphaned_commands(store, listed.work.root):
            listener.note(text)
        if listed.work.notify is not None and (text := undelivered_text(store, listed.identity)):
            listener.warn(text)
        work = record_tree_base(store, listed, _with_done_tasks(store, listed), listener.note)
        with collector_paused():
            batch = make_work_batch(store, listed.commands, work, at_ns=wall_ns())
        yield NewWorkBatch(store, batch, lock, making.close)


def _analyze_command_line(paths: tuple[Path, ...], options: WorkOptions, *, is_asked: bool) -> str:
    """Return the `work analyze` command that shows the task list with the same options."""
    flags = {
        "--each-line": options.each_line,
        "--recursive": options.is_recursive,
        "--only": options.only,
        "--unfinished": options.unfinished,
        "--blocked": options.blocked,
        "--run-infer": is_asked,
    }
    values = [
        *(("--file", str(path)) for path in paths),
        *([("--strategy", options.strategy)] if options.strategy is not None else []),
        *([("--command", options.command)] if options.command is not None else []),
        *(("--tag", tag) for tag in options.tags),
        *([("--of", options.of)] if options.of is not None else []),
    ]
    if options.infer_confidence != CONFIDENCE_MIN:
        values.append(("--infer-confidence", f"{options.infer_confidence:g}"))
    words = [*(word for pair in values for word in pair), *(flag for flag, is_set in flags.items() if is_set)]
    return shlex.join(["codebatch", "work", "analyze", *words, *options.tasks])


def _with_done_tasks(store: StoreDir, listed: WorkList) -> Work:
    """Return a batch that also records which of the unselected tasks of its list are done, and earlier successes.

    So these outcomes stay known even if the earlier batches are removed. Raises InvalidInput if a task uses outputs of
    an unselected task that has none.
    """
    skipping = {command.id for command in listed.commands if command.skip_if_unchanged}
    unselected = listed.definitions.keys() - {*listed.work.order}
    former: dict[CommandId, PreviousTask] = {}
    if wanted := {id_: listed.definitions[id_] for id_ in unselected | skipping}:
        add_previous_tasks(former, store, listed.identity, wanted)
    done = {
        id_: task.definition for id_, task in former.items() if task.state is CommandState.DONE and id_ in unselected
    }
    successes = {
        id_: task.success
        for id_, task in sorted(former.items())
        if task.success is not None
        and ((id_ in skipping and task.success.inputs) or (id_ in done and task.success.outputs))
    }
    for command in listed.commands:
        for id_ in (id_ for name, ids in (command.outputs_of or {}).items() if name for id_ in ids):
            if id_ in unselected and not (id_ in successes and former[id_].is_current):
                raise InvalidInput(
                    f"{command.id!r} uses the outputs of {id_!r}, which does not run in this batch, and no "
                    "earlier batch has outputs of its present definition",
                    hint=f"run {id_!r} too",
                )
    return replace(listed.work, done_before=dict(sorted(done.items())), successes=successes or UNSET)


def list_files(
    paths: tuple[Path, ...], options: WorkOptions, place: StoreLocator, *, note: NoteCallback = ignore_note
) -> WorkList:
    """Return the selected tasks of work files.

    The store is read only if the outcomes of earlier batches affect the selection.
    """
    former = functools.partial(read_previous_tasks, place, options.of, note=note)
    return read_work_files(paths, overrides=options, here=place.directory, read_previous=former)


def resume_work(
    store: StoreDir,
    batch: BatchDir,
    *,
    is_forced: bool = False,
    only: Sequence[str] = (),
    blocked: bool = False,
    wait_answers: bool = False,
    reloads: bool = False,
    is_trusted: bool = False,
    listener: WorkListener,
) -> WorkRunResult:
    """Resume a batch: run its failed and cancelled tasks again and, if `is_forced` is set, its completed tasks.

    - `only`: rerun only these tasks.
    - `blocked`: rerun also blocked tasks. Otherwise, they stay blocked.
    - `wait_answers`: keep running while a question is open.
    - `reloads`: adopt the new definitions if the task list has changed. Otherwise, the listener receives a warning.
    - `is_trusted`: run even if the store was not created on this machine by this user. Otherwise, ForeignCommands is
      raised.

    If a person decided by an answer that a task failed, or if it failed because it was interrupted, the task is rerun
    only with `is_forced` or if it is in `only`.
    Raises BatchRunning if another process runs the batch, and the errors of `run_files`.
    """
    work_batch = load_work_batch(store, batch)
    chosen = {command.id for command in find_commands(work_batch, only)}
    if not is_trusted:
        check_trusted(store, batch)
    refuse_running(work_batch)
    notifications = _warn_about_notifications(work_batch, listener)
    if work_batch.standing.state is BatchState.COMPLETED and not is_forced:
        changes = reload_list(work_batch, listener) if reloads else warn_about_changes(work_batch, listener)
        if notifications.is_pending:
            return replace(run_to_completion(store, batch, listener), changes=changes)
        status = work_batch.standing
        return WorkRunResult(store=store, batch=batch, standing=status, seconds=0.0, signal_status=0, changes=changes)
    states = [*_RERUN_STATES, *([CommandState.DONE] if is_forced else []), *([CommandState.BLOCKED] if blocked else [])]
    with store.writing() as lock:
        before = work_batch
        work_batch, changes = _compare_with_list(work_batch, listener, reloads=reloads, is_forced=is_forced)
        ended_rounds = {
            command.id: command.ended
            # The reload may change a retry policy, and with it the state of a failed task. So the states before and
            # after the reload are used.
            for command in (*before.commands_in(*states), *work_batch.commands_in(*states))
            if command.ended and (command.id in chosen if chosen else is_forced or _is_rerun_unnamed(command))
        }
        if reloads:
            ended_rounds = {id_: round_ for id_, round_ in ended_rounds.items() if id_ not in changes.removed}
        if (
            held := []
            if chosen or is_forced
            else [one.id for one in work_batch.commands_in(CommandState.FAILED) if one.is_interrupted]
        ):
            listener.warn(
                f"interrupted, so not rerun: {abbreviated_ids(held)}; to rerun such a task: "
                f"codebatch work retry --batch {batch.id} TASK"
            )
        append_request(
            batch,
            Open(rounds=ended_rounds, lifts="named" if chosen else "all", acknowledged=visible_failures(work_batch)),
        )
        return replace(_run_coordinator(store, batch, listener, lock, lambda: None, wait_answers), changes=changes)


def _warn_about_notifications(work_batch: WorkBatch, listener: WorkListener) -> NotificationHistory:
    """Warn about notifications of the last run that failed. Return all notifications of the batch."""
    notifications = work_batch.notifications
    if notifications.recent:
        listener.warn(failed_notifications_text(notifications.recent))
    return notifications


def _is_rerun_unnamed(command: CommandStatus) -> bool:
    """Return whether `resume` reruns a task that the user does not name.

    If the policy of an interrupted task does not allow another start, a person must. Otherwise `resume` in a cron job
    would start a task again and again that may run only once.
    """
    return not (command.is_decided or (command.is_interrupted and command.state is CommandState.FAILED))


def continue_batch(
    store: StoreDir, batch: BatchDir, *, reloads: bool = False, is_trusted: bool = False, listener: WorkListener
) -> WorkRunResult:
    """Run the remaining tasks of a batch. Failed tasks do not run again.

    `reloads` and the errors are as in `resume_work`.
    """
    if not is_trusted:
        check_trusted(store, batch)
    work_batch = load_work_batch(store, batch)
    refuse_running(work_batch)
    _warn_about_notifications(work_batch, listener)
    with store.writing() as lock:
        _, changes = _compare_with_list(work_batch, listener, reloads=reloads)
        return replace(_run_coordinator(store, batch, listener, lock, lambda: None), changes=changes)


def _compare_with_list(
    work_batch: WorkBatch, listener: WorkListener, *, reloads: bool, is_forced: bool = False
) -> tuple[WorkBatch, ListChanges]:
    """Compare a batch with its task list. With `reloads`, also replace the definitions of the batch.

    Return the resulting batch and the changes of the list.
    """
    if not reloads:
        return work_batch, warn_about_changes(work_batch, listener)
    changes = reload_list(work_batch, listener, is_forced=is_forced)
    return load_work_batch(work_batch.store, work_batch.batch), changes


def refuse_running(work_batch: WorkBatch) -> None:
    """Raise BatchRunning if a process runs the batch."""
    if (leader := work_batch.standing.coordinator) is not None:
        raise BatchRunning(
            f"batch {work_batch.batch.id} is already running (process {leader.pid} on {leader.host.name})",
            hint=f"see: codebatch status --batch {work_batch.batch.id}",
        )


def run_to_completion(store: StoreDir, batch: BatchDir, listener: WorkListener) -> WorkRunResult:
    """Run the remaining tasks of a batch. Raises BatchRunning if another process runs the batch."""
    with store.writing() as lock:
        return _run_coordinator(store, batch, listener, lock, lambda: None)


def _run_coordinator(
    store: StoreDir,
    batch: BatchDir,
    listener: WorkListener,
    lock: FileLock,
    leads: Callable[[], None],
    wait_answers: bool = False,
) -> WorkRunResult:
    began = time.monotonic()
    watch = ListenerAdapter(batch, listener, leads)
    try:
        conducted = run_work_batch(
            store,
            batch,
            watcher=watch,
            store_lock=lock.descriptor,
            waits_for_answers=wait_answers,
            wants_colors=listener.wants_colors,
        )
    # The hint names `resume`, because `work run` would create a new batch.
    except (StoreUnwritable, OSError) as error:
        cause = error if isinstance(error, OSError) else error.__cause__
        if isinstance(error, OSError) and not is_write_refusal(error):
            raise
        message = error.message if isinstance(error, StoreUnwritable) else f"batch {batch.id} stopped: {error.strerror}"
        hint = f"{fix_hint(cause)}, then resume with: codebatch resume --batch {batch.id}"
        raise StoreUnwritable(message, hint=hint) from error
    seconds = conducted.ended_at - began
    batch_status = read_work_status(store, batch, conducted.attempts)
    status = conducted.exit_status
    return WorkRunResult(store=store, batch=batch, standing=batch_status, seconds=seconds, signal_status=status)


def _refuse_parallel_batch(store: StoreDir, root: bytes) -> None:
    for batch in iter_batches(store, kind="work"):
        if batch.about.sources == (root,) and has_live_holder(batch):
            raise BatchRunning(
                f"batch {batch.id} is running in the same directory",
                hint=f"see its progress with: codebatch status --batch {batch.id}; stop it with: "
                f"codebatch cancel --batch {batch.id}; or run in parallel with it: --parallel-batches, which runs its "
                "tasks a second time unless you add --unfinished",
            )


def _refuse_active_tasks(store: StoreDir, listed: WorkList) -> None:
    """Raise BatchRunning if another batch of the list began with one of the tasks after the selection."""
    active = read_active_tasks(store, listed.identity)
    if doubled := sorted(active.keys() & {*listed.work.order}):
        raise BatchRunning(
            f"batch {active[doubled[0]]} has just started with {abbreviated_ids(doubled)}", hint="run the command again"
        )
