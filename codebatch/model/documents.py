"""Documents: how a store writes JSON, and the one door by which it comes back (SPEC.md "Documents").

A document is one line: a JSON object whose last member is `checksum`, the sha256 in hex of all bytes before that
member. It is over the file's own bytes and not over what they decode to, so a field that a later version adds is no
damage, and any bit that changed is.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Annotated, TypeVar

import msgspec

from codebatch.model.digest import digest_bytes

T = TypeVar("T")

_MEMBER = ',"checksum":"'
_END = '"}\n'
_DIGEST_BYTES = 64
_TAIL_BYTES = len(_MEMBER) + _DIGEST_BYTES + len(_END)
_UNDECODABLE = (msgspec.DecodeError, ValueError, RecursionError)
"""msgspec tells bytes that are no UTF-8 by UnicodeDecodeError, and deep nesting by RecursionError."""


InstantNs = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]
"""Nanoseconds since 1970. What is beyond 64 bits is no time, and nothing could show it."""


class DocumentError(ValueError):
    """The bytes are not a document that was written so. The text goes behind "… is damaged: "."""


class Document(msgspec.Struct, frozen=True, kw_only=True):
    """Base of what is written as a document. Each gives `format` its default: the one that this version reads."""

    format: int


D = TypeVar("D", bound=Document)


def encode_document(document: Document) -> bytes:
    """The bytes of the document's file."""
    return encode_members(document)


def encode_members(*objects: msgspec.Struct) -> bytes:
    """The bytes of a document that has the members of several objects, one after the other."""
    body = b"{" + b",".join(msgspec.json.encode(each)[1:-1] for each in objects)
    return body + _tail(body)


def decode_document(data: bytes, type_: type[D], format_: int) -> D:
    """Read a document's file. Raises DocumentError, whatever is wrong with it."""
    if not data.endswith(_tail(data[:-_TAIL_BYTES])):
        is_cut = not data.endswith(_END.encode())
        raise DocumentError("it does not end with its checksum" if is_cut else "its checksum does not match")
    try:
        document: D = _decoder_of(type_).decode(data)
    except _UNDECODABLE as error:
        raise DocumentError(str(error)) from error
    if document.format != format_:
        raise DocumentError(f"it has format {document.format}, but this version reads format {format_}")
    return document


def _tail(body: bytes) -> bytes:
    return f"{_MEMBER}{digest_bytes(body)}{_END}".encode()


@cache
def _decoder_of(type_: type[D]) -> msgspec.json.Decoder[D]:
    """Made once: of some types ten thousand documents are read."""
    return msgspec.json.Decoder(type_)


def decode_json(data: bytes, decode: Callable[[bytes], T]) -> T:
    """Read JSON that may be anybody's, with no checksum, by a function of msgspec. Raises DocumentError."""
    try:
        return decode(data)
    except _UNDECODABLE as error:
        raise DocumentError(str(error)) from error
