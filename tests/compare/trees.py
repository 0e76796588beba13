"""Two trees in memory: their texts, and which files match."""

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

    def matching_lines(self, side: Literal["old", "new"], path: bytes, matching_path: bytes) -> Sequence[int] | None:
        own_texts, other_texts = self._texts if side == "old" else reversed(self._texts)
        text, other_text = own_texts[path], other_texts[matching_path]
        if text == other_text:  # The range may not be traversed completely, as for real trees.
            return range(1 << 31)
        if text <= other_text:
            return pair_lines(split_text(text), split_text(other_text))
        lines = [NO_LINE] * (text.count(b"\n") + 1)
        for line, own_line in enumerate(pair_lines(split_text(other_text), split_text(text))):
            if own_line != NO_LINE:
                lines[own_line] = line
        return lines

    def text(self, side: Literal["old", "new"], path: bytes, first: int, end: int) -> bytes:
        lines = self._texts[side == "new"][path].split(b"\n")[first - 1 : end]
        return b"".join(b"".join(lines).split())


def fields(record: msgspec.Struct | None, *names: str) -> tuple[object, ...] | None:
    """Return some fields of one side of a row, or None if there is no record."""
    return None if record is None else tuple(getattr(record, name) for name in names)
