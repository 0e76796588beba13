"""Outcomes of the tasks of a list in earlier batches of it (SPEC.md "Unfinished tasks")."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from codebatch.errors import BatchRemoved, StoreCorrupt, StoreNotFound
from codebatch.model.work.command import CommandId
from codebatch.model.work.request import Answer
from codebatch.operations import Note, ignore_note
from codebatch.operations.project.stores import StorePlace
from codebatch.query.status.work_status import CommandStatus
from codebatch.scheduling.lifecycle import CommandState
from codebatch.store.batches.batches import iter_batches
from codebatch.store.batches.resolution import resolve_batch
from codebatch.store.batches.store import StoreDir
from codebatch.store.work.requests import Requests
from codebatch.store.work.work_batches import CommandDefinitions, read_work
from codebatch.work.control.batches import WorkBatch, load_work_batch
from codebatch.work.definition.definitions import TaskDefinition, written_needs
from codebatch.work.definition.selection import FormerTask, FormerTasks, ListIdentity
from codebatch.work.definition.work_list import identity_of

_ENDED = (CommandState.DONE, CommandState.FAILED, CommandState.RUNNING, CommandState.BLOCKED)


def former_tasks(
    place: StorePlace,
    of: str | None,
    identity: ListIdentity,
    definitions: Mapping[CommandId, TaskDefinition],
    *,
    note: Note = ignore_note,
) -> FormerTasks:
    """Return the outcome of each task in the latest batch of the list that has it, or in the batch `of` if it has it.

    Without a store there are none. Raises CodebatchError for the batch `of`; other batches that are damaged are noted.
    """
    former: dict[CommandId, FormerTask] = {}
    try:
        store = place.of_directory(Path(os.fsdecode(identity.root))).open()
    except StoreNotFound:
        if of is not None:
            raise
        return former
    if of is not None:
        _add_tasks(former, load_work_batch(store, resolve_batch(store, of, kind="work")), definitions, is_of=True)
    add_former_tasks(former, store, identity, definitions, note=note)
    return former


def add_former_tasks(
    former: dict[CommandId, FormerTask],
    store: StoreDir,
    identity: ListIdentity,
    definitions: Mapping[CommandId, TaskDefinition],
    *,
    note: Note = ignore_note,
) -> None:
    """Add outcomes of tasks that have none yet, from the batches of a list, latest first."""
    for batch in iter_batches(store, note, kind="work"):
        left = definitions.keys() - former.keys()
        if not left:
            return
        if batch.about.sources != (identity.root,):
            continue
        try:
            work = read_work(batch)
            if _is_same_list(identity_of(work), identity) and not left.isdisjoint((*work.order, *work.done_before)):
                _add_tasks(former, load_work_batch(store, batch), definitions, is_of=False)
        except (BatchRemoved, StoreCorrupt) as error:
            note(f"{batch.id} skipped: {error.message}")


def _is_same_list(one: ListIdentity, other: ListIdentity) -> bool:
    """Compare two lists by the files that they were read from."""
    return [*map(os.path.realpath, one.files)] == [*map(os.path.realpath, other.files)]


def _add_tasks(
    former: dict[CommandId, FormerTask],
    found: WorkBatch,
    definitions: Mapping[CommandId, TaskDefinition],
    *,
    is_of: bool,
) -> None:
    work, batch = found.standing.work, found.batch
    stored = CommandDefinitions(found.store, batch)
    needs = written_needs((*work.edges, *work.satisfied_needs), work.inferred)
    answered = frozenset(_answered(found))
    for each in found.standing.commands:
        if each.id not in definitions or each.id in former:
            continue
        is_done = each.state is CommandState.DONE
        definition = _then(stored, each, needs, definitions[each.id]) if is_done else ""
        is_current = is_done and definition == definitions[each.id].digest
        former[each.id] = FormerTask(each.state, definition, is_current, each.id in answered, batch.id, is_of)
    for id_, digest in work.done_before.items():
        if id_ in definitions and id_ not in former:
            is_current = digest == definitions[id_].digest
            former[id_] = FormerTask(CommandState.DONE, digest, is_current, False, batch.id, False)


def _then(
    stored: CommandDefinitions,
    task: CommandStatus,
    needs: Mapping[CommandId, frozenset[CommandId]],
    now: TaskDefinition,
) -> str:
    """Return the digest of the definition with which a task was done."""
    round_ = max(task.ended, 1)
    command = now.command if stored.is_same(now.command, round_) else stored.read(task.id, round_)
    return TaskDefinition(command, needs.get(task.id, frozenset())).digest


def _answered(found: WorkBatch) -> Iterator[CommandId]:
    """Yield the commands whose question was answered and that have not run since."""
    rounds = {each.id: each.round for each in found.standing.commands if each.state not in _ENDED}
    for request in Requests(found.batch.files, found.batch.root).read() if rounds else ():
        body = request.body
        if isinstance(body, Answer) and body.question in found.standing.asked and body.round == rounds.get(body.task):
            yield body.task
