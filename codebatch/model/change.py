"""Changes of files: proposed by tasks, shown by `codebatch changes`, and written by `codebatch apply`.

A change set holds all changes that a command of a work batch made in its own tree, and the paths whose changes it
cannot record. It is an object of the store: one JSON object for each change, then one for each of these paths, each in
a line of its own, sorted by path.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal

import msgspec

from codebatch.model.digest import DIGEST_PATTERN, Digest
from codebatch.model.documents import DocumentError
from codebatch.model.entry import PathMembers, display_path, is_safe_path, path_fields

CHANGE_SET_BYTES_MAX = 1 << 30
NOT_REWRITTEN_CODE = "not-rewritten"
"""The code of the findings for matches that a rewrite leaves out."""
_UNRECORDED_NAMED_MAX = 5

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


UnrecordedReason = Literal["ignored", "repository", "submodule", "special", "reserved", "type"]
"""The reason why a change set does not record what is at a path.

- `ignored`: ignore files exclude it. For a directory, everything in it is excluded.
- `repository`: another repository. `submodule`: a submodule with changes, or a removed one.
- `special`: a FIFO, a socket or a device. `reserved`: git reserves the name.
- `type`: a file became a link to its own content, or the reverse.
"""

UNRECORDED_TEXTS: dict[UnrecordedReason, str] = {
    "ignored": "ignored",
    "repository": "nested repository",
    "submodule": "changed submodule",
    "special": "special file",
    "reserved": "name reserved by git",
    "type": "link instead of a file with its target, or the reverse",
}


class UnrecordedPath(msgspec.Struct, frozen=True, kw_only=True, order=True):
    """A path of a tree that a change set does not record, and the reason."""

    path: bytes
    reason: UnrecordedReason

    @property
    def is_lost(self) -> bool:
        """Whether work is missing from the change set. Files that the user ignores do not count as work."""
        return self.reason != "ignored"

    def __str__(self) -> str:
        return f"{display_path(self.path)} ({UNRECORDED_TEXTS[self.reason]})"


def unrecorded_text(paths: Sequence[UnrecordedPath]) -> str:
    """Return the first unrecorded paths as text, followed by the number of further paths."""
    more = f" and {len(paths) - _UNRECORDED_NAMED_MAX:,} more" if len(paths) > _UNRECORDED_NAMED_MAX else ""
    return ", ".join(map(str, paths[:_UNRECORDED_NAMED_MAX])) + more


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
    """A line of a change set. See TreeChange. `added` and `removed` are numbers of lines.

    With `unrecorded`, the line has a path that is not recorded, and the reason. It has no other members.
    """

    unrecorded: UnrecordedReason | None = None
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


class ChangeSet(msgspec.Struct, frozen=True, kw_only=True):
    """The changes of a command, and the paths that are not recorded, each sorted by path."""

    changes: tuple[ListedChange, ...] = ()
    unrecorded: tuple[UnrecordedPath, ...] = ()

    @property
    def lost(self) -> tuple[UnrecordedPath, ...]:
        """The unrecorded paths with work that is missing from the changes."""
        return tuple(each for each in self.unrecorded if each.is_lost)


_row_decoder = msgspec.json.Decoder(ChangeSetRow)
_row_encoder = msgspec.json.Encoder(order="deterministic")


def encode_change_set(changes: Iterable[ListedChange], unrecorded: Iterable[UnrecordedPath] = ()) -> bytes:
    """Return the bytes of a change set. Equal sets give equal bytes."""
    rows = [
        *map(_change_row, sorted(changes, key=lambda listed: listed.change.path)),
        *map(_unrecorded_row, sorted(unrecorded)),
    ]
    return b"".join(_row_encoder.encode(row) + b"\n" for row in rows)


def _change_row(listed: ListedChange) -> ChangeSetRow:
    change = listed.change
    text, encoded = path_fields(change.path)
    return ChangeSetRow(
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


def _unrecorded_row(each: UnrecordedPath) -> ChangeSetRow:
    text, encoded = path_fields(each.path)
    return ChangeSetRow(path=text, path_b64=encoded, unrecorded=each.reason)


def decode_change_set(data: bytes) -> ChangeSet:
    """Decode a change set. Raises DocumentError if it is damaged, or has a change that no command can make."""
    try:
        rows = list(map(_row_decoder.decode, data.splitlines()))
        decoded = ChangeSet(
            changes=tuple(_decode_change(row) for row in rows if row.unrecorded is None),
            unrecorded=tuple(
                UnrecordedPath(path=_safe_path(row), reason=row.unrecorded)
                for row in rows
                if row.unrecorded is not None
            ),
        )
    except (msgspec.DecodeError, UnicodeDecodeError, ValueError) as error:
        raise DocumentError(f"it has an invalid change: {error}") from error
    for paths in ([listed.change.path for listed in decoded.changes], [each.path for each in decoded.unrecorded]):
        if sorted(set(paths)) != paths:
            raise DocumentError("its changes are not sorted, or a path is listed twice")
    if encode_change_set(decoded.changes, decoded.unrecorded) != data:
        raise DocumentError("it is not in its canonical form")
    return decoded


def _decode_change(row: ChangeSetRow) -> ListedChange:
    change = TreeChange(
        path=_safe_path(row),
        kind=row.kind,
        before=_as_digest(row.before),
        after=_as_digest(row.after),
        was_executable=row.was_executable,
        executable=row.executable,
    )
    if change.before == change.after and (change.before is None or change.was_executable == change.executable):
        raise ValueError("it changes nothing")
    if row.added < 0 or row.removed < 0:
        raise ValueError("a number of lines is negative")
    return ListedChange(change=change, added=row.added, removed=row.removed)


def _safe_path(row: ChangeSetRow) -> bytes:
    path = row.path_bytes
    if not is_safe_path(path):
        raise ValueError("its path is not safe")
    return path


def _as_digest(text: str | None) -> Digest | None:
    if text is not None and not DIGEST_PATTERN.match(text):
        raise ValueError("a digest is invalid")
    return None if text is None else Digest(text)
