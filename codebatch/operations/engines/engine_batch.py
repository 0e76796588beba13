"""A batch whose shards an engine executes: leases of its parts, capsules, and commits of answers."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Sequence
from types import TracebackType

from codebatch.coordinator.analysis.adoption import PendingReuse, ReuseSource
from codebatch.coordinator.analysis.costs import estimate_costs, estimate_seconds
from codebatch.coordinator.engines.capsules import CapsuleMaker, make_capsule_header
from codebatch.coordinator.engines.ports import ReceivedAnswer
from codebatch.model.analysis.result_key import PlanItems
from codebatch.model.capsule import AnswerHeader
from codebatch.model.part import ExternalOutcome
from codebatch.model.plan import PlannedTask, plan_items
from codebatch.model.shard import Shard, ShardId
from codebatch.operations.runs.execution import ExecutionSettings
from codebatch.operations.runs.requests import append_cancel_lift
from codebatch.scheduling.analysis.part_dispatcher import EnginePart, OpenShard
from codebatch.store.batches import journal
from codebatch.store.batches.batch_directory import BatchDir, make_batch_directories
from codebatch.store.batches.holders import HolderRegistration, LeaseReader
from codebatch.store.batches.store_directory import StoreDir
from codebatch.store.capsules import answer_format
from codebatch.store.external_outcomes import ExternalCommitter, ExternalOutcomeCheck, new_external_holder
from codebatch.store.results.ledgers import load_ledger
from codebatch.store.results.outcomes import OutcomeCommitter, OutcomeRegisters
from codebatch.store.results.untrusted import untrusted_keys
from codebatch.store.snapshots.snapshots import Snapshot
from codebatch.store.work.requests import is_cancelled
from codebatch.system.clock import running_ns, wall_ns

_CANCEL_POLL_NS = 500_000_000


class EngineBatch:
    """A batch during its execution by an engine. Use it as a context manager: at the end, all leases are released."""

    def __init__(
        self,
        execution: ExecutionSettings,
        store: StoreDir,
        batch: BatchDir,
        tasks: tuple[PlannedTask, ...],
        snapshot: Snapshot,
        *,
        jobs: int,
    ) -> None:
        """Register as a holder, and reuse results of older batches. `tasks` are those that the engine executes.

        `jobs` is the number of worker processes for a capsule. Raises CodebatchError or OSError.
        """
        append_cancel_lift(batch)
        plan = batch.plan()
        self._plan = plan
        self._batch = batch
        self._tasks = tuple(task.name for task in tasks)
        self._items = plan_items(snapshot.entries, plan.paths)
        self._sizes = {shard.id: shard.items for shard in plan.shards}
        header = make_capsule_header(
            plan.digest,
            plan.pipeline,
            tasks,
            execution.configuration.catalogue,
            limits=execution.part_limits(plan.task_names),
            jobs=jobs,
            hash_seed=execution.hash_seed,
        )
        self._capsules = CapsuleMaker(header, plan, self._items, store.objects())
        with contextlib.ExitStack() as opened:
            make_batch_directories(batch)
            about = new_external_holder()
            self._holder = HolderRegistration(batch.files, batch.root, about)
            opened.callback(self._holder.close)
            self._journal = journal.JournalWriter(batch.files, batch.root, about.holder, wall_ns)
            opened.callback(self._journal.close)
            committer = OutcomeCommitter(batch.files, batch.root, about.holder)
            opened.callback(committer.close)
            self._reused = self._adopt_results(execution, store, snapshot, committer)
            self._ledger = load_ledger(plan, OutcomeRegisters(batch.files, batch.root))
            self._external = ExternalCommitter(plan, self._ledger, committer)
            self._leases = {
                shard: lease
                for (shard, start), lease in LeaseReader(batch.files, batch.root).read_leases().items()
                if start == 0
            }
            self._leased: set[ShardId] = set()
            self._journal.write_event(journal.Started(pid=about.pid))
            self._open_resources = opened.pop_all()
        self._is_cancelled = False
        self._cancel_read_ns = 0

    def __enter__(self) -> EngineBatch:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: object, traceback: TracebackType | None) -> None:
        with self._open_resources:
            self._journal.write_event(journal.Ended(reason=journal.ENGINE_ENDED))

    def _adopt_results(
        self, execution: ExecutionSettings, store: StoreDir, snapshot: Snapshot, committer: OutcomeCommitter
    ) -> PendingReuse:
        if not execution.reuses:
            return PendingReuse()
        reuse = ReuseSource(
            store, execution.configuration.catalogue, self._batch.about.bases, untrusted_keys(store), snapshot
        )
        return reuse.adopt_results(
            self._batch,
            self._plan,
            PlanItems(self._items, self._plan.contexts),
            committer,
            tasks=frozenset(self._tasks),
            shards=None,
        )

    @property
    def open_shards(self) -> list[OpenShard]:
        """The shards that have no result of any task, and of which no result can be reused, in plan order."""
        if not self._tasks:
            return []
        costs = estimate_costs(self._plan, self._items, None)
        return [
            OpenShard(id=shard.id, seconds=estimate_seconds([costs[shard.id][-1]]), bytes=shard.bytes)
            for shard in self._plan.shards
            if self._is_untouched(shard)
        ]

    def _is_untouched(self, shard: Shard) -> bool:
        whole = [(0, shard.items)]
        return all(
            self._ledger.list_holes(shard.id, task) == whole and not self._reused.runs.get((shard.id, task))
            for task in self._tasks
        )

    def is_cancelled(self) -> bool:
        """Return whether a request cancels the batch."""
        if not self._is_cancelled and running_ns() - self._cancel_read_ns >= _CANCEL_POLL_NS:
            self._cancel_read_ns = running_ns()
            self._is_cancelled = is_cancelled(self._batch.files, self._batch.root)
        return self._is_cancelled

    def take_leases(self, part: EnginePart) -> set[ShardId]:
        """Take the leases of a part's shards. Return the shards that another process holds."""
        for shard in part.shards:
            lease = self._leases.get(shard)
            if shard in self._leased or (lease is not None and lease.is_live):
                continue
            if self._holder.try_lease(shard, 0, 1 if lease is None else lease.epoch + 1):
                self._leased.add(shard)
        return {shard for shard in part.shards if shard not in self._leased}

    def make_capsule(self, part: EnginePart) -> bytes:
        """Return the capsule of a part. Raises ObjectMissing."""
        return self._capsules.make(part.shards, part.seconds_max)

    def read_answer(self, data: bytes) -> tuple[AnswerHeader, list[ExternalOutcome]]:
        """Return the header and the outcomes of an answer. Without a refusal, the outcomes are complete.

        Raises ValueError if the data is damaged, or if an outcome does not fit the plan.
        """
        header, records = answer_format.decode(data)
        outcomes = list(records)
        checks = ExternalOutcomeCheck.of_plan(self._plan)
        counts: Counter[tuple[ShardId, str]] = Counter()
        for external in outcomes:
            checks.check(external)
            outcome = external.outcome
            counts[outcome.shard, outcome.task] += outcome.end - outcome.start
        expected = {(shard, task): self._sizes.get(shard) for shard in header.shards for task in self._tasks}
        if header.refusal is None and counts != expected:
            raise ValueError("results are missing, or belong to other shards")
        return header, outcomes

    def commit(self, answers: Sequence[ReceivedAnswer[list[ExternalOutcome]]]) -> int:
        """Commit the outcomes of answers. On return they are durable. Return the number of results that were new."""
        results = self._external.commit([answer.records for answer in answers])
        for answer in answers:
            header = answer.header
            self._journal.write_event(
                journal.PartReceived(
                    host=header.host,
                    shards=header.shards,
                    results=len(self._tasks) * sum(self._sizes[shard] for shard in header.shards),
                    seconds=header.seconds,
                    cpu_seconds=header.cpu_seconds,
                )
            )
        return results
