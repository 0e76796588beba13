"""An entry: one path of a snapshot. Paths are bytes; JSON carries them as text, or as base64 where no UTF-8."""

from __future__ import annotations

import bisect
import operator
from collections.abc import Iterable, Sequence
from functools import cache
from itertools import islice
from typing import Literal, NewType

import msgspec
from msgspec import UNSET, UnsetType

from codebatch.model.digest import DIGEST_PATTERN, Digest, are_digests

SnapshotId = NewType("SnapshotId", str)

EntryKind = Literal["file", "symlink", "submodule"]

PATH_BYTES_MAX = 64 * 1024
_LFS_POINTER = b"version https://git-lfs.github.com/spec/"
_LFS_POINTER_BYTES_MAX = 1024
# Of a path between two slashes.
_UNSAFE_PARTS = (b"//", b"/./", b"/../")

# What the line of a file holds, and of no other entry: in a path the quotation marks would be escaped.
_IS_FILE = b'"kind":"file"'


class Entry(msgspec.Struct, frozen=True, order=True, gc=False):
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


# Without `gc` the collector does not look, each time that some hundreds are made, at what can be in no cycle.
class EntryLine(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """An entry of a snapshot, as a line of files.index.jsonl."""

    path: str | UnsetType = UNSET
    path_b64: str | UnsetType = UNSET
    kind: EntryKind
    executable: bool
    size: int
    object: str


_encoder = msgspec.json.Encoder()


@cache
def _decoder() -> msgspec.json.Decoder[EntryLine]:
    return msgspec.json.Decoder(EntryLine)  # 1 ms, and most questions name no file.


def display_path(path: bytes) -> str:
    """A path for people and messages; not reversible where it is no UTF-8."""
    return path.decode("utf-8", "backslashreplace")


def path_fields(path: bytes) -> tuple[str | UnsetType, str | UnsetType]:
    """The `path` and `path_b64` fields of a record: exactly one is set."""
    try:
        return path.decode("utf-8"), UNSET
    except UnicodeDecodeError:
        from base64 import b64encode  # 1 ms; few trees have such a path

        return UNSET, b64encode(path).decode("ascii")


def path_row(path: bytes) -> dict[str, str]:
    """A path as a row of JSON has it: under `path`, or under `path_b64` where it is no UTF-8."""
    text, encoded = path_fields(path)
    return {"path": text} if isinstance(text, str) else {"path_b64": str(encoded)}


def path_from_fields(path: str | UnsetType | None, path_b64: str | UnsetType | None) -> bytes:
    """The bytes of a path from a record's two fields. Raises ValueError unless exactly one is set and sound."""
    if isinstance(path, str) and not isinstance(path_b64, str):
        return path.encode("utf-8")
    if isinstance(path_b64, str) and not isinstance(path, str):
        import binascii
        from base64 import b64decode

        try:
            return b64decode(path_b64, validate=True)
        except binascii.Error as error:
            raise ValueError("path_b64 is not base64") from error
    raise ValueError("exactly one of path and path_b64 must be set")


def is_safe_path(path: bytes) -> bool:
    """Whether a path stays inside its tree: relative, no empty, `.` or `..` part, no NUL."""
    if len(path) > PATH_BYTES_MAX or b"\0" in path:
        return False
    enclosed = b"/%b/" % path
    return not any(part in enclosed for part in _UNSAFE_PARTS)


def encode_entry(entry: Entry) -> bytes:
    """The line of files.index.jsonl that an entry is."""
    path, path_b64 = path_fields(entry.path)
    line = EntryLine(
        path=path,
        path_b64=path_b64,
        kind=entry.kind,
        executable=entry.executable,
        size=entry.size,
        object=entry.object,
    )
    return _encoder.encode(line) + b"\n"


def encode_entries(entries: Iterable[Entry]) -> bytes:
    """The lines of files.index.jsonl. Their digest is the snapshot's."""
    return b"".join(map(encode_entry, entries))


def decode_entries(data: bytes) -> list[Entry]:
    """Read lines of files.index.jsonl. Raises ValueError where a line, an order or a path is unsound."""
    lines = decode_lines(data)
    paths = [path_from_fields(line.path, line.path_b64) for line in lines]
    if not _are_sound(lines, paths):
        _refuse(lines, paths)
    return [
        Entry(path, line.kind, line.executable, line.size, Digest(line.object))
        for path, line in zip(paths, lines, strict=True)
    ]


def decode_lines(data: bytes) -> list[EntryLine]:
    """Lines of files.index.jsonl as they are written. Raises ValueError where one is not of its type."""
    try:
        return _decoder().decode_lines(data)
    except msgspec.DecodeError as error:
        raise ValueError(str(error)) from error


def _are_sound(lines: Sequence[EntryLine], paths: Sequence[bytes]) -> bool:
    """Whether no line is to be refused. All are looked at together, in a third of the time of one by one."""
    enclosed = b"/%b/" % b"/\0/".join(paths)
    return (
        enclosed.count(b"\0") == len(paths) - 1
        and not any(part in enclosed for part in _UNSAFE_PARTS)
        and max(map(len, paths)) <= PATH_BYTES_MAX
        and all(map(operator.lt, paths, islice(paths, 1, None)))
        and min(line.size for line in lines) >= 0
        and are_digests([line.object for line in lines if line.object or line.kind != "submodule"])
    )


def _refuse(lines: Sequence[EntryLine], paths: Sequence[bytes]) -> None:
    """Say which of some lines is unsound. Raises ValueError, unless there are none."""
    previous = b""
    for number, (path, line) in enumerate(zip(paths, lines, strict=True), 1):
        if not is_safe_path(path) or path <= previous:
            raise ValueError(f"line {number}: the path is unsafe or out of order")
        if line.size < 0 or not (DIGEST_PATTERN.match(line.object) or (line.kind == "submodule" and not line.object)):
            raise ValueError(f"line {number}: bad size or object")
        previous = path


def find_item(lines: Sequence[bytes], path: bytes) -> int | None:
    """The number of the item at a path among those of sound lines, by decoding a dozen of them.

    Items are the entries of kind `file`; a path where there is none is left out. Raises ValueError.
    """
    index = _find_line(lines, path)
    if index is None or _IS_FILE not in lines[index]:
        return None
    return b"".join(lines[:index]).count(_IS_FILE)


def find_entry(lines: Sequence[bytes], path: bytes) -> Entry | None:
    """The entry at a path, of lines as `find_item` takes them; None without any. Raises ValueError."""
    index = _find_line(lines, path)
    return None if index is None else decode_entries(lines[index])[0]


def _find_line(lines: Sequence[bytes], path: bytes) -> int | None:
    index = bisect.bisect_left(lines, path, key=path_of_line)
    return index if index < len(lines) and path_of_line(lines[index]) == path else None


def path_of_line(line: bytes) -> bytes:
    """The path of a line of files.index.jsonl. Raises ValueError."""
    wire = _decoder().decode(line)
    return path_from_fields(wire.path, wire.path_b64)


def snapshot_id(digest: Digest) -> SnapshotId:
    """A snapshot's id: `snap-` and the first 16 hex digits of its manifest digest."""
    return SnapshotId(f"snap-{digest[:16]}")


def is_lfs_pointer(content: bytes) -> bool:
    """Return whether a file is a pointer of Git LFS, whose content was not fetched."""
    return len(content) < _LFS_POINTER_BYTES_MAX and content.startswith(_LFS_POINTER)
