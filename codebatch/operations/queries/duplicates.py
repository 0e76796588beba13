"""Queries for duplicate blocks: each block once with all its locations, and the source of a block."""

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
from codebatch.query.completeness import tasks_completeness
from codebatch.query.filters.arguments import refuse_numbers_below_one
from codebatch.query.filters.paths import PathFilter, PathPatterns
from codebatch.query.missing_tasks import task_not_run_error
from codebatch.query.secondary_files import SecondaryFiles

PLACES_WITH_SOURCE_MAX = 2
SOURCE_LINES_SHOWN_MAX = 200
_ADDITIONAL_BLOCKS = 10
"""Number of blocks to read beyond the requested number. Some blocks may turn out to be parts of others."""
_GROUPS_COMPLETED_MAX = 1_000
"""Maximum number of groups of a batch for which blocks are counted exactly, whatever the limit of the list.

Before blocks are counted, all their locations must be found, which reads all files with duplicate blocks.
"""


class DuplicateBlocks(msgspec.Struct, frozen=True, kw_only=True):
    """Duplicate blocks, the longest first.

    `count` is the number of all blocks, listed or not. `excluded` counts the blocks with fewer than two locations
    outside of tests and of vendored, generated or minified files.

    If a number is an upper bound, it also counts blocks that are parts of longer blocks. This can happen if the batch
    has more than 1,000 groups of equal code.
    """

    blocks: tuple[DuplicateBlock, ...]
    count: int
    count_is_upper_bound: bool = False
    excluded: int
    excluded_is_upper_bound: bool = False


NO_DUPLICATES = DuplicateBlocks(blocks=(), count=0, excluded=0)


def find_copies(
    question: BatchQuery,
    *,
    least: int = 1,
    first: int = 1,
    limit: int | None = None,
    path: PathPatterns = "",
    everything: bool = False,
) -> Answer[DuplicateBlocks]:
    """Return the duplicate blocks of at least `least` code lines with a location in `path`.

    The first `first` - 1 blocks are skipped, and at most `limit` are returned. A block that is part of a longer block
    is joined with it before they are counted. Blocks with fewer than two locations in production code are excluded,
    unless `everything` is set. Raises InvalidInput or StoreCorrupt.
    """
    refuse_numbers_below_one(limit=limit, least=least, first=first)
    end = None if limit is None else first - 1 + limit
    secondary = None if everything else question.secondary_files

    def collect(number: int | None) -> LongestBlocks:
        return _longest_blocks(question, secondary, least=least, number=number, path=path)

    best = collect(None if end is None else max(end + _ADDITIONAL_BLOCKS, _GROUPS_COMPLETED_MAX))
    if len(best.relevant_groups) + best.excluded_count <= _GROUPS_COMPLETED_MAX:
        found = _count_exactly(question, best, secondary)
    elif end is None:
        joined = join_blocks(complete_places(question, best.blocks()))
        found = DuplicateBlocks(
            blocks=tuple(joined),
            count=len(joined),
            excluded=best.excluded_count,
            excluded_is_upper_bound=bool(best.excluded_count),
        )
    else:
        found = _count_roughly(question, collect, best, end)
    records = question.records
    needed = {"parse", "analyze", "duplicates"} & {*records.task_names}
    answer_completeness = tasks_completeness(records, needed, lacks_files=bool(question.batch.about.paths))
    listed = msgspec.structs.replace(found, blocks=found.blocks[first - 1 : end])
    return Answer(question=question, result=listed, completeness=answer_completeness)


def _count_exactly(question: BatchQuery, best: LongestBlocks, secondary: SecondaryFiles | None) -> DuplicateBlocks:
    """Return all relevant blocks. Blocks that are parts of longer ones are joined before they are counted."""
    complete = complete_places(question, best.blocks(has_excluded=True))
    relevant = best.relevant_groups
    joined = join_blocks(block for block in complete if block.group in relevant)
    excluded = 0
    if best.excluded_count and secondary is not None:
        for block in join_blocks(complete):
            excluded += sum(secondary.category_of(place.path_bytes) is None for place in block.locations) < 2
    return DuplicateBlocks(blocks=tuple(joined), count=len(joined), excluded=excluded)


