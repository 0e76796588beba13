"""The only entry for outcomes that were not produced in this store. Each is verified before it is committed.

The records themselves are not decoded. As for all results, readers verify them by the item table, and frames have
checksums of their own.
"""

from __future__ import annotations

import contextlib
import os
import zlib
from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import chain
from typing import get_args

from codebatch.model.analysis.item_table import ROW_BYTES, item_lengths
from codebatch.model.digest import digest_bytes
from codebatch.model.outcome import TaskOutcome
from codebatch.model.part import ExternalOutcome
from codebatch.model.plan import Plan
from codebatch.model.record import FailureReason
from codebatch.model.record_counts import RecordCounts
from codebatch.model.shard import ShardId
from codebatch.protocol.record_frames import iter_places
from codebatch.scheduling.analysis.ledger import OutcomeLedger
from codebatch.store.batches.batch_directory import BatchDir, make_batch_directories
from codebatch.store.batches.holders import HolderFile, HolderRegistration, new_holder_id
from codebatch.store.objects.referenced_objects import may_name_objects
from codebatch.store.results.outcomes import EncodedOutcome, OutcomeCommitter
from codebatch.system.clock import wall_ns
from codebatch.system.host import this_host

EXTERNAL_RECORD_BYTES_MAX = 1 << 30
"""Maximum size of the records of an external outcome."""

EXTERNAL_TEXT_BYTES_MAX = 4096
"""Maximum length of a text in an external outcome."""

EXTERNAL_COUNTS_MAX = 10_000
"""Maximum number of different counts in an external outcome."""

_OUTCOMES_PER_COMMIT_MAX = 1_000
_COMMIT_BYTES_MAX = 64 << 20
_REASONS = frozenset(get_args(FailureReason))


class ExternalOutcomeCheck:
    """The checks of the outcomes of one source, which must be sorted by item for each shard and task."""

    def __init__(self, shards: Mapping[ShardId, int], tasks: Collection[str]) -> None:
        """Start without outcomes. `shards` maps each shard to its number of items. `tasks` are the file tasks."""
        self._shards = shards
        self._tasks = tasks
        self._ends: dict[tuple[ShardId, str], int] = {}

    @classmethod
    def of_plan(cls, plan: Plan) -> ExternalOutcomeCheck:
        """Return the checks for outcomes of a plan."""
        tasks = frozenset(task.name for task in plan.tasks if task.scope == "file")
        return cls({shard.id: shard.items for shard in plan.shards}, tasks)

    def check(self, external: ExternalOutcome) -> None:
        """Raise ValueError if an outcome does not fit the plan, or if its bytes do not match it."""
        outcome = external.outcome
        key = outcome.shard, outcome.task
        if outcome.shard not in self._shards:
            raise ValueError("an outcome of a shard that is not in the plan")
        if outcome.task not in self._tasks:
            raise ValueError("an outcome of a task that is not a file task of the plan")
        if not 0 <= outcome.start < outcome.end <= self._shards[outcome.shard]:
            raise ValueError("an outcome with an impossible range")
        if outcome.start < self._ends.get(key, 0):
            raise ValueError("outcomes that overlap or are not sorted")
        _check_type(outcome)
        _check_counts(outcome.counts)
        _check_bytes(external)
        self._ends[key] = outcome.end


def _check_type(outcome: TaskOutcome) -> None:
    match outcome.type:
        case "result":
            if outcome.reason is not None:
                raise ValueError("a result with a reason for a failure")
        case "failed":
            if outcome.end != outcome.start + 1 or outcome.reason not in _REASONS:
                raise ValueError("a failure of several items or without a known reason")
        case _:
            raise ValueError(f"an outcome of the type {outcome.type!r}")
    plain = TaskOutcome(
        shard=outcome.shard,
        task=outcome.task,
        start=outcome.start,
        end=outcome.end,
        type=outcome.type,
        reason=outcome.reason,
        length=outcome.length,
        bytes=outcome.bytes,
        crc=outcome.crc,
        digest=outcome.digest,
        counts=outcome.counts,
        inputs_outside_key=outcome.inputs_outside_key,
    )
    if outcome != plain:
        raise ValueError("an outcome that refers to other files, inputs or attempts")
    if len(outcome.inputs_outside_key.encode("utf-8", "replace")) > EXTERNAL_TEXT_BYTES_MAX:
        raise ValueError("an outcome with a text that is too long")


