"""A simulated machine that runs a work batch: the real loop and the real supervisors over a disk in memory.

Commands are simulated too. Their behavior is drawn from the seed, and they check which other commands run. A command
whose worker was killed runs until it is killed, which is the worst behavior of a command.
"""

from __future__ import annotations

import errno
import random
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from msgspec.structs import replace

from codebatch.coordinator.work.loop import WorkCoordinator
from codebatch.errors import CodebatchError, StoreCorrupt
from codebatch.model.digest import Digest
from codebatch.model.outcome import Commit, HolderId, OutcomeRegister, TaskOutcome
from codebatch.model.work.command import Command, CommandId
from codebatch.model.work.question import coordinator_question_digest
from codebatch.model.work.request import Answer, Cancel, Open, RequestBody, Skip
from codebatch.model.work.work_batch import Work
from codebatch.protocol.launch import WorkerLaunch, attempt_mark
from codebatch.protocol.messages import Assign
from codebatch.query.status.work_status import WorkBatchStatus, read_work_status
from codebatch.scheduling.lifecycle import BatchState, CommandState
from codebatch.scheduling.work.events import AttemptOutcome
from codebatch.store.batches.batch_directory import BatchDir, open_batch
from codebatch.store.batches.holders import HolderFile
from codebatch.store.batches.store_directory import StoreDir, create_store, open_store
from codebatch.store.results.outcomes import OutcomeRegisters
from codebatch.store.work.attempts import AttemptReader, CommandPlaces
from codebatch.store.work.questions import QuestionStore
from codebatch.store.work.requests import RequestStore
from codebatch.store.work.work_batches import make_work_batch, read_command_ids, read_work
from codebatch.system.files.files import RealFiles
from codebatch.system.files.system_calls import SystemCalls
from codebatch.system.host import this_host
from codebatch.system.processes.command_processes import ProcessNotStarted, ProcessStart
from codebatch_workers.commands.supervisor import Supervisor
from codebatch_workers.runtime.channel import CoordinatorLost, report_fatal_error
from tests.proof.commands.additions import add_next, without_last
from tests.proof.commands.asked import check_answers, skips_that_stand
from tests.proof.commands.cells import MemoryCell
from tests.proof.commands.crew import SimulatedCommandCrew, SimulatedWorker
from tests.proof.commands.limits_drawn import draw_change
from tests.proof.commands.meter import Meter, check_tries
from tests.proof.commands.running import Alive, SimulatedCommands
from tests.proof.commands.starts import Starts
from tests.proof.commands.told import check_told
from tests.proof.commands.wall import ClockReadings, WallClock
from tests.proof.world import Clock, is_commit
from tests.scheduling.generous import GenerousRuns
from tests.support.calls import Fate, Operation
from tests.support.disk import Disk
from tests.support.schedule import Killed, Process, Schedule
from tests.support.simulated_channel import SimulatedChannel

STORE = Path("/simulated/store")
STEPS_MAX = 60_000
RUNS_MAX = 60
PAUSE_STEPS = (10, 400)
SWITCH_RATE = 0.3
_AT_REST = (CommandState.DONE, CommandState.FAILED, CommandState.BLOCKED, CommandState.SKIPPED, CommandState.CANCELLED)

FaultKind = Literal[
    "kill worker", "kill coordinator", "kill self", "pause", "lose power", "lose reply", "tear register",
    "refuse once", "refuse on", "drain", "insist", "request", "second coordinator", "change limits", "set clock",
    "add tasks",
]  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """A fault or a user's request at a step, or at the first suitable call after that step."""

    at: int
    kind: FaultKind
    seed: int


