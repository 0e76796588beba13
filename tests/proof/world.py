"""A simulated machine: a disk that loses power, and the processes of a batch, disturbed by a list of faults."""

from __future__ import annotations

import errno
import os
import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple

from codebatch.coordinator.analysis.adoption import ReuseSource
from codebatch.coordinator.analysis.execution import run_and_merge
from codebatch.errors import CodebatchError, StoreCorrupt
from codebatch.model.outcome import Commit, HolderId, OutcomeRegister, TaskOutcome, WorkUnit
from codebatch.model.plan import Plan, plan_items
from codebatch.model.shard import ShardId
from codebatch.plugins.catalogue import TaskCatalogue
from codebatch.protocol.launch import WorkerLaunch
from codebatch.scheduling.analysis.ledger import OutcomeLedger
from codebatch.scheduling.events import WorkerId
from codebatch.store import layout
from codebatch.store.batches.batch_directory import BatchDir, BatchId, load_batch_snapshot, open_batch
from codebatch.store.batches.store_directory import StoreDir, create_store, open_store
from codebatch.store.results.ledgers import load_ledger
from codebatch.store.results.outcomes import OutcomeRegisters
from codebatch.system.files.files import RealFiles, StoreFiles
from codebatch.system.files.system_calls import SystemCalls
from codebatch_workers.runtime.channel import CoordinatorLost, report_fatal_error
from codebatch_workers.runtime.terms import terms_keeper
from codebatch_workers.runtime.worker import AnalysisWorker
from tests.proof.crew import SimulatedCrew, SimulatedWorker
from tests.proof.loop import WatchedLoop
from tests.support.batches import CheapRunner, make_batch
from tests.support.calls import Fate, Operation
from tests.support.crashes import refused
from tests.support.disk import Disk
from tests.support.schedule import PATIENCE_NS, STEP_NS, Killed, Process, Schedule
from tests.support.simulated_channel import Pipe, SimulatedCell, SimulatedChannel

STORE = Path("/simulated/store")
STEPS_MAX = 60_000
RUNS_MAX = 40
DIGEST_DIGITS = 64
KILLS_OF_ITEM_MAX = 4
PAUSE_STEPS = (10, 400)
SWITCH_RATE = 0.3

MakeFiles = Callable[[SystemCalls], StoreFiles]
"""Creates the files of a simulated process. Negative controls plant a bug here."""

FaultKind = Literal[
    "kill worker", "kill coordinator", "kill self", "pause worker", "pause coordinator", "pause group", "lose power",
    "lose reply", "tear register", "refuse once", "refuse on", "drain", "join",
]  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """A fault at a step, or at the first suitable call after that step."""

    at: int
    kind: FaultKind
    seed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """A write that the disk refuses with an errno. Writes of all processes are counted from 0.

    `is_lasting`: all later writes are refused too, until the processes have ended.
    """

    at: int
    number: int
    is_lasting: bool


class Older(NamedTuple):
    """The disk of an earlier world, and the batch on it."""

    disk: Disk
    batch_id: BatchId


