"""The implementation of `Project` (api/project.py), built from the plan, outcomes and objects of a batch."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Collection, Iterator, Sequence
from functools import cached_property

from codebatch.model.entry import Entry, path_from_fields
from codebatch.model.outcome import TaskOutcome
from codebatch.model.plan import Plan
from codebatch.model.record import BaseRecord, FileChange, Record
from codebatch.scheduling.analysis.chains import ChainLink
from codebatch.scheduling.analysis.ledger import OutcomeLedger
from codebatch.store.results.outcomes import OutcomeRegisters
from codebatch_workers.runtime.record_lines import decode_kinds, line_prefixes, lines_holding, record_decoder
from codebatch_workers.syntax.source import SourceFile

KEPT_BYTES_MAX = 64 << 20
"""Maximum size in bytes of the record lines that are kept in memory between two reads of the same task."""


class BatchProject:
    """A `Project` whose records come from the outcomes of a batch."""

    def __init__(
        self,
        plan: Plan,
        items: Sequence[Entry],
        ledger: OutcomeLedger,
        outcomes: OutcomeRegisters,
        *,
        read: Callable[[Entry], bytes],
        needs: Collection[str],
        contexts: Collection[str] = (),
        outside: Sequence[Entry] = (),
        symlinks: Sequence[Entry] = (),
    ) -> None:
        """`read` returns the content of a file.

        `needs` are the tasks whose records may be read. `contexts` are the names of the contexts that source files
        contain. `outside` are the files of the snapshot outside the batch. `symlinks` are its symbolic links.
        """
        self.files = items
        self.outside = outside
        self.symlinks = symlinks
        self._plan = plan
        self._ledger = ledger
        self._outcomes = outcomes
        self._read = read
        self._needs = needs
        self._contexts = contexts
        self._last_read: dict[str, tuple[TaskOutcome, bytes, list[int]]] = {}
        self._kept_lines: dict[tuple[str, str, int], tuple[bytes, list[int]]] = {}
        self._kept_bytes = 0

    def records(self, task: str, *kinds: str, holding: str = "") -> Iterator[tuple[Entry, list[Record]]]:
        """See `Project.records`."""
        if task not in self._needs:
            raise ValueError(f"the task must declare that it needs {task!r} to read its records")
        prefixes = line_prefixes(kinds)
        text = holding.encode("utf-8") or (prefixes[0] if len(prefixes) == 1 else b"")
        for shard in self._plan.shards:
            for link in self._ledger.iter_links(shard.id, task):
                if kinds and not any(kind in link.outcome.counts.kinds for kind in kinds):
                    continue
                lines, bounds = self._read_lines((task, shard.id, link.start), link)
                spans = [span for span in lines_holding(lines, text) if lines.startswith(prefixes, span[0])]
                records_by_item: dict[int, list[Record]] = {}
                for (start, _), record in zip(
                    spans,
                    record_decoder.decode_lines(b"".join([lines[start:end] for start, end in spans])),
                    strict=True,
                ):
                    records_by_item.setdefault(bisect_right(bounds, start) - 1, []).append(record)
                for item, item_records in records_by_item.items():
                    yield self.files[shard.start + link.start + item], item_records

    def _read_lines(self, key: tuple[str, str, int], link: ChainLink) -> tuple[bytes, list[int]]:
        """Return the record lines of an outcome and the bounds of its items. Lines are kept for the next read."""
        kept = self._kept_lines.get(key)
        if kept is None:
            kept = self._outcomes.read_items(link.segment, link.outcome)
            if self._kept_bytes + len(kept[0]) <= KEPT_BYTES_MAX:
                self._kept_lines[key] = kept
                self._kept_bytes += len(kept[0])
        return kept

    def records_of(self, file: Entry, task: str, *kinds: str) -> list[Record]:
        """See `Project.records_of`."""
        if task not in self._needs:
            raise ValueError(f"the task must declare that it needs {task!r} to read its records")
        item = self.path_item(file.path)
        shard = self._plan.shards[bisect_right(self._plan.shards, item, key=lambda candidate: candidate.start) - 1]
        item -= shard.start
        for link in self._ledger.iter_links(shard.id, task):
            if link.start <= item < link.end:
                last_outcome, lines, bounds = self._last_read.get(task, (None, b"", []))
                if last_outcome != link.outcome:
                    lines, bounds = self._outcomes.read_items(link.segment, link.outcome)
                    self._last_read[task] = (link.outcome, lines, bounds)
                start, end = bounds[item - link.start : item - link.start + 2]
                return decode_kinds(lines[start:end], kinds)
        return []

    def find(self, path: bytes) -> Entry | None:
        """See `Project.find`. Files of the snapshot that are outside the batch are found, too."""
        item = self._item_by_path.get(path)
        return self._outside_by_path.get(path) if item is None else self.files[item]

    def read(self, file: Entry) -> bytes:
        """Return the content of a file. Raises ObjectMissing."""
        return self._read(file)

    def source(self, file: Entry) -> SourceFile:
        """Return a file of the batch as SourceFile, as file tasks get it.

        Raises ValueError if the file is not in the batch, or ObjectMissing.
        """
        all_contexts = self._plan.item_contexts(self.path_item(file.path))
        contexts = {name: value for name, value in all_contexts.items() if name in self._contexts}
        return SourceFile(file.path, self._read(file), executable=file.executable, contexts=contexts)

    def record_item(self, record: BaseRecord) -> int:
        """Return the item number of the file that a record belongs to.

        Raises ValueError if there is none, or if the record changes another content than that of the file.
        """
        item = self.path_item(path_from_fields(record.path, record.path_b64))
        if isinstance(record, FileChange) and record.before != self.files[item].object:
            raise ValueError(f"the record changes another content than that of the file {self.files[item].text}")
        return item

    def path_item(self, path: bytes) -> int:
        """Return the number of the item with a path. Raises ValueError if the batch has none."""
        item = self._item_by_path.get(path)
        if item is None:
            problem = (
                "is outside the paths of the batch"
                if path in self._outside_by_path
                else "is not a file of the snapshot"
            )
            raise ValueError(f"{path!r} {problem}")
        return item

    @cached_property
    def _item_by_path(self) -> dict[bytes, int]:
        return {entry.path: item for item, entry in enumerate(self.files)}

    @cached_property
    def _outside_by_path(self) -> dict[bytes, Entry]:
        return {entry.path: entry for entry in self.outside}
