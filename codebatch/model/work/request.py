"""Requests of users to a work batch, as numbered, write-once documents (SPEC.md "Requests").

Requests are totally ordered by `n`, from 1 without gaps. No decision depends on a clock.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal

import msgspec

from codebatch.model.digest import Digest
from codebatch.model.documents import Document, DocumentError, InstantNs, decode_document, decode_json, encode_members
from codebatch.model.work.command import Command, CommandId
from codebatch.model.work.limits import Caps
from codebatch.model.work.work_batch import InferredEdge, TaskPolicy, WorkEdge

REQUEST_FORMAT = 1


class RequestHead(Document, frozen=True, kw_only=True):
    """Members that every request has: its number `n`, its time, and its author, for display."""

    format: int = REQUEST_FORMAT
    n: int
    at_ns: InstantNs
    by: str


class _RequestBodyBase(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="request", tag=str.lower
):
    """Base of the bodies of requests. Members are written to disk in the order of the fields."""


class Cancel(_RequestBodyBase, frozen=True, kw_only=True):
    """End all running attempts, and start no more tasks.

    If `grace_seconds` is set, it replaces the grace period of every task. `attempts` maps each running task to the
    lease epoch of its attempt. These attempts do not count as interrupted.
    """

    grace_seconds: float | None = None
    attempts: dict[CommandId, int] = msgspec.field(default_factory=dict)


class Open(_RequestBodyBase, frozen=True, kw_only=True):
    """Allow tasks to run again.

    `rounds` maps tasks to rounds. If the highest round of a task is the given one, the task is opened again, whatever
    its outcome, and a Skip of this round is undone. If the task has a higher round, it is not changed.

    The request also undoes Cancel and Pause: for all tasks, or with `named`, only for the tasks in `rounds`.
    `acknowledged` maps failed tasks to rounds. These failures no longer count towards the limit at which the batch
    stops.
    """

    rounds: dict[CommandId, int] = msgspec.field(default_factory=dict)
    lifts: Literal["all", "named"] = "all"
    acknowledged: dict[CommandId, int] = msgspec.field(default_factory=dict)


class Answer(_RequestBodyBase, frozen=True, kw_only=True):
    """An answer to the question of a task in a round. `question` is the digest of the question."""

    task: CommandId
    round: int
    question: Digest
    text: str


class Skip(_RequestBodyBase, frozen=True, kw_only=True):
    """Skip a task and end its running attempt, unless the task has a higher round than `round`.

    Tasks that need a skipped task treat it as done if `marked_done` is set, otherwise as failed. A task that is already
    done stays done.
    """

    task: CommandId
    round: int
    marked_done: bool = False


class Pause(_RequestBodyBase, frozen=True, kw_only=True):
    """Start no more tasks. Running tasks continue."""


class Unpause(_RequestBodyBase, frozen=True, kw_only=True):
    """Start tasks again after a Pause."""


class TaskSettings(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """New values of settings of a task. A setting that is None is not changed.

    - `timeout_seconds`: the time limit of every attempt that starts later.
    - `retries`: the maximum number of retries after a failure. It applies to rounds after `after_round`, so it does not
      change what followed from an earlier round.
    - `priority`: the priority of starts that are still to come.
    """

    after_round: int = 0
    timeout_seconds: float | None = None
    retries: int | None = None
    priority: int | None = None


class Set(_RequestBodyBase, frozen=True, kw_only=True):
    """Change the number of tasks that run at once, the sizes of pools, limits, and settings of tasks.

    If a task needs more tokens than its pool has, it takes all of them. `caps` maps scopes to new caps: the list
    (empty), a pool (`pool.NAME`) or a task (`task.ID`). `deadline_ns` replaces the deadline. A setting of a task
    applies whatever the task list defines, also after a Reload.
    """

    max_parallel: int | None = None
    pools: dict[str, int] = msgspec.field(default_factory=dict)
    caps: dict[str, Caps] = msgspec.field(default_factory=dict)
    deadline_ns: int = 0
    tasks: dict[CommandId, TaskSettings] = msgspec.field(default_factory=dict)


class Reload(_RequestBodyBase, frozen=True, kw_only=True):
    """Change definitions of tasks. Each of `commands` replaces the definition of the task with its ID.

    A new definition applies to all rounds after the round of the task in `rounds`. `policies` has the policies that
    differ from the default, `edges` all dependencies of the changed tasks, and `inferred` the evidence for inferred
    dependencies. Dependencies on tasks that are not part of the batch count as done.
    """

    rounds: dict[CommandId, int]
    commands: tuple[Command, ...]
    policies: dict[CommandId, TaskPolicy] = msgspec.field(default_factory=dict)
    edges: tuple[WorkEdge, ...] = ()
    inferred: tuple[InferredEdge, ...] = ()


class Add(_RequestBodyBase, frozen=True, kw_only=True):
    """Add tasks to the batch. Their items follow those of the tasks that the batch already has.

    `policies` has the policies that differ from the default, and `edges` all dependencies of the new tasks. The author
    knows all requests before this one. So the batch has no task with the same ID yet.
    """

    commands: tuple[Command, ...]
    policies: dict[CommandId, TaskPolicy] = msgspec.field(default_factory=dict)
    edges: tuple[WorkEdge, ...] = ()


StopCause = Literal["signal", "timeout", "failure"]


class Stop(_RequestBodyBase, frozen=True, kw_only=True):
    """End attempts early. A coordinator makes this request if it received a signal, if the batch reached its time
    limit, or if the batch must halt because a task failed.

    `attempts` maps each running task to the lease epoch of its attempt. An attempt that is ended by this request has no
    outcome and does not count as interrupted. `detail` is the signal, or the task that failed. If `terminates` is not
    set, running attempts may finish. After a `timeout`, no task starts until an Open request.
    """

    cause: StopCause
    detail: str = ""
    attempts: dict[CommandId, int] = msgspec.field(default_factory=dict)
    terminates: bool = True


RequestBody = Cancel | Open | Answer | Skip | Pause | Unpause | Set | Reload | Add | Stop


class Request(msgspec.Struct, frozen=True):
    """A request, with its head: number, time and author."""

    head: RequestHead
    body: RequestBody

    @property
    def n(self) -> int:
        """The number of the request."""
        return self.head.n


def encode_request(request: Request) -> bytes:
    """Return the bytes of a request's file."""
    return encode_members(request.head, request.body)