@dataclass
class CommandWorld:
    """One work batch, its disk, its processes and their faults. Users add the last `added_later` commands later."""

    chance: random.Random
    commands: list[Command]
    work: Work
    faults: list[Fault]
    begin_ns: int = 0
    make_files: type[RealFiles] = RealFiles
    conducting: type[WorkCoordinator] = WorkCoordinator
    switch_rate: float = SWITCH_RATE
    alive: dict[str, Alive] = field(default_factory=dict)
    happened: Counter[str] = field(default_factory=Counter)
    draining: set[HolderId] = field(default_factory=set)
    insisting: set[HolderId] = field(default_factory=set)
    gives_much: bool = False
    given_behind: int = 0
    added_later: int = 0
    ends: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.disk = Disk()
        self.starts = Starts(self.work)
        store, _ = create_store(RealFiles(self.disk.calls()), STORE)
        listed = without_last(self.work, self.added_later)
        self.batch_id = make_work_batch(store, self.commands[: len(listed.order)], listed, at_ns=1).id
        self.schedule = Schedule(
            self.disk, self.chance, self._before, switch_rate=self.switch_rate, steps_max=STEPS_MAX
        )
        self._faults = sorted(self.faults, key=lambda fault: fault.at)
        self._processes: dict[HolderId, Process] = {}
        self._workers: dict[HolderId, SimulatedWorker] = {}
        self._crews: dict[HolderId, SimulatedCommandCrew] = {}
        self._reported: dict[OutcomeRegister, tuple[HolderId, TaskOutcome]] = {}
        self._holders = 0
        self._refusing_until = 0
        self._skipped: dict[str, Skip] = {}
        self.meter = Meter(self.work)
        self._waits_by_task = {command.id: bool(command.wait_if) for command in self.commands}
        self.wall = WallClock(self.begin_ns)
        self._known_requests: dict[str, int] = {}

    def batch(self, calls: SystemCalls | None = None) -> tuple[StoreDir, BatchDir]:
        """Open the store and the batch, by default in a process without faults."""
        store = open_store(RealFiles(calls or self.disk.calls()), STORE)
        return store, open_batch(store, self.batch_id)

    @property
    def _refused(self) -> int:
        """The number of faults that refuse writes."""
        return self.happened["refuse once"] + self.happened["refuse on"]

    def standing(self) -> WorkBatchStatus:
        """Return the status of the batch according to the disk."""
        return read_work_status(*self.batch(), wall_ns=self.wall_ns)

    def wall_ns(self) -> int:
        """Return the time of the wall clock."""
        return self.wall.read_ns(self.schedule.steps)

    def run(self) -> None:
        """Start coordinators until all commands are at rest and no fault is left."""
        for _ in range(RUNS_MAX):
            self._skipped = skips_that_stand(*self.batch())
            self.start_coordinator()
            self.ends.clear()
            refused, jumps = self._refused, self.wall.jumps
            self.schedule.run()
            self._processes.clear()
            self._workers.clear()
            self._crews.clear()
            self.starts.check(self._requests().read())
            status = self.standing()
            if self.ends == ["over"] and self.wall.jumps == jumps:
                assert not self.alive, "a command outlives the end of its batch"
                self._check_over(status)
                check_told(*self.batch(), is_whole=self._refused == refused and not self.happened["lose power"])
                self._faults = [fault for fault in self._faults if fault.kind != "tear register"]
                if not self._faults:
                    return
        raise AssertionError(f"no end after {RUNS_MAX} runs: {self.ends}")

    def _check_over(self, status: WorkBatchStatus) -> None:
        assert status.state not in (BatchState.RUNNING, BatchState.PENDING), status.state
        is_stopped = self.work.on_failure == "stop" or status.is_expired
        for command in status.commands:
            is_waiting = command.state is CommandState.PENDING
            is_stopped = is_stopped or bool(status.caps)
            assert is_waiting or command.state in _AT_REST, command
            assert not is_waiting or is_stopped or {"BLOCKED", "CANCELLED"} & status.counts.keys(), command
            assert command.state is not CommandState.DONE or self._was_begun(command.id), f"{command.id} never ran"

    def _was_begun(self, task: str) -> bool:
        return self.starts.was_begun(task) or any(
            isinstance(request.body, Answer | Skip) and request.body.task == task for request in self._requests().read()
        )

    # -- Processes ----------------------------------------------------------------------------------------------------

    def start_coordinator(self) -> None:
        """Start another `codebatch resume`."""
        holder = self._new_holder()

        def body(process: Process) -> None:
            crew = self._crews[holder] = SimulatedCommandCrew(self, process, holder)
            process.when_ended(crew.end)
            about = HolderFile(holder=holder, role="coordinator", pid=0, host=this_host(), since_ns=0)
            try:
                store = open_store(self.make_files(process.calls), STORE)
                batch = open_batch(store, self.batch_id)
                work = read_work(batch)
                loop = self.conducting(
                    batch,
                    batch.plan(),
                    work,
                    read_command_ids(store, batch, work),
                    crew,
                    about=about,
                    watcher=None,
                    wall_ns=lambda: crew.readings.add(self.wall_ns()),
                    now_ns=Clock(holder),
                    read_text=lambda command: "",
                    is_isolated=lambda command: True,
                )
                if self.gives_much:
                    loop.conductor._prefetched = GenerousRuns()
                try:
                    loop.run()
                finally:
                    loop.close()
                self.ends.append("drained" if loop.has_unseen_requests or loop.is_drained else "over")
            except StoreCorrupt:
                raise
            except CodebatchError as error:
                self.ends.append(error.code)

        self._processes[holder] = self.schedule.start(f"coordinator {self._holders}", body)

    def start_worker(self, crew: SimulatedCommandCrew) -> SimulatedWorker:
        """Start a worker process, which runs the real supervisor."""
        holder = self._new_holder()
        launch = WorkerLaunch(
            store=str(STORE),
            batch=self.batch_id,
            holder=holder,
            coordinator=crew.holder,
            channel=0,
            parent=0,
            store_lock=0,
            role="commands",
        )

        def body(process: Process) -> None:
            channel = SimulatedChannel(process, worker.pipe)

            def sleep(seconds: float) -> None:
                process.wait(lambda: False, is_patient=False)

            try:
                try:
                    supervisor = Supervisor(
                        launch,
                        channel,
                        pid=0,
                        environment={},
                        files=self.make_files(process.calls),
                        cell=MemoryCell(),
                        commands=SimulatedCommands(self, process),
                        now_ns=Clock(holder),
                        sleep=sleep,
                    )
                except CodebatchError as error:
                    report_fatal_error(channel, error)
                    return
                supervisor.run()
            except CoordinatorLost:
                pass

        process = self.schedule.start(f"worker {self._holders}", body)
        worker = self._workers[holder] = SimulatedWorker(holder, process)

        def end() -> None:
            worker.pipe.is_worker_gone = True

        process.when_ended(end)
        self._processes[holder] = process
        return worker

    def begin_command(self, start: ProcessStart) -> Alive:
        """Start a simulated command, and check that it may start. Raises ProcessNotStarted."""
        task, round_ = start.environment["CODEBATCH_TASK"], int(start.environment["CODEBATCH_ROUND"])
        twins = [mark for mark, command in self.alive.items() if command.task == task]
        assert not twins, f"{task} runs twice: {twins} and {start.mark}"
        store, batch = self.batch()
        requests = self._requests().read()
        drawn = random.Random(f"{self.work.source} {task} {round_}")
        output = drawn.choice((b"", b"limited")) + b'\n{"cost": 1}\n' * (drawn.random() < 0.9)
        is_started = drawn.random() > 0.05
        # A provider that refuses a request for now takes nothing for it.
        is_free = not is_started or (
            b"cost" not in output and b"limited" in output and self._waits_by_task[CommandId(task)]
        )
        self.meter.count(task, int(not is_free), len(self.alive), requests, self._known_requests[start.mark])
        check_tries(self.work, task, self._outcomes(task), requests)
        if not is_started:
            raise ProcessNotStarted("drawn")
        self.starts.add(task, round_, start.mark)
        answers = check_answers(batch, task, round_, Path(start.environment["CODEBATCH_ANSWERS"]))
        self.happened["begun for an answer"] += answers
        if task in self._skipped and skips_that_stand(store, batch).get(task) == self._skipped[task]:
            assert self._skipped[task].round < round_ - 1, f"{task} starts, but was skipped"
        command = self.alive[start.mark] = Alive(
            task,
            round_,
            left=drawn.randint(0, 6),
            status=drawn.choice((0, 0, 0, 0, 1, -9)),
            question=Path(start.environment["CODEBATCH_QUESTION"]),
            asks_live=drawn.random() < 0.15,
            leaves_question=drawn.random() < 0.15,
            output=output,
        )
        return command

    def note_assignment(self, assigned: Assign, worker: HolderId, readings: ClockReadings) -> None:
        """Check the time of an assignment, and record the requests that the coordinator knew."""
        unit = assigned.unit
        self._known_requests[attempt_mark(worker, unit.shard, unit.start, assigned.epoch)] = assigned.requests
        item = CommandPlaces(self.batch()[1].plan().shards).item_at_place(unit.shard, unit.start)
        assert item is not None
        policy = self.work.task_policy(self._ids()[item])
        deadlines_ns = self.meter.deadlines_ns(self._requests().read(), assigned.requests)
        readings.check_start(self.work, policy.pools, deadlines_ns)

    def _ids(self) -> list[CommandId]:
        store, batch = self.batch()
        return read_command_ids(store, batch, read_work(batch))

    def _outcomes(self, task: str) -> list[AttemptOutcome]:
        batch, item = self.batch()[1], self._ids().index(CommandId(task))
        concluded = AttemptReader(batch.plan(), OutcomeRegisters(batch.files, batch.root)).read()
        return [outcome for outcome in concluded.conclusions if outcome.item == item]

    def people(self, mark: str) -> None:
        """Let a user answer the question that a running command asked, with some probability."""
        if self.chance.random() < 0.8:
            return
        files = RealFiles(self.disk.calls())
        for _, question in QuestionStore(files, self.batch()[1].root).read():
            requests = self._requests()
            is_answered = any(
                isinstance(request.body, Answer) and request.body.question == question.digest
                for request in requests.read()
            )
            if question.is_live and not is_answered and question.text == mark:
                text = f"so {question.text}"
                body = Answer(task=question.task, round=question.round, question=question.digest, text=text)
                requests.append(body, by="somebody", at_ns=0)

    def note_reported(self, commit: Commit) -> None:
        """Record that a coordinator knows of these outcomes, so they must not be lost."""
        for outcome in commit.outcomes:
            register = OutcomeRegister(outcome.shard, outcome.start, outcome.task, commit.round)
            known = self._reported.setdefault(register, (commit.segment, outcome))
            assert known == (commit.segment, outcome), f"{register} has two outcomes"

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
            self.happened[fault.kind] += 1
            fate = self._happen(fault, random.Random(fault.seed), process, operation)
            if not process.is_alive or process.is_paused:
                return None
        if fate is None and operation.is_write and self.schedule.steps < self._refusing_until:
            fate = Fate(OSError(errno.ENOSPC, "No space left on device"), share=0.5)
        return fate

    def _happen(self, fault: Fault, chance: random.Random, process: Process, operation: Operation) -> Fate | None:
        living = {holder: candidate for holder, candidate in self._processes.items() if candidate.is_alive}
        match fault.kind:
            case "kill worker" | "kill coordinator" | "drain" | "insist":
                group = [holder for holder in living if (holder in self._workers) == (fault.kind == "kill worker")]
                self._happen_to(group, fault.kind, chance)
            case "kill self":
                own_holder = next(holder for holder, candidate in living.items() if candidate is process)
                return self._kill_self(own_holder, chance)
            case "pause":
                chance.choice(list(living.values())).pause(chance.randint(*PAUSE_STEPS))
            case "lose power":
                self._lose_power(chance if fault.seed % 2 else None)
            case "lose reply":
                return Fate(FileExistsError(errno.EEXIST, "File exists"), share=1)
            case "tear register":
                if not self.disk.has(operation.path):
                    RealFiles(self.disk.calls()).write_new(operation.path, b"torn")
            case "refuse once":
                return Fate(OSError(chance.choice((errno.ENOSPC, errno.EIO)), "refused"), share=0.5)
            case "refuse on":
                self._refusing_until = self.schedule.steps + chance.randint(2, 60)
                return Fate(OSError(errno.ENOSPC, "refused"), share=0)
            case "request" | "change limits" | "set clock" | "add tasks":
                self._happen_to_all(fault.kind, chance)
            case "second coordinator":
                self.start_coordinator()
        return None

    def _happen_to(self, group: list[HolderId], kind: FaultKind, chance: random.Random) -> None:
        if group and kind in ("drain", "insist"):
            (self.draining if kind == "drain" else self.insisting).add(chance.choice(group))
        elif group:
            self._kill(chance.choice(group))

    def _happen_to_all(self, kind: FaultKind, chance: random.Random) -> None:
        if kind == "set clock":
            self.wall.jump(chance)
        elif kind == "request":
            self._request(self._body(chance))
        elif kind == "add tasks":
            known = read_work(self.batch()[1])
            added = add_next(self.work, self.commands, known, self._requests(), chance.randint(1, 2))
            self.happened["added"] += added
        else:
            self._request(draw_change(self.standing(), self.begin_ns, chance))

    def _kill_self(self, holder: HolderId, chance: random.Random) -> Fate:
        if holder in self._workers:
            self._workers[holder].is_killed = True
        return Fate(Killed(), share=chance.choice((0, 0.3, 1)))

    def _kill(self, holder: HolderId) -> None:
        if holder in self._workers:
            self._workers[holder].is_killed = True
        self._processes[holder].kill()

    def _lose_power(self, chance: random.Random | None) -> None:
        for process in self._processes.values():
            if process.is_alive:
                process.kill()
        self.alive.clear()
        self.disk.lose_power(chance)
        self.happened["forgotten"] += self.starts.forget(self.batch()[1])
        outcomes = OutcomeRegisters(RealFiles(self.disk.calls()), self.batch()[1].root)
        present = {
            OutcomeRegister(outcome.shard, outcome.start, outcome.task, commit.round): (commit.segment, outcome)
            for commit in outcomes.scan_new().commits
            for outcome in commit.outcomes
        }
        for register, known in self._reported.items():
            assert present.get(register) == known, f"{register} was reported as committed, but power loss removed it"

    def _request(self, body: RequestBody) -> None:
        self._requests().append(body, by="somebody", at_ns=0)
        if isinstance(body, Answer):  # Two users answer at once.
            self._requests().append(replace(body, text=f"{body.text}!"), by="another", at_ns=0)

    def _requests(self) -> RequestStore:
        return RequestStore(RealFiles(self.disk.calls()), self.batch()[1].root)

    def _body(self, chance: random.Random) -> RequestBody:
        if chance.random() < 0.3:
            running = [command for command in self.standing().commands if command.holder]
            return Cancel(attempts={command.id: command.epoch for command in running})
        status = self.standing()
        command = chance.choice(status.commands)
        if chance.random() < 0.4:
            text = chance.choice(("again", "failed", "done"))
            if command.cap is not None:
                text = chance.choice(("stop", "again", "2", "3", "4", "8"))
            elif command.question in status.questions:
                text = f"so {chance.random()}"
            question = Digest(command.question or coordinator_question_digest("interrupted", command.id, command.round))
            return Answer(task=command.id, round=command.round, question=question, text=text)
        if chance.random() < 0.3:
            return Skip(task=command.id, round=command.round, marked_done=chance.random() < 0.5)
        ended = (CommandState.FAILED, CommandState.CANCELLED)
        reopened = [command for command in status.commands if command.state in ended and command.round]
        return Open(rounds={command.id: command.round for command in reopened})

    def _new_holder(self) -> HolderId:
        self._holders += 1
        return HolderId(f"{self._holders:032x}")
