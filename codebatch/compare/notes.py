"""Whether a note in the source silences in one batch what was found in the other."""

from __future__ import annotations

from collections.abc import Sequence

from codebatch.compare.lines import NOWHERE
from codebatch.compare.rules import are_silenced, has_notes
from codebatch.compare.told import Told
from codebatch.compare.trees import Side, Trees, other_side

# Of lines among which one that was edited is looked for.
_LINES_MAX = 200


def silenced(trees: Trees, side: Side, path: bytes, its_other: bytes, left: Sequence[Told]) -> list[bool]:
    """Which findings of a file a note silences in the file that it is in the other batch. Raises StoreCorrupt.

    Where the line is not the same, the one is taken that begins with it among those that stand in its place.
    """
    other = other_side(side)
    if trees.object(side, path) == trees.object(other, its_other):
        return [False] * len(left)
    content = trees.content(other, its_other)
    if content is None or not has_notes(content):
        return [False] * len(left)
    paired = trees.lines(side, path, its_other)
    mine = trees.content(side, path)
    if paired is None or mine is None:
        return [False] * len(left)
    ours, theirs = mine.split(b"\n"), content.split(b"\n")
    places = [_line_there(paired, ours, theirs, told.about.line) for told in left]
    asked = [(place, *told.code) for place, told in zip(places, left, strict=True)]
    records = trees.batch(other)
    (item,) = records.find_items([its_other]).values()
    return are_silenced(its_other, content, records.plan.context_of(item), asked)


def _line_there(paired: Sequence[int], ours: Sequence[bytes], theirs: Sequence[bytes], line: int) -> int:
    """The line that a line is in the other file, from 1; 0 where there is none."""
    if not 0 < line <= len(paired):
        return 0
    if paired[line - 1] != NOWHERE:
        return paired[line - 1] + 1
    before = next((paired[at] for at in range(line - 2, max(line - _LINES_MAX, -1), -1) if paired[at] != NOWHERE), -1)
    behind = next((at for at in paired[line : line + _LINES_MAX] if at != NOWHERE), before + _LINES_MAX)
    text = b"".join(ours[line - 1].split())
    places = range(before + 1, min(behind, before + _LINES_MAX, len(theirs)))
    return next((at + 1 for at in places if text and b"".join(theirs[at].split()).startswith(text)), 0)
