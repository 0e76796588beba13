"""A source that reads the outcomes of a batch before they are merged."""

from __future__ import annotations

import bisect
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import cached_property
from itertools import islice

from codebatch.errors import StoreCorrupt
from codebatch.index.keys import TermLookup
from codebatch.model.outcome import first_uncovered_input
from codebatch.model.plan import Plan
from codebatch.model.record_counts import add_counts
from codebatch.query.sources.sources import MergedSource, PartialShardCounts, ShardRecords
from codebatch.scheduling.analysis.chains import ChainLink
from codebatch.scheduling.analysis.ledger import OutcomeLedger
from codebatch.scheduling.outcome_counts import OutcomeCounts
from codebatch.store.results.ledgers import count_files_done, count_ledger_outcomes, load_ledger
from codebatch.store.results.outcomes import OutcomeRegisters
from codebatch.store.results.outputs import ReadFrameCounts


class LiveSource:
    """A source that reads the outcomes of a batch.

    The registers, file names that list all outcomes, are scanned once: on first use or when `scan_registers` is called.
    """

    def __init__(
        self,
        outcomes: OutcomeRegisters,
        plan: Callable[[], Plan],
        read_settled: Callable[[], MergedSource | None] = lambda: None,
    ) -> None:
        """Wrap the outcomes of a batch.

        A merge can delete the outcomes at any time. `read_settled` returns the merged outputs if this has happened,
        otherwise None.
        """
        self._outcomes = outcomes
        self._plan = plan
        self._read_settled = read_settled
        self.frames_read = ReadFrameCounts()

    def scan_registers(self) -> None:
        """Scan the registers now instead of on first use."""
        self._current_ledger  # noqa: B018 - the property caches the ledger

    @property
    def description(self) -> str:
        return "outcomes so far (nothing is merged yet)"

    @property
    def outputs(self) -> None:
        return None

    @property
    def task_names(self) -> tuple[str, ...]:
        return self._plan().task_names

    @property
    def project_tasks(self) -> tuple[str, ...]:
        return self._plan().project_tasks

    @property
    def is_done(self) -> bool:
        return False

    def count_outcomes(self, tasks: Collection[str]) -> OutcomeCounts:
        return count_ledger_outcomes(self._current_ledger, tasks)

    def files_done(self, tasks: Collection[str]) -> int:
        return count_files_done(self._current_ledger, self._plan(), tasks)

    def iter_shards(self, task: str) -> Iterator[PartialShardCounts]:
        for planned in self._plan().shards:
            links = list(self._current_ledger.iter_links(planned.id, task))
            yield PartialShardCounts(
                sum(link.end - link.start for link in links),
                sum(link.type == "failed" for link in links),
                add_counts(link.outcome.counts for link in links),
            )

    def iter_pieces(self, task: str, lookups: Sequence[TermLookup] = ()) -> Iterator[ShardRecords]:
        pieces = enumerate(self._current_ledger.iter_shard_results(task))
        return (self._make_piece(task, index, piece.links) for index, piece in pieces)

    def item_lines(self, task: str, item: int) -> bytes | None:
        shard = self._plan().shards[bisect.bisect_right(self._shard_starts, item) - 1]
        place = item - shard.start
        link = next(
            (link for link in self._current_ledger.iter_links(shard.id, task) if link.start <= place < link.end), None
        )
        if link is None:
            return None
        try:
            lines = self._outcomes.read_item(link.segment, link.outcome, place - link.start)
        except StoreCorrupt:
            if (merged := self._read_settled()) is None:
                raise
            lines = merged.item_lines(task, item)
        self.frames_read.record_bytes += len(lines)
        return lines

    @cached_property
    def _current_ledger(self) -> OutcomeLedger:
        return load_ledger(self._plan(), self._outcomes)

    @cached_property
    def _shard_starts(self) -> list[int]:
        return [shard.start for shard in self._plan().shards]

    def _make_piece(self, task: str, index: int, links: Sequence[ChainLink]) -> ShardRecords:
        counts = add_counts(link.outcome.counts for link in links)
        return ShardRecords(
            counts, lambda: self._read_lines(task, index, links), first_uncovered_input(link.outcome for link in links)
        )

    def _read_lines(self, task: str, index: int, links: Sequence[ChainLink]) -> Iterator[bytes]:
        """Yield the record lines of a shard.

        All lines are read before the first one is yielded. If a merge deletes the outcomes while they are read, all
        lines come from the merged shard instead. So lines of the two sources are never mixed.
        """
        try:
            lines: Iterable[bytes] = [b"".join(self._outcomes.iter_items(link.segment, link.outcome)) for link in links]
        except StoreCorrupt:
            if (merged := self._read_settled()) is None:
                raise
            lines = next(islice(merged.iter_pieces(task), index, None)).read()
        for block in lines:
            self.frames_read.record_bytes += len(block)
            yield block
