"""duplicates: blocks of code that occur in several places of a tree (workers/TASKS.md "Duplicates").

If a fingerprint occurs only once in the tree, the code around it has no copy. So only files with a fingerprint that
occurs more than once are read again, and only their lines near such fingerprints (repeats.py). Files with equal content
are read and compared once.

`update` relies on a property of the search: the records of a file depend only on files that share a fingerprint with
it. If LINES_MIN lines of a file also occur elsewhere, both files share a fingerprint. So if these files are read, all
copies of the file's windows are present. The same windows are then tables, are compared, and are neighbours, as in a
complete run. A run extends only over equal lines. Each of these lines is near a repeated fingerprint, so it was read at
both places. In addition, only the order of places and the distances within a stretch matter. None of this changes if
unrelated files are absent.
"""

from __future__ import annotations

import hashlib
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from itertools import accumulate, chain, compress, islice
from operator import itemgetter

import msgspec

from codebatch.model.digest import Digest
from codebatch.model.entry import Entry, path_fields
from codebatch.model.record import Duplicate, Fingerprints, Metric, Record
from codebatch.model.task import NoConfig
from codebatch_workers.api.before import Before
from codebatch_workers.api.project import Project
from codebatch_workers.api.protocols import TaskEnvironment
from codebatch_workers.duplicates.code_lines import code_lines
from codebatch_workers.duplicates.fingerprints import LINES_MIN, LINES_PER_GRAM
from codebatch_workers.duplicates.plain_data import is_plain_data
from codebatch_workers.duplicates.repeats import (
    CodeText,
    LineSpan,
    RepeatedLines,
    mark_repeated_values,
    maximal_repeats,
)
from codebatch_workers.syntax.cells import with_cell_locations
from codebatch_workers.syntax.source import NOTEBOOK_ENDING

_GROUP_DIGITS = 16
# An update reads at most this share of the files that have fingerprints. Unlike a complete run, an update keeps their
# records in memory. With this limit, it never needs more memory than a complete run.
_READ_SHARE_MAX = 0.1


class FingerprintedFile(msgspec.Struct, frozen=True):
    """A file with fingerprints. `item` is its index among all files with fingerprints, in path order."""

    item: int
    path: bytes
    object: Digest
    fingerprints: Fingerprints


class _SourceContent(msgspec.Struct, frozen=True):
    """One content: the items of the files that have it, the locations of its comments, and its fingerprints.

    The fingerprints are a range in the hashes of all contents.
    """

    items: list[int]
    comments: bytes
    start: int
    end: int


def create(_environment: TaskEnvironment[NoConfig]) -> DuplicatesTask:
    """Return the task. It has no configuration."""
    return DuplicatesTask()


class DuplicatesTask:
    """The task: `metric` and `duplicate` records, by file."""

    def run_project(self, project: Project) -> Iterator[Record]:
        """Yield the records of all files with duplicates, by path."""
        sources: list[Entry] = []

        def files() -> Iterator[FingerprintedFile]:
            for item, (file, fingerprints) in enumerate(_iter_fingerprinted(project)):
                sources.append(file)
                yield _fingerprinted_file(item, file, fingerprints)

        for item, records in find_duplicates(files(), lambda item: project.source(sources[item]).utf8):
            yield from _with_cells(project, sources[item], records)

    def update(self, project: Project, before: Before) -> list[tuple[Entry, list[Record]]] | None:
        """Return the files whose records may have changed, sorted by path, as `IncrementalTask.update` requires.

        A file is recomputed if it shares a fingerprint with the old or the new content of a changed file. To recompute
        the file, all files that share a fingerprint with it are read.
        """
        all_files = list(_iter_fingerprinted(project))
        read_max = int(_READ_SHARE_MAX * len(all_files))
        paths = {change.now.path for change in before.changes if change.now is not None}
        new_fingerprints = {file.path: fingerprints for file, fingerprints in all_files if file.path in paths}
        if len(new_fingerprints) > read_max:
            return None
        hashes, unfingerprinted = _changed_hashes(before, new_fingerprints)
        recomputed = _items_sharing(all_files, hashes)
        if len(recomputed) > read_max:
            return None  # To compare all fingerprints with so many hashes would take as much memory as a complete run.
        other_hashes = {hash_ for item in recomputed for hash_ in array("I", all_files[item][1].hashes)} - hashes
        to_read = sorted({*recomputed, *_items_sharing(all_files, other_hashes)})
        if len(to_read) > read_max:
            return None
        sources = {item: all_files[item][0] for item in {*to_read, *recomputed}}
        files = [_fingerprinted_file(item, *all_files[item]) for item in to_read]
        del all_files
        records_by_item = dict(find_duplicates(files, lambda item: project.source(sources[item]).utf8))
        updated = [
            (sources[item], _with_cells(project, sources[item], records_by_item.get(item, []))) for item in recomputed
        ]
        return sorted([*updated, *((file, []) for file in unfingerprinted)], key=itemgetter(0))


