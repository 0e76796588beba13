"""Access to the records of a batch, from merged outputs or from live outcomes."""

from __future__ import annotations

import contextlib
import copy
import functools
import heapq
import itertools
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from msgspec import UNSET

from codebatch.errors import StoreCorrupt
from codebatch.index.keys import TermLookup
from codebatch.model.entry import Entry
from codebatch.model.plan import Plan, plan_items
from codebatch.model.record_counts import RecordCounts, add_counts
from codebatch.model.task import task_name
from codebatch.model.text.suggestions import did_you_mean_text
from codebatch.query.fields import NO_LANGUAGES, FileLanguages, JsonRecord
from codebatch.query.filters.filters import RecordFilter, decode_records, path_bytes
from codebatch.query.missing_tasks import task_not_run_error
from codebatch.query.sources.narrowing import IndexNarrowing, index_lookups
from codebatch.query.sources.read_counters import ReadCounters
from codebatch.query.sources.repeated_findings import merging_source, source_of_task, unmerged_source
from codebatch.query.sources.source_choice import find_source
from codebatch.query.sources.sources import RecordSource, ShardRecords
from codebatch.store.batches.batch_directory import BatchDir, check_batch_exists, load_batch_snapshot
from codebatch.store.batches.store_directory import StoreDir
from codebatch.store.snapshots.snapshots import Snapshot

if TYPE_CHECKING:
    from codebatch.query.sources.parsed_files import ParsedFile

# Maximum number of paths or items that are looked up one by one. For more of them, all entries are read.
_FEW_PATHS_MAX = 500
_FEW_ITEMS_MAX = 100


def _merge_by_path(sorted_records: Sequence[Iterable[JsonRecord]]) -> Iterable[JsonRecord]:
    """Merge iterables of records that are each in path order. The result is in path order."""
    if len(sorted_records) <= 1:
        return itertools.chain(*sorted_records)

    return heapq.merge(*sorted_records, key=path_bytes)


@contextlib.contextmanager
def _unknown_id_if_deleted(batch: BatchDir) -> Iterator[None]:
    """If the block raises StoreCorrupt because the batch was deleted, raise UnknownId instead."""
    try:
        yield
    except StoreCorrupt:
        check_batch_exists(batch.files, batch.root)
        raise


