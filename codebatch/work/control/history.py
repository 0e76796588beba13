"""Outcomes of the tasks of a task list in its earlier batches (SPEC.md "Unfinished tasks")."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping, Set
from itertools import islice
from pathlib import Path

import msgspec

from codebatch.errors import BatchRemoved, CodebatchError, StoreCorrupt, StoreError, StoreNotFound, UnknownId
from codebatch.model.text.quantities import count_text
from codebatch.model.work.command import CommandId
from codebatch.model.work.request import Answer
from codebatch.model.work.work_batch import TaskSuccess, Work
from codebatch.operations import NoteCallback, ignore_note
from codebatch.operations.project.stores import StoreLocator
from codebatch.query.status.work_status import CommandStatus, WorkBatchStatus, read_work_status
from codebatch.scheduling.lifecycle import BatchState, CommandState
from codebatch.store.batches.batch_directory import BatchDir, iter_batches
from codebatch.store.batches.holders import has_live_holder
from codebatch.store.batches.store_directory import StoreDir
from codebatch.store.work.notifications import failed_notifications_text, read_notifications
from codebatch.store.work.requests import RequestStore
from codebatch.store.work.work_batches import CommandDefinitions, read_work
from codebatch.work.control.batch_selection import select_batch
from codebatch.work.control.batches import WorkBatch, load_work_batch
from codebatch.work.control.list_changes import reread_list
from codebatch.work.definition.definitions import TaskDefinition, explicit_needs
from codebatch.work.definition.selection import ListIdentity, PreviousTask, PreviousTasks
from codebatch.work.definition.work_files import STANDARD_INPUT_NAME
from codebatch.work.definition.work_list import list_identity

_BATCHES_READ_MAX = 200
_ENDED_STATES = (CommandState.DONE, CommandState.FAILED, CommandState.RUNNING, CommandState.BLOCKED)


class OlderBatch(msgspec.Struct, frozen=True, kw_only=True):
    """An older batch of a task list with tasks that are not done, neither there nor in a later batch.

    - `status`: its state. `tasks`: the number of its tasks. `undone`: the number of those that are not done.
    """

    batch_id: str
    status: str
    tasks: int
    undone: int

    @property
    def text(self) -> str:
        """The batch, its state and what to do, as text."""
        state = "interrupted" if self.status in (BatchState.RUNNING, BatchState.PENDING) else self.status.lower()
        tasks = f"{self.undone:,} of {count_text(self.tasks, 'task')} not done"
        return (
            f"an older batch of this list is {state}: {self.batch_id} ({tasks}), continue: "
            "codebatch work run --unfinished"
        )


def read_previous_tasks(
    place: StoreLocator,
    batch_reference: str | None,
    identity: ListIdentity,
    definitions: Mapping[CommandId, TaskDefinition],
    *,
    note: NoteCallback = ignore_note,
) -> PreviousTasks:
    """Return the earlier outcome of each task of a list.

    If `batch_reference` is given and its batch has the task, the outcome is taken from this batch. Otherwise, it is
    taken from the latest batch of the list that has the task. If there is no store, the result is empty.

    Raises CodebatchError if the batch `batch_reference` is invalid. Other damaged batches are skipped, with a note.
    """
    previous_tasks: dict[CommandId, PreviousTask] = {}
    try:
        store = place.for_directory(Path(os.fsdecode(identity.root))).open()
    except StoreNotFound:
        if batch_reference is not None:
            raise
        return previous_tasks
    if batch_reference is not None:
        _add_tasks(
            previous_tasks,
            load_work_batch(store, select_batch(store, batch_reference)),
            definitions,
            is_named_batch=True,
        )
    add_previous_tasks(previous_tasks, store, identity, definitions, note=note)
    for id_, batch in read_active_tasks(store, identity).items():
        if id_ in definitions:
            previous = previous_tasks.get(id_, PreviousTask(CommandState.PENDING, "", False, False, batch, False))
            previous_tasks[id_] = previous._replace(held="active", batch=batch)
    return previous_tasks


def add_previous_tasks(
    previous_tasks: dict[CommandId, PreviousTask],
    store: StoreDir,
    identity: ListIdentity,
    definitions: Mapping[CommandId, TaskDefinition],
    *,
    note: NoteCallback = ignore_note,
) -> None:
    """Add to `previous_tasks` the outcomes of tasks that it lacks.

    They are taken from the batches of a list, the latest first.
    """
    for batch in iter_batches(store, note, kind="work"):
        missing = definitions.keys() - previous_tasks.keys()
        if not missing:
            return
        if batch.about.sources != (identity.root,):
            continue
        try:
            work = read_work(batch)
            if is_same_list(list_identity(work), identity) and not missing.isdisjoint((*work.order, *work.done_before)):
                _add_tasks(previous_tasks, load_work_batch(store, batch), definitions, is_named_batch=False)
        except (BatchRemoved, StoreCorrupt) as error:
            note(f"{batch.id} skipped: {error.message}")


def read_active_tasks(store: StoreDir, identity: ListIdentity) -> dict[CommandId, str]:
    """Map the tasks of a list that a batch is running or will run to the ID of this batch. Raises StoreCorrupt."""
    active: dict[CommandId, str] = {}
    for batch in iter_batches(store, kind="work"):
        if batch.about.sources != (identity.root,) or not has_live_holder(batch):
            continue
        if not is_same_list(list_identity(read_work(batch)), identity):
            continue
        status = read_work_status(store, batch)
        for task in status.commands:
            is_queued = status.coordinator is not None and not task.state.is_ended and not task.is_interrupted
            if task.holder is not None or is_queued:
                active.setdefault(task.id, batch.id)
    return active


def undelivered_text(store: StoreDir, identity: ListIdentity) -> str:
    """Return a text about notifications of the latest batch of a list that were not delivered, or an empty text."""
    for batch in iter_batches(store, kind="work"):
        with contextlib.suppress(BatchRemoved, StoreCorrupt):
            if batch.about.sources == (identity.root,) and is_same_list(
                list_identity(work := read_work(batch)), identity
            ):
                history = read_notifications(batch, work.notify)
                if history.recent:
                    return f"batch {batch.id}: {failed_notifications_text(history.recent)}"
                owed = f"batch {batch.id} owes notifications; to deliver them: codebatch resume --batch {batch.id}"
                return owed if history.is_pending else ""
    return ""


def find_older_batch(store: StoreDir, batch: BatchDir) -> OlderBatch | None:
    """Return the latest batch before `batch` that `work run --unfinished` would continue, or None.

    Only the latest batch with a task decides about it. Tasks that the list does not have any more, and those of a
    running batch, are left out. At most _BATCHES_READ_MAX batches of the directory are read. Raises StoreCorrupt.
    """
    work = read_work(batch)
    identity = list_identity(work)
    if STANDARD_INPUT_NAME.encode() in identity.files:
        return None
    decided: set[CommandId] = set()
    alike = (other for other in iter_batches(store, kind="work") if other.about.sources == batch.about.sources)
    for other in islice(alike, _BATCHES_READ_MAX):
        try:
            found = work if other.id == batch.id else read_work(other)
            if not is_same_list(list_identity(found), identity):
                continue
            if other.id < batch.id and not decided.issuperset(found.order) and not has_live_holder(other):
                status = read_work_status(store, other)
                undone = _undone_tasks(status, decided)
                if undone and (undone := _still_listed(work, undone)):
                    return OlderBatch(
                        batch_id=other.id, status=status.state.value, tasks=len(found.order), undone=len(undone)
                    )
        except (StoreError, UnknownId):  # A damaged or removed batch is named by other commands.
            continue
        decided.update(found.order, found.done_before)
    return None


def _undone_tasks(status: WorkBatchStatus, decided: Set[CommandId]) -> list[CommandId]:
    return [task.id for task in status.commands if task.id not in decided and task.state is not CommandState.DONE]


def _still_listed(work: Work, ids: list[CommandId]) -> list[CommandId]:
    """Return the tasks that the list still has. If it cannot be read, return all."""
    try:
        definitions = reread_list(work, infers=False).definitions
    except (CodebatchError, OSError):
        return ids
    return [id_ for id_ in ids if id_ in definitions]


def is_same_list(first: ListIdentity, second: ListIdentity) -> bool:
    """Return whether two task lists were read from the same files."""
    return [*map(os.path.realpath, first.files)] == [*map(os.path.realpath, second.files)]


def _add_tasks(
    previous_tasks: dict[CommandId, PreviousTask],
    work_batch: WorkBatch,
    definitions: Mapping[CommandId, TaskDefinition],
    *,
    is_named_batch: bool,
) -> None:
    work, batch = work_batch.standing.work, work_batch.batch
    stored = CommandDefinitions(work_batch.store, batch)
    needs = explicit_needs((*work.edges, *work.satisfied_needs), work.inferred)
    answered = frozenset(_answered_commands(work_batch))
    successes = work.successes or {}
    for status in work_batch.standing.commands:
        if status.id not in definitions or status.id in previous_tasks:
            continue
        is_done = status.state is CommandState.DONE
        definition = _executed_definition_digest(stored, status, needs, definitions[status.id]) if is_done else ""
        is_current = is_done and definition == definitions[status.id].digest
        previous_tasks[status.id] = PreviousTask(
            status.state,
            definition,
            is_current,
            status.id in answered,
            batch.id,
            is_named_batch,
            "interrupted" if status.is_interrupted else "",
            TaskSuccess(batch=batch.id, outputs=status.outputs, inputs=status.inputs)
            if status.round
            else successes.get(status.id),
        )
    for id_, digest in work.done_before.items():
        if id_ in definitions and id_ not in previous_tasks:
            is_current = digest == definitions[id_].digest
            previous_tasks[id_] = PreviousTask(
                CommandState.DONE, digest, is_current, False, batch.id, False, success=successes.get(id_)
            )


def _executed_definition_digest(
    stored: CommandDefinitions,
    task: CommandStatus,
    needs: Mapping[CommandId, frozenset[CommandId]],
    now: TaskDefinition,
) -> str:
    """Return the digest of the definition that a completed task had when it ran.

    `stored` are the definitions of its batch, `needs` the needs of each task in this batch, and `now` is the present
    definition. If both definitions are equal, the stored one is not read.
    """
    round_ = max(task.ended, 1)
    command = now.command if stored.is_unchanged(now.command, round_) else stored.read(task.id, round_)
    return TaskDefinition(command, needs.get(task.id, frozenset())).digest


def _answered_commands(work_batch: WorkBatch) -> Iterator[CommandId]:
    """Yield the commands whose question was answered and that have not started again since the answer."""
    rounds = {status.id: status.round for status in work_batch.standing.commands if status.state not in _ENDED_STATES}
    for request in RequestStore(work_batch.batch.files, work_batch.batch.root).read() if rounds else ():
        body = request.body
        if (
            isinstance(body, Answer)
            and body.question in work_batch.standing.questions
            and body.round == rounds.get(body.task)
        ):
            yield body.task
