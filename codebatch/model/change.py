"""Changes of files: proposed by tasks, shown by `codebatch changes`, and written by `codebatch apply`.

A change set holds all changes that a command of a work batch made in its own tree. It is an object of the store:
one JSON object for each change, in a line of its own, sorted by path.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

import msgspec

from codebatch.model.digest import DIGEST_PATTERN, Digest
from codebatch.model.documents import DocumentError
from codebatch.model.entry import PathMembers, is_safe_path, path_fields

CHANGE_SET_BYTES_MAX = 1 << 30

Gate = Literal["parse", "repeat", "findings", "uses", "verify"]
"""A check of a proposed change, in the order in which they are made.

- `parse`: the file has no more syntax errors than before.
- `repeat`: the same task proposes nothing for the changed file.
- `findings`: the built-in rules report no new warning or error.
- `uses`: no exact use of a name remains whose definition the change removes.
- `verify`: the command `verify` of the task succeeds.
"""


class TreeChange(msgspec.Struct, frozen=True, kw_only=True, order=True):
    """A change of one file of a tree.

    - `before`, `after`: the digests of the contents in the object store. None: the file does not exist then. For a
      link, the content is its target. They differ, or `executable` differs from `was_executable`.
    - `was_executable`, `executable`: whether the file is executable before and after the change.
    """

    path: bytes
    kind: Literal["file", "link"] = "file"
    before: Digest | None
    after: Digest | None
    was_executable: bool = False
    executable: bool = False


class ChangeRefusal(msgspec.Struct, frozen=True, kw_only=True):
    """The check that a proposed change failed, and the evidence in a sentence."""

    gate: Gate
    evidence: str


class ProposedChange(msgspec.Struct, frozen=True, kw_only=True):
    """A change that a task of a batch proposes, with the numbers of lines that it adds and removes.

    With `refusal`, the change is shown, but applied only if the user asks for refused changes.
    """

    change: TreeChange
    task: str
    added: int
    removed: int
    refusal: ChangeRefusal | None = None


class ChangeSetRow(PathMembers, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """A line of a change set. See TreeChange. `added` and `removed` are numbers of lines."""

    kind: Literal["file", "link"] = "file"
    before: str | None = None
    after: str | None = None
    was_executable: bool = False
    executable: bool = False
    added: int = 0
    removed: int = 0


class ListedChange(msgspec.Struct, frozen=True, kw_only=True):
    """A change of a change set, with the numbers of lines that it adds and removes."""

    change: TreeChange
    added: int
    removed: int


_row_decoder = msgspec.json.Decoder(ChangeSetRow)
_row_encoder = msgspec.json.Encoder(order="deterministic")


def encode_change_set(changes: Iterable[ListedChange]) -> bytes:
    """Return the bytes of a change set. Equal sets give equal bytes."""
    return b"".join(map(_encode_row, sorted(changes, key=lambda listed: listed.change.path)))


def _encode_row(listed: ListedChange) -> bytes:
    change = listed.change
    text, encoded = path_fields(change.path)
    row = ChangeSetRow(
        path=text,
        path_b64=encoded,
        kind=change.kind,
        before=change.before,
        after=change.after,
        was_executable=change.was_executable,
        executable=change.executable,
        added=listed.added,
        removed=listed.removed,
    )
    return _row_encoder.encode(row) + b"\n"


def decode_change_set(data: bytes) -> tuple[ListedChange, ...]:
    """Decode a change set. Raises DocumentError if it is damaged, or has a change that no command can make."""
    try:
        changes = tuple(map(_decode_row, data.splitlines()))
    except (msgspec.DecodeError, UnicodeDecodeError, ValueError) as error:
        raise DocumentError(f"it has an invalid change: {error}") from error
    paths = [listed.change.path for listed in changes]
    if sorted(set(paths)) != paths:
        raise DocumentError("its changes are not sorted, or a path is listed twice")
    if encode_change_set(changes) != data:
        raise DocumentError("it is not in its canonical form")
    return changes


def _decode_row(line: bytes) -> ListedChange:
    row = _row_decoder.decode(line)
    path = row.path_bytes
    change = TreeChange(
        path=path,
        kind=row.kind,
        before=_as_digest(row.before),
        after=_as_digest(row.after),
        was_executable=row.was_executable,
        executable=row.executable,
    )
    if not is_safe_path(path):
        raise ValueError("its path is not safe")
    if change.before == change.after and (change.before is None or change.was_executable == change.executable):
        raise ValueError("it changes nothing")
    if row.added < 0 or row.removed < 0:
        raise ValueError("a number of lines is negative")
    return ListedChange(change=change, added=row.added, removed=row.removed)


def _as_digest(text: str | None) -> Digest | None:
    if text is not None and not DIGEST_PATTERN.match(text):
        raise ValueError("a digest is invalid")
    return None if text is None else Digest(text)