def _with_cells(project: Project, file: Entry, records: list[Record]) -> list[Record]:
    """Return the records of a file. If it is a notebook, add the cells that contain the lines of the records."""
    return (
        with_cell_locations(project.source(file), records)
        if records and file.path.endswith(NOTEBOOK_ENDING)
        else records
    )


def _iter_fingerprinted(project: Project) -> Iterator[tuple[Entry, Fingerprints]]:
    """Yield the files that have fingerprints, in path order."""
    for file, records in project.records("analyze", "fingerprints"):
        for record in records:
            if isinstance(record, Fingerprints):
                yield file, record


def _fingerprinted_file(item: int, file: Entry, fingerprints: Fingerprints) -> FingerprintedFile:
    return FingerprintedFile(item, file.path, file.object, fingerprints)


def _changed_hashes(before: Before, new_fingerprints: Mapping[bytes, Fingerprints]) -> tuple[set[int], list[Entry]]:
    """Return the hashes in the old and new fingerprints of changed files.

    Also return the changed files that no longer have fingerprints.
    """
    hashes: set[int] = set()
    unfingerprinted: list[Entry] = []
    for old, file in before.changes:
        old_records: list[Record] = [] if old is None else before.records_of(old, "analyze", "fingerprints")
        new_records: list[Record] = (
            [] if file is None or file.path not in new_fingerprints else [new_fingerprints[file.path]]
        )
        for record in (*old_records, *new_records):
            if isinstance(record, Fingerprints):
                hashes.update(array("I", record.hashes))
        if old_records and file is not None and not new_records:
            unfingerprinted.append(file)
    return hashes, unfingerprinted


def _items_sharing(files: Iterable[tuple[Entry, Fingerprints]], hashes: AbstractSet[int]) -> list[int]:
    """Return the indexes of files whose fingerprints contain at least one of the given hashes."""
    if not hashes:
        return []
    return [
        item for item, (_, fingerprints) in enumerate(files) if not hashes.isdisjoint(array("I", fingerprints.hashes))
    ]


def find_duplicates(
    files: Iterable[FingerprintedFile], read: Callable[[int], bytes]
) -> Iterator[tuple[int, list[Record]]]:
    """Yield the records of each item with duplicates, in order of items.

    Two metrics are first, then one record per block, by line.

    `files` must be in order of their items. They are iterated once. `read` returns the text from which the fingerprints
    of an item were computed, in UTF-8. It is called at most once for each distinct content.
    """
    return _DuplicateFinder(files, read).run()


