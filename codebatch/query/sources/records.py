"""The records of a batch that are asked for, from whatever source there is of it."""

from __future__ import annotations

import contextlib
import functools
import itertools
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from msgspec import UNSET

from codebatch.errors import InvalidInput, StoreCorrupt
from codebatch.index.keys import Lookup
from codebatch.model.entry import Entry
from codebatch.model.plan import Plan, items_of
from codebatch.model.record_counts import Counts, add_counts
from codebatch.model.task import task_name
from codebatch.model.text.suggestions import did_you_mean
from codebatch.query.fields import NO_LANGUAGES, JsonRecord, Languages
from codebatch.query.filters.filters import RecordFilter, decode_records, path_bytes
from codebatch.query.sources.narrowing import Narrowing, lookups_of
from codebatch.query.sources.read_counters import Reading
from codebatch.query.sources.source_choice import find_source
from codebatch.query.sources.sources import RecordSource, ShardRecords
from codebatch.store.batches.batches import BatchDir, check_is_there, snapshot_of
from codebatch.store.batches.store import StoreDir
from codebatch.store.snapshots.snapshots import Snapshot

if TYPE_CHECKING:
    from codebatch.query.sources.parsed_files import ParsedFile

# Items that are looked up one by one; where there are more, all entries are read.
_FEW_PATHS = 500


def _merged(found: Sequence[Iterable[JsonRecord]]) -> Iterable[JsonRecord]:
    """Records that come by path each, by path."""
    if len(found) <= 1:
        return itertools.chain(*found)
    import heapq

    return heapq.merge(*found, key=path_bytes)


