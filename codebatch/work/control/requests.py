"""Requests to a batch of commands: retry, skip, pause, change. The process that runs the batch executes them."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

import msgspec
from msgspec.structs import replace

from codebatch.errors import InvalidInput
from codebatch.model.graph import find_reachable
from codebatch.model.text.instants import instant_text
from codebatch.model.text.quantities import human_seconds
from codebatch.model.text.suggestions import did_you_mean_text
from codebatch.model.work.command import CommandId
from codebatch.model.work.limits import NO_CAPS, Caps
from codebatch.model.work.request import Open, Pause, Set, Skip, TaskSettings, Unpause
from codebatch.model.work.task_patterns import matching_ids
from codebatch.model.work.work_batch import RETRIES_MAX
from codebatch.operations.runs.requests import append_request
from codebatch.query.status.work_status import CommandStatus
from codebatch.scheduling.lifecycle import CommandState
from codebatch.store.batches.batch_directory import BatchDir, check_kind
from codebatch.store.batches.store_directory import StoreDir
from codebatch.store.work.work_batches import read_command
from codebatch.system.clock import wall_ns
from codebatch.work.control.batches import WorkBatch, load_work_batch
from codebatch.work.definition.limits import next_instant_ns
from codebatch.work.definition.tables import INTEGER_MAX, SECONDS_MAX

NO_SETTINGS = TaskSettings()
_LEAST_ABOVE_0 = 1e-6
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
    or unknown, or stays skipped because another command is not retried.
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
    for command in chosen:
        if command.cause is not None and command.cause not in ended_rounds:
            hint = f"retry it too: codebatch work retry {command.cause} {command.id} --batch {batch.id}"
            raise InvalidInput(f"{command.id} needs {command.cause}, which has not succeeded", hint=hint)
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


def skip_tasks(
    store: StoreDir, batch: BatchDir, tasks: Sequence[str], *, as_done: bool = False
) -> tuple[WorkBatch, list[CommandId]]:
    """Request that commands are skipped, and end their running attempts.

    Return the status of the batch after the request, and the skipped commands. A command that needs a skipped command
    is skipped too. With `as_done`, the skipped commands count as done instead. Done commands that a pattern matches are
    left out. Raises InvalidInput if a command is done or unknown.
    """
    work_batch = load_work_batch(store, batch)
    chosen = find_commands(work_batch, tasks)
    done = {command.id for command in chosen if command.state is CommandState.DONE}
    named = [id_ for id_ in done if id_ in tasks]
    tasks = skipped = [command.id for command in chosen if command.id not in done]
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
    return work_batch, skipped


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


class LimitChanges(msgspec.Struct, frozen=True, kw_only=True):
    """New limits of a batch, and new settings of its tasks `tasks`. What is None or empty is not changed.

    `caps` maps the list (empty) and pools (`pool.NAME`) to caps. `task_caps` and `settings` apply to `tasks`.
    """

    max_parallel: int | None = None
    pools: dict[str, int] = {}
    caps: dict[str, Caps] = {}
    deadline: str = ""
    tasks: tuple[str, ...] = ()
    task_caps: Caps = NO_CAPS
    settings: TaskSettings = NO_SETTINGS


def change_batch(store: StoreDir, batch: BatchDir, changes: LimitChanges) -> tuple[WorkBatch, list[str]]:
    """Request other limits of a batch, and other settings of some tasks.

    Return the status of the batch after the request, and the changes as texts. Running commands continue, even if there
    are more than the new number. Raises InvalidInput for an unknown pool or task, and for a value out of range.
    """
    work_batch = load_work_batch(store, batch)
    standing, work = work_batch.standing, work_batch.standing.work
    commands = find_commands(work_batch, changes.tasks)
    _check_changes(work_batch, changes)
    deadline_ns = 0
    if changes.deadline:
        deadline_ns = next_instant_ns(changes.deadline, work.limits_or_none.zone, wall_ns()) or 0
        if deadline_ns <= wall_ns():
            raise InvalidInput(f"{changes.deadline!r} is not a time in the future", hint="for example: deadline=08:00")
    texts = [_change_text(f"pool.{name}", standing.capacity[name], size) for name, size in changes.pools.items()]
    if changes.max_parallel is not None:
        texts.insert(0, _change_text("max-parallel", standing.capacity[""], changes.max_parallel))
    if deadline_ns:
        texts.append(f"deadline {instant_text(deadline_ns)}")
    texts += [
        f"{scope}{'.' if scope else ''}{text}" for scope, caps in changes.caps.items() for text in _caps_texts(caps)
    ]
    for command in commands:
        settings = changes.settings
        parts = [*_caps_texts(changes.task_caps)]
        if settings.timeout_seconds is not None:
            limit = read_command(store, batch, command.id).timeout_seconds
            then = "none" if limit is None else human_seconds(limit)
            parts.append(_change_text("timeout", then, human_seconds(settings.timeout_seconds)))
        if settings.retries is not None:
            parts.append(_change_text("retries", command.retries, settings.retries))
        if settings.priority is not None:
            parts.append(_change_text("priority", command.priority, settings.priority))
        texts.append(f"{command.id}: {', '.join(parts)}")
    caps = dict(changes.caps)
    if changes.task_caps != NO_CAPS:
        caps |= {f"task.{command.id}": changes.task_caps for command in commands}
    by_task = {}
    if changes.settings != NO_SETTINGS:
        by_task = {command.id: replace(changes.settings, after_round=command.ended) for command in commands}
    body = Set(
        max_parallel=changes.max_parallel, pools=changes.pools, caps=caps, deadline_ns=deadline_ns, tasks=by_task
    )
    append_request(batch, body)
    return load_work_batch(store, batch), texts


def _check_changes(work_batch: WorkBatch, changes: LimitChanges) -> None:
    """Raise InvalidInput if a change names an unknown pool, or if a value is out of range or has no effect."""
    work, batch = work_batch.standing.work, work_batch.batch
    for name in (*changes.pools, *(scope.removeprefix("pool.") for scope in changes.caps if scope)):
        if name not in work.pools:
            hint = did_you_mean_text(name, [*work.pools]) if work.pools else "its list has no pools"
            raise InvalidInput(f"batch {batch.id} has no pool {name!r}", hint=hint)
    if bool(changes.tasks) != (changes.settings != NO_SETTINGS or changes.task_caps != NO_CAPS):
        raise InvalidInput(
            "settings of tasks need tasks, and tasks need settings",
            hint="for example: codebatch work set TASK timeout=10m retries=2 priority=5",
        )
    all_caps = {**changes.caps, "task": changes.task_caps}
    costs = [policy for policy in work.policies.values() if policy.has_cost]
    if not costs and any(caps.cost_max is not None for caps in all_caps.values()):
        hint = "only a list with `cost_max` and `result.cost` has one"
        raise InvalidInput(f"no task of batch {batch.id} has a cap on cost", hint=hint)
    settings = changes.settings
    numbers: list[tuple[str, float | None, float, float]] = [
        ("max-parallel", changes.max_parallel, 1, INTEGER_MAX),
        *((f"pool.{name}", size, 1, INTEGER_MAX) for name, size in changes.pools.items()),
        *(("attempts-max", caps.attempts_max, 1, INTEGER_MAX) for caps in all_caps.values()),
        *(("cost-max", caps.cost_max, _LEAST_ABOVE_0, INTEGER_MAX) for caps in all_caps.values()),
        ("timeout", settings.timeout_seconds, _LEAST_ABOVE_0, SECONDS_MAX),
        ("retries", settings.retries, 0, RETRIES_MAX),
        ("priority", settings.priority, -INTEGER_MAX, INTEGER_MAX),
    ]
    for name, value, least, most in numbers:
        if value is not None and not least <= value <= most:
            lower = "above 0 and at most" if least == _LEAST_ABOVE_0 else f"from {least:,} to"
            raise InvalidInput(f"{name} must be {lower} {most:,}, not {value:,}")


def _caps_texts(caps: Caps) -> list[str]:
    texts = [] if caps.cost_max is None else [f"cost-max {caps.cost_max:g}"]
    return texts if caps.attempts_max is None else [*texts, f"attempts-max {caps.attempts_max:,}"]


def _change_text(name: str, then: object, now: object) -> str:
    return f"{name} {then} (unchanged)" if then == now else f"{name} {then} → {now}"