def _count_roughly(
    question: BatchQuery, collect: Callable[[int | None], LongestBlocks], best: LongestBlocks, end: int
) -> DuplicateBlocks:
    """Return at least `end` of the relevant blocks, if there are as many. Only these blocks are joined."""
    groups, number = len(best.relevant_groups), end + _ADDITIONAL_BLOCKS
    while True:
        blocks = best.blocks()[:number]
        joined = join_blocks(complete_places(question, blocks))
        if len(joined) >= end or number >= groups:
            break
        number *= 4
        best = collect(max(number, _GROUPS_COMPLETED_MAX))
    return DuplicateBlocks(
        blocks=tuple(joined),
        count=groups - (len(blocks) - len(joined)),
        count_is_upper_bound=number < groups,
        excluded=best.excluded_count,
        excluded_is_upper_bound=bool(best.excluded_count),
    )


def _longest_blocks(
    question: BatchQuery,
    secondary: SecondaryFiles | None,
    *,
    least: int = 1,
    number: int | None,
    path: PathPatterns = "",
) -> LongestBlocks:
    """Return a collector with the longest blocks, with only those locations that records have.

    Raises InvalidInput or StoreCorrupt.
    """
    records = question.records
    if "duplicates" not in records.task_names:
        raise task_not_run_error("the batch did not run the task duplicates", ("duplicates",))
    best = LongestBlocks(
        number,
        PathFilter(path).matches if path else lambda _: True,
        lambda name: secondary is not None and secondary.category_of(name) is not None,
    )
    for group in iter_duplicates(records):
        best.add(group if least == 1 else [record for record in group if record.lines >= least])
    return best


def read_copies(question: BatchQuery, block: DuplicateBlock) -> list[tuple[DuplicateLocation, tuple[SourceLine, ...]]]:
    """Return the first locations of a block, each with its source in the snapshot. Long source is cut.

    A location whose file content is missing is left out, with a note. Raises InvalidInput for a block of another batch,
    and StoreCorrupt.
    """
    sources: list[tuple[DuplicateLocation, tuple[SourceLine, ...]]] = []
    for place in block.complete_locations[:PLACES_WITH_SOURCE_MAX]:
        name = place.path_bytes
        item = question.records.find_items([name]).get(name)
        if item is None:
            raise InvalidInput(f"the batch has no file {display_path(name)!r}")
        last = min(place.end - 1, place.line + SOURCE_LINES_SHOWN_MAX - 1)
        try:
            sources.append((place, read_lines(question, name, item, place.line, last)[1]))
        except ObjectMissing as error:
            question.note(f"source of {display_path(name)} not shown: {error.message}")
    return sources


_REQUESTED_FLAG, _PRODUCTION_FLAG = 1, 2
_RELEVANT_FLAGS = _REQUESTED_FLAG | _PRODUCTION_FLAG
"""The two flags of a relevant path or group.

For a path: it is requested, and it is production code. For a group of duplicates: at least one of its paths is
requested, and at least two of its locations are in production code.
"""


