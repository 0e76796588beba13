"""Encoding and decoding of the JSON documents of a store (SPEC.md "Documents").

A document is one line: a JSON object whose last member is `checksum`, the sha256 in hex of all bytes before that
member. The checksum covers the bytes of the file, not the decoded values. So a changed bit is detected, but a member
that a later version adds is not mistaken for damage.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Annotated, TypeVar

import msgspec

from codebatch.model.digest import digest_bytes

T = TypeVar("T")

_CHECKSUM_MEMBER = ',"checksum":"'
_DOCUMENT_END = '"}\n'
_DIGEST_BYTES = 64
_TAIL_BYTES = len(_CHECKSUM_MEMBER) + _DIGEST_BYTES + len(_DOCUMENT_END)
_DECODING_ERRORS = (msgspec.DecodeError, ValueError, RecursionError)
"""Errors that msgspec raises for invalid bytes.

UnicodeDecodeError is raised for bytes that are not UTF-8, and RecursionError for deep nesting.
"""


InstantNs = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]
"""Nanoseconds since 1970, limited to 64 bits because other times cannot be displayed."""


class DocumentError(ValueError):
    """The bytes are not a valid document. The text of the error completes "… is damaged: "."""


class Document(msgspec.Struct, frozen=True, kw_only=True):
    """Base of documents.

    `format` is the number of the document's format. Its default is the format that this version writes and reads.
    """

    format: int


D = TypeVar("D", bound=Document)


def encode_document(document: Document) -> bytes:
    """Return the bytes of a document's file."""
    return encode_members(document)


def encode_members(*objects: msgspec.Struct) -> bytes:
    """Return the bytes of one document that has the members of all `objects`, in order."""
    body = b"{" + b",".join(msgspec.json.encode(item)[1:-1] for item in objects)
    return body + _checksum_tail(body)


def decode_document(data: bytes, type_: type[D], format_version: int) -> D:
    """Decode a document's file.

    Raises DocumentError if the bytes are invalid, or another format than `format_version`.
    """
    if not data.endswith(_checksum_tail(data[:-_TAIL_BYTES])):
        is_cut = not data.endswith(_DOCUMENT_END.encode())
        raise DocumentError("it does not end with its checksum" if is_cut else "its checksum does not match")
    try:
        document: D = _make_decoder(type_).decode(data)
    except _DECODING_ERRORS as error:
        raise DocumentError(str(error)) from error
    if document.format != format_version:
        raise DocumentError(f"it has format {document.format}, but this version reads format {format_version}")
    return document


def _checksum_tail(body: bytes) -> bytes:
    return f"{_CHECKSUM_MEMBER}{digest_bytes(body)}{_DOCUMENT_END}".encode()


@cache
def _make_decoder(type_: type[D]) -> msgspec.json.Decoder[D]:
    """Return the decoder of a type. Cached, because a process may read ten thousand documents of one type."""
    return msgspec.json.Decoder(type_)


def decode_json(data: bytes, decode: Callable[[bytes], T]) -> T:
    """Decode untrusted JSON that has no checksum. `decode` is a function of msgspec. Raises DocumentError."""
    try:
        return decode(data)
    except _DECODING_ERRORS as error:
        raise DocumentError(str(error)) from error
