"""Comparison of duplicate groups.

A group consists of equal code blocks; its number of copies before and after is compared. A group is identified by its
code lines. A group with other lines can continue an older group: at least two of its blocks must be at the locations of
two blocks of the older group. Then the copies were edited in the same way, or the block was split, joined, lengthened
or shortened. Nothing was copied.

A location of a group has no record if a longer block covers it. This depends on other files. So a group whose blocks
all have unchanged lines is not new either: the blocks were copies of each other before. If only one block has a record,
this is certain only if it lies inside a block with at least as many copies.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Literal

from codebatch.compare.differences import Change
from codebatch.compare.matching.lines import COMPARED_LINES_MAX, NO_LINE
from codebatch.compare.places import FileMap
from codebatch.compare.states import ChangeState
from codebatch.model.record import Duplicate

# The minimum number of blocks at locations of the older group's blocks. With only one, other code may have been copied.
_COPIES_IN_PLACE_MIN = 2

_BlocksByGroup = Mapping[str, Sequence[Duplicate]]
Side = Literal["old", "new"]


def compare_duplicates(
    old: Mapping[bytes, Sequence[Duplicate]], new: Mapping[bytes, Sequence[Duplicate]], files: FileMap
) -> Iterator[Change]:
    """Yield a change for each group, sorted by first location. Unchanged groups are included."""
    old_groups, new_groups = _blocks_by_group(old), _blocks_by_group(new)
    pairs = {(group, group) for group in old_groups if group in new_groups}
    if old_groups.keys() != new_groups.keys():
        common = _count_common_blocks(old, new, files)
        pairs |= {
            (group, continued)
            for group in old_groups.keys() - new_groups.keys()
            for continued in _best_matches(group, common, 0)
        }
        pairs |= {
            (continued, group)
            for group in new_groups.keys() - old_groups.keys()
            for continued in _best_matches(group, common, 1)
        }
    rows = [_make_change(old_groups[one], new_groups[other]) for one, other in pairs]
    matched_old, matched_new = {one for one, _ in pairs}, {other for _, other in pairs}
    for group in sorted(new_groups.keys() - matched_new):
        continued = _find_unchanged_block(new_groups[group], "new", old, files)
        if continued is not None:
            matched_new.add(group)
            matched_old.add(continued.group)
            rows.append(Change("changed", continued, new_groups[group][0]))
    for group in sorted(old_groups.keys() - matched_old):
        continued = _find_unchanged_block(old_groups[group], "old", new, files)
        if continued is not None and continued.group in matched_new:
            matched_old.add(group)
            rows.append(Change("changed", old_groups[group][0], continued))
    rows += (_make_removed(old_groups[group], files) for group in old_groups if group not in matched_old)
    rows += (Change("new", None, new_groups[group][0]) for group in new_groups if group not in matched_new)
    return iter(sorted(rows, key=_sort_key))


def _blocks_by_group(blocks_by_path: Mapping[bytes, Sequence[Duplicate]]) -> _BlocksByGroup:
    groups: dict[str, list[Duplicate]] = defaultdict(list)
    for path in sorted(blocks_by_path):
        for block in blocks_by_path[path]:
            groups[block.group].append(block)
    return groups


def _count_common_blocks(
    old: Mapping[bytes, Sequence[Duplicate]], new: Mapping[bytes, Sequence[Duplicate]], files: FileMap
) -> Mapping[tuple[str, str], int]:
    """Return for each pair of an old and a new group how many blocks they have in common.

    An old block is in common if a new block is at its location.
    """
    common: dict[tuple[str, str], int] = defaultdict(int)
    for path, old_blocks in old.items():
        new_path = files.new_path(path)
        new_blocks = () if new_path is None else new.get(new_path, ())
        paired = files.matching_lines("old", path, new_path) if new_blocks and new_path is not None else None
        if paired is None:
            continue
        blocks_at: dict[int, list[Duplicate]] = defaultdict(list)
        for other in new_blocks:
            for line in _block_lines(other):
                blocks_at[line].append(other)
        for one in old_blocks:
            new_lines = (paired[line - 1] + 1 for line in _block_lines(one) if line <= len(paired))
            met = Counter(other for line in new_lines for other in blocks_at.get(line, ()))
            for other, lines in met.items():
                common[one.group, other.group] += 2 * lines >= min(len(_block_lines(one)), len(_block_lines(other)))
    return common


def _block_lines(block: Duplicate) -> range:
    return range(block.line, min(block.end_line, block.line + COMPARED_LINES_MAX))


def _best_matches(group: str, common: Mapping[tuple[str, str], int], side: int) -> list[str]:
    candidates = [
        (-times, pair) for pair, times in common.items() if pair[side] == group and times >= _COPIES_IN_PLACE_MIN
    ]
    return [min(candidates)[1][1 - side]] if candidates else []


def _find_unchanged_block(
    blocks: Sequence[Duplicate], side: Side, candidates: Mapping[bytes, Sequence[Duplicate]], files: FileMap
) -> Duplicate | None:
    """Return a block of the other tree at the location of a group whose lines are all unchanged.

    `candidates` are the blocks of the other tree by path. Return None if a line was changed, or if the other tree has
    no block there.
    """
    places = [_matching_block(block, side, files) for block in blocks]
    matches = [None if place is None else _most_overlapping(*place, candidates) for place in places]
    if None in matches or not matches:
        return None
    match, place = matches[0], places[0]
    assert match is not None, "all blocks met one"
    assert place is not None, "it met one"
    _, start, end = place
    is_within = match.line <= start and end <= match.end_line and match.copies >= blocks[0].copies
    return match if len(blocks) >= _COPIES_IN_PLACE_MIN or is_within else None


def _matching_block(block: Duplicate, side: Side, files: FileMap) -> tuple[bytes, int, int] | None:
    """Return the location of a block in the other tree: path, first line, and the line after the last line.

    Return None if a line of the block has no match in the other tree.
    """
    path = block.path_bytes
    matching_path = files.new_path(path) if side == "old" else files.old_path(path)
    if matching_path is None:
        return None
    length = block.end_line - block.line
    paired = files.matching_lines(side, path, matching_path) or ()
    lines = [*paired[block.line - 1 : block.end_line - 1]]
    if len(lines) != length or NO_LINE in lines or lines[-1] - lines[0] != length - 1:
        return None
    return matching_path, lines[0] + 1, lines[-1] + 2


def _most_overlapping(
    path: bytes, start: int, end: int, candidates: Mapping[bytes, Sequence[Duplicate]]
) -> Duplicate | None:
    overlaps = [
        (min(end, block.end_line) - max(start, block.line), -block.line, block) for block in candidates.get(path, ())
    ]
    lines, _, best = max(overlaps, key=lambda block: block[:2], default=(0, 0, None))
    return best if lines > 0 else None


def _make_change(old: Sequence[Duplicate], new: Sequence[Duplicate]) -> Change:
    before, after = (max(block.copies for block in group) for group in (old, new))
    state: ChangeState = "worsened" if after > before else "improved" if after < before else "unchanged"
    if state == "unchanged" and old[0].group != new[0].group:
        state = "changed"
    return Change(state, old[0], new[0])


def _make_removed(old: Sequence[Duplicate], files: FileMap) -> Change:
    remaining = [block for block in old if files.new_path(block.path_bytes) is not None]
    return Change("fixed" if len(remaining) >= _COPIES_IN_PLACE_MIN else "removed", old[0], None)


def _sort_key(row: Change) -> tuple[bytes, int, str]:
    block = row.new or row.old
    assert isinstance(block, Duplicate), "it is a row of a group"
    return block.path_bytes, block.line, block.group