class World:
    """One batch, its disk, its processes and their faults."""

    def __init__(
        self,
        chance: random.Random,
        paths: list[bytes],
        *,
        shard_items: int,
        jobs: int,
        faults: tuple[Fault, ...],
        make_files: MakeFiles = RealFiles,
        loop: type[WatchedLoop] = WatchedLoop,
        switch_rate: float = SWITCH_RATE,
        older: Older | None = None,
        keeps_terms: bool = False,
        is_observed: bool = False,
    ) -> None:
        """`older` has a finished batch. This world uses its disk and may reuse its results.

        `keeps_terms`: workers write terms files for an index. `is_observed`: workers are started by reported progress;
        otherwise one is started for each unit.
        """
        self.chance = chance
        self.disk: Disk = Disk() if older is None else older.disk
        self.make_files = make_files
        self.store_root = STORE
        files = RealFiles(self.disk.calls())
        self._store = open_store(files, STORE) if older else create_store(files, STORE)[0]
        bases = () if older is None else (older.batch_id,)
        batch = make_batch(self._store, paths, shard_items=shard_items, bases=bases)
        self.batch_id: BatchId = batch.id
        self.plan: Plan = batch.plan()
        self.schedule = Schedule(self.disk, chance, self._before, switch_rate=switch_rate, steps_max=STEPS_MAX)
        self.draining: set[HolderId] = set()
        self.killed: set[HolderId] = set()
        self.ends: list[str] = []
        self.refused_late = 0
        self.happened: Counter[str] = Counter()
        self.is_healed = False
        self._loop = loop
        self._jobs = jobs
        self._keeps_terms = keeps_terms
        self.is_observed = is_observed
        self.started_by_reports = 0
        self._faults = sorted(faults, key=lambda fault: fault.at)
        self._crews: dict[HolderId, SimulatedCrew] = {}
        self._processes: dict[HolderId, Process] = {}
        self._reported: dict[OutcomeRegister, tuple[HolderId, TaskOutcome]] = {}
        self._linked_at: dict[str, int] = {}
        self._begun: dict[tuple[HolderId, ShardId], list[int]] = {}
        self._kills_of_item: Counter[tuple[str, int]] = Counter()
        self._outcomes, self._ledger = self._read_outcomes()
        self._holders = 0
        self._refusing_until = 0
        self.writes: list[int] = []
        self.refusal: Refusal | None = None

    def store(self) -> StoreDir:
        """Open the store in a process without faults."""
        return open_store(RealFiles(self.disk.calls()), STORE)

    def batch(self) -> BatchDir:
        """Open the batch in a process without faults."""
        return open_batch(self.store(), self.batch_id)

    def run(self, *, coordinators: int, is_resumed: bool = False) -> None:
        """Start coordinators until one has merged everything and no fault is left. With `is_resumed`, then resume."""
        is_done = False
        for _ in range(RUNS_MAX):
            for _ in range(coordinators):
                self.start_coordinator(is_retrying=is_done)
            self.ends.clear()
            self.schedule.run()
            self._crews.clear()
            self._processes.clear()
            coordinators = 1
            if self.refusal is not None and len(self.writes) > self.refusal.at:
                assert self.ends == ["store_unwritable"], "a refused write was not reported"
                self.refusal = None
            digests = {end for end in self.ends if len(end) == DIGEST_DIGITS}
            assert len(digests) < 2, "two coordinators merged to different bytes"
            is_over = bool(digests) and (is_done or not is_resumed)
            if is_over:  # No more registers are written, so no register can be torn.
                self._faults = [fault for fault in self._faults if fault.kind != "tear register"]
            is_done = is_done or bool(digests)
            self.is_healed = self.is_healed or (is_resumed and is_done)
            if is_over and not self._faults:
                return
        raise AssertionError(f"no end after {RUNS_MAX} runs: {self.ends}")

    # -- Processes ----------------------------------------------------------------------------------------------------

    def start_coordinator(self, *, is_retrying: bool = False) -> None:
        """Start another `codebatch run`, or a `codebatch resume`, which executes failed work again."""
        holder = self._new_holder()

        def body(process: Process) -> None:
            crew = self._crews[holder] = SimulatedCrew(self, process, holder)
            process.when_ended(lambda: self._orphan(crew))
            try:
                store = open_store(self.make_files(process.calls), self.store_root)
                batch = open_batch(store, self.batch_id)
                plan = batch.plan()
                items = plan_items(load_batch_snapshot(store, batch).entries)
                reuse = ReuseSource(store, TaskCatalogue(), batch.about.bases)
                loop = self._loop(self, batch, plan, items, crew, jobs=self._jobs, is_retrying=is_retrying, reuse=reuse)
                outputs = run_and_merge(loop, batch, plan)
                self.ends.append(outputs.manifest.result_digest if outputs else "drained")
            except StoreCorrupt:
                raise
            except CodebatchError as error:
                self.ends.append(error.code)

        self._processes[holder] = self.schedule.start(f"coordinator {self._holders}", body)

    def start_worker(self, crew: SimulatedCrew, id_: WorkerId) -> SimulatedWorker:
        """Start a worker process, which runs the real worker."""
        holder = self._new_holder()
        launch = WorkerLaunch(
            store=str(STORE), batch=self.batch_id, holder=holder, coordinator=crew.holder, channel=0, parent=0
        )

        def die() -> None:
            """Die as a task can make its worker die: by a signal or, in every other world, by _exit(0)."""
            worker.status = -(self.plan.item_count % 2)
            worker.process.die()

        def body(process: Process) -> None:
            channel = SimulatedChannel(process, worker.pipe)
            files = RealFiles(process.calls)
            keep = terms_keeper(files, STORE, self.plan) if self._keeps_terms else None
            runner = CheapRunner(self.plan.tasks, die, lambda: self.is_healed, keep)
            try:
                try:
                    real = _Worker(
                        launch, channel, pid=0, files=files, cell=worker.cell, runner=runner, now_ns=Clock(holder)
                    )
                except CodebatchError as error:
                    report_fatal_error(channel, error)
                    return
                real.run_and_close()
            except CoordinatorLost:
                pass

        process = self.schedule.start(f"worker {self._holders}", body)
        cell = SimulatedCell(lambda: self._when_begun(crew, id_, worker))
        worker = SimulatedWorker(holder, process, cell)
        process.when_ended(lambda: _close(worker.pipe))
        self._processes[holder] = process
        return worker

    def is_stuck(self, holder: HolderId) -> bool:
        """Return whether a live process has been stopped. The real check is a deadline."""
        process = self._processes.get(holder)
        return process is not None and process.is_alive and process.is_paused

    def note_reported(self, commit: Commit) -> list[OutcomeRegister]:
        """Record that a coordinator knows of these outcomes, so they must not be lost. Return their registers."""
        registers = [
            OutcomeRegister(outcome.shard, outcome.start, outcome.task, commit.round) for outcome in commit.outcomes
        ]
        for register, outcome in zip(registers, commit.outcomes, strict=True):
            known = self._reported.setdefault(register, (commit.segment, outcome))
            assert known == (commit.segment, outcome), f"{register} has two outcomes"
        return registers

    # -- Faults -------------------------------------------------------------------------------------------------------

    def _before(self, process: Process, operation: Operation) -> Fate | None:
        fate = None
        while fate is None and self._faults and self._faults[0].at <= self.schedule.steps:
            fault = self._faults[0]
            if fault.kind == "lose reply" and operation.call != "link":
                break
            if fault.kind == "tear register" and not is_commit(operation):
                break
            if fault.kind in ("refuse once", "refuse on") and not operation.is_write:
                break
            self._faults.pop(0)
            fate = self._happen(fault, random.Random(fault.seed), process, operation)
            self.happened[fault.kind] += 1
            if not process.is_alive or process.is_paused:
                return None
        if fate is None and operation.is_write and self.schedule.steps < self._refusing_until:
            fate = Fate(OSError(errno.ENOSPC, "No space left on device"), share=0.5)
        if fate is None and operation.is_write:
            fate = self._refuse(operation)
        is_done = fate is None or fate.share > 0
        if operation.call == "listing" and operation.path.name == layout.OUTCOMES:
            for crew in self._crews.values():
                crew.note_look(process)
        if is_commit(operation) and is_done:
            self._linked_at.setdefault(operation.path.name, self.schedule.steps)
        return fate

    def _refuse(self, operation: Operation) -> Fate | None:
        at, refusal = len(self.writes), self.refusal
        self.writes.append(self.schedule.steps)
        if refusal is None or at < refusal.at or (at > refusal.at and not refusal.is_lasting):
            return None
        return refused(refusal.number, operation)

    def _happen(self, fault: Fault, chance: random.Random, process: Process, operation: Operation) -> Fate | None:
        living = {holder: candidate for holder, candidate in self._processes.items() if candidate.is_alive}
        match fault.kind:
            case "kill worker" | "kill coordinator" | "pause worker" | "pause coordinator" | "drain":
                is_worker = fault.kind.endswith("worker")
                group = [holder for holder in living if (holder not in self._crews) == is_worker]
                if group:
                    self._happen_to(chance.choice(group), fault.kind, chance)
            case "kill self":
                holder = next(holder for holder, candidate in living.items() if candidate is process)
                return self._kill_self(holder, chance)
            case "pause group":
                steps = chance.randint(*PAUSE_STEPS)
                for paused in living.values():
                    paused.pause(steps)
            case "lose power":
                for killed in living.values():
                    killed.kill()
                self.disk.lose_power(chance if fault.seed % 2 else None)
                self._check_durable()
            case "lose reply":
                return Fate(FileExistsError(errno.EEXIST, "File exists"), share=1)
            case "tear register":
                self._tear(operation.path)
            case "refuse once" | "refuse on":
                return self._begin_refusing(fault.kind, chance)
            case "join":
                self.start_coordinator()
        return None

    def _happen_to(self, holder: HolderId, kind: FaultKind, chance: random.Random) -> None:
        if kind == "drain":
            self.draining.add(holder)
        elif kind.startswith("pause"):
            self._processes[holder].pause(chance.randint(*PAUSE_STEPS))
        elif self._may_kill(holder):
            self.killed.add(holder)
            self._processes[holder].kill()

    def _tear(self, register: Path) -> None:
        """Create an unreadable register, unless it exists."""
        if not self.disk.has(register):
            RealFiles(self.disk.calls()).write_new(register, b"torn")

    def _begin_refusing(self, kind: FaultKind, chance: random.Random) -> Fate:
        if kind == "refuse on":
            self._refusing_until = self.schedule.steps + chance.randint(2, 60)
        return Fate(OSError(chance.choice((errno.ENOSPC, errno.EIO)), "refused"), share=chance.choice((0, 0.5)))

    def _kill_self(self, holder: HolderId, chance: random.Random) -> Fate | None:
        if not self._may_kill(holder):
            return None
        self.killed.add(holder)
        return Fate(Killed(), share=chance.choice((0, 0.3, 1)))

    def _may_kill(self, holder: HolderId) -> bool:
        """Return whether the kill leaves each innocent item below the number of kills after which it is failed."""
        for crew in self._crews.values():
            for worker in crew.workers.values():
                items = worker.cell.read().items if worker.holder == holder else None
                if items and worker.unit is not None:
                    self._kills_of_item.update((worker.unit.shard, item) for item in range(*items))
                    return max(self._kills_of_item.values()) <= KILLS_OF_ITEM_MAX
        return True

    def _orphan(self, crew: SimulatedCrew) -> None:
        """Kill most workers of a dead coordinator, as Linux does. The others notice that the channel has ended."""
        for worker in crew.workers.values():
            worker.pipe.is_coordinator_gone = True
            if worker.process.is_alive and self.chance.random() < 0.7:
                worker.process.kill()

    # -- Checks during the run ----------------------------------------------------------------------------------------

    def _when_begun(self, crew: SimulatedCrew, id_: WorkerId, worker: SimulatedWorker) -> None:
        """Check that the coordinator could not know that the begun work was committed. Late owners are excepted."""
        if id_ not in crew.workers or worker.pipe.is_coordinator_gone:
            return  # An orphan has not noticed the death of its coordinator yet.
        unit = worker.unit
        assert unit is not None
        self._check_nothing_committed(crew, worker, unit)
        self._begun.setdefault((worker.holder, unit.shard), []).append(unit.start)

    def _check_nothing_committed(self, crew: SimulatedCrew, worker: SimulatedWorker, unit: WorkUnit) -> None:
        for commit in self._outcomes.scan_new().commits:
            self._ledger.add(commit)
        for task in unit.tasks:
            for link in self._ledger.iter_links(unit.shard, task):
                if link.end <= unit.start or unit.end <= link.start or link.round < unit.round:
                    continue
                begun = self._begun.get((link.segment, unit.shard), [])
                is_owner = max((start for start in begun if start <= link.start), default=0) < unit.start
                name = layout.register_name(unit.shard, link.start, task, link.round)
                assert self._linked_at[name] > worker.scanned_at, f"{unit} begins although {name} was read"
                is_late_owner = is_owner and crew.heard.get(name, crew.waits + 1) > worker.assigned_in
                is_unread = link.segment not in crew.holders
                assert is_late_owner or is_unread, f"{unit} begins although {name} was committed"

    def _check_durable(self) -> None:
        """Check after power loss that every reported outcome still exists, with its bytes."""
        self._outcomes, self._ledger = self._read_outcomes()
        outcomes = OutcomeRegisters(RealFiles(self.disk.calls()), self.batch().root)
        present = {
            OutcomeRegister(outcome.shard, outcome.start, outcome.task, commit.round): (commit.segment, outcome)
            for commit in outcomes.scan_new().commits
            for outcome in commit.outcomes
        }
        for register, known in self._reported.items():
            assert present.get(register) == known, f"{register} was reported as committed, but power loss removed it"
            segment, outcome = known
            for part in outcome.parts or (outcome,):
                list(outcomes.iter_items(segment, part))
        names = {layout.register_name(*register) for register in present}
        self._linked_at = {name: at for name, at in self._linked_at.items() if name in names}

    def _read_outcomes(self) -> tuple[OutcomeRegisters, OutcomeLedger]:
        outcomes = OutcomeRegisters(RealFiles(self.disk.calls()), self.batch().root)
        return outcomes, load_ledger(self.plan, outcomes)

    def _new_holder(self) -> HolderId:
        self._holders += 1
        return HolderId(f"{self._holders:032x}")


class _Worker(AnalysisWorker):
    """The real worker. It shares its descriptors with the whole simulation, so it cannot detect leaks."""

    def run_and_close(self) -> None:
        """Run to the end of the process, and close its descriptors."""
        try:
            self.run()
        finally:
            for descriptor in self._reserved_descriptors:
                os.close(descriptor)

    def _check_descriptors(self) -> None:
        pass


class Clock:
    """The clock of one process. Between two readings, almost no time or a long time passes."""

    def __init__(self, holder: HolderId) -> None:
        self._chance = random.Random(holder)
        self._now_ns = 0

    def __call__(self) -> int:
        self._now_ns += self._chance.choice((STEP_NS, PATIENCE_NS))
        return self._now_ns


def is_commit(operation: Operation) -> bool:
    """Return whether a call publishes a register."""
    return operation.call == "link" and operation.path.parent.name == layout.OUTCOMES


def _close(pipe: Pipe) -> None:
    pipe.is_worker_gone = True
