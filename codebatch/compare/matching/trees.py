"""Which file of one batch is which of another, and what is written in both."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Literal

from codebatch.compare.matching.files import FilePair, counted_lines, pair_files
from codebatch.compare.matching.lines import BYTES_MAX, NOWHERE, TextLines, pair_lines, written_in
from codebatch.errors import ObjectMissing, StoreCorrupt
from codebatch.model.entry import Entry, display_path
from codebatch.query.sources.records import BatchRecords

Side = Literal["old", "new"]

# As many lines as no file has.
_ALL_LINES = range(1 << 31)

# Of contents that may be asked for again.
_KEPT_BYTES_MAX = 32 << 20
# Of texts in lines that may be looked at again; what holds a line is counted besides.
_KEPT_WRITTEN_BYTES_MAX = 64 << 20
_LINE_BYTES = 48
# Of lines that are paired, so that they need not be again.
_KEPT_LINES_MAX = 4_000_000


class TreeComparison:
    """The files of two batches. `lost` are those of which the content was wanted and is gone, as (side, path)."""

    def __init__(self, old: BatchRecords, new: BatchRecords) -> None:
        self.old = old
        self.new = new
        self.lost: set[tuple[Side, bytes]] = set()
        # A file is read to pair its lines, and once more for what is not paired by them.
        self._contents: dict[tuple[Side, bytes], bytes] = {}
        self._kept_bytes = 0
        self._written: dict[tuple[Side, bytes], TextLines] = {}
        self._written_bytes = 0
        # Who pairs what is on them asks for them, and once more who asks why something has no pair.
        self._paired: dict[tuple[str, str], Sequence[int]] = {}
        self._paired_lines = 0
        # Who asks for one line of a file asks for others soon.
        self._last_lines: tuple[tuple[Side, bytes, bytes] | None, Sequence[int] | None] = (None, None)

    @cached_property
    def unlike(self) -> tuple[Mapping[bytes, Entry], Mapping[bytes, Entry]]:
        """The files of each tree of which the other one has not the same at the same path. Raises StoreCorrupt."""
        old, new = self.old.snapshot.entries_unlike(self.new.snapshot)
        ours = {path: entry for path, entry in old.items() if entry.kind == "file" and new.get(path) != entry}
        theirs = {path: entry for path, entry in new.items() if entry.kind == "file" and old.get(path) != entry}
        return ours, theirs

    @cached_property
    def moved(self) -> list[FilePair]:
        """The files of two paths that are one. Raises StoreCorrupt."""
        old, new = self.unlike
        removed = {path: entry.object for path, entry in old.items() if path not in new}
        added = {path: entry.object for path, entry in new.items() if path not in old}
        where: dict[str, tuple[Side, bytes]] = {digest: ("old", path) for path, digest in removed.items()}
        where.update((digest, ("new", path)) for path, digest in added.items() if digest not in where)

        def lines_of(digest: str) -> Mapping[bytes, int]:
            content = self.content(*where[digest])
            return Counter() if content is None or len(content) > BYTES_MAX else counted_lines(content)

        return pair_files(removed, added, lines_of)[0]

    @property
    def are_strangers(self) -> bool:
        """Whether the trees have no path and no content in common, though both have files. Raises StoreCorrupt."""
        ours, theirs = self.unlike
        if not ours or not theirs or ours.keys() & theirs.keys():
            return False
        if len(ours) < self.old.snapshot.files or len(theirs) < self.new.snapshot.files:
            return False
        return {each.object for each in ours.values()}.isdisjoint(each.object for each in theirs.values())

    @property
    def may_have_moved(self) -> bool:
        """Whether a file without a pair may have one: the content of one of them is lost. Raises StoreCorrupt."""
        ours, theirs = self.unlike
        others = {"old": theirs, "new": ours}
        return any(path not in others[side] for side, path in self.lost)

    def new_path(self, old: bytes) -> bytes | None:
        """Where a file of the old tree is in the new one; None where it is gone. Raises StoreCorrupt."""
        ours, theirs = self.unlike
        return old if old in theirs or old not in ours else self._moved_to.get(old)

    def old_path(self, new: bytes) -> bytes | None:
        """Where a file of the new tree was in the old one; None where it was not. Raises StoreCorrupt."""
        ours, theirs = self.unlike
        return new if new in ours or new not in theirs else self._moved_from.get(new)

    def path_in_other(self, side: Side, path: bytes) -> bytes | None:
        """Where a file of one tree is in the other; None where it is not. Raises StoreCorrupt."""
        return self.new_path(path) if side == "old" else self.old_path(path)

    def object(self, side: Side, path: bytes) -> str:
        """The digest of a file's content; empty where the other tree has the same file.

        Raises StoreCorrupt.
        """
        entry = self.unlike[side == "new"].get(path)
        return "" if entry is None else entry.object

    def content(self, side: Side, path: bytes) -> bytes | None:
        """What is in a file, which the tree has; None where that is lost. Raises StoreCorrupt."""
        if (side, path) not in self._contents:
            try:
                content = self.batch(side).read_object(self._entry(side, path))
            except ObjectMissing:
                self.lost.add((side, path))
                return None
            self._kept_bytes += len(content)
            if self._kept_bytes > _KEPT_BYTES_MAX:
                self._contents.clear()
                self._kept_bytes = len(content)
            self._contents[side, path] = content
        return self._contents[side, path]

    def written(self, side: Side, path: bytes) -> TextLines | None:
        """The lines of a file, which the tree has; None where its content is lost. Raises StoreCorrupt."""
        if (side, path) not in self._written:
            content = self.content(side, path)
            if content is None:
                return None
            written = written_in(content)
            held = written.size + _LINE_BYTES * len(written.lines)
            self._written_bytes += held
            if self._written_bytes > _KEPT_WRITTEN_BYTES_MAX:
                self._written.clear()
                self._written_bytes = held
            self._written[side, path] = written
        return self._written[side, path]

    def lines_of(self, side: Side, path: bytes) -> Sequence[bytes]:
        """The lines of a file, which the tree has; none where its content is lost. Raises StoreCorrupt."""
        written = self.written(side, path)
        return () if written is None else written.lines

    def lines(self, side: Side, path: bytes, its_other: bytes) -> Sequence[int] | None:
        """Which line of a file of one tree is which of one of the other, as `lines.pair_lines` has it.

        None where either is lost. Found from the lesser digest to the greater, so that it is the same the other way
        round. Raises StoreCorrupt.
        """
        if self._last_lines[0] != (side, path, its_other):
            self._last_lines = (side, path, its_other), self._pair_lines(side, path, its_other)
        return self._last_lines[1]

    def _pair_lines(self, side: Side, path: bytes, its_other: bytes) -> Sequence[int] | None:
        other = other_side(side)
        ours, theirs = self.object(side, path), self.object(other, its_other)
        if ours == theirs:
            return _ALL_LINES
        is_turned = theirs < ours
        key = (theirs, ours) if is_turned else (ours, theirs)
        if key not in self._paired:
            written, its_written = self.written(side, path), self.written(other, its_other)
            if written is None or its_written is None:
                return None
            self._keep(key, pair_lines(its_written, written) if is_turned else pair_lines(written, its_written))
        paired = self._paired[key]
        if not is_turned:
            return paired
        written = self.written(side, path)
        return None if written is None else _inverted(paired, len(written.lines))

    def _keep(self, key: tuple[str, str], paired: Sequence[int]) -> None:
        self._paired_lines += len(paired)
        if self._paired_lines > _KEPT_LINES_MAX:
            self._paired.clear()
            self._paired_lines = len(paired)
        self._paired[key] = paired

    def batch(self, side: Side) -> BatchRecords:
        """The batch of a side."""
        return self.old if side == "old" else self.new

    def has_line(self, side: Side, path: bytes, its_other: bytes, line: int) -> bool:
        """Whether a line of a file of one tree, from 1, is in that of the other. Raises StoreCorrupt."""
        paired = self.lines(side, path, its_other)
        return paired is not None and 0 < line <= len(paired) and paired[line - 1] != NOWHERE

    def _entry(self, side: Side, path: bytes) -> Entry:
        entry = self.unlike[side == "new"].get(path) or self.batch(side).snapshot.entry(path)
        if entry is None:
            raise StoreCorrupt(f"a record refers to {display_path(path)}, which is not in the snapshot")
        return entry

    @cached_property
    def _moved_to(self) -> dict[bytes, bytes]:
        return {pair.old: pair.new for pair in self.moved}

    @cached_property
    def _moved_from(self) -> dict[bytes, bytes]:
        return {pair.new: pair.old for pair in self.moved}


def other_side(side: Side) -> Side:
    """The one that it is not."""
    return "new" if side == "old" else "old"


def _inverted(paired: Sequence[int], lines: int) -> Sequence[int]:
    """The other way round: of each of so many lines of the second text the one of the first that it is."""
    found = [NOWHERE] * (lines + 1)
    for line, its_other in enumerate(paired):
        found[its_other] = line  # What is nowhere goes behind the end.
    found.pop()
    return found