class LongestBlocks:
    """A collector of the groups of duplicates with the most lines.

    Only records of these groups are kept. For all other groups, which can be 100,000, only IDs and flags are kept.
    """

    def __init__(
        self, number: int | None, is_requested: Callable[[bytes], bool], is_secondary: Callable[[bytes], bool]
    ) -> None:
        """Keep at most `number` groups, or all groups if it is None.

        A group without a requested location is ignored. A group is excluded if fewer than two of its locations are in
        production code, because such duplicates are rarely worth merging. `is_secondary` returns
        whether a path is not production code.
        """
        self._number = number
        self._is_requested = is_requested
        self._is_secondary = is_secondary
        self._path_flags: dict[object, int] = {}
        self._group_flags: dict[str, int] = {}
        self._plain_places: dict[str, tuple[object, ...]] = {}
        self._most_lines: list[int] = []
        self._records_by_group: dict[str, list[DuplicateRecord]] = {}

    @property
    def relevant_groups(self) -> set[str]:
        """The groups that are requested and have two locations in production code."""
        return {group for group, flags in self._group_flags.items() if flags == _RELEVANT_FLAGS}

    @property
    def excluded_count(self) -> int:
        """The number of groups that are requested but do not have two locations in production code."""
        return sum(flags == _REQUESTED_FLAG for flags in self._group_flags.values())

    def add(self, records: Iterable[DuplicateRecord]) -> None:
        """Add records to their groups.

        The body is inlined for speed: it runs for hundreds of thousands of records.
        """
        group_flags, path_flags, records_by_group = self._group_flags, self._path_flags, self._records_by_group
        most_lines, number, flags_of_path = self._most_lines, self._number, self._path_flags_for
        plain_places = self._plain_places
        for record in records:
            group, lines = record.group, record.lines
            previous_flags = group_flags.get(group, 0)
            if previous_flags != _RELEVANT_FLAGS:
                flags = path_flags.get(record.path) or flags_of_path(record.path, record.path_b64)
                other_flags = path_flags.get(record.other_path) or flags_of_path(
                    record.other_path, record.other_path_b64
                )
                previous_flags |= (flags | other_flags) & _REQUESTED_FLAG | flags & other_flags & _PRODUCTION_FLAG
                if (flags ^ other_flags) & _PRODUCTION_FLAG:
                    place = (
                        (record.path, record.path_b64, record.line)
                        if flags & _PRODUCTION_FLAG
                        else (record.other_path, record.other_path_b64, record.other_line)
                    )
                    previous_flags |= _PRODUCTION_FLAG if plain_places.setdefault(group, place) != place else 0
                group_flags[group] = previous_flags
                if previous_flags == _RELEVANT_FLAGS and number is not None:
                    if len(most_lines) < number:
                        heapq.heappush(most_lines, lines)
                    elif lines > most_lines[0]:
                        heapq.heapreplace(most_lines, lines)
            if len(most_lines) != number or lines >= most_lines[0]:
                records_by_group.setdefault(group, []).append(record)

    def blocks(self, *, has_excluded: bool = False) -> list[DuplicateBlock]:
        """Return the blocks: those with the most lines first, then those with the most copies, then by location.

        With `has_excluded`, the requested blocks that are not relevant are included.
        """
        accepted = (_RELEVANT_FLAGS, _REQUESTED_FLAG) if has_excluded else (_RELEVANT_FLAGS,)
        blocks = (
            _make_block(group, records)
            for group, records in self._records_by_group.items()
            if self._group_flags[group] in accepted
        )
        return sorted(
            blocks,
            key=lambda block: (-block.lines, -block.copies, block.locations[0].path_bytes, block.locations[0].line),
        )[: self._number]

    def _path_flags_for(self, path: str | UnsetType, encoded: str | UnsetType) -> int:
        key = path if encoded is UNSET else (encoded,)
        cached_flags = self._path_flags.get(key)
        if cached_flags is None:
            name = path_from_fields(path, encoded)
            cached_flags = (_REQUESTED_FLAG if self._is_requested(name) else 0) | (
                0 if self._is_secondary(name) else _PRODUCTION_FLAG
            )
            self._path_flags[key] = cached_flags
        return cached_flags


def _make_block(group: str, records: Sequence[DuplicateRecord]) -> DuplicateBlock:
    ends: dict[tuple[bytes, int], int | None] = {
        (record.path_bytes, record.line): record.end_line for record in records
    }
    for record in records:
        ends.setdefault((record.other_path_bytes, record.other_line), None)
    return DuplicateBlock(
        number=0,
        group=group,
        lines=records[0].lines,
        copies=max(record.copies for record in records),
        locations=tuple(make_place(path, line, ends[path, line]) for path, line in sorted(ends)),
    )