_body_decoder: msgspec.json.Decoder[RequestBody] = msgspec.json.Decoder(RequestBody)


def decode_request(data: bytes, n: int) -> Request:
    """Decode the `n`th request. Raises DocumentError."""
    head = decode_document(data, RequestHead, REQUEST_FORMAT)
    if head.n != n:
        raise DocumentError(f"it is request {head.n}")
    return Request(head, decode_json(data, _body_decoder.decode))


def reloaded_command(reloads: Sequence[Reload], command: str, round_: int | None = None) -> Command | None:
    """Return the definition that reload requests set for a command in a round. None if no request changed the command.

    `round_` is None for the next round.
    """
    for reload in reversed(reloads):
        last_old_round = reload.rounds.get(CommandId(command))
        if last_old_round is not None and (round_ is None or last_old_round < round_):
            return next((definition for definition in reload.commands if definition.id == command), None)
    return None


def added_commands(requests: Iterable[Request]) -> list[Command]:
    """Return the commands that requests have added to a batch, in item order."""
    return [command for request in requests if isinstance(request.body, Add) for command in request.body.commands]


def set_timeout(sets: Sequence[Set], command: Command) -> Command:
    """Return a command with the time limit of the last Set request that has one for it, for every try."""
    limits = [sets_.tasks[command.id].timeout_seconds for sets_ in sets if command.id in sets_.tasks]
    limit = next((limit for limit in reversed(limits) if limit is not None), None)
    if limit is None:
        return command
    tries = tuple(msgspec.structs.replace(changes, timeout_seconds=None) for changes in command.tries)
    return msgspec.structs.replace(command, timeout_seconds=limit, tries=tries)
