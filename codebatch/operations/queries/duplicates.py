"""Copied code: the blocks that stand at several places, each once, and their source."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Sequence

import msgspec
from msgspec import UNSET, UnsetType

from codebatch.errors import InvalidInput, ObjectMissing
from codebatch.model.entry import display_path, path_from_fields
from codebatch.operations.queries.batch_query import Answer, BatchQuery
from codebatch.operations.queries.duplicate_blocks import (
    DuplicateBlock,
    DuplicateLocation,
    DuplicateRecord,
    iter_duplicates,
    make_place,
)
from codebatch.operations.queries.duplicate_places import complete_places, join_blocks
from codebatch.operations.queries.source_line import SourceLine, read_lines
from codebatch.query.completeness import completeness
from codebatch.query.filters.arguments import refuse_below_one
from codebatch.query.filters.paths import PathFilter, Paths

PLACES_WITH_SOURCE_MAX = 2
SOURCE_LINES_SHOWN_MAX = 200
_SPARE = 10
"""So many more blocks are looked at, for some may be parts of others."""


class DuplicateBlocks(msgspec.Struct, frozen=True, kw_only=True):
    """Duplicate blocks, the longest first.

    `count` is the number of all blocks. If more blocks exist than are listed, some of the rest may be parts of longer
    blocks. `excluded` counts blocks that occur only in tests or in vendored, generated or minified files.
    """

    blocks: tuple[DuplicateBlock, ...]
    count: int
    excluded: int


def find_copies(
    question: BatchQuery,
    *,
    least: int = 1,
    first: int = 1,
    limit: int | None = None,
    path: Paths = "",
    everything: bool = False,
) -> Answer[DuplicateBlocks]:
    """Return the copied blocks of `least` code lines or more of which a place is asked for, from the `first` on.

    A block of which a place lies within a longer block is joined with that, and not counted in `limit`. Without
    `everything` those are left out that do not have two places outside of tests and foreign code. Raises InvalidInput
    or StoreCorrupt.
    """
    refuse_below_one(limit=limit, least=least, first=first)
    wanted = None if limit is None else first - 1 + limit
    number = None if wanted is None else wanted + _SPARE
    while True:
        best = _longest_blocks(question, least=least, number=number, path=path, everything=everything)
        blocks = best.blocks()
        joined = join_blocks(complete_places(question, blocks))
        if wanted is None or number is None or len(joined) >= wanted or len(blocks) < number:
            break
        number *= 4
    records = question.records
    needed = {"parse", "analyze", "duplicates"} & {*records.task_names}
    whole = completeness(records, needed, lacks_files=bool(question.batch.about.paths))
    count = len(best.found) - (len(blocks) - len(joined))
    copies = DuplicateBlocks(blocks=tuple(joined[first - 1 : wanted]), count=count, excluded=best.left_out)
    return Answer(question=question, found=copies, whole=whole)


def _longest_blocks(
    question: BatchQuery, *, least: int = 1, number: int | None, path: Paths = "", everything: bool = False
) -> MostLines:
    """Return the longest blocks by their records alone. Raises InvalidInput or StoreCorrupt."""
    records = question.records
    if "duplicates" not in records.task_names:
        raise InvalidInput(
            "the batch did not run the task duplicates",
            hint="to include this task, run: codebatch run --pipeline full PATH",
        )
    apart = None if everything else question.apart
    best = MostLines(
        number,
        PathFilter(path).matches if path else lambda _: True,
        lambda each: apart is not None and apart.of(each) is not None,
    )
    for found in iter_duplicates(records):
        best.add(found if least == 1 else [each for each in found if each.lines >= least])
    return best


def read_copies(question: BatchQuery, block: DuplicateBlock) -> list[tuple[DuplicateLocation, tuple[SourceLine, ...]]]:
    """The first places of a block, each with its source, as it was frozen, or the beginning of it.

    Raises InvalidInput for a block of another batch, and StoreCorrupt. Of a file whose content is gone there is none,
    and a note.
    """
    found: list[tuple[DuplicateLocation, tuple[SourceLine, ...]]] = []
    for place in block.whole_places[:PLACES_WITH_SOURCE_MAX]:
        name = place.path_bytes
        item = question.records.find_items([name]).get(name)
        if item is None:
            raise InvalidInput(f"the batch has no file {display_path(name)!r}")
        last = min(place.end - 1, place.line + SOURCE_LINES_SHOWN_MAX - 1)
        try:
            found.append((place, read_lines(question, name, item, place.line, last)[1]))
        except ObjectMissing as error:
            question.note(f"source of {display_path(name)} not shown: {error.message}")
    return found


_ASKED, _PLAIN = 1, 2
_FOUND = _ASKED | _PLAIN
"""A path is asked for, and is the project's own code; any path of a group is asked for, and two places are own code."""


