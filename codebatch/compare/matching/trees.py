"""The matching files of two batches, and the contents and lines of these files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Literal

from codebatch.compare.matching.files import FilePair, line_frequencies, pair_files
from codebatch.compare.matching.lines import COMPARED_BYTES_MAX, NO_LINE, SplitText, pair_lines, split_text
from codebatch.errors import ObjectMissing, StoreCorrupt
from codebatch.model.entry import Entry, display_path
from codebatch.query.sources.records import BatchRecords

Side = Literal["old", "new"]

# A range of line numbers that includes the lines of any file.
_ALL_LINES = range(1 << 31)

# The maximum total size of cached contents, in bytes.
_CACHED_CONTENT_BYTES_MAX = 32 << 20
# The maximum total size of cached lines in bytes. Each line counts _LINE_BYTES more than its text.
_CACHED_SPLIT_BYTES_MAX = 64 << 20
_BYTES_PER_SPLIT_LINE = 48
# The maximum total number of lines in cached line matches.
_CACHED_LINES_MAX = 4_000_000


class TreeComparison:
    """The files of two batches. `lost` has the side and path of each file whose needed content is missing."""

    def __init__(self, old: BatchRecords, new: BatchRecords) -> None:
        self.old = old
        self.new = new
        self.lost: set[tuple[Side, bytes]] = set()
        # A content is needed twice: first to match lines, and again for findings without a match.
        self._contents: dict[tuple[Side, bytes], bytes] = {}
        self._cached_bytes = 0
        self._split_texts: dict[tuple[Side, bytes], SplitText] = {}
        self._split_bytes = 0
        # Line matches are needed twice: first to match records, and again to explain unmatched records.
        self._paired: dict[tuple[str, str], Sequence[int]] = {}
        self._paired_lines = 0
        # Several lines of a file are usually queried in sequence, so the last result is cached.
        self._last_lines: tuple[tuple[Side, bytes, bytes] | None, Sequence[int] | None] = (None, None)

    @cached_property
    def differing_files(self) -> tuple[Mapping[bytes, Entry], Mapping[bytes, Entry]]:
        """The files of the old and of the new tree without an equal file in the other tree, each as a mapping by path.

        Another path or another content makes a file differ. Raises StoreCorrupt.
        """
        old, new = self.old.snapshot.differing_entries(self.new.snapshot)
        old_files = {path: entry for path, entry in old.items() if entry.kind == "file" and new.get(path) != entry}
        new_files = {path: entry for path, entry in new.items() if entry.kind == "file" and old.get(path) != entry}
        return old_files, new_files

    @cached_property
    def moved_files(self) -> list[FilePair]:
        """The pairs of matching files whose paths differ. Raises StoreCorrupt."""
        old, new = self.differing_files
        removed = {path: entry.object for path, entry in old.items() if path not in new}
        added = {path: entry.object for path, entry in new.items() if path not in old}
        side_and_path: dict[str, tuple[Side, bytes]] = {digest: ("old", path) for path, digest in removed.items()}
        side_and_path.update((digest, ("new", path)) for path, digest in added.items() if digest not in side_and_path)

        def lines_of(digest: str) -> Mapping[bytes, int]:
            content = self.content(*side_and_path[digest])
            return Counter() if content is None or len(content) > COMPARED_BYTES_MAX else line_frequencies(content)

        return pair_files(removed, added, lines_of)[0]

    @property
    def are_unrelated(self) -> bool:
        """Whether the trees have nothing in common: no file path and no file content.

        It is false if a tree has no files. Raises StoreCorrupt.
        """
        old_files, new_files = self.differing_files
        if not old_files or not new_files or old_files.keys() & new_files.keys():
            return False
        if len(old_files) < self.old.snapshot.files or len(new_files) < self.new.snapshot.files:
            return False
        return {entry.object for entry in old_files.values()}.isdisjoint(entry.object for entry in new_files.values())

    @property
    def may_have_moved(self) -> bool:
        """Whether file matches may have been missed, because the content of an added or removed file is lost.

        Raises StoreCorrupt.
        """
        old_files, new_files = self.differing_files
        candidates = {"old": new_files, "new": old_files}
        return any(path not in candidates[side] for side, path in self.lost)

    def new_path(self, old: bytes) -> bytes | None:
        """Return the path in the new tree of a file of the old tree. Return None if it was removed.

        Raises StoreCorrupt.
        """
        old_files, new_files = self.differing_files
        return old if old in new_files or old not in old_files else self._moved_to.get(old)

    def old_path(self, new: bytes) -> bytes | None:
        """Return the path in the old tree of a file of the new tree. Return None if it was added.

        Raises StoreCorrupt.
        """
        old_files, new_files = self.differing_files
        return new if new in old_files or new not in new_files else self._moved_from.get(new)

    def matching_path(self, side: Side, path: bytes) -> bytes | None:
        """Return the path in the other tree of a file of one tree, or None. Raises StoreCorrupt."""
        return self.new_path(path) if side == "old" else self.old_path(path)

    def object_digest(self, side: Side, path: bytes) -> str:
        """Return the digest of a file's content.

        Return an empty text if the file is the same in both trees. Raises StoreCorrupt.
        """
        entry = self.differing_files[side == "new"].get(path)
        return "" if entry is None else entry.object

    def content(self, side: Side, path: bytes) -> bytes | None:
        """Return the content of a file of a tree, or None if it is lost. Raises StoreCorrupt."""
        if (side, path) not in self._contents:
            try:
                content = self.batch_records(side).read_object(self._file_entry(side, path))
            except ObjectMissing:
                self.lost.add((side, path))
                return None
            self._cached_bytes += len(content)
            if self._cached_bytes > _CACHED_CONTENT_BYTES_MAX:
                self._contents.clear()
                self._cached_bytes = len(content)
            self._contents[side, path] = content
        return self._contents[side, path]

    def split_lines(self, side: Side, path: bytes) -> SplitText | None:
        """Return the lines of a file of a tree, or None if its content is lost. Raises StoreCorrupt."""
        if (side, path) not in self._split_texts:
            content = self.content(side, path)
            if content is None:
                return None
            written = split_text(content)
            cached_bytes = written.size + _BYTES_PER_SPLIT_LINE * len(written.lines)
            self._split_bytes += cached_bytes
            if self._split_bytes > _CACHED_SPLIT_BYTES_MAX:
                self._split_texts.clear()
                self._split_bytes = cached_bytes
            self._split_texts[side, path] = written
        return self._split_texts[side, path]

    def file_lines(self, side: Side, path: bytes) -> Sequence[bytes]:
        """Return the lines of a file of a tree, or none if its content is lost. Raises StoreCorrupt."""
        written = self.split_lines(side, path)
        return () if written is None else written.lines

    def matching_lines(self, side: Side, path: bytes, matching_path: bytes) -> Sequence[int] | None:
        """Return the matching lines of two files, like `lines.pair_lines`. Return None if a content is lost.

        The file with the lesser digest is always matched against the other file, so both sides get the same matches.
        Raises StoreCorrupt.
        """
        if self._last_lines[0] != (side, path, matching_path):
            self._last_lines = (side, path, matching_path), self._pair_lines(side, path, matching_path)
        return self._last_lines[1]

    def _pair_lines(self, side: Side, path: bytes, matching_path: bytes) -> Sequence[int] | None:
        other = opposite_side(side)
        object_id, matching_object_id = self.object_digest(side, path), self.object_digest(other, matching_path)
        if object_id == matching_object_id:
            return _ALL_LINES
        is_turned = matching_object_id < object_id
        key = (matching_object_id, object_id) if is_turned else (object_id, matching_object_id)
        if key not in self._paired:
            written, its_written = self.split_lines(side, path), self.split_lines(other, matching_path)
            if written is None or its_written is None:
                return None
            self._cache_pairing(
                key, pair_lines(its_written, written) if is_turned else pair_lines(written, its_written)
            )
        paired = self._paired[key]
        if not is_turned:
            return paired
        written = self.split_lines(side, path)
        return None if written is None else _invert_pairing(paired, len(written.lines))

    def _cache_pairing(self, key: tuple[str, str], paired: Sequence[int]) -> None:
        self._paired_lines += len(paired)
        if self._paired_lines > _CACHED_LINES_MAX:
            self._paired.clear()
            self._paired_lines = len(paired)
        self._paired[key] = paired

    def batch_records(self, side: Side) -> BatchRecords:
        """Return the batch of one side of the comparison."""
        return self.old if side == "old" else self.new

    def has_line(self, side: Side, path: bytes, matching_path: bytes, line: int) -> bool:
        """Return whether a line of a file has a match in the other file. Lines are numbered from 1.

        Raises StoreCorrupt.
        """
        paired = self.matching_lines(side, path, matching_path)
        return paired is not None and 0 < line <= len(paired) and paired[line - 1] != NO_LINE

    def _file_entry(self, side: Side, path: bytes) -> Entry:
        entry = self.differing_files[side == "new"].get(path) or self.batch_records(side).snapshot.entry(path)
        if entry is None:
            raise StoreCorrupt(
                f"a record refers to file {display_path(path)}, which is not in the snapshot of the batch"
            )
        return entry

    @cached_property
    def _moved_to(self) -> dict[bytes, bytes]:
        return {pair.old: pair.new for pair in self.moved_files}

    @cached_property
    def _moved_from(self) -> dict[bytes, bytes]:
        return {pair.new: pair.old for pair in self.moved_files}


def opposite_side(side: Side) -> Side:
    """Return `new` for `old`, and `old` for `new`."""
    return "new" if side == "old" else "old"


def _invert_pairing(paired: Sequence[int], lines: int) -> Sequence[int]:
    """Invert a match of lines.

    `paired` maps lines of the first text to lines of the second. Return for each of the `lines` lines of the second
    text the matching line of the first.
    """
    inverted = [NO_LINE] * (lines + 1)
    for line, other_line in enumerate(paired):
        # For an unmatched line, `other_line` is NOWHERE (-1), the index of the last element. This element is removed
        # later.
        inverted[other_line] = line
    inverted.pop()
    return inverted
