"""Where what was found in one batch would be in the other, and whether a note of ours silences it there."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

from codebatch.compare.matching.finding_pairs import ReportedFinding
from codebatch.compare.matching.lines import NOWHERE
from codebatch.compare.matching.trees import Side, TreeComparison, other_side
from codebatch.compare.rules import are_silenced, has_notes

# What a batch's plan tells of a file besides its content.
ContextsOf = Callable[[bytes], Mapping[str, bytes]]

# Of lines among which one that was edited is looked for.
_LINES_MAX = 200


class OtherLine(NamedTuple):
    """Where a line is in the other batch: from 1, or 0 where it is not; `is_same` where nobody touched it."""

    line: int
    is_same: bool


_NOWHERE = OtherLine(0, False)


def places_there(
    trees: TreeComparison, side: Side, path: bytes, its_other: bytes, lines: Iterable[int]
) -> list[OtherLine]:
    """Where lines of a file are, from 1, in the file that it is in the other batch. Raises StoreCorrupt.

    Where one is not the same, the one is taken that begins with it among those that stand in its place: so a note comes
    behind it.
    """
    paired = trees.lines(side, path, its_other)
    if paired is None:
        return [_NOWHERE for _ in lines]
    edited: _Edited | None = None
    found = []
    for line in lines:
        if not 0 < line <= len(paired):
            found.append(_NOWHERE)
        elif paired[line - 1] != NOWHERE:
            found.append(OtherLine(paired[line - 1] + 1, True))
        else:
            if edited is None:
                ours, theirs = trees.lines_of(side, path), trees.lines_of(other_side(side), its_other)
                edited = _Edited(paired, ours, theirs)
            found.append(OtherLine(edited.line_there(line), False))
    return found


def silenced(
    trees: TreeComparison,
    side: Side,
    path: bytes,
    its_other: bytes,
    left: Sequence[ReportedFinding],
    places: Sequence[OtherLine],
    contexts_of: ContextsOf,
) -> list[bool]:
    """Which findings of a file, of which the places there are given, a note of ours silences in the other batch.

    Raises StoreCorrupt.
    """
    other = other_side(side)
    content = None if trees.object(side, path) == trees.object(other, its_other) else trees.content(other, its_other)
    if content is None or not has_notes(content):
        return [False] * len(left)
    asked = [(place.line, told.about.code) for place, told in zip(places, left, strict=True)]
    return are_silenced(its_other, content, contexts_of(its_other), asked)


class _Edited:
    """Lines of a file that the other one has not as they are. What is asked of one line soon is of the next."""

    def __init__(self, paired: Sequence[int], ours: Sequence[bytes], theirs: Sequence[bytes]) -> None:
        self._paired = paired
        self._ours = ours
        self._theirs = theirs
        self._known: dict[int, int] = {}
        self._written_from = lru_cache(1)(self._written)

    def line_there(self, line: int) -> int:
        """The line that a line was edited to, both from 1; 0 where there is none."""
        if line not in self._known:
            self._known[line] = self._look(line)
        return self._known[line]

    def _look(self, line: int) -> int:
        # They were there when they were paired, and may be lost since.
        text = b"".join(self._ours[line - 1].split()) if line <= len(self._ours) else b""
        if not text:
            return 0
        paired = self._paired
        before = next((at for at in reversed(paired[max(line - _LINES_MAX + 1, 0) : line - 1]) if at != NOWHERE), -1)
        behind = next((at for at in paired[line : line + _LINES_MAX] if at != NOWHERE), before + _LINES_MAX)
        candidates = self._written_from(before + 1, min(behind, before + _LINES_MAX))
        return next((at for at, written in candidates if written.startswith(text)), 0)

    def _written(self, start: int, end: int) -> list[tuple[int, bytes]]:
        """Lines [start, end) of the other file, from 0, without white space, each behind its number from 1."""
        return [(at, b"".join(line.split())) for at, line in enumerate(self._theirs[start:end], start + 1)]
