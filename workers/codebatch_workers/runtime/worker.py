"""A worker: takes units from its coordinator, leases, executes and commits them, until told to stop or left alone."""

from __future__ import annotations

import contextlib
import errno
import os
import time
from collections.abc import Callable, Sequence
from functools import cached_property, partial
from pathlib import Path

from codebatch.errors import InvalidConfiguration, StoreError, ToolMismatch
from codebatch.model.analysis.result_key import Items
from codebatch.model.entry import Entry
from codebatch.model.outcome import Unit
from codebatch.model.plan import contexts_seen, items_of
from codebatch.model.shard import ProjectWork, Shard
from codebatch.model.task import PIPELINES
from codebatch.plugins.catalogue import TaskCatalogue
from codebatch.plugins.input_audit import InputAudit
from codebatch.protocol.launch import Launch
from codebatch.protocol.messages import (
    PROTOCOL_VERSION,
    Assign,
    Committed,
    Drain,
    Finished,
    Hello,
    Proceed,
    Refused,
    Served,
    Shrink,
    Stop,
    Terminate,
)
from codebatch.store import layout
from codebatch.store.batches import journal
from codebatch.store.batches.batches import open_batch, snapshot_of
from codebatch.store.batches.holders import Holder, HolderFile
from codebatch.store.batches.store import open_store
from codebatch.store.damage import treating_damage_as_missing
from codebatch.store.objects.pack_writer import PackWriter
from codebatch.store.results.ledgers import load_ledger
from codebatch.store.results.outcomes import Committer, EncodedOutcome, Outcomes, lost_outcomes
from codebatch.store.results.shard_adoption import adopt_shard
from codebatch.system.clock import process_cpu_ns, running_ns, wall_ns
from codebatch.system.files.files import Files, RealFiles
from codebatch.system.host import this_host
from codebatch.system.processes.progress_cell import (
    PHASE_BATCHED,
    PHASE_COMMIT,
    PHASE_IDLE,
    PHASE_ITEM,
    PHASE_LEASE,
    PHASE_PROJECT,
    ProgressCell,
    Step,
)
from codebatch_workers.runtime.channel import Channel, give_up
from codebatch_workers.runtime.execution import TaskRunner
from codebatch_workers.runtime.outcome_events import outcome_event
from codebatch_workers.runtime.previous_batch import BatchBefore
from codebatch_workers.runtime.project import BatchProject
from codebatch_workers.runtime.results import Result, ReusedRecords, TaskFailure, UnitResults
from codebatch_workers.runtime.reused_results import Bases, ReusedLines
from codebatch_workers.runtime.sources import iter_sources
from codebatch_workers.runtime.terms import terms_keeper
from codebatch_workers.syntax.source import SourceFile

DESCRIPTORS_LEAKED_MAX = 100
DESCRIPTORS_RESERVED = 32
# How often a worker looks at them, in items, and whether its coordinator has said something, in nanoseconds.
_DESCRIPTORS_EVERY = 16
_HEED_EVERY_NS = 1_000_000