class BatchRecords:
    """A reader of the records of a batch."""

    def __init__(
        self,
        store: StoreDir,
        batch: BatchDir,
        note: Callable[[str], None] | None = None,
        *,
        source: RecordSource | None = None,
    ) -> None:
        """Open the records of a batch.

        If `note` is set, the index of the batch is used. `note` is called with a message if the index is damaged.
        """
        self.store = store
        self.batch = batch
        self.reading = ReadCounters()
        self._last_object: tuple[str, bytes] | None = None
        self._files: Sequence[ParsedFile] | None = None
        self._objects = functools.cache(store.objects)
        self._index = None if note is None else IndexNarrowing(store, batch.id, note)
        narrow = None if self._index is None else self._index.narrow
        # The source must not hold a reference to this object. Without a reference cycle, all memory is freed with the
        # last reference.
        self._plan = functools.cache(batch.plan)
        self.source = merging_source(source or find_source(batch, self._plan, narrow))

    @property
    def plan(self) -> Plan:
        """The plan of the batch."""
        return self._plan()

    @cached_property
    def snapshot(self) -> Snapshot:
        """The snapshot of the batch."""
        return load_batch_snapshot(self.store, self.batch)

    @cached_property
    def items(self) -> list[Entry]:
        """The entries of the items of the batch, in path order."""
        with _unknown_id_if_deleted(self.batch):
            return plan_items(self.snapshot.entries, self.batch.about.paths)

    @property
    def task_names(self) -> tuple[str, ...]:
        """The tasks of the batch, in plan order."""
        return self.source.task_names

    def choose_tasks(self, name: str | None) -> tuple[str, ...]:
        """Return the requested task in a tuple, or all tasks of the batch if `name` is None.

        Raises TaskNotRun if the batch did not run the task.
        """
        if name is None:
            return self.task_names
        if task_name(name) not in self.task_names:
            raise task_not_run_error(
                f"the batch has no task {name!r}",
                (task_name(name),),
                hint=did_you_mean_text(name, self.task_names),
            )
        return (task_name(name),)

    def counts(self, task: str) -> RecordCounts:
        """Return the counts of the existing records of a task."""
        return add_counts(piece.counts for piece in self.source.iter_pieces(task))

    def uncovered_inputs(self, task: str) -> str:
        """Return a description of the inputs of a task that its cache key does not cover, or an empty string.

        If a task has such inputs, other batches do not reuse its results.
        """
        return next((piece.uncovered_inputs for piece in self.source.iter_pieces(task) if piece.uncovered_inputs), "")

    def iter_records(
        self, task: str, record_filter: RecordFilter, *, is_auxiliary: bool = False
    ) -> Iterator[JsonRecord]:
        """Yield the matching records of a task, in output order. Raises StoreCorrupt.

        If `is_auxiliary` is set, the records are not part of the answer, so they are not counted as matched.
        """
        for piece in self._possibly_matching(
            self.source.iter_pieces(task, index_lookups(record_filter)), record_filter
        ):
            matching = record_filter.iter_matching(self.read(piece), self.languages_for(record_filter))
            yield from matching if is_auxiliary else self.reading.count_matched(matching)

    def iter_by_path(self, tasks: Iterable[str], record_filter: RecordFilter) -> Iterator[JsonRecord]:
        """Yield the matching records of some tasks, by path, then by task, then in output order.

        A shard is read only when its first record is needed. Raises StoreCorrupt.
        """
        lookups = index_lookups(record_filter)
        for pieces in zip(*(self.source.iter_pieces(task, lookups) for task in tasks), strict=True):
            matching_pieces = list(self._possibly_matching(pieces, record_filter))
            languages = self.languages_for(record_filter) if matching_pieces else NO_LANGUAGES
            matching = [record_filter.iter_matching(self.read(piece), languages) for piece in matching_pieces]
            yield from self.reading.count_matched(_merge_by_path(matching))

    def pieces(self, task: str, record_filter: RecordFilter, lookups: Sequence[TermLookup]) -> list[ShardRecords]:
        """Return the shards of a task, without those that cannot contain matching records.

        With `lookups`, and if there is an index, only frames that match one of the lookups are read.
        """
        return list(self._possibly_matching(self.source.iter_pieces(task, lookups), record_filter))

    def read(self, piece: ShardRecords) -> Iterator[bytes]:
        """Yield the record lines of a piece in blocks, and count the piece as read."""
        self.reading.count_shard(piece.frames)
        return piece.read()

    def _possibly_matching(self, pieces: Iterable[ShardRecords], record_filter: RecordFilter) -> Iterator[ShardRecords]:
        for piece in pieces:
            self.reading.shards += 1
            if record_filter.may_match(piece.counts):
                yield piece
            else:
                self.reading.answered_from_counts += 1

    @cached_property
    def languages(self) -> FileLanguages:
        """The language of each file with a result of `parse`. Raises TaskNotRun if the batch did not run `parse`."""
        if "parse" not in self.task_names:
            raise task_not_run_error("the batch did not run the task parse", ("parse",))
        return {
            (None if file.path is UNSET else file.path, None if file.path_b64 is UNSET else file.path_b64): file.lang
            for file in self.files
        }

    @property
    def files(self) -> Sequence[ParsedFile]:
        """The files with a result of `parse`. Empty if the batch did not run `parse`. Raises StoreCorrupt."""
        if self._files is not None:
            return self._files
        from codebatch.query.sources.parsed_files import decode_files  # Imported late: few questions need it.

        is_there, is_done = "parse" in self.task_names, self.source.is_done
        pieces = self.pieces("parse", RecordFilter(kinds=("file",)), ()) if is_there else ()
        files = decode_files(itertools.chain.from_iterable(map(self.read, pieces)))
        if is_done:
            self._files = files
        return files

    def item_records(self, task: str, item: int) -> list[JsonRecord] | None:
        """Return the records that a task emitted for an item. Return None if the item has no outcome yet.

        Raises StoreCorrupt.
        """
        self.reading.shards += 1
        lines = self.source.item_lines(task, item)
        if lines is None:
            return None
        self.reading.count_shard(1)
        return decode_records(lines)

    def find_items(self, paths: Iterable[bytes]) -> dict[bytes, int]:
        """Return the item number of each path that is an item. Other paths are left out. Raises StoreCorrupt."""
        path_list = list(paths)
        if not self.batch.about.paths and len(path_list) <= _FEW_PATHS_MAX:
            with _unknown_id_if_deleted(self.batch):
                return self.snapshot.find_items(path_list)
        items = {entry.path: item for item, entry in enumerate(self.items)}
        return {path: items[path] for path in path_list if path in items}

    def items_with_name(self, *names: str) -> Iterator[tuple[int, Entry]]:
        """Yield the number and the entry of each item whose content may contain all of the names, in path order.

        A name counts if no ASCII letter, digit or `_` is directly before or after it. Without an index, all items are
        yielded. Raises StoreCorrupt.
        """
        from codebatch.index.words import name_words  # Imported late: few questions need it.

        words = [word for name in names for word in name_words(name)]
        narrowing = self._index if words else None
        numbers = None if narrowing is None else narrowing.find_items(words, self.batch.about.items)
        if numbers is None:
            yield from enumerate(self.items)
        elif len(numbers) > _FEW_ITEMS_MAX:
            yield from ((number, self.items[number]) for number in numbers)
        else:
            yield from ((number, read_entry(self, number)) for number in numbers)

    def read_object(self, entry: Entry) -> bytes:
        """Return the content of an entry. Raises ObjectMissing.

        The last content is cached, because several lines of a file are often shown together.
        """
        if self._last_object is None or self._last_object[0] != entry.object:
            with _unknown_id_if_deleted(self.batch):
                self._last_object = entry.object, self._objects().read(entry.object, entry.size)
        return self._last_object[1]

    def languages_for(self, record_filter: RecordFilter, fields: Collection[str] = ()) -> FileLanguages:
        """Return the languages of files if the filter or a field needs them, otherwise an empty mapping.

        Raises InvalidInput or StoreCorrupt.
        """
        return self.languages if record_filter.needs_languages(fields) else NO_LANGUAGES


