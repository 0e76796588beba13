"""Requests to a batch of commands: retry, skip, pause, change. The process that runs the batch executes them."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Mapping, Sequence

from codebatch.errors import InvalidInput
from codebatch.model.graph import find_reachable
from codebatch.model.text.suggestions import did_you_mean_text
from codebatch.model.work.command import CommandId
from codebatch.model.work.limits import Caps
from codebatch.model.work.request import Open, Pause, Set, Skip, Unpause
from codebatch.model.work.task_patterns import matching_ids
from codebatch.operations.runs.requests import append_request
from codebatch.query.status.work_status import CommandStatus
from codebatch.scheduling.lifecycle import CommandState
from codebatch.store.batches.batch_directory import BatchDir, check_kind
from codebatch.store.batches.store_directory import StoreDir
from codebatch.system.clock import wall_ns
from codebatch.work.control.batches import WorkBatch, load_work_batch
from codebatch.work.definition.limits import next_instant_ns

_SIMILAR_COMPARED_MAX = 1_000
_SKIP_ATTEMPTS_MAX = 3
"""Maximum number of skip requests for one command.

A further one is needed if the command starts an attempt at the same time.
"""


def find_commands(work_batch: WorkBatch, tasks: Sequence[str]) -> list[CommandStatus]:
    """Return the commands with these IDs, or that these patterns match. Raises InvalidInput if one names no command."""
    by_id = {command.id: command for command in work_batch.standing.commands}
    named: dict[CommandId, None] = {}
    for task in tasks:
        matches = [CommandId(task)] if task in by_id else matching_ids(task, by_id)
        named |= dict.fromkeys(matches)
        if not matches:
            hint = did_you_mean_text(task, [*by_id][:_SIMILAR_COMPARED_MAX])
            raise InvalidInput(f"batch {work_batch.batch.id} has no task {task!r}", hint=hint)
    return [by_id[id_] for id_ in named]


def visible_failures(work_batch: WorkBatch) -> dict[CommandId, int]:
    """Return the failed commands, each with the round in which it failed.

    A request to reopen failures contains this mapping. So failures that happen after this call are not reopened.
    """
    return {command.id: command.round for command in work_batch.commands_in(CommandState.FAILED)}


def retry_tasks(store: StoreDir, batch: BatchDir, tasks: Sequence[str], *, dependents: bool = False) -> WorkBatch:
    """Request that commands run again, whatever their outcomes are. Return the status of the batch after the request.

    With `dependents`, include all commands that need them and have started. Raises InvalidInput if a command is running
    or unknown.
    """
    work_batch = load_work_batch(store, batch)
    chosen = find_commands(work_batch, tasks)
    running = [command.id for command in chosen if command.holder is not None]
    if running:
        hint = f"stop it first: codebatch work skip {shlex.quote(running[0])}"
        raise InvalidInput(f"{running[0]} is running", hint=hint)
    if dependents:
        chosen += [
            command
            for command in _list_dependents(work_batch, {command.id for command in chosen})
            if command.holder is None and command.round
        ]
    ended_rounds = {command.id: command.ended for command in chosen}
    append_request(batch, Open(rounds=ended_rounds, lifts="named", acknowledged=visible_failures(work_batch)))
    return load_work_batch(store, batch)


def _list_dependents(work_batch: WorkBatch, ids: set[CommandId]) -> list[CommandStatus]:
    """Return the commands that need any of the commands `ids`, directly or indirectly, in list order."""
    users: dict[CommandId, list[CommandId]] = {}
    for edge in work_batch.standing.work.edges:
        if edge.kind == "needs":
            users.setdefault(edge.on, []).append(edge.task)
    dependents = {*find_reachable(ids, lambda id_: users.get(id_, ()))} - ids
    return [command for command in work_batch.standing.commands if command.id in dependents]


def skip_tasks(store: StoreDir, batch: BatchDir, tasks: Sequence[str], *, as_done: bool = False) -> WorkBatch:
    """Request that commands are skipped, and end their running attempts.

    Return the status of the batch after the request. A command that needs a skipped command is skipped too. With
    `as_done`, the skipped commands count as done instead. Done commands that a pattern matches are left out. Raises
    InvalidInput if a command is done or unknown.
    """
    work_batch = load_work_batch(store, batch)
    chosen = find_commands(work_batch, tasks)
    done = {command.id for command in chosen if command.state is CommandState.DONE}
    named = [id_ for id_ in done if id_ in tasks]
    tasks = [command.id for command in chosen if command.id not in done]
    if named or not tasks:
        raise InvalidInput(f"task {(named or sorted(done))[0]} is already done")
    for _ in range(_SKIP_ATTEMPTS_MAX):
        before = find_commands(work_batch, tasks)
        for command in before:
            append_request(batch, Skip(task=command.id, round=command.round, marked_done=as_done))
        work_batch = load_work_batch(store, batch)
        rounds = {command.id: command.round for command in before}
        tasks = [command.id for command in find_commands(work_batch, tasks) if command.round > rounds[command.id]]
        if not tasks:
            break
    return work_batch


def pause_batch(store: StoreDir, batch: BatchDir) -> WorkBatch:
    """Request that no more commands start. Return the status of the batch after the request.

    Running commands continue. Raises WrongBatchKind for an analysis.
    """
    check_kind(batch, "work")
    append_request(batch, Pause())
    return load_work_batch(store, batch)


def unpause_batch(store: StoreDir, batch: BatchDir) -> WorkBatch:
    """Request that commands start again after a pause. Return the status of the batch after the request.

    Raises WrongBatchKind for an analysis.
    """
    check_kind(batch, "work")
    append_request(batch, Unpause())
    return load_work_batch(store, batch)


def change_batch(
    store: StoreDir,
    batch: BatchDir,
    *,
    max_parallel: int | None = None,
    pools: Mapping[str, int] | None = None,
    caps: Mapping[str, Caps] | None = None,
    deadline: str = "",
) -> WorkBatch:
    """Request another number of parallel commands, other sizes of pools, other caps or another deadline.

    `caps` maps scopes to caps: the list (empty), `pool.NAME` or `task.ID`.

    Return the status of the batch after the request. Running commands continue, even if there are more than the new
    number. Raises InvalidInput for an unknown pool and for a number below 1.
    """
    work_batch = load_work_batch(store, batch)
    sizes = dict(pools or {})
    least = {f"attempts_max {scope}": each.attempts_max or 1 for scope, each in (caps or {}).items()}
    least |= {**sizes, "max_parallel": 1 if max_parallel is None else max_parallel}
    for name, size in least.items():
        if size < 1:
            raise InvalidInput(f"{name} must be at least 1, not {size}")
    for name in sizes:
        if name not in work_batch.standing.work.pools:
            hint = did_you_mean_text(name, [*work_batch.standing.work.pools])
            raise InvalidInput(f"batch {batch.id} has no pool {name!r}", hint=hint)
    work = work_batch.standing.work
    for scope in caps or {}:
        kind, _, name = scope.partition(".")
        names: dict[str, Collection[str]] = {"": ("",), "pool": work.pools, "task": work.order}
        known = names[kind]
        if name not in known:
            raise InvalidInput(f"batch {batch.id} has no {kind} {name!r}", hint=did_you_mean_text(name, [*known]))
    costs = [policy for policy in work.policies.values() if policy.has_cost]
    if not costs and any(each.cost_max is not None for each in (caps or {}).values()):
        hint = "only a list with `cost_max` and `result.cost` has one"
        raise InvalidInput(f"no task of batch {batch.id} has a cap on cost", hint=hint)
    deadline_ns = next_instant_ns(deadline, work.limits_or_none.zone, wall_ns()) if deadline else 0
    if deadline_ns is None or 0 < deadline_ns <= wall_ns():
        raise InvalidInput(f"{deadline!r} is not a time in the future", hint="for example: deadline=08:00")
    append_request(batch, Set(max_parallel=max_parallel, pools=sizes, caps=dict(caps or {}), deadline_ns=deadline_ns))
    return load_work_batch(store, batch)
