"""Two trees by hand: which file is which, and their texts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

import msgspec

from codebatch.compare.matching.files import line_frequencies, pair_files
from codebatch.compare.matching.lines import NO_LINE, pair_lines, split_text


class TextTrees:
    """A `FileMap` of two trees given as path -> text."""

    def __init__(self, old: Mapping[str, str], new: Mapping[str, str]) -> None:
        self._texts = [{path.encode(): text.encode() for path, text in tree.items()} for tree in (old, new)]
        digests = [{path: text.hex() for path, text in tree.items()} for tree in self._texts]
        pairs, _ = pair_files(digests[0], digests[1], lambda digest: line_frequencies(bytes.fromhex(digest)))
        self.pairs = pairs

    def new_path(self, old: bytes) -> bytes | None:
        return next((pair.new for pair in self.pairs if pair.old == old), None)

    def old_path(self, new: bytes) -> bytes | None:
        return next((pair.old for pair in self.pairs if pair.new == new), None)

    def matching_lines(self, side: Literal["old", "new"], path: bytes, its_other: bytes) -> Sequence[int] | None:
        ours, theirs = self._texts if side == "old" else reversed(self._texts)
        one, other = ours[path], theirs[its_other]
        if one == other:  # As of real trees: nothing may go through all of it.
            return range(1 << 31)
        if one <= other:
            return pair_lines(split_text(one), split_text(other))
        found = [NO_LINE] * (one.count(b"\n") + 1)
        for line, its_line in enumerate(pair_lines(split_text(other), split_text(one))):
            if its_line != NO_LINE:
                found[its_line] = line
        return found

    def text(self, side: Literal["old", "new"], path: bytes, first: int, end: int) -> bytes:
        lines = self._texts[side == "new"][path].split(b"\n")[first - 1 : end]
        return b"".join(b"".join(lines).split())


def fields(record: msgspec.Struct | None, *names: str) -> tuple[object, ...] | None:
    """What a side of a row has in some fields."""
    return None if record is None else tuple(getattr(record, name) for name in names)
