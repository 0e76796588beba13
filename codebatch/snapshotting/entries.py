"""Interpretation of the rows of the stat cache: snapshot entries, skipped special files, and notes for the user."""

from __future__ import annotations

import stat
from collections import Counter

import msgspec

from codebatch.model.digest import Digest
from codebatch.model.entry import Entry, display_path
from codebatch.model.text.quantities import count_text
from codebatch.snapshotting.stat_cache import FLAG_LFS_POINTER, FLAG_SUBMODULE, NO_KEY, StatRow, is_special


class SkippedEntry(msgspec.Struct, frozen=True):
    """A path that was listed but is not in the snapshot, with the reason."""

    path: bytes
    reason: str


def entry_from_row(path: bytes, row: StatRow) -> Entry | None:
    """Return the entry of a row, or None if the path is absent or cannot be stored."""
    if row.flags & FLAG_SUBMODULE:
        return Entry(path, "submodule", False, 0, Digest(""))
    if row.key == NO_KEY:
        return None
    mode = row.stat.mode
    if stat.S_ISLNK(mode):
        return Entry(path, "symlink", False, row.stat.size, Digest(row.key.hex()))
    return Entry(path, "file", bool(mode & stat.S_IXUSR), row.stat.size, Digest(row.key.hex()))


def is_regular_or_link(row: StatRow) -> bool:
    """Return whether a row is a file, a link or an absent path, and has no flags.

    Such a row does not affect other paths.
    """
    mode = row.stat.mode
    return not row.flags and (not mode or stat.S_ISREG(mode) or stat.S_ISLNK(mode))


def skipped_entries(rows: dict[bytes, StatRow]) -> list[SkippedEntry]:
    """Return the listed FIFOs, sockets and devices, in path order. They are not in the snapshot."""
    special = [(path, row) for path, row in sorted(rows.items()) if is_special(row.stat.mode)]
    kinds = ((stat.S_ISFIFO, "fifo"), (stat.S_ISSOCK, "socket"), (stat.S_ISCHR, "device"), (stat.S_ISBLK, "device"))
    return [SkippedEntry(path, name) for path, row in special for test, name in kinds if test(row.stat.mode)]


def content_notes(rows: dict[bytes, StatRow], skipped: list[SkippedEntry]) -> list[str]:
    """Return notes for the user about special content of the snapshot: a count and an example for each kind."""
    notes = []
    for reason, count in sorted(Counter(item.reason for item in skipped).items()):
        first = next(item.path for item in skipped if item.reason == reason)
        notes.append(f"skipped {count_text(count, reason)}, for example {display_path(first)}")
    for flag, noun, lacks in (
        (FLAG_LFS_POINTER, "Git LFS pointer", "without content"),
        (FLAG_SUBMODULE, "submodule", "not checked out"),
    ):
        flagged = [path for path, row in sorted(rows.items()) if row.flags & flag]
        if flagged:
            notes.append(f"{count_text(len(flagged), noun)} {lacks}, for example {display_path(flagged[0])}")
    return notes
