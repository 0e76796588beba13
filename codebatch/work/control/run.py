"""Running commands: a list of them from its files to its end, a batch from where it stands."""

from __future__ import annotations

import contextlib
import functools
import os
import shlex
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from msgspec.structs import replace

from codebatch.coordinator.work.execution import run_work_batch
from codebatch.errors import BatchRunning, NothingToDo, StoreError, StoreUnwritable
from codebatch.model.work.command import CommandId
from codebatch.model.work.request import Open
from codebatch.model.work.work_batch import CONFIDENCE_MIN, Work
from codebatch.operations import Note, ignore_note
from codebatch.operations.project.stores import StorePlace
from codebatch.operations.runs.collection import tidy
from codebatch.operations.runs.requests import request
from codebatch.query.status.work_status import read_work_status
from codebatch.scheduling.lifecycle import BatchState, CommandState
from codebatch.store.batches.batches import BatchDir, iter_batches
from codebatch.store.batches.holders import is_held
from codebatch.store.batches.store import StoreDir
from codebatch.store.work.work_batches import make_work_batch
from codebatch.system.clock import wall_ns
from codebatch.system.files.files import Lock
from codebatch.system.files.os_errors import is_refusal, suggest_fix
from codebatch.system.processes.garbage_collector import collector_paused
from codebatch.work.control.batches import WorkBatch, load_work_batch
from codebatch.work.control.history import add_former_tasks, former_tasks
from codebatch.work.control.list_changes import NO_CHANGES, ListChanges, reload_list, warn_of_changes
from codebatch.work.control.listener import ListenerAdapter, WorkListener
from codebatch.work.control.orphaned_commands import find_orphaned_commands
from codebatch.work.control.requests import named, seen_failures
from codebatch.work.control.trust import check_file_system, check_place, check_trusted
from codebatch.work.definition.selection import FormerTask
from codebatch.work.definition.settings import WorkOptions
from codebatch.work.definition.work_list import WorkList, read_work_files

_OPENED = (CommandState.FAILED, CommandState.CANCELLED)


class WorkRunResult(WorkBatch, frozen=True, kw_only=True):
    """A batch of a task list after this process ran it.

    - `seconds`: the duration of the run.
    - `signal_status`: the exit status of the signal that stopped the run, or 0 if no signal did.
    - `changes`: the changes of the task list when the batch was resumed, before any reload.
    """

    seconds: float
    signal_status: int
    changes: ListChanges = NO_CHANGES


def run_files(
    paths: tuple[Path, ...],
    options: WorkOptions,
    place: StorePlace,
    *,
    keep: int,
    is_beside: bool = False,
    is_trusted: bool = False,
    listener: WorkListener,
) -> WorkRunResult:
    """Make a batch of the commands that files define, and conduct it to its end.

    It is refused while another one is at work in the same root, unless it is to run `is_beside`; and in a store that
    was not made here by us, unless that `is_trusted`. In the main thread SIGINT and SIGTERM end it early, and SIGHUP is
    passed over. The listener is asked before anything is written, and nothing is run where it does not agree. `keep` as
    in `collect_garbage`. Raises CodebatchError; nothing is written then before anything began.
    """
    with make_batch(paths, options, place, is_beside=is_beside, is_trusted=is_trusted, listener=listener) as made:
        ran = _conduct(made.store, made.batch, listener, made.lock, made.leads)
    if not ran.signal_status:
        _tidy(ran, keep, listener)
    return ran


class MadeBatch(NamedTuple):
    """A batch that was made. `lock` is that of its store; `leads` is to be called once somebody conducts it."""

    store: StoreDir
    batch: BatchDir
    lock: Lock
    leads: Callable[[], None]


@contextlib.contextmanager
def make_batch(
    paths: tuple[Path, ...],
    options: WorkOptions,
    place: StorePlace,
    *,
    is_beside: bool,
    is_trusted: bool,
    listener: WorkListener,
) -> Iterator[MadeBatch]:
    """Make a batch of the commands that files define. Raises as `run_files` does."""
    listed = list_files(paths, options, place, note=listener.note)
    for text in listed.notes:
        listener.note(text)
    if not listener.agrees(listed.work, listed.left_out):
        look = _analyze_command(paths, options, is_asked=any(each.source == "command" for each in listed.work.inferred))
        hint = f"see where they come from with: {look}; write `needs`, or turn inference off with --no-infer"
        raise NothingToDo("aborted: inferred dependencies were rejected", hint=hint)
    place = place.of_directory(Path(os.fsdecode(listed.work.root)))
    check_file_system(place.root() or place.new_place())
    store = place.open_or_make(listener.note)
    check_place(store, is_trusted=is_trusted)
    with store.writing() as lock, contextlib.ExitStack() as making:
        # Until the batch is seen to be at work: of two that begin at once in one root, one is refused.
        making.enter_context(store.making_batch())
        if not is_beside:
            _refuse_beside(store, listed.work.root)
        for text in find_orphaned_commands(store, listed.work.root):
            listener.note(text)
        with collector_paused():
            batch = make_work_batch(store, listed.commands, _remembering(store, listed), at_ns=wall_ns())
        yield MadeBatch(store, batch, lock, making.close)


def _analyze_command(paths: tuple[Path, ...], options: WorkOptions, *, is_asked: bool) -> str:
    """The command that tells of the very list that these options choose."""
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


def _remembering(store: StoreDir, listed: WorkList) -> Work:
    """Return a batch that remembers which tasks of its list that it does not have are done.

    So this is known as long as the latest batch of the list is, however many earlier ones were collected.
    """
    left_out = {id_: listed.definitions[id_] for id_ in listed.definitions.keys() - {*listed.work.order}}
    former: dict[CommandId, FormerTask] = {}
    if left_out:
        add_former_tasks(former, store, listed.identity, left_out)
    done = {id_: task.definition for id_, task in former.items() if task.state is CommandState.DONE}
    return replace(listed.work, done_before=dict(sorted(done.items())))


