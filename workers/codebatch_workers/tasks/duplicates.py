"""duplicates: blocks of code that stand at several places of a tree (workers/TASKS.md "Duplicates").

A fingerprint that occurs once speaks of code that occurs once. Read again are the files in which one occurs that also
occurs elsewhere, and of these only the lines near enough to it to be in a block with it (repeats.py). Files that are
equal to the last byte are looked at once.

What is said of a file depends on those that have a fingerprint in common with it, and on no other: `update` rests on
that. Where LINES_MIN lines of a file stand elsewhere, a fingerprint is common, so that the members of the classes of
its windows are all there, and with them which are tables, which are fresh and what is next to what. Its runs reach over
equal lines, and each of these is near a fingerprint that occurs twice: it was read at both places. Beyond that, places
are asked only for their order, and for distances within a stretch. Without the other files all that is the same.
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
from codebatch_workers.duplicates.fingerprints import GRAM, LINES_MIN
from codebatch_workers.duplicates.plain_data import is_data
from codebatch_workers.duplicates.repeats import CodeText, Repeat, Span, maximal_repeats, repeated
from codebatch_workers.syntax.cells import with_cells
from codebatch_workers.syntax.source import NOTEBOOK_ENDING

_GROUP_DIGITS = 16
# Of the files with fingerprints; where more are to be read, all are. Patching holds in memory what `analyze` said of
# each file that it reads, which a whole run does not: so it never takes more than that.
_READ_SHARE_MAX = 0.1


class FingerprintedFile(msgspec.Struct, frozen=True):
    """A file that has fingerprints: its number in path order, and what it is."""

    item: int
    path: bytes
    object: Digest
    fingerprints: Fingerprints


class _SourceContent(msgspec.Struct, frozen=True):
    """A content: the items that have it, where its comments are, and which of all fingerprints are its."""

    items: list[int]
    comments: bytes
    start: int
    end: int


def create(_environment: TaskEnvironment[NoConfig]) -> Duplicates:
    """The task; it has no configuration."""
    return Duplicates()


class Duplicates:
    """`metric` and `duplicate` records, by file."""

    def run_project(self, project: Project) -> Iterator[Record]:
        """The records of all files that have duplicates, by path."""
        sources: list[Entry] = []

        def files() -> Iterator[FingerprintedFile]:
            for item, (file, fingerprints) in enumerate(_fingerprints(project)):
                sources.append(file)
                yield _numbered(item, file, fingerprints)

        for item, records in find_duplicates(files(), lambda item: project.source(sources[item]).utf8):
            yield from _placed(project, sources[item], records)

    def update(self, project: Project, before: Before) -> list[tuple[Entry, list[Record]]] | None:
        """See `UpdatingTask.update`; by path.

        Done again are the files that have a fingerprint in common with the old or the new text of one that changed, and
        read those that have one in common with these.
        """
        said = list(_fingerprints(project))
        most = int(_READ_SHARE_MAX * len(said))
        paths = {change.now.path for change in before.changes if change.now is not None}
        now = {file.path: fingerprints for file, fingerprints in said if file.path in paths}
        if len(now) > most:
            return None
        hashes, bare = _changed(before, now)
        again = _sharing(said, hashes)
        if len(again) > most:
            return None  # Of all that there is, the hashes alone would take as much memory as a whole run.
        others = {each for item in again for each in array("I", said[item][1].hashes)} - hashes
        read = sorted({*again, *_sharing(said, others)})
        if len(read) > most:
            return None
        sources = {item: said[item][0] for item in {*read, *again}}
        files = [_numbered(item, *said[item]) for item in read]
        del said
        found = dict(find_duplicates(files, lambda item: project.source(sources[item]).utf8))
        told = [(sources[item], _placed(project, sources[item], found.get(item, []))) for item in again]
        return sorted([*told, *((file, []) for file in bare)], key=itemgetter(0))


def _placed(project: Project, file: Entry, records: list[Record]) -> list[Record]:
    """Return records of a file with their cells if it is a notebook."""
    return with_cells(project.source(file), records) if records and file.path.endswith(NOTEBOOK_ENDING) else records


def _fingerprints(project: Project) -> Iterator[tuple[Entry, Fingerprints]]:
    """The files that have fingerprints, by path."""
    for file, records in project.records("analyze", "fingerprints"):
        for record in records:
            if isinstance(record, Fingerprints):
                yield file, record


def _numbered(item: int, file: Entry, fingerprints: Fingerprints) -> FingerprintedFile:
    return FingerprintedFile(item, file.path, file.object, fingerprints)


def _changed(before: Before, now: Mapping[bytes, Fingerprints]) -> tuple[set[int], list[Entry]]:
    """The hashes of all texts that were or are where these differ, and the files that have fingerprints no longer."""
    hashes: set[int] = set()
    bare: list[Entry] = []
    for then, file in before.changes:
        said: list[Record] = [] if then is None else before.records_of(then, "analyze", "fingerprints")
        says: list[Record] = [] if file is None or file.path not in now else [now[file.path]]
        for record in (*said, *says):
            if isinstance(record, Fingerprints):
                hashes.update(array("I", record.hashes))
        if said and file is not None and not says:
            bare.append(file)
    return hashes, bare


def _sharing(said: Iterable[tuple[Entry, Fingerprints]], hashes: AbstractSet[int]) -> list[int]:
    """The numbers of those that have one of some hashes."""
    if not hashes:
        return []
    return [item for item, (_, each) in enumerate(said) if not hashes.isdisjoint(array("I", each.hashes))]


def find_duplicates(
    files: Iterable[FingerprintedFile], read: Callable[[int], bytes]
) -> Iterator[tuple[int, list[Record]]]:
    """The records of each item that has duplicates: two metrics, then its blocks by line; items in their order.

    `files` come in the order of their items, and are asked for once. `read` gives the text of an item, in UTF-8, as its
    fingerprints were made of it: the first item of each content, once.
    """
    return _Finder(files, read).run()


class _Finder:
    def __init__(self, files: Iterable[FingerprintedFile], read: Callable[[int], bytes]) -> None:
        self._read = read
        self._paths: dict[int, bytes] = {}
        self._hashes = array("I")
        self._gaps = bytearray()
        self._sources = self._load(files)
        self._items_of = [source.items for source in self._sources]
        self._text = CodeText()
        # Of each content of a repeat, by its first place and its lines.
        self._groups: dict[tuple[int, int], str] = {}
        self._copies: dict[tuple[int, int], int] = {}
        self._data: dict[tuple[int, int], bool] = {}

    def run(self) -> Iterator[tuple[int, list[Record]]]:
        """See `find_duplicates`."""
        self._lay_out()
        found = dict(maximal_repeats(self._text))
        owners = {item: owner for owner in found for item in self._items_of[owner]}
        for item in sorted(owners):
            yield item, list(self._records(item, found[owners[item]]))

    def _load(self, files: Iterable[FingerprintedFile]) -> list[_SourceContent]:
        sources: dict[tuple[Digest, bytes], _SourceContent] = {}
        for file in files:
            self._paths[file.item] = file.path
            said = file.fingerprints
            source = sources.get((file.object, said.comments))
            if source is None:
                start = len(self._hashes)
                self._hashes.frombytes(said.hashes)
                self._gaps += said.gaps
                source = _SourceContent([], said.comments, start, len(self._hashes))
                sources[file.object, said.comments] = source
            source.items.append(file.item)
        return list(sources.values())

    def _lay_out(self) -> None:
        """Read again the sources in which a fingerprint begins that occurs more than once, or that do so themselves."""
        is_hot = repeated(self._hashes)
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
            for start, end in _stretches(hot, len(lines)):
                self._text.add(owner, lines[start:end], numbers[start:end], is_whole=False)
        del self._gaps, self._sources

    def _records(self, item: int, found: Sequence[Repeat]) -> Iterator[Record]:
        # Of rows that repeat within a block more may have been found together than stands anywhere else.
        several = (repeat for repeat in found if len(repeat.places) > 1 or len(self._items(repeat.start)) > 1)
        repeats = [repeat for repeat in several if not self._is_data(repeat)]
        if not repeats:
            return
        path, path_b64 = path_fields(self._paths[item])
        spans = [(repeat.start, repeat.end) for repeat in repeats]
        for metric, value in (("duplicated_lines", _covered(spans)), ("duplicated_blocks", len(repeats))):
            yield Metric(path=path, path_b64=path_b64, metric=metric, value=value)
        for repeat in repeats:
            other, other_place = self._elsewhere(item, repeat)
            other_path, other_path_b64 = path_fields(self._paths[other])
            yield Duplicate(
                path=path,
                path_b64=path_b64,
                line=self._text.numbers[repeat.start],
                end_line=self._text.numbers[repeat.end - 1] + 1,
                lines=repeat.lines,
                copies=self._count(repeat),
                group=self._group(repeat),
                other_path=other_path,
                other_path_b64=other_path_b64,
                other_line=self._text.numbers[other_place],
            )

    def _is_data(self, repeat: Repeat) -> bool:
        content = _content(repeat)
        if content not in self._data:
            self._data[content] = is_data(self._text.code(repeat.start, repeat.end).split(b"\n"))
        return self._data[content]

    def _group(self, repeat: Repeat) -> str:
        content = _content(repeat)
        if content not in self._groups:
            code = self._text.code(repeat.start, repeat.end)
            self._groups[content] = hashlib.sha256(code).hexdigest()[:_GROUP_DIGITS]
        return self._groups[content]

    def _items(self, place: int) -> Sequence[int]:
        return self._items_of[self._text.owner(place)]

    def _count(self, repeat: Repeat) -> int:
        """How many copies there are that do not overlap each other."""
        content = _content(repeat)
        if content not in self._copies:
            count = end = 0
            for place in repeat.places:
                if place >= end:
                    count += len(self._items(place))
                    end = place + repeat.lines
            self._copies[content] = count
        return self._copies[content]

    def _elsewhere(self, item: int, repeat: Repeat) -> tuple[int, int]:
        """The first other copy in path order: its item and its place. Places are in the order of their first items.

        Where rows repeat within a block, all its copies may overlap it: then the first of these.
        """
        candidates = []
        items = self._items(repeat.start)
        if len(items) > 1:
            candidates.append((items[0] if items[0] != item else items[1], repeat.start))
        apart = (place for place in repeat.places if abs(place - repeat.start) >= repeat.lines)
        candidates.extend((self._items(place)[0], place) for place in islice(apart, 1))
        if not candidates:
            others = (place for place in repeat.places if place != repeat.start)
            candidates.append((item, next(others)))
        return min(candidates)


def _content(repeat: Repeat) -> tuple[int, int]:
    return repeat.places[0], repeat.lines


def _stretches(hot: Iterable[int], lines: int) -> Iterator[Span]:
    """The lines that may be in a block with a gram; `hot` are the numbers of their first lines, from 1, ascending."""
    start = end = 0
    for number in hot:
        first = number - 1 - (LINES_MIN - GRAM)
        if first > end:
            if end:
                yield start, end
            start = first
        end = number - 1 + LINES_MIN
    yield start, min(end, lines)


def _covered(spans: Sequence[Span]) -> int:
    """The lines in ascending spans that may overlap."""
    reaches = chain([0], (end for _, end in spans))
    return sum(end - max(start, reach) for (start, end), reach in zip(spans, reaches, strict=False))
