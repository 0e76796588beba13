"""Differences between a list and a batch of it, and the reload of what changed (SPEC.md "Changed lists")."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path

import msgspec

from codebatch.errors import CodebatchError, InvalidInput, NothingToDo, StoreCorrupt
from codebatch.model.text.quantities import count_of
from codebatch.model.work.command import CommandId
from codebatch.model.work.request import Reload, Skip
from codebatch.model.work.work_batch import NO_POLICY, EdgeKind, InferredEdge, Work, WorkEdge
from codebatch.operations.runs.requests import request
from codebatch.query.status.work_status import CommandStatus
from codebatch.scheduling.lifecycle import CommandState
from codebatch.store.work.work_batches import CommandDefinitions
from codebatch.work.control.batches import WorkBatch
from codebatch.work.control.listener import WorkListener
from codebatch.work.definition.files import STDIN_NAME
from codebatch.work.definition.problems import Problems
from codebatch.work.definition.selection import names_shown
from codebatch.work.definition.settings import WorkOptions
from codebatch.work.definition.validation import check_circles
from codebatch.work.definition.work_list import WorkList, read_work_files

_CHOOSES = ("tasks", "only", "tags", "unfinished", "blocked", "of", "is_strict")
"""Options that say which tasks of a list are chosen, and none that changes a task."""
_NO_SETTINGS = frozenset(
    {"format", "source", "order", "edges", "inferred", "titles", "policies", "origin", "satisfied_needs", "done_before"}
)
"""Fields of a batch that say nothing of how all of its tasks are run."""

_Waits = frozenset[tuple[CommandId, EdgeKind]]


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
        """Whether the list is as the batch has it."""
        return self == NO_CHANGES

    def described(self, *, reloaded: bool = False) -> Iterator[str]:
        """Yield each kind of change in words; if the batch was reloaded, those alone that it did not take over."""
        kinds = {
            "changed": () if reloaded else self.changed,
            "removed": () if reloaded else self.removed,
            "changed after completion:": self.done_and_changed,
            "added": self.added,
            "settings": self.settings,
        }
        yield from (f"{kind} {names_shown(names)}" for kind, names in kinds.items() if names)


NO_CHANGES = ListChanges()


def list_changes(found: WorkBatch) -> ListChanges:
    """Compare a batch with its list as it is now. Run and write nothing, and do not read standard input."""
    work = found.standing.work
    if STDIN_NAME.encode() in work.origin.files:
        return NO_CHANGES
    try:
        return _compare(found, _read_again(work, infers=False))
    except (CodebatchError, OSError) as error:
        return ListChanges(problem=str(error))


def warn_of_changes(found: WorkBatch, listener: WorkListener) -> ListChanges:
    """Warn if the list is not as the batch has it, and return the changes. The batch keeps what it has."""
    changes = list_changes(found)
    source, id_ = found.standing.work.source, found.batch.id
    if changes.problem:
        listener.warn(
            f"cannot compare batch {id_} with {source}, so the batch keeps its definitions: {changes.problem}"
        )
    elif not changes.is_nothing:
        listener.warn(f"{source} has changed since batch {id_} was made: {'; '.join(changes.described())}")
        is_reloadable = changes.changed or _undone(found, changes.removed)
        command = f"codebatch resume --reload --batch {id_}" if is_reloadable else "codebatch work run --unfinished"
        until = "" if found.standing.coordinator is None else " once the batch has ended"
        listener.warn(f"the batch keeps its definitions; to use the new definitions{until}: {command}")
    return changes


def reload_list(found: WorkBatch, listener: WorkListener, *, is_forced: bool = False) -> ListChanges:
    """Give tasks that are not done the definitions that the list has now, or all tasks if it `is_forced`.

    Tasks that are not in the list any more count as done. On return this is on disk. Returns the changes that there
    were. Raises CodebatchError, also if a task needs one now that the batch does not have; nothing is changed then.
    """
    work, id_ = found.standing.work, found.batch.id
    if STDIN_NAME.encode() in work.origin.files:
        raise InvalidInput(
            f"the task list of batch {id_} came from standard input and cannot be read again", hint=_as_new()
        )
    listed = _read_again(work, infers=True)
    for note in listed.notes:
        listener.note(note)
    if not listener.agrees(listed.work, listed.left_out):
        raise NothingToDo("aborted: inferred dependencies were rejected")
    changes = _compare(found, listed)
    chosen = {*changes.changed, *(changes.done_and_changed if is_forced else ())}
    running = {each.id for each in found.standing.commands if each.holder is not None}
    taken = [each for each in found.standing.commands if each.id in chosen - running]
    if taken:
        request(found.batch, _reload(found, listed, taken))
        listener.warn(f"reloaded from {work.source}: {names_shown([each.id for each in taken])}")
    removed = _undone(found, {*changes.removed} - running)
    for each in removed:
        request(found.batch, Skip(task=each.id, round=each.round, marked_done=True))
    if removed:
        listener.warn(
            f"marked as done, because they are no longer in {work.source}: {names_shown([one.id for one in removed])}"
        )
    if still := sorted(running.intersection((*chosen, *changes.removed))):
        listener.warn(f"not reloaded, because they are still running: {names_shown(still)}")
    left = msgspec.structs.replace(changes, done_and_changed=() if is_forced else changes.done_and_changed)
    if others := "; ".join(left.described(reloaded=True)):
        listener.warn(f"not reloaded: {others}; to use these changes: codebatch work run --unfinished")
    return changes


def _undone(found: WorkBatch, ids: Collection[CommandId]) -> list[CommandStatus]:
    """Return those of some commands that are not done."""
    return [each for each in found.standing.commands if each.id in ids and each.state is not CommandState.DONE]


def _as_new() -> str:
    return "run the remaining tasks as a new batch: codebatch work run --unfinished"


def _read_again(work: Work, *, infers: bool) -> WorkList:
    """Read the whole list of a batch as it was read. Raises CodebatchError."""
    given = {name: value for name, value in work.origin.options.items() if name not in _CHOOSES}
    options = _options(given if infers else {**given, "infer": False})
    paths = [Path(os.fsdecode(path)) for path in work.origin.files]
    return read_work_files(paths, overrides=options, here=Path(os.fsdecode(work.origin.directory)))


def _options(given: Mapping[str, object]) -> WorkOptions:
    try:
        return msgspec.convert(given, WorkOptions)
    except msgspec.ValidationError as error:
        raise StoreCorrupt(f"the options of the batch cannot be read: {error}") from error


def _compare(found: WorkBatch, listed: WorkList) -> ListChanges:
    work, now = found.standing.work, listed.work
    stored = CommandDefinitions(found.store, found.batch)
    known = {*work.order}
    waits_then = _waits((*work.edges, *work.satisfied_needs), work.inferred, known)
    waits_now = _waits(now.edges, now.inferred, known)
    changed: dict[bool, list[CommandId]] = {True: [], False: []}
    removed: list[CommandId] = []
    for each in found.standing.commands:
        is_done = each.state is CommandState.DONE
        definition = listed.definitions.get(each.id)
        if definition is None:
            removed.append(each.id)
        elif (
            not stored.is_same(definition.command, _round_of(each))
            or now.policy(each.id) != work.policy(each.id)
            or waits_now.get(each.id) != waits_then.get(each.id)
        ):
            changed[is_done].append(each.id)
    settings = [name for name in Work.__struct_fields__ if name not in _NO_SETTINGS]
    return ListChanges(
        changed=tuple(changed[False]),
        removed=tuple(removed),
        done_and_changed=tuple(changed[True]),
        added=_added(work, listed),
        settings=tuple(name for name in settings if getattr(now, name) != getattr(work, name)),
    )


def _round_of(command: CommandStatus) -> int | None:
    """Return the round whose definition matters: the one that it is done by or runs in; None for the next one."""
    if command.state is CommandState.DONE:
        return max(command.ended, 1)
    return command.round if command.holder is not None else None


def _waits(
    edges: Collection[WorkEdge], inferred: Collection[InferredEdge], known: Collection[CommandId]
) -> Mapping[CommandId, _Waits]:
    """Map each command to what it waits for, as it was written; what it is only after, if that is one of `known`."""
    unwritten = {(each.task, each.on) for each in inferred}
    waits: dict[CommandId, set[tuple[CommandId, EdgeKind]]] = {}
    for edge in edges:
        if (edge.task, edge.on) not in unwritten and (edge.kind == "needs" or edge.on in known):
            waits.setdefault(edge.task, set()).add((edge.on, edge.kind))
    return {task: frozenset(on) for task, on in waits.items()}


def _added(work: Work, listed: WorkList) -> tuple[CommandId, ...]:
    """Return the tasks that the batch would have, too, if it were made now."""
    chooses = {name: value for name, value in work.origin.options.items() if name in ("tasks", "only", "tags")}
    if "blocked" in work.origin.options:  # What did not wait for an answer is not remembered.
        return ()
    try:
        ids = listed.choice.choose(_options(chooses), {}).ids
    except CodebatchError:  # A task that was named is not there any more.
        return ()
    known = {*work.order, *work.done_before}
    return tuple(id_ for id_ in listed.work.order if id_ in ids and id_ not in known)


def _reload(found: WorkBatch, listed: WorkList, taken: Collection[CommandStatus]) -> Reload:
    """Return the request that gives tasks the definitions of a list. Raises InvalidInput if they cannot have them."""
    work, now = found.standing.work, listed.work
    ids = {each.id for each in taken}
    edges = tuple(edge for edge in now.edges if edge.task in ids)
    known = {*work.order}
    for edge in edges:
        is_met = edge.on in known or edge.on in work.done_before or edge in work.satisfied_needs
        if edge.kind == "needs" and not is_met:
            told = f"the task {edge.task} now needs {edge.on}, which is not in batch {found.batch.id}"
            raise InvalidInput(told, hint=_as_new())
    for id_ in ids:
        for pool, amount in now.policy(id_).pools.items():
            if amount > work.pools.get(pool, 0):
                size = work.pools.get(pool, 0)
                told = f"the task {id_} now needs {count_of(amount, 'token')} of pool {pool}"
                raise InvalidInput(f"{told}, which has {size} in batch {found.batch.id}", hint=_as_new())
    problems = Problems()
    check_circles([*(edge for edge in work.edges if edge.task not in ids), *edges], problems)
    problems.raise_any()
    return Reload(
        rounds={each.id: each.ended for each in taken},
        commands=tuple(listed.definitions[each.id].command for each in taken),
        policies={id_: now.policy(id_) for id_ in sorted(ids) if now.policy(id_) != NO_POLICY},
        edges=tuple(edge for edge in edges if edge.kind == "needs" or edge.on in known),
        inferred=tuple(each for each in now.inferred if each.task in ids and each.on in known),
    )