class MostLines:
    """Of groups of copies those of most lines. Of the others, which may be a hundred thousand, names alone are kept."""

    def __init__(
        self, number: int | None, is_asked: Callable[[bytes], bool], stands_apart: Callable[[bytes], bool]
    ) -> None:
        """Keep so many groups, or all.

        Groups of which no place `is_asked` for are passed over. Those are left out of which all places but one
        `stands_apart`: nobody merges a copy with a test or with code of others.
        """
        self._number = number
        self._is_asked = is_asked
        self._stands_apart = stands_apart
        self._of_paths: dict[object, int] = {}
        self._of_groups: dict[str, int] = {}
        self._plain_places: dict[str, tuple[object, ...]] = {}
        self._most_lines: list[int] = []
        self._told: dict[str, list[DuplicateRecord]] = {}

    @property
    def found(self) -> set[str]:
        """The groups that are asked for and have two places in the project's own code."""
        return {group for group, seen in self._of_groups.items() if seen == _FOUND}

    @property
    def left_out(self) -> int:
        """How many groups are asked for and do not have two places in the project's own code."""
        return sum(seen == _ASKED for seen in self._of_groups.values())

    def add(self, found: Iterable[DuplicateRecord]) -> None:
        """Look at some more. A hundred thousand times over, so that a call for each would take half of the time."""
        of_groups, of_paths, told = self._of_groups, self._of_paths, self._told
        most_lines, number, look_at = self._most_lines, self._number, self._look_at
        plain_places = self._plain_places
        for each in found:
            group, lines = each.group, each.lines
            seen = of_groups.get(group, 0)
            if seen != _FOUND:
                here = of_paths.get(each.path) or look_at(each.path, each.path_b64)
                there = of_paths.get(each.other_path) or look_at(each.other_path, each.other_path_b64)
                seen |= (here | there) & _ASKED | here & there & _PLAIN
                if (here ^ there) & _PLAIN:
                    place = (
                        (each.path, each.path_b64, each.line)
                        if here & _PLAIN
                        else (each.other_path, each.other_path_b64, each.other_line)
                    )
                    seen |= _PLAIN if plain_places.setdefault(group, place) != place else 0
                of_groups[group] = seen
                if seen == _FOUND and number is not None:
                    if len(most_lines) < number:
                        heapq.heappush(most_lines, lines)
                    elif lines > most_lines[0]:
                        heapq.heapreplace(most_lines, lines)
            if len(most_lines) != number or lines >= most_lines[0]:
                told.setdefault(group, []).append(each)

    def blocks(self) -> list[DuplicateBlock]:
        """The best first."""
        blocks = (_block(group, told) for group, told in self._told.items() if self._of_groups[group] == _FOUND)
        return sorted(blocks, key=lambda block: (-block.lines, -block.copies, *_first_place(block)))[: self._number]

    def _look_at(self, path: str | UnsetType, encoded: str | UnsetType) -> int:
        of = path if encoded is UNSET else (encoded,)
        seen = self._of_paths.get(of)
        if seen is None:
            name = path_from_fields(path, encoded)
            seen = (_ASKED if self._is_asked(name) else 0) | (0 if self._stands_apart(name) else _PLAIN)
            self._of_paths[of] = seen
        return seen


def _block(group: str, told: Sequence[DuplicateRecord]) -> DuplicateBlock:
    ends: dict[tuple[bytes, int], int | None] = {(each.path_bytes, each.line): each.end_line for each in told}
    for each in told:
        ends.setdefault((each.other_path_bytes, each.other_line), None)
    return DuplicateBlock(
        number=0,
        group=group,
        lines=told[0].lines,
        copies=max(each.copies for each in told),
        locations=tuple(make_place(path, line, ends[path, line]) for path, line in sorted(ends)),
    )


def _first_place(block: DuplicateBlock) -> tuple[bytes, int]:
    return block.locations[0].path_bytes, block.locations[0].line
