"""Asking something of a batch of commands, whoever conducts it: to try again, to skip, to pause, to change."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from codebatch.errors import InvalidInput
from codebatch.model.text.suggestions import did_you_mean
from codebatch.model.work.command import CommandId
from codebatch.model.work.request import Open, Pause, Set, Skip, Unpause
from codebatch.operations.runs.requests import request
from codebatch.query.status.work_status import CommandStatus
from codebatch.scheduling.lifecycle import CommandState
from codebatch.store.batches.batches import BatchDir
from codebatch.store.batches.store import StoreDir
from codebatch.work.control.batches import WorkBatch, load_work_batch

_LIKE_MAX = 1_000
_SKIPS_MAX = 3
"""How often a command is skipped that begins another attempt just then."""


def named(found: WorkBatch, tasks: Sequence[str]) -> list[CommandStatus]:
    """The commands of a batch that are named. Raises InvalidInput where there is none of a name."""
    known = {each.id: each for each in found.standing.commands}
    for task in tasks:
        if task not in known:
            hint = did_you_mean(task, [*known][:_LIKE_MAX])
            raise InvalidInput(f"batch {found.batch.id} has no task {task!r}", hint=hint)
    return [known[CommandId(task)] for task in dict.fromkeys(tasks)]


def seen_failures(found: WorkBatch) -> dict[CommandId, int]:
    """What an Open says that its author saw fail."""
    return {each.id: each.round for each in found.of(CommandState.FAILED)}


def retry_tasks(store: StoreDir, batch: BatchDir, tasks: Sequence[str], *, dependents: bool = False) -> WorkBatch:
    """Have commands begun again, whatever they ended as; with all that needs them, where so wished.

    Returns where the batch stands then. Raises InvalidInput for one that runs, or that there is not.
    """
    found = load_work_batch(store, batch)
    chosen = named(found, tasks)
    running = [each.id for each in chosen if each.holder is not None]
    if running:
        raise InvalidInput(f"{running[0]} is running", hint="stop it first: codebatch work skip, or codebatch cancel")
    if dependents:
        chosen += [each for each in _behind(found, {each.id for each in chosen}) if each.holder is None and each.round]
    over = {each.id: each.ended for each in chosen}
    request(batch, Open(rounds=over, lifts="named", acknowledged=seen_failures(found)))
    return load_work_batch(store, batch)


def _behind(found: WorkBatch, ids: set[CommandId]) -> list[CommandStatus]:
    """What needs some commands, directly or not, in the order of the file."""
    users: dict[CommandId, list[CommandId]] = {}
    for edge in found.standing.work.edges:
        if edge.kind == "needs":
            users.setdefault(edge.on, []).append(edge.task)
    reached = set(ids)
    pending = list(ids)
    while pending:
        new = set(users.get(pending.pop(), ())) - reached
        reached |= new
        pending += new
    return [each for each in found.standing.commands if each.id in reached - ids]


def skip_tasks(store: StoreDir, batch: BatchDir, tasks: Sequence[str], *, as_done: bool = False) -> WorkBatch:
    """Have commands not run; what of them runs is ended. For those that need them they failed, or are done.

    Returns where the batch stands then. Raises InvalidInput for one that is done, or that there is not.
    """
    found = load_work_batch(store, batch)
    done = [each.id for each in named(found, tasks) if each.state is CommandState.DONE]
    if done:
        raise InvalidInput(f"{done[0]} is already done")
    for _ in range(_SKIPS_MAX):
        before = named(found, tasks)
        for each in before:
            request(batch, Skip(task=each.id, round=each.round, marked_done=as_done))
        found = load_work_batch(store, batch)
        rounds = {each.id: each.round for each in before}
        tasks = [each.id for each in named(found, tasks) if each.round > rounds[each.id]]
        if not tasks:
            break
    return found


def pause_batch(store: StoreDir, batch: BatchDir) -> WorkBatch:
    """Have nothing new begun; what runs goes on, and who conducts the batch stays. Returns where it stands then."""
    request(batch, Pause())
    return load_work_batch(store, batch)


def unpause_batch(store: StoreDir, batch: BatchDir) -> WorkBatch:
    """Go on after a pause. Returns where the batch stands then."""
    request(batch, Unpause())
    return load_work_batch(store, batch)


def change_batch(
    store: StoreDir, batch: BatchDir, *, max_parallel: int | None = None, pools: Mapping[str, int] | None = None
) -> WorkBatch:
    """Have so many commands run at once, and pools so large, from now on. Returns where the batch stands then.

    What runs goes on, be it more than may. Raises InvalidInput for a pool that there is not, and for less than 1.
    """
    found = load_work_batch(store, batch)
    sizes = dict(pools or {})
    for name, size in (*sizes.items(), ("max_parallel", 1 if max_parallel is None else max_parallel)):
        if size < 1:
            raise InvalidInput(f"{name} must be at least 1, not {size}")
    for name in sizes:
        if name not in found.standing.work.pools:
            hint = did_you_mean(name, [*found.standing.work.pools])
            raise InvalidInput(f"batch {batch.id} has no pool {name!r}", hint=hint)
    request(batch, Set(max_parallel=max_parallel, pools=sizes))
    return load_work_batch(store, batch)