class Worker:
    """One worker process's life in one batch."""

    def __init__(
        self,
        launch: Launch,
        channel: Channel,
        *,
        pid: int,
        files: Files | None = None,
        cell: ProgressCell | None = None,
        runner: TaskRunner | None = None,
        now_ns: Callable[[], int] = running_ns,
    ) -> None:
        """What is not given is made: the system's files, a progress cell on disk, the tasks that are installed.

        `now_ns` tells when it is time to heed the coordinator again.
        """
        files = files or RealFiles()
        store = open_store(files, Path(launch.store))
        batch = open_batch(store, launch.batch)
        self._channel = channel
        self._files = files
        self._root = batch.root
        self._plan = batch.plan()
        self._work = self._plan.work()
        self._snapshot = snapshot_of(store, batch)
        self._objects = store.objects()
        about = HolderFile(
            holder=launch.holder,
            role="worker",
            pid=pid,
            host=this_host(),
            since_ns=wall_ns(),
            parent=launch.coordinator,
        )
        self._holder = Holder(files, batch.root, about)
        self._cell = cell or ProgressCell(
            files, batch.root / layout.HOLDERS / layout.cell_name(launch.holder), create=True
        )
        self._committer = Committer(files, batch.root, launch.holder)
        self._journal = journal.Journal(files, batch.root, launch.holder, wall_ns)
        self._runner = runner or TaskRunner(
            TaskCatalogue(
                launch.own_tasks, InputAudit(str(store.root)) if launch.own_tasks else None, batch.about.imports
            ),
            self._plan.tasks,
            Path.cwd(),
            PackWriter(self._objects),
            store.root,
            terms_keeper(files, store.root, self._plan) if launch.keeps_terms else None,
            self._objects.read,
        )
        self._bases = Bases(store)
        self._task_numbers = {name: number for number, name in enumerate(self._plan.task_names)}
        self._items_done = 0
        self._records = 0
        self._units = 0
        self._now_ns = now_ns
        self._heeded_ns = 0
        self._is_draining = False
        self._reserve = [os.dup(channel.fileno()) for _ in range(DESCRIPTORS_RESERVED)]
        self._is_worn = False

    @property
    def has_built_in_tasks_alone(self) -> bool:
        """Whether no code of others was run in this process."""
        return set(self._plan.task_names) <= set(PIPELINES["full"].tasks)

    def run(self) -> None:
        """Work until told to stop. Raises CoordinatorGone."""
        directories = (layout.OUTCOMES, layout.RESULTS, layout.LEASES)
        kept = [self._objects.root, *(self._root / name for name in directories)]
        with self._files.keeping_open(*(kept if self.has_built_in_tasks_alone else ())):
            self._run()

    def _run(self) -> None:
        self._channel.send(Hello(version=PROTOCOL_VERSION, holder=self._holder.id))
        while True:
            match self._channel.receive():
                case Assign(unit=unit, epoch=epoch, served=served):
                    try:
                        self._do(unit, epoch, served)
                    except (InvalidConfiguration, StoreError, ToolMismatch) as error:
                        if isinstance(error.__cause__, OSError) and error.__cause__.errno == errno.EMFILE:
                            raise  # No fault of the disk: some task has used up this process's descriptors.
                        give_up(self._channel, error)
                        return
                case Drain():
                    self._is_draining = True
                case Shrink() | Terminate() | Proceed():
                    pass  # For a unit that is finished.
                case Stop():
                    return

    def _do(self, unit: Unit, epoch: int, served: Sequence[Served]) -> None:
        self._units += 1
        self._step(unit.start, unit.start, PHASE_LEASE)
        self._set_up(unit.tasks)
        if not self._holder.try_lease(unit.shard, unit.start, epoch):
            self._step(0, 0, PHASE_IDLE)
            self._channel.send(Refused(epoch=epoch))
            return
        began = time.perf_counter()
        cpu_ns = process_cpu_ns()
        self._journal.write(
            journal.Began(
                shard=unit.shard, start=unit.start, end=unit.end, tasks=unit.tasks, round=unit.round, epoch=epoch
            )
        )
        start, end, encoded = self._outcomes_of(unit, served)
        if encoded:
            self._commit(unit, epoch, encoded)
        self._step(0, 0, PHASE_IDLE)
        seconds = time.perf_counter() - began
        self._journal.write(
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
        """Load tasks. Raises InvalidConfiguration if the system refuses it to a worker that has done nothing before.

        The file of a task may have lowered a limit of the process. The next worker would fare no better.
        """
        try:
            self._runner.set_up(tasks)
        except OSError as error:
            if self._units > 1:
                raise
            names = ", ".join(tasks)
            raise InvalidConfiguration(
                f"cannot set up tasks ({names}): {error.strerror}",
                hint="check for a task that changes the limits of its process, or leaves files open",
            ) from None

    def _outcomes_of(self, unit: Unit, served: Sequence[Served]) -> tuple[int, int, list[EncodedOutcome]]:
        """Do a unit: the items [start, end) of it that were done, and their outcomes."""
        match self._work[unit.shard]:
            case Shard(start=first):
                done = self._execute(unit, first, self._bases.find(served, unit.start, unit.end))
                self._step(done.start, done.end, PHASE_COMMIT)
                return done.start, done.end, list(self._runner.encode(unit, done))
            case ProjectWork():
                encoded = self._execute_project(unit, served)
                self._step(unit.start, unit.end, PHASE_COMMIT)
                return unit.start, unit.end, [encoded]

    def _execute(self, unit: Unit, first: int, found: ReusedLines) -> UnitResults:
        kept = found.lines
        done = UnitResults(start=unit.start, results={name: [] for name in unit.tasks}, kept=found.counts)
        start = first + unit.start
        entries = self._items_between(start, first + unit.end)
        wanted = found.wanted(unit.tasks, unit.start, unit.end)
        loaded = iter_sources(
            ((entries[item - unit.start], self._plan.context_of(first + item)) for item in wanted), self._read
        )
        sources: dict[int, SourceFile] = {}
        end = unit.end
        for item in range(unit.start, unit.end):
            end = self._heed(unit, end)
            if item >= end or self._is_draining or self._is_worn:
                break
            self._step(item, item + 1, PHASE_ITEM)
            entry = entries[item - unit.start]
            results: dict[str, Result] = {}
            if item in wanted:
                results, sources[item - unit.start] = self._do_item(entry, next(loaded), wanted[item])
            done.items.append(entry)
            for name in unit.tasks:
                done.results[name].append(results[name] if name in results else ReusedRecords(kept[name, item]))
            self._items_done += 1
            if not self._items_done % _DESCRIPTORS_EVERY or any(
                isinstance(each, TaskFailure) for each in results.values()
            ):
                self._look_at_descriptors()
        self._step(done.start, done.end, PHASE_BATCHED)
        for name in unit.tasks:
            of_task = done.results[name]
            asked = {place: result for place, result in enumerate(of_task) if not isinstance(result, ReusedRecords)}
            self._begin_task(name)
            completed = self._runner.complete(name, [sources[place] for place in asked], list(asked.values()))
            for place, result in zip(asked, completed, strict=True):
                of_task[place] = result
        return done

    def _do_item(
        self, entry: Entry, source: SourceFile | TaskFailure, tasks: Sequence[str]
    ) -> tuple[dict[str, Result], SourceFile]:
        """One file through the tasks that nothing is kept of."""
        if isinstance(source, TaskFailure):
            empty = SourceFile(path=entry.path, content=b"", executable=entry.executable, contexts={})
            return dict.fromkeys(tasks, source), empty
        results = self._runner.run_item(source, tasks, self._begin_task)
        source.release()
        return results, source

    def _execute_project(self, unit: Unit, served: Sequence[Served]) -> EncodedOutcome:
        """A project task, over what the registers say now of the tasks that it needs."""
        (name,) = unit.tasks
        self._step(unit.start, unit.end, PHASE_PROJECT)
        self._begin_task(name)
        outcomes = Outcomes(self._files, self._root)
        ledger = load_ledger(self._plan, outcomes)
        needs = self._plan.tasks[self._task_numbers[name]].needs
        needed = [(shard, need) for shard, need in ledger.chains if need in needs]
        if any(ledger.holes(shard, need) for shard, need in needed):
            # It was all there when the coordinator gave us this. Without it we would come to something else for ever.
            raise lost_outcomes(self._files, self._root)
        contexts = contexts_seen(self._plan.tasks)[name]
        project = BatchProject(
            self._plan,
            self._items,
            ledger,
            outcomes,
            read=self._read,
            needs=needs,
            contexts=contexts,
            outside=self._outside(),
        )

        def before() -> BatchBefore | None:
            if not served or any(link.type != "result" for shard, need in needed for link in ledger.walk(shard, need)):
                return None
            return self._before(name, needs, contexts, served[0].base)

        adopt = partial(adopt_shard, self._files, outcomes)
        encoded = self._runner.run_project(
            unit, project, self._plan.shards, ledger.inputs(name), before=before, adopt=adopt
        )
        if any(part.file for part in encoded.outcome.parts):
            self._files.sync_directory(self._root / layout.RESULTS)
        return encoded

    def _before(self, name: str, needs: Sequence[str], contexts: frozenset[str], batch_id: str) -> BatchBefore | None:
        """The older batch from which a project task may go on; None where it is gone or cannot be read."""
        base = self._bases.base(batch_id)
        if base is not None:
            from codebatch.store.results.bases import SnapshotItems

            with treating_damage_as_missing():
                old = base.items(SnapshotItems(self._snapshot, self._items))
                new = Items(self._items, self._plan.contexts)
                return BatchBefore(base, old, new, task=name, needs=needs, contexts=contexts, read=self._read)
        return None

    def _outside(self) -> list[Entry]:
        """The files of the snapshot that are none of the plan's items."""
        if not self._plan.paths:
            return []
        inside = {entry.path for entry in self._items}
        return [entry for entry in items_of(self._snapshot.entries) if entry.path not in inside]

    def _commit(self, unit: Unit, epoch: int, encoded: list[EncodedOutcome]) -> None:
        won = self._committer.commit(encoded, epoch=epoch, round_=unit.round)
        self._records += sum(outcome.counts.records for outcome in won.outcomes)
        evidence = {(one.outcome.task, one.outcome.start): one.evidence or None for one in encoded}
        for outcome in won.outcomes:
            self._journal.write(outcome_event(outcome, unit.round, epoch, evidence[outcome.task, outcome.start]))
        self._channel.send(Committed(commit=won, lost=len(encoded) - len(won.outcomes)))

    @cached_property
    def _items(self) -> list[Entry]:
        """All that the plan works on, for who needs more than a unit."""
        return items_of(self._snapshot.entries, self._plan.paths)

    def _items_between(self, start: int, end: int) -> list[Entry]:
        """The plan's items [start, end). Raises StoreCorrupt."""
        # Where paths restrict the work, the snapshot numbers its items otherwise.
        return self._items[start:end] if self._plan.paths else self._snapshot.items_between(start, end)

    def _read(self, entry: Entry) -> bytes:
        return self._objects.read(entry.object, entry.size)

    def _heed(self, unit: Unit, end: int) -> int:
        """Take what the coordinator has sent meanwhile; the unit's end now.

        Asking costs as much as many a small file, so it is not asked again within _HEED_EVERY_NS.
        """
        now_ns = self._now_ns()
        if now_ns - self._heeded_ns < _HEED_EVERY_NS:
            return end
        self._heeded_ns = now_ns
        while (message := self._channel.try_receive()) is not None:
            match message:
                case Shrink(start=unit.start, end=smaller):
                    end = min(end, smaller)
                case Drain():
                    self._is_draining = True
                case _:
                    pass  # A Shrink for a unit that is finished.
        return end

    def _look_at_descriptors(self) -> None:
        """Be worn once tasks have left many descriptors open: dup(2) gives the lowest free one.

        What was held in reserve is what the unit is finished with.
        """
        if self._is_worn:
            return
        with contextlib.suppress(OSError):
            lowest = os.dup(self._channel.fileno())
            os.close(lowest)
            if lowest <= self._reserve[-1] + DESCRIPTORS_LEAKED_MAX:
                return
        self._is_worn = True
        for descriptor in self._reserve:
            os.close(descriptor)

    def _begin_task(self, name: str) -> None:
        self._cell.write_task(self._task_numbers[name])

    def _step(self, item: int, end: int, phase: int) -> None:
        self._cell.write(Step(running_ns(), self._items_done, self._records, self._units, item, end, phase))