class _DuplicateFinder:
    def __init__(self, files: Iterable[FingerprintedFile], read: Callable[[int], bytes]) -> None:
        self._read = read
        self._paths: dict[int, bytes] = {}
        self._hashes = array("I")
        self._gaps = bytearray()
        self._sources = self._load_sources(files)
        self._items_of = [source.items for source in self._sources]
        self._text = CodeText()
        # Results that are cached for repeated texts. The key is the first place of the text, and its number of lines.
        self._groups: dict[tuple[int, int], str] = {}
        self._copies: dict[tuple[int, int], int] = {}
        self._data: dict[tuple[int, int], bool] = {}

    def run(self) -> Iterator[tuple[int, list[Record]]]:
        """See `find_duplicates`."""
        self._read_sources()
        repeats_by_owner = dict(maximal_repeats(self._text))
        owners = {item: owner for owner in repeats_by_owner for item in self._items_of[owner]}
        for item in sorted(owners):
            yield item, list(self._file_records(item, repeats_by_owner[owners[item]]))

    def _load_sources(self, files: Iterable[FingerprintedFile]) -> list[_SourceContent]:
        sources: dict[tuple[Digest, bytes], _SourceContent] = {}
        for file in files:
            self._paths[file.item] = file.path
            fingerprints = file.fingerprints
            source = sources.get((file.object, fingerprints.comments))
            if source is None:
                start = len(self._hashes)
                self._hashes.frombytes(fingerprints.hashes)
                self._gaps += fingerprints.gaps
                source = _SourceContent([], fingerprints.comments, start, len(self._hashes))
                sources[file.object, fingerprints.comments] = source
            source.items.append(file.item)
        return list(sources.values())

    def _read_sources(self) -> None:
        """Read contents that several items have. Of other contents, read only the lines near repeated fingerprints."""
        is_hot = mark_repeated_values(self._hashes)
        del self._hashes
        for owner, source in enumerate(self._sources):
            is_whole = len(source.items) > 1
            if not is_whole and is_hot.find(1, source.start, source.end) < 0:
                continue
            lines, numbers = code_lines(self._read(source.items[0]), source.comments)
            if is_whole:
                self._text.add(owner, lines, numbers, is_whole=True)
                continue
            numbered = accumulate(self._gaps[source.start : source.end])
            hot = compress(numbered, is_hot[source.start : source.end])
            for start, end in _repeated_stretches(hot, len(lines)):
                self._text.add(owner, lines[start:end], numbers[start:end], is_whole=False)
        del self._gaps, self._sources

    def _file_records(self, item: int, candidates: Sequence[RepeatedLines]) -> Iterator[Record]:
        # Some repeats were found only as a part of longer repeats, so that their own text may occur nowhere else.
        repeated_elsewhere = (
            repeat for repeat in candidates if len(repeat.places) > 1 or len(self._items_at(repeat.start)) > 1
        )
        repeats = [repeat for repeat in repeated_elsewhere if not self._is_data(repeat)]
        if not repeats:
            return
        path, path_b64 = path_fields(self._paths[item])
        spans = [(repeat.start, repeat.end) for repeat in repeats]
        for metric, value in (("duplicated_lines", _covered_lines(spans)), ("duplicated_blocks", len(repeats))):
            yield Metric(path=path, path_b64=path_b64, metric=metric, value=value)
        for repeat in repeats:
            other, other_place = self._first_other_copy(item, repeat)
            other_path, other_path_b64 = path_fields(self._paths[other])
            yield Duplicate(
                path=path,
                path_b64=path_b64,
                line=self._text.numbers[repeat.start],
                end_line=self._text.numbers[repeat.end - 1] + 1,
                lines=repeat.lines,
                copies=self._count_copies(repeat),
                group=self._group_digest(repeat),
                other_path=other_path,
                other_path_b64=other_path_b64,
                other_line=self._text.numbers[other_place],
            )

    def _is_data(self, repeat: RepeatedLines) -> bool:
        content = _block_content(repeat)
        if content not in self._data:
            self._data[content] = is_plain_data(self._text.code_between(repeat.start, repeat.end).split(b"\n"))
        return self._data[content]

    def _group_digest(self, repeat: RepeatedLines) -> str:
        content = _block_content(repeat)
        if content not in self._groups:
            code = self._text.code_between(repeat.start, repeat.end)
            self._groups[content] = hashlib.sha256(code).hexdigest()[:_GROUP_DIGITS]
        return self._groups[content]

    def _items_at(self, place: int) -> Sequence[int]:
        return self._items_of[self._text.owner_at(place)]

    def _count_copies(self, repeat: RepeatedLines) -> int:
        """Return the number of copies of a block. A copy that overlaps a counted copy is not counted."""
        content = _block_content(repeat)
        if content not in self._copies:
            count = end = 0
            for place in repeat.places:
                if place >= end:
                    count += len(self._items_at(place))
                    end = place + repeat.lines
            self._copies[content] = count
        return self._copies[content]

    def _first_other_copy(self, item: int, repeat: RepeatedLines) -> tuple[int, int]:
        """Return item and place of the first copy at another place, in path order.

        If rows repeat within a block, it is possible that each copy overlaps the block. Then the first overlapping copy
        is returned.
        """
        candidates = []
        items = self._items_at(repeat.start)
        if len(items) > 1:
            candidates.append((items[0] if items[0] != item else items[1], repeat.start))
        non_overlapping = (place for place in repeat.places if abs(place - repeat.start) >= repeat.lines)
        candidates.extend((self._items_at(place)[0], place) for place in islice(non_overlapping, 1))
        if not candidates:
            other_places = (place for place in repeat.places if place != repeat.start)
            candidates.append((item, next(other_places)))
        return min(candidates)


def _block_content(repeat: RepeatedLines) -> tuple[int, int]:
    return repeat.places[0], repeat.lines


def _repeated_stretches(hot: Iterable[int], lines: int) -> Iterator[LineSpan]:
    """Yield the ranges of lines that can be part of a duplicate block.

    All of their lines are at most LINES_MIN lines from a repeated gram. `hot` are the numbers, from 1, of the first
    lines of repeated grams, ascending. `lines` is the number of all lines.
    """
    start = end = 0
    for number in hot:
        first = number - 1 - (LINES_MIN - LINES_PER_GRAM)
        if first > end:
            if end:
                yield start, end
            start = first
        end = number - 1 + LINES_MIN
    yield start, min(end, lines)


def _covered_lines(spans: Sequence[LineSpan]) -> int:
    """Return the number of lines that are in at least one of the spans. The spans must be ascending."""
    reaches = chain([0], (end for _, end in spans))
    return sum(end - max(start, reach) for (start, end), reach in zip(spans, reaches, strict=False))