def _check_counts(counts: RecordCounts) -> None:
    tables = [counts.kinds, counts.languages, *counts.diagnostics.values()]
    names = [*counts.diagnostics, *chain.from_iterable(tables)]
    if len(names) > EXTERNAL_COUNTS_MAX or any(len(name) > EXTERNAL_TEXT_BYTES_MAX for name in names):
        raise ValueError("an outcome with too many counts")
    if not all(0 <= number <= EXTERNAL_RECORD_BYTES_MAX for table in tables for number in table.values()):
        raise ValueError("an outcome with an impossible count")
    if may_name_objects(counts):
        raise ValueError("syntax trees or changes of files, whose objects are in another store")


def _check_bytes(external: ExternalOutcome) -> None:
    outcome, frames, table = external.outcome, external.frames, external.table
    if not 0 <= outcome.bytes <= EXTERNAL_RECORD_BYTES_MAX:
        raise ValueError("an outcome with too many records")
    if len(table) != ROW_BYTES * (outcome.end - outcome.start) or sum(item_lengths(table)) != outcome.bytes:
        raise ValueError("an item table of another size")
    if digest_bytes(table) != outcome.digest:
        raise ValueError("an item table that does not match its digest")
    if len(frames) != outcome.length or zlib.crc32(frames) != outcome.crc:
        raise ValueError("frames that do not match their checksum")
    for _ in iter_places(frames, outcome.bytes):
        pass


@contextlib.contextmanager
def registered_committer(batch: BatchDir, about: HolderFile) -> Iterator[OutcomeCommitter]:
    """Register a holder, and yield its committer. Both end with the block. Raises StoreUnwritable."""
    make_batch_directories(batch)
    registration = HolderRegistration(batch.files, batch.root, about)
    try:
        committer = OutcomeCommitter(batch.files, batch.root, about.holder)
        try:
            yield committer
        finally:
            committer.close()
    finally:
        registration.close()


def new_external_holder() -> HolderFile:
    """Return the holder file of a process that commits external outcomes."""
    return HolderFile(holder=new_holder_id(), role="coordinator", pid=os.getpid(), host=this_host(), since_ns=wall_ns())


class ExternalCommitter:
    """Commits external outcomes to one batch, several in one commit."""

    def __init__(self, plan: Plan, ledger: OutcomeLedger, committer: OutcomeCommitter) -> None:
        """`ledger` has the outcomes of the batch. It receives the new ones."""
        self._plan = plan
        self._ledger = ledger
        self._committer = committer
        self._group: list[EncodedOutcome] = []
        self._group_bytes = 0

    def commit(self, sources: Iterable[Iterable[ExternalOutcome]]) -> int:
        """Commit the outcomes of some sources. Return the number of items that got a result.

        An outcome is skipped if the ledger has outcomes for all its items. On return the others are durable. Raises
        ValueError if an outcome is invalid; the outcomes before it may then be committed. Raises StoreUnwritable.
        """
        items = 0
        for outcomes in sources:
            checks = ExternalOutcomeCheck.of_plan(self._plan)
            for external in outcomes:
                checks.check(external)
                items += self._add(external)
        self._commit_group()
        return items

    def _add(self, external: ExternalOutcome) -> int:
        outcome = external.outcome
        holes = self._ledger.list_holes(outcome.shard, outcome.task)
        if not any(start < outcome.end and outcome.start < end for start, end in holes):
            return 0
        self._group.append(EncodedOutcome(outcome, external.frames, external.table))
        self._group_bytes += outcome.length + len(external.table)
        if len(self._group) >= _OUTCOMES_PER_COMMIT_MAX or self._group_bytes >= _COMMIT_BYTES_MAX:
            self._commit_group()
        return outcome.end - outcome.start

    def _commit_group(self) -> None:
        if self._group:
            self._ledger.add(self._committer.commit_outcomes(self._group, epoch=0, round_=1))
        self._group = []
        self._group_bytes = 0
