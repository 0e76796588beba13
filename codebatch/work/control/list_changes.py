"""Differences between a batch and its current task list, and the reload of changed tasks (SPEC.md "Changed lists").

A reload replaces the definitions that the batch stores by those of the list.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path

import msgspec
from msgspec import UNSET

from codebatch.errors import CodebatchError, InvalidInput, NothingToDo, StoreCorrupt
from codebatch.model.entry import SnapshotId
from codebatch.model.text.quantities import count_text
from codebatch.model.work.command import CommandId
from codebatch.model.work.request import Reload, Skip
from codebatch.model.work.work_batch import DEFAULT_POLICY, EdgeKind, InferredEdge, Work, WorkEdge
from codebatch.operations.runs.requests import append_request
from codebatch.query.status.work_status import CommandStatus
from codebatch.scheduling.lifecycle import CommandState
from codebatch.store.work.work_batches import CommandDefinitions
from codebatch.work.control.batches import WorkBatch
from codebatch.work.control.listener import WorkListener
from codebatch.work.definition.problems import DefinitionProblems
from codebatch.work.definition.selection import abbreviated_ids
from codebatch.work.definition.settings import WorkOptions
from codebatch.work.definition.validation import check_cycles
from codebatch.work.definition.work_files import STANDARD_INPUT_NAME
from codebatch.work.definition.work_list import WorkList, read_work_files

_SELECTING_OPTIONS = ("tasks", "only", "tags", "unfinished", "blocked", "of", "is_strict")
"""Options that only select tasks. They do not change the definition of any task."""
_NO_SETTINGS = frozenset(
    {
        "format",
        "source",
        "order",
        "edges",
        "inferred",
        "titles",
        "policies",
        "origin",
        "satisfied_needs",
        "done_before",
        "left_out",
        "successes",
    }
)
"""Fields of a stored work batch that are not settings for all its tasks."""

_TaskDependencies = frozenset[tuple[CommandId, EdgeKind]]


class ListChanges(msgspec.Struct, frozen=True, kw_only=True):
    """The differences between the tasks of a batch and the current task list.

    - `changed`: tasks that are not done and whose definition changed.
    - `done_and_changed`: tasks that are done and whose definition changed.
    - `removed`: tasks that are no longer in the list.
    - `added`: tasks that a new batch of the list would also have.
    - `settings`: names of changed settings that apply to all tasks.
    - `problem`: why the list cannot be compared; otherwise empty.
    """

    changed: tuple[CommandId, ...] = ()
    removed: tuple[CommandId, ...] = ()
    done_and_changed: tuple[CommandId, ...] = ()
    added: tuple[CommandId, ...] = ()
    settings: tuple[str, ...] = ()
    problem: str = ""

    @property
    def is_nothing(self) -> bool:
        """Whether the task list is unchanged."""
        return self == NO_CHANGES

    def iter_descriptions(self, *, reloaded: bool = False) -> Iterator[str]:
        """Yield a text for each kind of change.

        If `reloaded` is set, the changes that a reload has just applied are left out.
        """
        kinds = {
            "changed": () if reloaded else self.changed,
            "removed": () if reloaded else self.removed,
            "changed after completion:": self.done_and_changed,
            "added": self.added,
            "settings": self.settings,
        }
        yield from (f"{kind} {abbreviated_ids(names)}" for kind, names in kinds.items() if names)


NO_CHANGES = ListChanges()


def list_changes(work_batch: WorkBatch) -> ListChanges:
    """Compare a batch with its current task list.

    Nothing is run or written, and standard input is not read.
    """
    work = work_batch.standing.work
    if STANDARD_INPUT_NAME.encode() in work.origin.files:
        return NO_CHANGES
    try:
        return _compare_lists(work_batch, reread_list(work, infers=False))
    except (CodebatchError, OSError) as error:
        return ListChanges(problem=str(error))


def warn_about_changes(work_batch: WorkBatch, listener: WorkListener) -> ListChanges:
    """Warn if the task list has changed since the batch was made, and return the changes.

    The batch keeps its definitions. If the list cannot be compared, warn only if the batch is going to be resumed.
    """
    changes = list_changes(work_batch)
    source, id_ = work_batch.standing.work.source, work_batch.batch.id
    if changes.problem and work_batch.standing.coordinator is None:
        listener.warn(
            f"cannot compare batch {id_} with task list {source}, so the batch keeps its definitions: {changes.problem}"
        )
    elif not changes.problem and not changes.is_nothing:
        listener.warn(f"{source} has changed since batch {id_} was made: {'; '.join(changes.iter_descriptions())}")
        is_reloadable = changes.changed or _unfinished_commands(work_batch, changes.removed)
        command = f"codebatch resume --reload --batch {id_}" if is_reloadable else "codebatch work run --unfinished"
        until = "" if work_batch.standing.coordinator is None else " once the batch has ended"
        listener.warn(f"the batch keeps its definitions; to use the new definitions{until}: {command}")
    return changes


def reload_list(work_batch: WorkBatch, listener: WorkListener, *, is_forced: bool = False) -> ListChanges:
    """Replace the definitions of tasks that are not done by the definitions in the current task list.

    With `is_forced`, the definitions of completed tasks are replaced too. Tasks that are no longer in the list are
    marked as done. On return, the changes are durable. Return the differences that existed before the reload.

    Raises CodebatchError, for example if a task now needs a task that is not in the batch. Nothing is changed in this
    case.
    """
    work, id_ = work_batch.standing.work, work_batch.batch.id
    if STANDARD_INPUT_NAME.encode() in work.origin.files:
        raise InvalidInput(
            f"the task list of batch {id_} came from standard input and cannot be read again",
            hint=_other_changes_hint(),
        )
    listed = reread_list(work, infers=True)
    for text in listed.warnings:
        listener.warn(text)
    for note in listed.notes:
        listener.note(note)
    if not listener.agrees(listed.work, listed.rejected_edges):
        raise NothingToDo("aborted: inferred dependencies were rejected")
    changes = _compare_lists(work_batch, listed)
    chosen = {*changes.changed, *(changes.done_and_changed if is_forced else ())}
    running = {status.id for status in work_batch.standing.commands if status.holder is not None}
    reloaded = [status for status in work_batch.standing.commands if status.id in chosen - running]
    if reloaded:
        append_request(work_batch.batch, _make_reload(work_batch, listed, reloaded))
        listener.warn(f"tasks reloaded from {work.source}: {abbreviated_ids([status.id for status in reloaded])}")
    removed = _unfinished_commands(work_batch, {*changes.removed} - running)
    for status in removed:
        append_request(work_batch.batch, Skip(task=status.id, round=status.round, marked_done=True))
    if removed:
        listener.warn(
            f"tasks marked as done, because {work.source} no longer contains them: "
            f"{abbreviated_ids([task.id for task in removed])}"
        )
    if still := sorted(running.intersection((*chosen, *changes.removed))):
        listener.warn(f"tasks not reloaded, because they are still running: {abbreviated_ids(still)}")
    remaining = msgspec.structs.replace(changes, done_and_changed=() if is_forced else changes.done_and_changed)
    if not_adopted := "; ".join(remaining.iter_descriptions(reloaded=True)):
        listener.warn(f"changes not reloaded: {not_adopted}; to use these changes: codebatch work run --unfinished")
    return changes


def _unfinished_commands(work_batch: WorkBatch, ids: Collection[CommandId]) -> list[CommandStatus]:
    """Return the commands with these IDs that are not done."""
    return [
        status for status in work_batch.standing.commands if status.id in ids and status.state is not CommandState.DONE
    ]


def _other_changes_hint() -> str:
    return "run the remaining tasks as a new batch: codebatch work run --unfinished"


def reread_list(work: Work, *, infers: bool) -> WorkList:
    """Read the complete task list of a batch again, with the options of the batch. Raises CodebatchError."""
    options_given = {name: value for name, value in work.origin.options.items() if name not in _SELECTING_OPTIONS}
    options = _convert_options(options_given if infers else {**options_given, "infer": False})
    paths = [Path(os.fsdecode(path)) for path in work.origin.files]
    return read_work_files(paths, overrides=options, here=Path(os.fsdecode(work.origin.directory)))


def _convert_options(options_given: Mapping[str, object]) -> WorkOptions:
    try:
        return msgspec.convert(options_given, WorkOptions)
    except msgspec.ValidationError as error:
        raise StoreCorrupt(f"the options of the batch cannot be read: {error}") from error


def _compare_lists(work_batch: WorkBatch, listed: WorkList) -> ListChanges:
    work, now = work_batch.standing.work, listed.work
    stored = CommandDefinitions(work_batch.store, work_batch.batch)
    batch_ids = {*work.order}
    waits_then = written_dependencies((*work.edges, *work.satisfied_needs), work.inferred, batch_ids)
    waits_now = written_dependencies(now.edges, now.inferred, batch_ids)
    changed: dict[bool, list[CommandId]] = {True: [], False: []}
    removed: list[CommandId] = []
    for status in work_batch.standing.commands:
        is_done = status.state is CommandState.DONE
        definition = listed.definitions.get(status.id)
        if definition is None:
            removed += [status.id] if status.id not in stored.added else []
        elif (
            not stored.is_unchanged(definition.command, _effective_round(status))
            or now.task_policy(status.id) != work.task_policy(status.id)
            or waits_now.get(status.id) != waits_then.get(status.id)
        ):
            changed[is_done].append(status.id)
    settings = [name for name in Work.__struct_fields__ if name not in _NO_SETTINGS]
    return ListChanges(
        changed=tuple(changed[False]),
        removed=tuple(removed),
        done_and_changed=tuple(changed[True]),
        added=_added_tasks(work, listed),
        settings=tuple(name for name in settings if _setting(now, name) != _setting(work, name)),
    )


def _setting(work: Work, name: str) -> object:
    """Return a setting as its task list defines it. The commit and the snapshot of trees belong to the batch."""
    if name == "trees" and work.trees is not UNSET:
        return msgspec.structs.replace(work.trees, repository=b"", base="", snapshot=SnapshotId(""))
    return getattr(work, name)


def _effective_round(command: CommandStatus) -> int | None:
    """Return the round whose definition applies to a command.

    For a completed command, this is the round of its result. For a running command, it is the round of the attempt. For
    all other commands, return None: the next round.
    """
    if command.state is CommandState.DONE:
        return max(command.ended, 1)
    return command.round if command.holder is not None else None


def written_dependencies(
    edges: Collection[WorkEdge], inferred: Collection[InferredEdge], known: Collection[CommandId]
) -> Mapping[CommandId, _TaskDependencies]:
    """Map each command to the dependencies that its task list defines. Inferred dependencies are left out.

    A dependency of kind `after` is included only if its command is in `known`.
    """
    unwritten = {(edge.task, edge.on) for edge in inferred}
    waits: dict[CommandId, set[tuple[CommandId, EdgeKind]]] = {}
    for edge in edges:
        if (edge.task, edge.on) not in unwritten and (edge.kind == "needs" or edge.on in known):
            waits.setdefault(edge.task, set()).add((edge.on, edge.kind))
    return {task: frozenset(on) for task, on in waits.items()}


def _added_tasks(work: Work, listed: WorkList) -> tuple[CommandId, ...]:
    """Return the tasks that a new batch of the current list would have but this batch does not have."""
    chooses = {name: value for name, value in work.origin.options.items() if name in ("tasks", "only", "tags")}
    # The batch does not record which of its unselected tasks were blocked when it was made.
    if "blocked" in work.origin.options:
        return ()
    try:
        ids = listed.choice.choose(_convert_options(chooses), {}).ids
    except CodebatchError:  # A task that was selected by name no longer exists, so the selection cannot be repeated.
        return ()
    batch_ids = {*work.order, *work.done_before, *(left_out.task for left_out in work.left_out or ())}
    return tuple(id_ for id_ in listed.work.order if id_ in ids and id_ not in batch_ids)


def _make_reload(work_batch: WorkBatch, listed: WorkList, reloaded: Collection[CommandStatus]) -> Reload:
    """Return the request that replaces the definitions of some tasks.

    Raises InvalidInput if a task now needs a task, or tokens of a pool, that the batch does not have.
    """
    work, now = work_batch.standing.work, listed.work
    ids = {status.id for status in reloaded}
    edges = tuple(edge for edge in now.edges if edge.task in ids)
    batch_ids = {*work.order}
    for edge in edges:
        is_met = edge.on in batch_ids or edge.on in work.done_before or edge in work.satisfied_needs
        if edge.kind == "needs" and not is_met:
            message = f"the task {edge.task} now needs {edge.on}, which is not in batch {work_batch.batch.id}"
            raise InvalidInput(message, hint=_other_changes_hint())
    for id_ in ids:
        isolation = listed.definitions[id_].command.isolation
        if isolation is not UNSET and (work.trees is UNSET or not work.trees.supports(isolation)):
            message = (
                f'the task {id_} now has isolation = "{isolation}", and batch {work_batch.batch.id} has no such trees'
            )
            raise InvalidInput(message, hint=_other_changes_hint())
        for pool, amount in now.task_policy(id_).pools.items():
            if amount > work.pools.get(pool, 0):
                size = work.pools.get(pool, 0)
                message = f"the task {id_} now needs {count_text(amount, 'token')} of pool {pool}"
                raise InvalidInput(
                    f"{message}, which has {size} in batch {work_batch.batch.id}", hint=_other_changes_hint()
                )
    problems = DefinitionProblems()
    check_cycles([*(edge for edge in work.edges if edge.task not in ids), *edges], problems)
    problems.raise_any()
    return Reload(
        rounds={status.id: status.ended for status in reloaded},
        commands=tuple(listed.definitions[status.id].command for status in reloaded),
        policies={id_: now.task_policy(id_) for id_ in sorted(ids) if now.task_policy(id_) != DEFAULT_POLICY},
        edges=tuple(edge for edge in edges if edge.kind == "needs" or edge.on in batch_ids),
        inferred=tuple(status for status in now.inferred if status.task in ids and status.on in batch_ids),
    )
