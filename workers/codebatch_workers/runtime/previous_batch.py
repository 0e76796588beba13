"""The older batch from which a project task continues (api/before.py), with the old records of each file."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from itertools import groupby

from codebatch.model.analysis.result_key import PlanItems, same_items
from codebatch.model.entry import Entry
from codebatch.model.record import Record
from codebatch.model.shard import Shard
from codebatch.store.results.bases import ReuseBase, ShardPlace
from codebatch_workers.api.before import ChangedEntry
from codebatch_workers.runtime.record_lines import decode_kinds


class PreviousBatch:
    """A `Before` for an older batch that has all results of the task itself and of the tasks that it needs."""

    def __init__(
        self,
        base: ReuseBase,
        old: PlanItems,
        new: PlanItems,
        *,
        task: str,
        needs: Collection[str],
        contexts: Iterable[str],
        read: Callable[[Entry], bytes],
    ) -> None:
        """`base` is the older batch. `old` are its items, and `new` are the items of the current batch.

        `read` returns the content of a file of either batch.
        """
        self._base = base
        self._previous_plan = old.entries
        self._task = task
        self._needs = needs
        self._read = read
        self._old_items = same_items(new, old, contexts)
        matched = frozenset(self._old_items)
        old_items_by_path = {
            entry.path: old_item for old_item, entry in enumerate(old.entries) if old_item not in matched
        }
        changes = {path: ChangedEntry(old.entries[old_item], None) for path, old_item in old_items_by_path.items()}
        for item, old_item in enumerate(self._old_items):
            if old_item < 0:
                path = new.entries[item].path
                self._old_items[item] = old_items_by_path.get(path, -1)
                changes[path] = ChangedEntry(
                    changes[path].before if path in old_items_by_path else None, new.entries[item]
                )
        self._old_items_by_path = old_items_by_path
        self.changes: Sequence[ChangedEntry] = [changes[path] for path in sorted(changes)]

    def records_of(self, file: Entry, task: str, *kinds: str) -> list[Record]:
        """See `Before.records_of`."""
        if task not in self._needs:
            raise ValueError(f"the task must declare that it needs {task!r} to read its records")
        if file.path not in self._old_items_by_path:
            raise ValueError(f"{file.path!r} is not one of the changed files")
        old_item = self._old_items_by_path[file.path]
        (lines,) = self._base.read_lines(task, old_item, old_item + 1)
        return decode_kinds(lines, kinds)

    def own_records(self) -> Iterator[tuple[Entry, list[Record]]]:
        """See `Before.own_records`."""
        for result in self._base.task_results(self._task):
            for old_item, lines in enumerate(result.read(), result.start):
                if lines:
                    yield self._previous_plan[old_item], decode_kinds(lines, ())

    def read(self, file: Entry) -> bytes:
        """See `Before.read`."""
        return self._read(file)

    def previous_lines(self, start: int, end: int) -> list[bytes]:
        """Return the lines that the task emitted in the older batch, for each item [start, end) of this batch.

        An item whose file the older batch lacks has no lines. Raises StoreCorrupt.
        """
        lines: list[bytes] = []
        for old_item, items in self._adjacent_runs(start, end):
            lines += self._base.read_lines(self._task, old_item, old_item + items) if old_item >= 0 else [b""] * items
        return lines

    def shard_file(self, shard: Shard) -> ShardPlace | None:
        """Return the shard file of the older batch that contains the records of exactly the files in a shard.

        Return None if there is none.
        """
        (old_item, items), *more = self._adjacent_runs(shard.start, shard.end)
        return None if more or old_item < 0 else self._base.find_shard_file(self._task, old_item, old_item + items)

    def _adjacent_runs(self, start: int, end: int) -> Iterator[tuple[int, int]]:
        """Split items [start, end) into runs. The files of a run are also adjacent in the older batch.

        Yield two numbers for each run: its first item in the older batch, and its number of items. If the older batch
        does not have the files of the run, the first number is -1.
        """
        items = enumerate(self._old_items[start:end])
        for _, run in groupby(items, lambda pair: pair[1] - pair[0] if pair[1] >= 0 else None):
            old_items = [old_item for _, old_item in run]
            yield old_items[0], len(old_items)
