"""What became of copied code: of each group of blocks that are equal, with the number of its copies before and after.

A group is known by its code lines. One whose lines differ is what became of another one where two of its blocks stand
in the place of two of that one's: then the copies were edited alike, or the block was split, joined, lengthened or cut,
and nothing was copied that was not before.

Not every place of a group has a record: longer blocks may cover it, and which do depends on other files. So a group is
no new one either if the lines of all its blocks are unchanged: they were copies of each other before. Of one block
alone that is known if it lies in a block of at least as many copies.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Literal

from codebatch.compare.differences import Change
from codebatch.compare.matching.lines import LINES_MAX, NOWHERE
from codebatch.compare.places import FileMap
from codebatch.compare.states import State
from codebatch.model.record import Duplicate

# That many blocks of a group stand in the place of another one's: one alone says that something else is copied now.
_IN_PLACE = 2

_Groups = Mapping[str, Sequence[Duplicate]]
Side = Literal["old", "new"]


def compare_copies(
    old: Mapping[bytes, Sequence[Duplicate]], new: Mapping[bytes, Sequence[Duplicate]], files: FileMap
) -> Iterator[Change]:
    """What became of each group, by its first place; those that are equal too."""
    ours, theirs = _groups(old), _groups(new)
    pairs = {(group, group) for group in ours if group in theirs}
    if ours.keys() != theirs.keys():
        common = _in_common(old, new, files)
        pairs |= {(group, its) for group in ours.keys() - theirs.keys() for its in _best(group, common, 0)}
        pairs |= {(its, group) for group in theirs.keys() - ours.keys() for its in _best(group, common, 1)}
    rows = [_row(ours[one], theirs[other]) for one, other in pairs]
    kept, met = {one for one, _ in pairs}, {other for _, other in pairs}
    for group in sorted(theirs.keys() - met):
        its = _unchanged(theirs[group], "new", old, files)
        if its is not None:
            met.add(group)
            kept.add(its.group)
            rows.append(Change("changed", its, theirs[group][0]))
    for group in sorted(ours.keys() - kept):
        its = _unchanged(ours[group], "old", new, files)
        if its is not None and its.group in met:
            kept.add(group)
            rows.append(Change("changed", ours[group][0], its))
    rows += (_gone(ours[group], files) for group in ours if group not in kept)
    rows += (Change("new", None, theirs[group][0]) for group in theirs if group not in met)
    return iter(sorted(rows, key=_place))


def _groups(found: Mapping[bytes, Sequence[Duplicate]]) -> _Groups:
    groups: dict[str, list[Duplicate]] = defaultdict(list)
    for path in sorted(found):
        for each in found[path]:
            groups[each.group].append(each)
    return groups


def _in_common(
    old: Mapping[bytes, Sequence[Duplicate]], new: Mapping[bytes, Sequence[Duplicate]], files: FileMap
) -> Mapping[tuple[str, str], int]:
    """How many blocks of each old group stand in the place of one of each new group."""
    common: dict[tuple[str, str], int] = defaultdict(int)
    for path, ours in old.items():
        its_other = files.new_path(path)
        theirs = () if its_other is None else new.get(its_other, ())
        paired = files.lines("old", path, its_other) if theirs and its_other is not None else None
        if paired is None:
            continue
        blocks_at: dict[int, list[Duplicate]] = defaultdict(list)
        for other in theirs:
            for line in _lines(other):
                blocks_at[line].append(other)
        for one in ours:
            there = (paired[line - 1] + 1 for line in _lines(one) if line <= len(paired))
            met = Counter(other for line in there for other in blocks_at.get(line, ()))
            for other, lines in met.items():
                common[one.group, other.group] += 2 * lines >= min(len(_lines(one)), len(_lines(other)))
    return common


def _lines(block: Duplicate) -> range:
    return range(block.line, min(block.end_line, block.line + LINES_MAX))


def _best(group: str, common: Mapping[tuple[str, str], int], side: int) -> list[str]:
    found = [(-times, pair) for pair, times in common.items() if pair[side] == group and times >= _IN_PLACE]
    return [min(found)[1][1 - side]] if found else []


def _unchanged(
    blocks: Sequence[Duplicate], side: Side, others: Mapping[bytes, Sequence[Duplicate]], files: FileMap
) -> Duplicate | None:
    """Return the block of the other tree that is there for a group whose lines are all unchanged, if there is one."""
    there = [_in_other_tree(each, side, files) for each in blocks]
    met = [None if place is None else _most_overlapping(*place, others) for place in there]
    if None in met or not met:
        return None
    its, place = met[0], there[0]
    assert its is not None, "all blocks met one"
    assert place is not None, "it met one"
    _, start, end = place
    is_within = its.line <= start and end <= its.end_line and its.copies >= blocks[0].copies
    return its if len(blocks) >= _IN_PLACE or is_within else None


def _in_other_tree(block: Duplicate, side: Side, files: FileMap) -> tuple[bytes, int, int] | None:
    """Return the path, the first line and the one behind the last of a block there, if no line of it differs."""
    path = block.path_bytes
    its_other = files.new_path(path) if side == "old" else files.old_path(path)
    if its_other is None:
        return None
    length = block.end_line - block.line
    paired = files.lines(side, path, its_other) or ()
    lines = [*paired[block.line - 1 : block.end_line - 1]]
    if len(lines) != length or NOWHERE in lines or lines[-1] - lines[0] != length - 1:
        return None
    return its_other, lines[0] + 1, lines[-1] + 2


def _most_overlapping(
    path: bytes, start: int, end: int, others: Mapping[bytes, Sequence[Duplicate]]
) -> Duplicate | None:
    found = [(min(end, each.end_line) - max(start, each.line), -each.line, each) for each in others.get(path, ())]
    lines, _, its = max(found, key=lambda each: each[:2], default=(0, 0, None))
    return its if lines > 0 else None


def _row(old: Sequence[Duplicate], new: Sequence[Duplicate]) -> Change:
    before, after = (max(each.copies for each in group) for group in (old, new))
    state: State = "worsened" if after > before else "improved" if after < before else "unchanged"
    if state == "unchanged" and old[0].group != new[0].group:
        state = "changed"
    return Change(state, old[0], new[0])


def _gone(old: Sequence[Duplicate], files: FileMap) -> Change:
    left = [each for each in old if files.new_path(each.path_bytes) is not None]
    return Change("fixed" if len(left) >= _IN_PLACE else "removed", old[0], None)


def _place(row: Change) -> tuple[bytes, int, str]:
    each = row.new or row.old
    assert isinstance(each, Duplicate), "it is a row of a group"
    return each.path_bytes, each.line, each.group
