"""Tests of the list of duplicate blocks: a block within a longer block is listed with the longer one."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from codebatch.operations.queries.duplicate_blocks import DuplicateBlock, make_place
from codebatch.operations.queries.duplicate_places import join_blocks


def _block(group: str, lines: int, *places: tuple[str, int]) -> DuplicateBlock:
    locations = tuple(make_place(path.encode(), line, line + lines) for path, line in sorted(places))
    return DuplicateBlock(number=0, group=group, lines=lines, copies=len(locations), locations=locations)


def _listed_blocks(blocks: list[DuplicateBlock]) -> list[tuple[int, int, list[tuple[str, int, int]]]]:
    return [
        (
            block.number,
            block.copies,
            [
                (place.path_bytes.decode(), place.line, place.lines if isinstance(place.lines, int) else block.lines)
                for place in block.locations
            ],
        )
        for block in blocks
    ]


def test_block_within_a_longer_block_is_listed_as_its_locations() -> None:
    long = _block("long", 30, ("a", 1), ("b", 1))
    part = _block("part", 20, ("a", 5), ("b", 5), ("c", 1), ("d", 7))
    part_of_part = _block("least", 12, ("a", 9), ("c", 5), ("e", 1))
    assert _listed_blocks(join_blocks([long, part, part_of_part])) == [
        (1, 5, [("a", 1, 30), ("b", 1, 30), ("c", 1, 20), ("d", 7, 20), ("e", 1, 12)])
    ]


def test_blocks_that_overlap_little_are_listed_separately() -> None:
    """A block that extends beyond another by at least the minimal length of a block is listed separately."""
    long = _block("long", 30, ("a", 1), ("b", 1))
    reaches_out = _block("out", 20, ("a", 21), ("c", 1))
    hardly_reaches_out = _block("in", 19, ("a", 21), ("d", 1))
    blocks = join_blocks([long, reaches_out, _block("other", 19, ("e", 1), ("f", 1))])
    assert [(block.number, block.group) for block in blocks] == [(1, "long"), (2, "out"), (3, "other")]
    assert [block.group for block in join_blocks([long, hardly_reaches_out])] == ["long"]
    tiny = _block("tiny", 12, ("a", 28), ("g", 1))
    assert [block.group for block in join_blocks([long, tiny])] == ["long", "tiny"]


_PLACES = st.tuples(st.sampled_from("abc"), st.integers(1, 60))
_BLOCKS = st.lists(st.tuples(st.integers(10, 30), st.lists(_PLACES, min_size=2, max_size=4, unique=True)), max_size=8)


@given(_BLOCKS)
def test_every_location_of_a_block_is_listed_exactly_once(
    drawn: list[tuple[int, list[tuple[str, int]]]],
) -> None:
    blocks = [_block(str(number), lines, *places) for number, (lines, places) in enumerate(drawn)]
    blocks.sort(key=lambda block: -block.lines)
    joined = join_blocks(blocks)
    listed = [(place.path_bytes, place.line, place.end) for block in joined for place in block.locations]
    for block in blocks:
        for place in block.locations:
            assert any(
                path == place.path_bytes
                and (place.end - place.line) - (min(end, place.end) - max(line, place.line)) < 10
                for path, line, end in listed
            )
    for block in joined:
        assert block.copies == len(block.locations)
        assert len(block.complete_locations) >= 2
    assert [block.number for block in joined] == [*range(1, len(joined) + 1)]
