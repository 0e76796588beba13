"""Requests: what people ask of a work batch, as numbered, write-once documents (SPEC.md "Requests").

They are in a total order, by `n` from 1 without a gap, and no clock decides anything.
"""

from __future__ import annotations

import msgspec

from codebatch.model.command import CommandId
from codebatch.model.digest import Digest, digest_bytes
from codebatch.model.document import Document, DocumentError, decode_document, decode_json, encode_members

REQUEST_FORMAT = 1


class RequestHead(Document, frozen=True, kw_only=True):
    """What every request begins with: its number, when it was made (wall clock) and by whom, for people."""

    format: int = REQUEST_FORMAT
    n: int
    at_ns: int
    by: str


class _Body(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="request", tag=str.lower):
    """Base of the requests. The order of their fields is that on disk."""


class Cancel(_Body, frozen=True, kw_only=True):
    """End every attempt begun before, and begin none. `grace_seconds`: instead of each command's own."""

    grace_seconds: float | None = None


class Open(_Body, frozen=True, kw_only=True):
    """Go on: what a Cancel forbade is allowed again. Each command of `over` whose highest round is the one that stands
    there is open once more, whatever it ended as; one that has a higher round by now is not.
    """

    over: dict[CommandId, int] = msgspec.field(default_factory=dict)


class Answer(_Body, frozen=True, kw_only=True):
    """An answer to the question, named by its digest, with which a round ended as `blocked`."""

    task: CommandId
    round: int
    question: Digest
    text: str


RequestBody = Cancel | Open | Answer


class Request(msgspec.Struct, frozen=True):
    """A request, and who made it when."""

    head: RequestHead
    body: RequestBody

    @property
    def n(self) -> int:
        """Its number."""
        return self.head.n


INTERRUPTED_CHOICES = ("again", "failed", "done")
"""What can be answered to our own question, whether an interrupted command is to be started again."""


def interrupted_question(command: CommandId, round_: int) -> Digest:
    """The digest of our own question about an interrupted round. It differs from round to round."""
    return digest_bytes(f"interrupted\0{command}\0{round_}".encode())


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