class BatchRecords:
    """Reads one batch."""

    def __init__(
        self,
        store: StoreDir,
        batch: BatchDir,
        note: Callable[[str], None] | None = None,
        *,
        source: RecordSource | None = None,
    ) -> None:
        """With `note` its index is used where there is one, and `note` is told where that is not sound."""
        self.store = store
        self.batch = batch
        self.reading = Reading()
        self._last_object: tuple[str, bytes] | None = None
        self._files: Sequence[ParsedFile] | None = None
        self._objects = functools.cache(store.objects)
        narrow = None if note is None else Narrowing(store, batch.id, note).narrow
        # Of what is read by a source nothing leads back to us: so all that is held goes with the last who asks.
        self._plan = functools.cache(batch.plan)
        self.source = source or find_source(batch, self._plan, narrow)

    @property
    def plan(self) -> Plan:
        """The batch's plan."""
        return self._plan()

    @cached_property
    def snapshot(self) -> Snapshot:
        """The batch's snapshot."""
        return snapshot_of(self.store, self.batch)

    @cached_property
    def items(self) -> list[Entry]:
        """What the batch works on, in path order."""
        with self._look_again():
            return items_of(self.snapshot.entries, self.batch.about.paths)

    @property
    def task_names(self) -> tuple[str, ...]:
        """The batch's tasks, in plan order."""
        return self.source.task_names

    def choose_tasks(self, asked: str | None) -> tuple[str, ...]:
        """The tasks to read: the one asked for, or all. Raises InvalidInput for one that the batch has not."""
        if asked is None:
            return self.task_names
        if task_name(asked) not in self.task_names:
            raise InvalidInput(f"the batch has no task {asked!r}", hint=did_you_mean(asked, self.task_names))
        return (task_name(asked),)

    def counts(self, task: str) -> Counts:
        """The counts of a task's records so far."""
        return add_counts(piece.counts for piece in self.source.iter_pieces(task))

    def unkeyed(self, task: str) -> str:
        """What a task's results rest on besides its key, for people; empty where nothing. Its batch alone has them."""
        return next((piece.unkeyed for piece in self.source.iter_pieces(task) if piece.unkeyed), "")

    def iter_records(self, task: str, asked: RecordFilter, *, is_beside: bool = False) -> Iterator[JsonRecord]:
        """The records of a task that are asked for, in output order. Raises StoreCorrupt.

        Those that are needed beside the answer do not count as matched.
        """
        for piece in self._wanted(self.source.iter_pieces(task, lookups_of(asked)), asked):
            found = asked.iter_matching(self.read(piece), self.languages_for(asked))
            yield from found if is_beside else self.reading.count_matched(found)

    def iter_by_path(self, tasks: Iterable[str], asked: RecordFilter) -> Iterator[JsonRecord]:
        """The records of some tasks that are asked for, by path, then in the order of the tasks and of their output.

        Nothing is read of a shard before the first of its records is wanted. Raises StoreCorrupt.
        """
        lookups = lookups_of(asked)
        for pieces in zip(*(self.source.iter_pieces(task, lookups) for task in tasks), strict=True):
            wanted = list(self._wanted(pieces, asked))
            languages = self.languages_for(asked) if wanted else NO_LANGUAGES
            found = [asked.iter_matching(self.read(piece), languages) for piece in wanted]
            yield from self.reading.count_matched(_merged(found))

    def pieces(self, task: str, asked: RecordFilter, lookups: Sequence[Lookup]) -> list[ShardRecords]:
        """The pieces of a task that may hold what is asked for; of these what holds any of what is looked for."""
        return list(self._wanted(self.source.iter_pieces(task, lookups), asked))

    def read(self, piece: ShardRecords) -> Iterator[bytes]:
        """What a piece reads, which is counted as read."""
        self.reading.note(piece.frames)
        return piece.read()

    def _wanted(self, pieces: Iterable[ShardRecords], asked: RecordFilter) -> Iterator[ShardRecords]:
        for piece in pieces:
            self.reading.shards += 1
            if asked.may_match(piece.counts):
                yield piece
            else:
                self.reading.told_by_counts += 1

    @cached_property
    def languages(self) -> Languages:
        """The languages of files, as `parse` tells them so far. Raises InvalidInput where the batch is without it."""
        if "parse" not in self.task_names:
            raise InvalidInput(
                "the batch did not run the task parse", hint="to include this task, run: codebatch run PATH"
            )
        return {
            (None if file.path is UNSET else file.path, None if file.path_b64 is UNSET else file.path_b64): file.lang
            for file in self.files
        }

    @property
    def files(self) -> Sequence[ParsedFile]:
        """What `parse` tells of files so far, nothing where the batch is without it. Raises StoreCorrupt."""
        if self._files is not None:
            return self._files
        from codebatch.query.sources.parsed_files import decode_files  # 2 ms that few questions need

        is_there, is_done = "parse" in self.task_names, self.source.is_done
        pieces = self.pieces("parse", RecordFilter(kinds=("file",)), ()) if is_there else ()
        files = decode_files(itertools.chain.from_iterable(map(self.read, pieces)))
        if is_done:
            self._files = files
        return files

    def item_records(self, task: str, item: int) -> list[JsonRecord] | None:
        """The records of one item; None where the task has not come to it yet. Raises StoreCorrupt."""
        self.reading.shards += 1
        lines = self.source.item_lines(task, item)
        if lines is None:
            return None
        self.reading.note(1)
        return decode_records(lines)

    def find_items(self, paths: Iterable[bytes]) -> dict[bytes, int]:
        """The items at those of some paths where there is one, in their order. Raises StoreCorrupt."""
        wanted = list(paths)
        if not self.batch.about.paths and len(wanted) <= _FEW_PATHS:
            with self._look_again():
                return self.snapshot.find_items(wanted)
        items = {entry.path: item for item, entry in enumerate(self.items)}
        return {path: items[path] for path in wanted if path in items}

    def read_object(self, entry: Entry) -> bytes:
        """The content of an entry; the last one is kept, for whoever shows a line shows more. Raises ObjectMissing."""
        if self._last_object is None or self._last_object[0] != entry.object:
            with self._look_again():
                self._last_object = entry.object, self._objects().read(entry.object, entry.size)
        return self._last_object[1]

    def languages_for(self, asked: RecordFilter, fields: Collection[str] = ()) -> Languages:
        """The languages of files where they must be known. Raises InvalidInput or StoreCorrupt."""
        return self.languages if asked.needs_languages(fields) else NO_LANGUAGES

    @contextlib.contextmanager
    def _look_again(self) -> Iterator[None]:
        """Tell a snapshot or an object that went with the batch from one that is damaged."""
        try:
            yield
        except StoreCorrupt:
            check_is_there(self.batch.files, self.batch.root)
            raise
