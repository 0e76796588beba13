"""A worker of an analysis: it leases, executes and commits units that its coordinator assigns."""

from __future__ import annotations

import contextlib
import errno
import os
import time
from collections.abc import Callable, Sequence
from functools import cached_property, partial
from pathlib import Path

from codebatch.errors import InvalidConfiguration, StoreError, ToolMismatch
from codebatch.model.analysis.result_key import PlanItems
from codebatch.model.entry import Entry
from codebatch.model.outcome import WorkUnit
from codebatch.model.plan import plan_items, visible_contexts
from codebatch.model.shard import ProjectWork, Shard
from codebatch.model.task import BUILT_IN_TASKS, CustomTaskLocation
from codebatch.plugins.catalogue import TaskCatalogue
from codebatch.plugins.input_audit import InputAudit
from codebatch.protocol.launch import WorkerLaunch
from codebatch.protocol.messages import (
    PROTOCOL_VERSION,
    Assign,
    Committed,
    Drain,
    Finished,
    Hello,
    Proceed,
    Refused,
    ReusedRange,
    Shrink,
    Stop,
    Terminate,
)
from codebatch.store import layout
from codebatch.store.batches import journal
from codebatch.store.batches.batch_directory import load_batch_snapshot, open_batch
from codebatch.store.batches.holders import HolderFile, HolderRegistration
from codebatch.store.batches.store_directory import open_store
from codebatch.store.damage import treating_damage_as_missing
from codebatch.store.objects.pack_writer import PackWriter
from codebatch.store.results.bases import SnapshotItems
from codebatch.store.results.ledgers import load_ledger
from codebatch.store.results.outcomes import EncodedOutcome, OutcomeCommitter, OutcomeRegisters, removed_outcomes_error
from codebatch.store.results.shard_adoption import adopt_shard
from codebatch.system.clock import process_cpu_ns, running_ns, wall_ns
from codebatch.system.files.files import RealFiles, StoreFiles
from codebatch.system.host import this_host
from codebatch.system.processes.progress_cell import (
    PHASE_BATCHED,
    PHASE_COMMIT,
    PHASE_IDLE,
    PHASE_ITEM,
    PHASE_LEASE,
    PHASE_PROJECT,
    ProgressCell,
    WorkerStep,
)
from codebatch_workers.runtime.channel import CoordinatorChannel, report_fatal_error
from codebatch_workers.runtime.execution import TaskRunner
from codebatch_workers.runtime.outcome_events import outcome_event
from codebatch_workers.runtime.previous_batch import PreviousBatch
from codebatch_workers.runtime.project import BatchProject
from codebatch_workers.runtime.results import ReusedRecords, TaskFailure, TaskResult, UnitResults
from codebatch_workers.runtime.reused_results import ReusedBatches, ReusedLines
from codebatch_workers.runtime.sources import iter_sources
from codebatch_workers.runtime.terms import terms_keeper
from codebatch_workers.syntax.source import SourceFile

DESCRIPTORS_LEAKED_MAX = 100
DESCRIPTORS_RESERVED = 32
_UNITS_PER_DESCRIPTOR_CHECK = 16  # The number of items between two checks for leaked file descriptors.
_MESSAGES_POLL_NS = 1_000_000  # The time between two checks for messages of the coordinator.