def list_files(
    paths: tuple[Path, ...], options: WorkOptions, place: StorePlace, *, note: Note = ignore_note
) -> WorkList:
    """What files list, as far as it is chosen. A store is looked at only where former batches choose."""
    former = functools.partial(former_tasks, place, options.of, note=note)
    return read_work_files(paths, overrides=options, former=former)


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
    """Go on with a batch: do again what failed or was cancelled, where it `is_forced` what is done too.

    If its list has changed the listener is warned, and the batch keeps the definitions that it has, unless it `reloads`
    those of the list.

    What waits for an answer goes on waiting, unless what is `blocked` is to be done again too. `only` these are done
    again, where some are named. What somebody answered to count as failed is left at that, unless it is named or that
    is forced. With `wait_answers` we go on while a question is open. Raises BatchConducted where
    another process is at it, CommandsForeign where the store was not made here by us, unless that `is_trusted`; else as
    `run_files`.
    """
    found = load_work_batch(store, batch)
    chosen = {each.id for each in named(found, only)}
    if not is_trusted:
        check_trusted(store, batch)
    refuse_running(found)
    if found.standing.state is BatchState.COMPLETED and not is_forced:
        changes = reload_list(found, listener) if reloads else warn_of_changes(found, listener)
        standing = found.standing
        return WorkRunResult(store=store, batch=batch, standing=standing, seconds=0.0, signal_status=0, changes=changes)
    states = [*_OPENED, *([CommandState.DONE] if is_forced else []), *([CommandState.BLOCKED] if blocked else [])]
    with store.writing() as lock:
        before = found
        found, changes = _listed(found, listener, reloads=reloads, is_forced=is_forced)
        over = {
            each.id: each.ended
            for each in (*before.of(*states), *found.of(*states))  # Another policy makes another state of a failure.
            if each.ended and (each.id in chosen if chosen else is_forced or not each.is_decided)
        }
        if reloads:
            over = {id_: round_ for id_, round_ in over.items() if id_ not in changes.removed}
        request(batch, Open(rounds=over, lifts="named" if chosen else "all", acknowledged=seen_failures(found)))
        return replace(_conduct(store, batch, listener, lock, lambda: None, wait_answers), changes=changes)


def continue_batch(
    store: StoreDir, batch: BatchDir, *, reloads: bool = False, is_trusted: bool = False, listener: WorkListener
) -> WorkRunResult:
    """Do what may be done in a batch, and open nothing. Raises as `resume_work` does, and `reloads` as that does."""
    if not is_trusted:
        check_trusted(store, batch)
    found = load_work_batch(store, batch)
    refuse_running(found)
    with store.writing() as lock:
        _, changes = _listed(found, listener, reloads=reloads)
        return replace(_conduct(store, batch, listener, lock, lambda: None), changes=changes)


def _listed(
    found: WorkBatch, listener: WorkListener, *, reloads: bool, is_forced: bool = False
) -> tuple[WorkBatch, ListChanges]:
    """Compare a batch with its list, or reload it. Return how it stands then, and the changes of the list."""
    if not reloads:
        return found, warn_of_changes(found, listener)
    changes = reload_list(found, listener, is_forced=is_forced)
    return load_work_batch(found.store, found.batch), changes


def refuse_running(found: WorkBatch) -> None:
    """Raise BatchConducted if a process conducts a batch."""
    if (leader := found.standing.coordinator) is not None:
        raise BatchRunning(
            f"batch {found.batch.id} is already running (process {leader.pid} on {leader.host.name})",
            hint=f"see: codebatch status --batch {found.batch.id}",
        )


def run_to_completion(store: StoreDir, batch: BatchDir, listener: WorkListener) -> WorkRunResult:
    """Do what may be done in a batch. Raises BatchConducted where another process is at it."""
    with store.writing() as lock:
        return _conduct(store, batch, listener, lock, lambda: None)


def _conduct(
    store: StoreDir,
    batch: BatchDir,
    listener: WorkListener,
    lock: Lock,
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
    except (StoreUnwritable, OSError) as error:  # `work run` once more would be another batch.
        cause = error if isinstance(error, OSError) else error.__cause__
        if isinstance(error, OSError) and not is_refusal(error):
            raise
        told = error.message if isinstance(error, StoreUnwritable) else f"batch {batch.id} stopped: {error.strerror}"
        hint = f"{suggest_fix(cause)}, then resume with: codebatch resume --batch {batch.id}"
        raise StoreUnwritable(told, hint=hint) from error
    seconds = time.monotonic() - began
    standing = read_work_status(store, batch, conducted.attempts)
    status = conducted.exit_status
    return WorkRunResult(store=store, batch=batch, standing=standing, seconds=seconds, signal_status=status)


def _refuse_beside(store: StoreDir, root: bytes) -> None:
    for batch in iter_batches(store, kind="work"):
        if batch.about.sources == (root,) and is_held(batch):
            raise BatchRunning(
                f"batch {batch.id} is running in the same directory",
                hint=f"see its progress with: codebatch status --batch {batch.id}; stop it with: "
                f"codebatch cancel --batch {batch.id}; or run in parallel with it: --parallel-batches",
            )


def _tidy(ran: WorkRunResult, keep: int, listener: WorkListener) -> None:
    """Let go what nobody needs any more, as the run of an analysis does at its end."""
    try:
        tidy(ran.store, keep=keep, ran=ran.batch)
    except StoreError as error:
        listener.note(f"old batches were not removed: {error.message}")
