"""Requests: what people ask of a work batch, as numbered, write-once documents (SPEC.md "Requests").

They are in a total order, by `n` from 1 without a gap, and no clock decides anything.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import msgspec

from codebatch.model.command import Command, CommandId
from codebatch.model.digest import Digest
from codebatch.model.document import Document, DocumentError, InstantNs, decode_document, decode_json, encode_members
from codebatch.model.work import InferredEdge, Policy, WorkEdge

REQUEST_FORMAT = 1


class RequestHead(Document, frozen=True, kw_only=True):
    """What every request begins with: its number, when it was made (wall clock) and by whom, for people."""

    format: int = REQUEST_FORMAT
    n: int
    at_ns: InstantNs
    by: str


class _Body(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="request", tag=str.lower):
    """Base of the requests. The order of their fields is that on disk."""


class Cancel(_Body, frozen=True, kw_only=True):
    """End every attempt begun before, and begin none. `grace_seconds`: instead of each command's own.

    `attempts` maps each command that ran to the lease epoch of its attempt. None of them counts as interrupted.
    """

    grace_seconds: float | None = None
    attempts: dict[CommandId, int] = msgspec.field(default_factory=dict)


class Open(_Body, frozen=True, kw_only=True):
    """Go on. Each command of `rounds` whose highest round is the one that stands there is open once more, whatever it
    ended as, and no Skip of that round stands; one that has a higher round by now is left as it is.

    What a Cancel or a Pause forbade is allowed again: to `all`, or to those that are `named` in `rounds`. Failures that
    were `acknowledged`, a round of each command, count no more for those at which nothing new starts.
    """

    rounds: dict[CommandId, int] = msgspec.field(default_factory=dict)
    lifts: Literal["all", "named"] = "all"
    acknowledged: dict[CommandId, int] = msgspec.field(default_factory=dict)


class Answer(_Body, frozen=True, kw_only=True):
    """An answer to a question, named by its digest, that was asked in a round or by its end."""

    task: CommandId
    round: int
    question: Digest
    text: str


class Skip(_Body, frozen=True, kw_only=True):
    """Do not run a command, and end the attempt of it that runs, unless it has had a higher round than `round`.

    For those that need it, it is done where `marked_done`, else as if it had failed. One that is done stays that.
    """

    task: CommandId
    round: int
    marked_done: bool = False


class Pause(_Body, frozen=True, kw_only=True):
    """Begin nothing new. What runs goes on."""


class Unpause(_Body, frozen=True, kw_only=True):
    """Begin again."""


class Set(_Body, frozen=True, kw_only=True):
    """Have so many commands run at once, and pools so large, from now on. Who wants more than there is takes all."""

    max_parallel: int | None = None
    pools: dict[str, int] = msgspec.field(default_factory=dict)


class Reload(_Body, frozen=True, kw_only=True):
    """Change definitions. In rounds behind the one in `rounds`, each of `commands` replaces the command of its id.

    `policies` are those of them that differ from the default, `edges` all that they wait for, `inferred` those of the
    edges that nobody wrote. Needs on commands that the batch does not have count as done.
    """

    rounds: dict[CommandId, int]
    commands: tuple[Command, ...]
    policies: dict[CommandId, Policy] = msgspec.field(default_factory=dict)
    edges: tuple[WorkEdge, ...] = ()
    inferred: tuple[InferredEdge, ...] = ()


StopCause = Literal["signal", "timeout", "failure"]


class Stop(_Body, frozen=True, kw_only=True):
    """End attempts before their time: the request of a coordinator that received a signal, reached the time limit of
    the batch, or has to halt at a failure.

    `attempts` maps each command that runs to the lease epoch of its attempt. No outcome is committed for an attempt
    that is ended so, and it does not count as interrupted. `detail` names the signal, or the command that failed.
    Unless the request `terminates` them, the attempts may run to their end. After a `timeout` nothing begins until an
    Open.
    """

    cause: StopCause
    detail: str = ""
    attempts: dict[CommandId, int] = msgspec.field(default_factory=dict)
    terminates: bool = True


RequestBody = Cancel | Open | Answer | Skip | Pause | Unpause | Set | Reload | Stop


class Request(msgspec.Struct, frozen=True):
    """A request, and who made it when."""

    head: RequestHead
    body: RequestBody

    @property
    def n(self) -> int:
        """Its number."""
        return self.head.n


def encode_request(request: Request) -> bytes:
    """The bytes of a request's file."""
    return encode_members(request.head, request.body)


_body_decoder: msgspec.json.Decoder[RequestBody] = msgspec.json.Decoder(RequestBody)


def decode_request(data: bytes, n: int) -> Request:
    """Read the `n`th request. Raises DocumentError."""
    head = decode_document(data, RequestHead, REQUEST_FORMAT)
    if head.n != n:
        raise DocumentError(f"it is request {head.n}")
    return Request(head, decode_json(data, _body_decoder.decode))


def reloaded_command(reloads: Sequence[Reload], command: str, round_: int | None = None) -> Command | None:
    """Return the definition that a command has in a round, by default in the next one; None if it was not reloaded."""
    for reload in reversed(reloads):
        over = reload.rounds.get(CommandId(command))
        if over is not None and (round_ is None or over < round_):
            return next((each for each in reload.commands if each.id == command), None)
    return None