class AnalysisWorker:
    """One worker process of one batch, from its start to its end.

    It has many methods: each is a step of a unit.
    """

    def __init__(
        self,
        launch: WorkerLaunch,
        channel: CoordinatorChannel,
        *,
        pid: int,
        files: StoreFiles | None = None,
        cell: ProgressCell | None = None,
        runner: TaskRunner | None = None,
        now_ns: Callable[[], int] = running_ns,
    ) -> None:
        """Use the system's files, a progress cell on disk, and the installed tasks by default.

        `now_ns` is the clock for the interval of `_receive_messages`.
        """
        files = files or RealFiles()
        store = open_store(files, Path(launch.store))
        batch = open_batch(store, launch.batch)
        self._channel = channel
        self._files = files
        self._root = batch.root
        self._plan = batch.plan()
        self._work = self._plan.work_by_id()
        self._snapshot = load_batch_snapshot(store, batch)
        self._objects = store.objects()
        about = HolderFile(
            holder=launch.holder,
            role="worker",
            pid=pid,
            host=this_host(),
            since_ns=wall_ns(),
            parent=launch.coordinator,
        )
        self._holder = HolderRegistration(files, batch.root, about)
        self._cell = cell or ProgressCell(
            files, batch.root / layout.HOLDERS / layout.cell_name(launch.holder), create=True
        )
        self._committer = OutcomeCommitter(files, batch.root, launch.holder)
        self._journal = journal.JournalWriter(files, batch.root, launch.holder, wall_ns)
        has_custom_tasks = any(isinstance(location, CustomTaskLocation) for location in launch.own_tasks.values())
        self._runner = runner or TaskRunner(
            TaskCatalogue(
                launch.own_tasks, InputAudit(str(store.root)) if has_custom_tasks else None, batch.about.imports
            ),
            self._plan.tasks,
            Path.cwd(),
            PackWriter(self._objects),
            store.root,
            terms_keeper(files, store.root, self._plan) if launch.keeps_terms else None,
            self._objects.read,
            partial(_restart_step, self._cell),
        )
        self._bases = ReusedBatches(store)
        self._task_numbers = {name: number for number, name in enumerate(self._plan.task_names)}
        self._items_done = 0
        self._records = 0
        self._units = 0
        self._now_ns = now_ns
        self._received_ns = 0
        self._is_draining = False
        self._reserved_descriptors = [os.dup(channel.fileno()) for _ in range(DESCRIPTORS_RESERVED)]
        self._is_worn = False

    @property
    def has_only_built_in_tasks(self) -> bool:
        """Whether only built-in tasks run in this process."""
        return set(self._plan.task_names) <= set(BUILT_IN_TASKS)

    def run(self) -> None:
        """Work until the coordinator requests the end. Raises CoordinatorLost."""
        directories = (layout.OUTCOMES, layout.RESULTS, layout.LEASES)
        directories_to_keep = [self._objects.root, *(self._root / name for name in directories)]
        with self._files.keeping_open(*(directories_to_keep if self.has_only_built_in_tasks else ())):
            self._run_until_stopped()

    def _run_until_stopped(self) -> None:
        self._channel.send(Hello(version=PROTOCOL_VERSION, holder=self._holder.id))
        while True:
            match self._channel.receive():
                case Assign(unit=unit, epoch=epoch, served=served):
                    try:
                        self._run_unit(unit, epoch, served)
                    except (InvalidConfiguration, StoreError, ToolMismatch) as error:
                        if isinstance(error.__cause__, OSError) and error.__cause__.errno == errno.EMFILE:
                            raise  # A task has used up the file descriptors, so the error is not one of the store.
                        report_fatal_error(self._channel, error)
                        return
                case Drain():
                    self._is_draining = True
                case Shrink() | Terminate() | Proceed():
                    pass  # The message refers to a finished unit.
                case Stop():
                    return

    def _run_unit(self, unit: WorkUnit, epoch: int, served: Sequence[ReusedRange]) -> None:
        self._units += 1
        self._record_step(unit.start, unit.start, PHASE_LEASE)
        self._set_up(unit.tasks)
        if not self._holder.try_lease(unit.shard, unit.start, epoch):
            self._record_step(0, 0, PHASE_IDLE)
            self._channel.send(Refused(epoch=epoch))
            return
        began = time.perf_counter()
        cpu_ns = process_cpu_ns()
        self._journal.write_event(
            journal.Began(
                shard=unit.shard, start=unit.start, end=unit.end, tasks=unit.tasks, round=unit.round, epoch=epoch
            )
        )
        start, end, encoded = self._execute_unit(unit, served)
        if encoded:
            self._commit_outcomes(unit, epoch, encoded)
        self._record_step(0, 0, PHASE_IDLE)
        seconds = time.perf_counter() - began
        self._journal.write_event(
            journal.Finished(
                shard=unit.shard,
                start=start,
                end=end,
                epoch=epoch,
                seconds=round(seconds, 6),
                cpu_seconds=round((process_cpu_ns() - cpu_ns) / 1e9, 6),
            )
        )
        self._channel.send(Finished(seconds=seconds, is_worn=self._is_worn))

    def _set_up(self, tasks: Sequence[str]) -> None:
        """Load tasks. Raises InvalidConfiguration for an OSError in the first unit of this worker.

        A module of a task may have lowered a limit of the process. In that case, a new worker would fail in the same
        way.
        """
        try:
            self._runner.set_up(tasks)
        except OSError as error:
            if self._units > 1:
                raise
            names = ", ".join(tasks)
            raise InvalidConfiguration(
                f"cannot set up tasks ({names}): {error.strerror}",
                hint="check whether a task changes the limits of its process or leaves files open",
            ) from None

    def _execute_unit(self, unit: WorkUnit, served: Sequence[ReusedRange]) -> tuple[int, int, list[EncodedOutcome]]:
        """Execute a unit. Return the range [start, end) of the items that were finished, and the outcomes for them."""
        match self._work[unit.shard]:
            case Shard(start=first):
                done = self._execute_items(unit, first, self._bases.find(served, unit.start, unit.end))
                self._record_step(done.start, done.end, PHASE_COMMIT)
                return done.start, done.end, list(self._runner.encode_unit(unit, done))
            case ProjectWork():
                encoded = self._execute_project(unit, served)
                self._record_step(unit.start, unit.end, PHASE_COMMIT)
                return unit.start, unit.end, [encoded]

    def _execute_items(self, unit: WorkUnit, first: int, reused: ReusedLines) -> UnitResults:
        lines = reused.lines
        done = UnitResults(start=unit.start, results={name: [] for name in unit.tasks}, reused_counts=reused.counts)
        start = first + unit.start
        entries = self._items_between(start, first + unit.end)
        missing_tasks = reused.missing_tasks(unit.tasks, unit.start, unit.end)
        loaded = iter_sources(
            ((entries[item - unit.start], self._plan.item_contexts(first + item)) for item in missing_tasks),
            self._read_object,
        )
        sources: dict[int, SourceFile] = {}
        end = unit.end
        for item in range(unit.start, unit.end):
            end = self._receive_messages(unit, end)
            if item >= end or self._is_draining or self._is_worn:
                break
            self._record_step(item, item + 1, PHASE_ITEM)
            entry = entries[item - unit.start]
            results: dict[str, TaskResult] = {}
            if item in missing_tasks:
                results, sources[item - unit.start] = self._run_item(entry, next(loaded), missing_tasks[item])
            done.items.append(entry)
            for name in unit.tasks:
                done.results[name].append(results[name] if name in results else ReusedRecords(lines[name, item]))
            self._items_done += 1
            if not self._items_done % _UNITS_PER_DESCRIPTOR_CHECK or any(
                isinstance(result, TaskFailure) for result in results.values()
            ):
                self._check_descriptors()
        self._record_step(done.start, done.end, PHASE_BATCHED)
        for name in unit.tasks:
            current = done.results[name]
            pending = {index: result for index, result in enumerate(current) if not isinstance(result, ReusedRecords)}
            self._begin_task(name)
            completed = self._runner.complete_results(
                name, [sources[index] for index in pending], list(pending.values())
            )
            for index, result in zip(pending, completed, strict=True):
                current[index] = result
        return done

    def _run_item(
        self, entry: Entry, source: SourceFile | TaskFailure, tasks: Sequence[str]
    ) -> tuple[dict[str, TaskResult], SourceFile]:
        """Run `tasks` on one file. They are the tasks that have no reused result for this file."""
        if isinstance(source, TaskFailure):
            empty = SourceFile(path=entry.path, content=b"", executable=entry.executable, contexts={})
            return dict.fromkeys(tasks, source), empty
        results = self._runner.run_item(source, tasks, self._begin_task)
        source.release()
        return results, source

    def _execute_project(self, unit: WorkUnit, served: Sequence[ReusedRange]) -> EncodedOutcome:
        """Execute a project task. Its inputs are the current outcomes of all tasks that it needs."""
        (name,) = unit.tasks
        self._record_step(unit.start, unit.end, PHASE_PROJECT)
        self._begin_task(name)
        outcomes = OutcomeRegisters(self._files, self._root)
        ledger = load_ledger(self._plan, outcomes)
        needs = self._plan.tasks[self._task_numbers[name]].needs
        needed = [(shard, need) for shard, need in ledger.iter_chain_keys if need in needs]
        if any(ledger.list_holes(shard, need) for shard, need in needed):
            # All outcomes existed when this unit was assigned, so some were removed since. The result would be wrong.
            raise removed_outcomes_error(self._files, self._root)
        contexts = visible_contexts(self._plan.tasks)[name]
        project = BatchProject(
            self._plan,
            self._all_items,
            ledger,
            outcomes,
            read=self._read_object,
            needs=needs,
            contexts=contexts,
            outside=self._excluded_entries(),
            symlinks=[entry for entry in self._snapshot.entries if entry.kind == "symlink"],
        )

        def before() -> PreviousBatch | None:
            if not served or any(
                link.type != "result" for shard, need in needed for link in ledger.iter_links(shard, need)
            ):
                return None
            return self._open_previous(name, needs, contexts, served[0].base)

        adopt = partial(adopt_shard, self._files, outcomes)
        encoded = self._runner.run_project(
            unit, project, self._plan.shards, ledger.inputs_digest(name), before=before, adopt=adopt
        )
        if any(part.file for part in encoded.outcome.parts):
            self._files.sync_directory(self._root / layout.RESULTS)
        return encoded

    def _open_previous(
        self, name: str, needs: Sequence[str], contexts: frozenset[str], batch_id: str
    ) -> PreviousBatch | None:
        """Return the older batch from which a project task can continue. If it is missing or damaged, return None."""
        base = self._bases.base(batch_id)
        if base is not None:
            with treating_damage_as_missing():
                old = base.items(SnapshotItems(self._snapshot, self._all_items))
                new = PlanItems(self._all_items, self._plan.contexts)
                return PreviousBatch(base, old, new, task=name, needs=needs, contexts=contexts, read=self._read_object)
        return None

    def _excluded_entries(self) -> list[Entry]:
        """Return the files of the snapshot that the path restriction of the plan excludes."""
        if not self._plan.paths:
            return []
        inside = {entry.path for entry in self._all_items}
        return [entry for entry in plan_items(self._snapshot.entries) if entry.path not in inside]

    def _commit_outcomes(self, unit: WorkUnit, epoch: int, encoded: list[EncodedOutcome]) -> None:
        commit = self._committer.commit_outcomes(encoded, epoch=epoch, round_=unit.round)
        self._records += sum(outcome.counts.records for outcome in commit.outcomes)
        evidence = {(part.outcome.task, part.outcome.start): part.evidence or None for part in encoded}
        for outcome in commit.outcomes:
            self._journal.write_event(outcome_event(outcome, unit.round, epoch, evidence[outcome.task, outcome.start]))
        self._channel.send(Committed(commit=commit, lost=len(encoded) - len(commit.outcomes)))

    @cached_property
    def _all_items(self) -> list[Entry]:
        """All items of the plan. They are computed on first use, because a unit of items needs only its own entries."""
        return plan_items(self._snapshot.entries, self._plan.paths)

    def _items_between(self, start: int, end: int) -> list[Entry]:
        """Return the plan's items [start, end). Raises StoreCorrupt."""
        # With a path restriction, the numbers of items differ from the numbers of files in the snapshot.
        return self._all_items[start:end] if self._plan.paths else self._snapshot.items_between(start, end)

    def _read_object(self, entry: Entry) -> bytes:
        return self._objects.read(entry.object, entry.size)

    def _receive_messages(self, unit: WorkUnit, end: int) -> int:
        """Apply the messages that have arrived. Return the end of the unit, which a message can decrease.

        Polling takes as long as many a small file, so it is skipped within _MESSAGES_POLL_NS after the last poll.
        """
        now_ns = self._now_ns()
        if now_ns - self._received_ns < _MESSAGES_POLL_NS:
            return end
        self._received_ns = now_ns
        while (message := self._channel.try_receive()) is not None:
            match message:
                case Shrink(start=unit.start, end=smaller):
                    end = min(end, smaller)
                case Drain():
                    self._is_draining = True
                case _:
                    pass  # This message is a Shrink of a unit that is finished.
        return end

    def _check_descriptors(self) -> None:
        """Set `_is_worn` if tasks left many file descriptors open. A worn worker ends its unit early, as its last one.

        dup(2) returns the lowest free descriptor, so its value shows how many are open. A worn worker closes its
        reserved descriptors, so that it can still commit the unit.
        """
        if self._is_worn:
            return
        with contextlib.suppress(OSError):
            lowest = os.dup(self._channel.fileno())
            os.close(lowest)
            if lowest <= self._reserved_descriptors[-1] + DESCRIPTORS_LEAKED_MAX:
                return
        self._is_worn = True
        for descriptor in self._reserved_descriptors:
            os.close(descriptor)

    def _begin_task(self, name: str) -> None:
        self._cell.write_task(self._task_numbers[name])

    def _record_step(self, item: int, end: int, phase: int) -> None:
        self._cell.write_step(WorkerStep(running_ns(), self._items_done, self._records, self._units, item, end, phase))


def _restart_step(cell: ProgressCell) -> None:
    cell.restart_step(running_ns())
