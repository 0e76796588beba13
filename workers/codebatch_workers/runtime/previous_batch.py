"""An older batch that a project task goes on from (api/before.py), and what it said of each file."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from itertools import groupby
from typing import TYPE_CHECKING

from codebatch.model.analysis.result_key import Items, same_items
from codebatch.model.entry import Entry
from codebatch.model.record import Record
from codebatch.model.shard import Shard
from codebatch_workers.api.before import FileChange
from codebatch_workers.runtime.record_lines import decode_kinds

if TYPE_CHECKING:
    from codebatch.store.results.bases import ReuseBase, ShardPlace


class BatchBefore:
    """A `Before` over a base that has everything of the tasks in question."""

    def __init__(
        self,
        base: ReuseBase,
        old: Items,
        new: Items,
        *,
        task: str,
        needs: Collection[str],
        contexts: Iterable[str],
        read: Callable[[Entry], bytes],
    ) -> None:
        """`old` are the base's items, `new` the batch's; `read` gives the content of a file of either."""
        self._base = base
        self._old = old.entries
        self._task = task
        self._needs = needs
        self._read = read
        self._places = same_items(new, old, contexts)
        kept = frozenset(self._places)
        gone = {entry.path: place for place, entry in enumerate(old.entries) if place not in kept}
        changes = {path: FileChange(old.entries[place], None) for path, place in gone.items()}
        for item, place in enumerate(self._places):
            if place < 0:
                path = new.entries[item].path
                self._places[item] = gone.get(path, -1)
                changes[path] = FileChange(changes[path].before if path in gone else None, new.entries[item])
        self._gone = gone
        self.changes: Sequence[FileChange] = [changes[path] for path in sorted(changes)]

    def records_of(self, file: Entry, task: str, *kinds: str) -> list[Record]:
        """See `Before.records_of`."""
        if task not in self._needs:
            raise ValueError(f"the task must declare that it needs {task!r} to read its records")
        if file.path not in self._gone:
            raise ValueError(f"{file.path!r} is not one of the changed files")
        place = self._gone[file.path]
        (lines,) = self._base.lines(task, place, place + 1)
        return decode_kinds(lines, kinds)

    def own_records(self) -> Iterator[tuple[Entry, list[Record]]]:
        """See `Before.own_records`."""
        for held in self._base.held(self._task):
            for place, lines in enumerate(held.read(), held.start):
                if lines:
                    yield self._old[place], decode_kinds(lines, ())

    def read(self, file: Entry) -> bytes:
        """See `Before.read`."""
        return self._read(file)

    def lines(self, start: int, end: int) -> list[bytes]:
        """What the task said then of each of the files that are items [start, end) now. Raises StoreCorrupt."""
        found: list[bytes] = []
        for place, items in self._runs(start, end):
            found += self._base.lines(self._task, place, place + items) if place >= 0 else [b""] * items
        return found

    def file(self, shard: Shard) -> ShardPlace | None:
        """The shard file that holds just what the task said then of the files of a shard; None where there is none."""
        (place, items), *more = self._runs(shard.start, shard.end)
        return None if more or place < 0 else self._base.file(self._task, place, place + items)

    def _runs(self, start: int, end: int) -> Iterator[tuple[int, int]]:
        """Items that follow each other in the base too: the place of the first there, and how many.

        The place is -1 of those that were not there.
        """
        items = enumerate(self._places[start:end])
        for _, run in groupby(items, lambda pair: pair[1] - pair[0] if pair[1] >= 0 else None):
            places = [place for _, place in run]
            yield places[0], len(places)
