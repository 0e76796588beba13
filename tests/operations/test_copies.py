"""Tests of the longest duplicate blocks: the blocks kept and the counts equal those of an unlimited list."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from codebatch.operations.queries.duplicate_blocks import DuplicateRecord
from codebatch.operations.queries.duplicates import LongestBlocks

_PATHS = st.sampled_from(("a", "b", "c", "test/a", "test/b"))
_PLACES = st.tuples(_PATHS, st.integers(1, 3))
_GROUPS = st.lists(st.tuples(st.integers(8, 12), st.lists(_PLACES, min_size=2, max_size=4, unique=True)), max_size=12)


def _most_lines(groups: list[tuple[int, list[tuple[str, int]]]], number: int | None) -> LongestBlocks:
    best = LongestBlocks(number, lambda path: path != b"c", lambda path: path.startswith(b"test/"))
    records = [
        DuplicateRecord(
            path=path,
            line=line,
            end_line=line + lines,
            lines=lines,
            copies=len(places),
            group=str(group),
            other_path=places[0][0],
            other_line=places[0][1],
        )
        for group, (lines, places) in enumerate(groups)
        for path, line in places[1:]
    ]
    records.sort(key=lambda record: (record.path, record.line))
    for at in range(0, len(records), 2):
        best.add(records[at : at + 2])
    return best


@given(_GROUPS, st.integers(1, 4))
def test_largest_blocks_match_the_first_of_all_blocks(
    groups: list[tuple[int, list[tuple[str, int]]]], number: int
) -> None:
    first, every = _most_lines(groups, number), _most_lines(groups, None)
    assert first.blocks() == every.blocks()[:number]
    assert (first.relevant_groups, first.excluded_count) == (every.relevant_groups, every.excluded_count)
    places_by_group = {
        str(at): places for at, (_, places) in enumerate(groups) if any(path != "c" for path, _ in places)
    }
    own = {group: sum(not path.startswith("test/") for path, _ in places) for group, places in places_by_group.items()}
    assert every.relevant_groups == {group for group in places_by_group if own[group] > 1}
    assert every.excluded_count == sum(own[group] < 2 for group in places_by_group)
    assert [block.lines for block in every.blocks()] == sorted((block.lines for block in every.blocks()), reverse=True)