def read_entry(records: BatchRecords, item: int) -> Entry:
    """Return an item of a batch. If possible, the others are not read."""
    if records.batch.about.paths:
        return records.items[item]
    with _unknown_id_if_deleted(records.batch):
        (entry,) = records.snapshot.items_between(item, item + 1)
    return entry


def restrict_to_task(records: BatchRecords, task: str | None) -> BatchRecords:
    """Return a reader of the same batch for a requested task, or `records` if `task` is None.

    It returns all findings of the task, also those that another task reports too (`MergingSource`).
    """
    return records if task is None else _with_source(records, source_of_task(records.source, task))


def merge_common_tasks(old: BatchRecords, new: BatchRecords) -> tuple[BatchRecords, BatchRecords]:
    """Return readers of two batches that merge equal findings only of tasks that both batches have.

    Otherwise a finding of one task might be hidden in one batch alone, because it has one more task.
    """
    if set(old.task_names) == set(new.task_names):
        return old, new
    common = set(old.task_names) & set(new.task_names)
    old_source, new_source = (merging_source(unmerged_source(each.source), common) for each in (old, new))
    return _with_source(old, old_source), _with_source(new, new_source)


def _with_source(records: BatchRecords, source: RecordSource) -> BatchRecords:
    if source is records.source:
        return records
    reader = copy.copy(records)
    reader.source = source
    return reader
