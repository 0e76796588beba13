"""An entry: one path of a snapshot. Paths are bytes; JSON carries them as text, or as base64 where no UTF-8."""

from __future__ import annotations

import base64
import binascii
import bisect
from collections.abc import Iterable, Iterator
from typing import Literal, NamedTuple, NewType

import msgspec
from msgspec import UNSET, UnsetType

from codebatch.model.digest import DIGEST_PATTERN, Digest, digest_bytes

SnapshotId = NewType("SnapshotId", str)

EntryKind = Literal["file", "symlink", "submodule"]

PATH_BYTES_MAX = 64 * 1024

# What the line of a file holds, and of no other entry: in a path the quotation marks would be escaped.
_IS_FILE = b'"kind":"file"'


class Entry(NamedTuple):
    """One path of a snapshot. Compares and sorts by `path` first, which is unique in a snapshot.

    `object` names the content: a file's bytes, a symlink's target; empty for a submodule that is not checked out.
    """

    path: bytes
    kind: EntryKind
    executable: bool
    size: int
    object: Digest

    @property
    def text(self) -> str:
        """The path for people: UTF-8, invalid bytes as backslash escapes."""
        return display_path(self.path)


class EntryLine(msgspec.Struct, frozen=True, kw_only=True):
    """An entry as a line of files.index.jsonl."""

    path: str | UnsetType = UNSET
    path_b64: str | UnsetType = UNSET
    kind: EntryKind
    executable: bool
    size: int
    object: str


_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder(EntryLine)


def display_path(path: bytes) -> str:
    """A path for people and messages; not reversible where it is no UTF-8."""
    return path.decode("utf-8", "backslashreplace")


def path_fields(path: bytes) -> tuple[str | UnsetType, str | UnsetType]:
    """The `path` and `path_b64` fields of a record: exactly one is set."""
    try:
        return path.decode("utf-8"), UNSET
    except UnicodeDecodeError:
        return UNSET, base64.b64encode(path).decode("ascii")


def path_row(path: bytes) -> dict[str, str]:
    """A path as a row of JSON has it: under `path`, or under `path_b64` where it is no UTF-8."""
    text, encoded = path_fields(path)
    return {"path": text} if isinstance(text, str) else {"path_b64": str(encoded)}


def path_from_fields(path: str | UnsetType | None, path_b64: str | UnsetType | None) -> bytes:
    """The bytes of a path from a record's two fields. Raises ValueError unless exactly one is set and sound."""
    if isinstance(path, str) and not isinstance(path_b64, str):
        return path.encode("utf-8")
    if isinstance(path_b64, str) and not isinstance(path, str):
        try:
            return base64.b64decode(path_b64, validate=True)
        except binascii.Error as error:
            raise ValueError("path_b64 is not base64") from error
    raise ValueError("exactly one of path and path_b64 must be set")


def is_safe_path(path: bytes) -> bool:
    """Whether a path stays inside its tree: relative, no empty, `.` or `..` part, no NUL."""
    if not path or len(path) > PATH_BYTES_MAX or b"\0" in path:
        return False
    return all(part not in (b"", b".", b"..") for part in path.split(b"/"))


def encode_entries(entries: Iterable[Entry]) -> bytes:
    """The lines of files.index.jsonl. Their digest is the snapshot's."""
    lines = []
    for entry in entries:
        path, path_b64 = path_fields(entry.path)
        lines.append(
            _encoder.encode(
                EntryLine(
                    path=path,
                    path_b64=path_b64,
                    kind=entry.kind,
                    executable=entry.executable,
                    size=entry.size,
                    object=entry.object,
                )
            )
        )
    return b"".join(line + b"\n" for line in lines)


def decode_entries(data: bytes) -> list[Entry]:
    """Read files.index.jsonl. Raises ValueError where a line, an order or a path is unsound."""
    return list(_iter_entries(data))


def _iter_entries(data: bytes) -> Iterator[Entry]:
    previous = b""
    for number, line in enumerate(data.splitlines(), 1):
        try:
            wire = _decoder.decode(line)
        except msgspec.DecodeError as error:
            raise ValueError(f"line {number}: {error}") from error
        path = path_from_fields(wire.path, wire.path_b64)
        if not is_safe_path(path) or path <= previous:
            raise ValueError(f"line {number}: the path is unsafe or out of order")
        if wire.size < 0 or not (DIGEST_PATTERN.match(wire.object) or (wire.kind == "submodule" and not wire.object)):
            raise ValueError(f"line {number}: bad size or object")
        previous = path
        yield Entry(path, wire.kind, wire.executable, wire.size, Digest(wire.object))


def find_items(data: bytes, paths: Iterable[bytes]) -> dict[bytes, int]:
    """The numbers of the items at some paths in a sound files.index.jsonl, in their order, by decoding a few lines.

    Items are the entries of kind `file`; a path where there is none is left out. Raises ValueError.
    """
    lines = data.splitlines()
    found: dict[bytes, int] = {}
    for path in paths:
        index = bisect.bisect_left(lines, path, key=_path_of_line)
        if index < len(lines) and _path_of_line(lines[index]) == path and _IS_FILE in lines[index]:
            found[path] = sum(_IS_FILE in line for line in lines[:index])
    return found


def _path_of_line(line: bytes) -> bytes:
    wire = _decoder.decode(line)
    return path_from_fields(wire.path, wire.path_b64)


def manifest_digest(index: bytes) -> Digest:
    """A snapshot's digest: that of the bytes of its files.index.jsonl."""
    return digest_bytes(index)


def snapshot_id(digest: Digest) -> SnapshotId:
    """A snapshot's id: `snap-` and the first 16 hex digits of its manifest digest."""
    return SnapshotId(f"snap-{digest[:16]}")
