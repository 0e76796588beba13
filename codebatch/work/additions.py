"""Adding tasks to a batch that exists, whether a process runs it or not (SPEC.md "Added tasks")."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from msgspec import UNSET
from msgspec.structs import replace

from codebatch.errors import InvalidInput, StoreUnwritable
from codebatch.model.work.command import Command, CommandId
from codebatch.model.work.request import Add
from codebatch.model.work.work_batch import DEFAULT_POLICY, EdgeKind, TaskPolicy
from codebatch.operations.runs.requests import try_append_request
from codebatch.store.batches.batch_directory import BatchDir
from codebatch.store.batches.store_directory import StoreDir
from codebatch.store.work.requests import RequestStore
from codebatch.store.work.work_batches import CommandDefinitions, read_work
from codebatch.work.control.batches import WorkBatch, load_work_batch
from codebatch.work.control.list_changes import written_dependencies
from codebatch.work.definition.additions import ExtendedBatch, parse_task_options
from codebatch.work.definition.selection import abbreviated_ids
from codebatch.work.definition.settings import WorkOptions
from codebatch.work.definition.work_list import WorkList, read_work_files

ADD_ATTEMPTS_MAX = 100


class AddedTasks(NamedTuple):
    """The batch after tasks were added, the tasks that it did not have before, and those that it had already.

    `warnings` and `notes` are remarks about the task list, as in WorkList.
    """

    work_batch: WorkBatch
    added: tuple[CommandId, ...]
    existing: tuple[CommandId, ...]
    warnings: tuple[str, ...]
    notes: tuple[str, ...]


def add_tasks(
    store: StoreDir,
    batch: BatchDir,
    paths: Sequence[Path],
    definitions: Sequence[str],
    needs: Sequence[str],
    *,
    here: Path,
    command: str | None,
) -> AddedTasks:
    """Add the tasks of files, and those that `definitions` define as NAME=COMMAND with the given `needs`, to a batch.

    On return, the tasks are durable. One request adds all new tasks, so either all or none are added. Tasks that the
    batch has already are left out. Raises InvalidInput if the batch has another task of the same name, and the errors
    of `read_work_files`. Nothing is changed in these cases.
    """
    extended = ExtendedBatch(batch.id, read_work(batch), parse_task_options(definitions, needs))
    listed = read_work_files(paths, overrides=WorkOptions(command=command), here=here, extended=extended)
    added: tuple[CommandId, ...] = ()
    for _ in range(ADD_ATTEMPTS_MAX):
        n = len(RequestStore(batch.files, batch.root).read()) + 1
        work_batch = load_work_batch(store, batch)
        if (add := _make_add(work_batch, listed)) is None:
            existing = tuple(id_ for id_ in listed.work.order if id_ not in added)
            return AddedTasks(work_batch, added, existing, listed.warnings, listed.notes)
        # If another process makes a request at the same time, that request may add tasks, so they are compared again.
        if try_append_request(batch, add, n):
            added = tuple(one.id for one in add.commands)
    raise StoreUnwritable(f"cannot add tasks to batch {batch.id}: other processes keep making requests")


def _group_definition(command: Command, policy: TaskPolicy, waits: Iterable[tuple[CommandId, EdgeKind]]) -> object:
    """Return the parts of a definition that are equal for all members of a group. Inputs and outputs are left out."""
    names = {"id": CommandId(""), "title": "", "values": {}, "files": ()}
    same = replace(command, **names, inputs=UNSET, outputs=UNSET, outputs_of=UNSET)
    return same, replace(policy, outputs_of=()), {(on.partition("/")[0], kind) for on, kind in waits}


def _make_add(work_batch: WorkBatch, listed: WorkList) -> Add | None:
    """Return the request that adds the tasks of a list which the batch does not have, or None if it has all of them.

    Raises InvalidInput if the batch has a task or a group with the same name and another definition.
    """
    work, now, id_ = work_batch.standing.work, listed.work, work_batch.batch.id
    known = {*work.order}
    stored = CommandDefinitions(work_batch.store, work_batch.batch)
    edges = [edge for edge in (*work.edges, *work.satisfied_needs) if edge.on not in work.done_before]
    waits_then = written_dependencies(edges, work.inferred, known)
    waits_now = written_dependencies(now.edges, (), {*known, *now.order})
    other = [
        command.id
        for command in listed.commands
        if command.id in known
        and (
            not stored.is_unchanged(command)
            or now.task_policy(command.id) != work.task_policy(command.id)
            or waits_now.get(command.id) != waits_then.get(command.id)
        )
    ]
    if other:
        hint = "choose another name; to change a task of the batch, see: codebatch resume --reload"
        raise InvalidInput(f"batch {id_} has another task with this name: {abbreviated_ids(other)}", hint=hint)
    new = {command.id: command for command in listed.commands if command.id not in known}
    if not new:
        return None
    members = {one.partition("/")[0]: one for one in work.order if "/" in one}
    for group, command in {one.id.partition("/")[0]: one for one in new.values()}.items():
        if (member := members.get(group)) is not None and _group_definition(
            stored.read(member), work.task_policy(member), waits_then.get(member, ())
        ) != _group_definition(command, now.task_policy(command.id), waits_now.get(command.id, ())):
            raise InvalidInput(f"batch {id_} has another definition of the group {group}", hint="choose another name")
    return Add(
        commands=tuple(new.values()),
        policies={id_: now.task_policy(id_) for id_ in new if now.task_policy(id_) != DEFAULT_POLICY},
        edges=tuple(edge for edge in now.edges if edge.task in new),
    )
