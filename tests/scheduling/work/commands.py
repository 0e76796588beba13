"""A world of commands: the real conductor in a simulation that makes one random step at a time, from a seed.

The disk outlives all processes: registers, leases and requests. Coordinators and workers can die at any step. A worker
whose coordinator died finishes its command, and the next coordinator adopts it. The simulation has every fault of a
real run that concerns the conductor. Faults that concern bytes are in tests/proof.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

from msgspec.structs import replace

from codebatch.model.digest import Digest, digest_bytes
from codebatch.model.work.request import Answer, Cancel, Request, Skip, Stop, Unpause
from codebatch.scheduling.actions import CompleteSession, EndBroken, EndDrained, RetireWorker, SpawnWorker
from codebatch.scheduling.events import LeaseRefused, SessionStarted, UnitDone, WorkerId, WorkerIdle
from codebatch.scheduling.lifecycle import CommandState
from codebatch.scheduling.work.conductor import Conductor
from codebatch.scheduling.work.event_projection import EventProjector, ProjectedEvent
from codebatch.scheduling.work.events import (
    ANY_ITEM,
    AttemptOutcome,
    CommandAction,
    CommandAdvanced,
    CommandEvent,
    CommandReleased,
    CommitInterrupted,
    ConsultationEnded,
    ConsultRules,
    DeliverAnswer,
    MakeRequest,
    NextStarted,
    OutcomesConcluded,
    QuestionAsked,
    QueuedReturned,
    RecallQueued,
    RequestRead,
    SetTimer,
    StartCommand,
    TerminateCommand,
    WaitEnded,
    WorkerDied,
)
from tests.scheduling.faults import Faults, Worker, end_of
from tests.scheduling.generous import GenerousRuns
from tests.scheduling.start_checks import StartChecks
from tests.scheduling.stream import Stream, told_in
from tests.scheduling.work.agendas import flat, random_agenda


@dataclass
class World(StartChecks):
    """A batch of random commands, its disk, and its coordinators and workers."""

    seed: int
    faults: Faults = field(default_factory=Faults)
    make: Callable[..., Conductor] = Conductor
    tell: Callable[..., EventProjector] = EventProjector

    def __post_init__(self) -> None:
        self.random = random.Random(self.seed)
        self.flushes = random.Random(self.seed)
        self.agenda = random_agenda(self.random)
        if self.seed % 3 == 1:
            self.agenda = flat(self.agenda)
        self.count = len(self.agenda.ids)
        self.registers: dict[tuple[int, int], AttemptOutcome | None] = {}
        self.leases: dict[tuple[int, int], int] = {}
        self.requests: list[Request] = []
        self.questions: list[QuestionAsked] = []
        self.workers: dict[int, Worker] = {}
        self.alive: dict[int, int] = {}
        self.execs: Counter[tuple[int, int]] = Counter()
        self.begun: dict[tuple[int, int], int] = {}
        self.epoch = self.holders = self.kills = self.requested = self.ahead = self.stopped = 0
        self.ends: list[str] = []
        self.stream: Stream = []
        self.pending: Stream = []

    # Disk

    def fresh(self) -> Conductor:
        """Return a new conductor that has read the current disk."""
        epochs = self.epochs()
        foreign = [item for item, epoch in epochs.items() if self.leases[item, epoch] in self.workers]
        return self.make(
            self.agenda,
            concluded=self.concluded(),
            epochs=epochs,
            foreign=foreign,
            requests=self.requests,
            live_questions=self.questions,
        )

    # Coordinators

    def begin(self) -> None:
        """Start a coordinator: it kills orphaned commands, reads the disk, and begins."""
        self.epoch += 1
        if not self.faults.sweeps_late:
            self._sweep()
        self.conductor = self.fresh()
        if self.seed % 3:
            self.conductor._prefetched = GenerousRuns()
        self.mine: dict[WorkerId, Worker] = {}
        self.inbox: list[CommandEvent] = []
        self.timers: list[SetTimer] = []
        self.due: set[tuple[int, int]] = set()
        self.consults: list[ConsultRules] = []
        self.unleased: list[Stop] = []
        self.seen_questions = len(self.questions)
        self.end: CommandAction | None = None
        self.is_spacing = self.agenda.start_every_seconds > 0 and bool(self.leases)
        self._spawned = 0
        self.pending = []
        self.story = self.tell(self.conductor, list(self.requests), told_in(self.stream))
        self._emit(self.story.initial_events(self.concluded()))
        self.handle(SessionStarted())

    def _emit(self, events: list[ProjectedEvent]) -> None:
        self.pending += [(self.epoch, event) for event in events]

    def _sweep(self) -> None:
        for item, holder in list(self.alive.items()):
            if holder not in self.workers:
                del self.alive[item]

    def handle(self, event: CommandEvent) -> None:
        """Pass an event to the conductor, and execute the resulting actions."""
        events = [event]
        while events:
            event = events.pop(0)
            for action in self.conductor.handle(event):
                self._do(action, events)
            self._emit(self.story.effects_of_event(event))
        if self.flushes.random() < 0.7:  # Otherwise the coordinator may die before it writes the events.
            self.stream += self.pending
            self.pending = []

    def _do(self, action: CommandAction, events: list[CommandEvent]) -> None:
        match action:
            case SpawnWorker():
                self._spawned += 1
                self.holders += 1
                worker = Worker(self.holders, self.epoch)
                self.workers[self.holders] = self.mine[WorkerId(self._spawned)] = worker
                self.inbox.append(WorkerIdle(WorkerId(self._spawned)))
            case StartCommand():
                self._give(action)
            case CommandAdvanced(start):
                self.story.note_start(start)
            case RecallQueued() | DeliverAnswer():
                self._deliver(action)
            case CommitInterrupted():
                self._settle(action)
                events.append(self.concluded())
            case TerminateCommand(worker=id_, task=task, why=why):
                self._terminate(self.mine.get(id_), task, why)
            case MakeRequest(body):
                self._request(body, events, is_due=body.cause == "timeout")
            case SetTimer():
                self.timers.append(action)
            case ConsultRules():
                self.consults.append(action)
            case RetireWorker(worker=id_):
                self.workers.pop(self.mine.pop(id_).holder, None)
            case CompleteSession() | EndDrained() | EndBroken():
                self.end = action

    def _give(self, action: StartCommand) -> None:
        for start in (action, *action.then):
            self._check_start(start)
            self._check_needs(start.item)
        worker = self.mine[action.worker]
        worker.known, worker.behind, worker.is_recalled = action, list(action.then), False
        worker.give(action)
        self.ahead += len(action.then)
        self.story.note_start(action)

    def _deliver(self, action: RecallQueued | DeliverAnswer) -> None:
        worker = self.mine.get(action.worker)
        if worker is not None and isinstance(action, RecallQueued):
            worker.is_recalled = True
        elif worker is not None:
            worker.asks = None

    def _request(self, stop: Stop, events: list[CommandEvent], *, is_due: bool = False) -> None:
        """Write a Stop of a coordinator for leased attempts. Attempts that take their lease later are named then."""
        places = {id_: (self.agenda.ids.index(id_), epoch) for id_, epoch in stop.attempts.items()}
        leased = {id_: place[1] for id_, place in places.items() if place in self.leases}
        given = {item: epoch for item, (epoch, _) in self.conductor.leased_items.items()}
        rest = {id_: place[1] for id_, place in places.items() if id_ not in leased and given.get(place[0]) == place[1]}
        self.unleased += [replace(stop, attempts=rest)] if rest else []
        if leased or is_due:
            self.write(replace(stop, attempts=leased))
        handed = self.conductor.handled_request_count + sum(isinstance(event, RequestRead) for event in events)
        events += [RequestRead(request) for request in self.requests[handed:]]

    def _name_leased(self) -> None:
        waiting, self.unleased = self.unleased, []
        for stop in waiting:
            self._request(stop, [])
        self._hand_requests()

    def _hand_requests(self) -> None:
        while self.end is None and self.conductor.handled_request_count < len(self.requests):
            self.handle(RequestRead(self.requests[self.conductor.handled_request_count]))

    def _terminate(self, worker: Worker | None, task: str, why: Literal["cancelled", "stopped"]) -> None:
        if worker is None or worker.start is None or worker.told_to_end:
            return
        if task in ("", self.agenda.ids[worker.start.item]):
            worker.told_to_end = why

    def _settle(self, action: CommitInterrupted) -> None:
        if (action.item, action.round) not in self.registers:
            self._check_settled(action)
            self.commit(
                AttemptOutcome(
                    item=action.item, round=action.round, type=action.type, reason="interrupted", epoch=action.epoch
                )
            )

    # Steps

    def step(self) -> None:
        """Make a random step."""
        if self.end is None:
            self._name_leased()
        chance = self.random.random()
        if self.kills < self.faults.kills_max and self._strike(chance):
            return
        if chance > 0.98 and self.requested < 5:
            self.requested += 1
            self.ask()
        self._happen(self.random.choice("iwwwfrtqc"))

    def _happen(self, choice: str) -> None:
        if choice == "i" and self.inbox:
            self.handle(self.inbox.pop(0))
        elif choice == "w" and self.workers:
            self._work(self.random.choice(sorted(self.workers)))
        elif choice == "f":
            self._look_at_foreign()
        elif choice == "r":
            self._hand_requests()
        elif choice == "t" and self.timers and self.end is None:
            wake = self.timers.pop(self.random.randrange(len(self.timers)))
            self.due.add((wake.item, wake.round))
            self.is_spacing = self.is_spacing and wake.item != ANY_ITEM
            self.handle(WaitEnded(wake.item, wake.round))
        elif choice == "q" and self.end is None:
            new, self.seen_questions = self.questions[self.seen_questions :], len(self.questions)
            for question in new:
                self.handle(question)
            self._let_users_answer()
        elif choice == "c" and self.consults and self.end is None:
            self._consult_rules(self.consults.pop(0))

    def _strike(self, chance: float) -> bool:
        """Inject a random kill or power cut. Return whether there was one."""
        faults = self.faults
        if chance < faults.power + faults.everybody:
            self._kill_everybody(is_power_cut=chance < faults.power)
        elif chance < faults.power + faults.everybody + faults.coordinator:
            self._kill_coordinator()
        elif chance < faults.power + faults.everybody + faults.coordinator + faults.worker and self.workers:
            self._kill_worker(self.random.choice(sorted(self.workers)))
        else:
            return False
        return True

    def _let_users_answer(self) -> None:
        """Let users answer all questions and lift a pause, with some probability."""
        if self.random.random() < 0.3:
            for holder in sorted(self.workers):
                worker = self.workers[holder]
                if worker.asks and worker.start and not self._is_answered(worker.asks):
                    self._answer(worker.start.item, worker.start.round, worker.asks)
            if self.conductor.is_paused:
                self.write(Unpause())
            if self.agenda.waits_for_answers:
                self._answer_blocked()

    def _answer_blocked(self) -> None:
        for item in range(self.count):
            if self.conductor.state(item) is CommandState.BLOCKED and item not in self.conductor.running_items:
                question = self.conductor.question(item)
                assert question, f"item {item} is blocked, but has no question"
                self._answer(
                    item, self.conductor.last_attempt(item)[0], question, self.random.choice(("failed", "done"))
                )

    def _consult_rules(self, consult: ConsultRules) -> None:
        if self.random.random() < 0.5:
            self._answer(consult.item, self.conductor.last_attempt(consult.item)[0], consult.question)
            self._hand_requests()
        if self.end is None:
            self.handle(ConsultationEnded(consult.question))

    def _answer(self, item: int, round_: int, question: Digest, text: str = "again") -> None:
        self.write(Answer(task=self.agenda.ids[item], round=round_, question=question, text=text))

    def _is_answered(self, question: Digest) -> bool:
        bodies = [request.body for request in self.requests]
        return any(isinstance(body, Answer) and body.question == question for body in bodies)

    def _work(self, holder: int) -> None:
        worker = self.workers[holder]
        is_orphan = worker.coordinator != self.epoch
        start = worker.start
        if start is None:
            if is_orphan:
                del self.workers[holder]
            return
        id_ = next((id_ for id_, mine in self.mine.items() if mine is worker), None)
        if worker.at == "given":
            if (start.item, start.epoch) in self.leases:
                if id_ is not None:
                    self._send_reports(worker, id_)
                    self.inbox.append(LeaseRefused(id_, start.epoch))
                worker.start = None
                return
            self.leases[start.item, start.epoch] = holder
            worker.at = "leased"
        elif worker.at == "leased":
            self._look(worker, is_orphan)
        elif worker.at == "running":
            self._run(worker, start, is_orphan)
            if id_ is not None and worker.start is not None and self.random.random() < 0.1:
                self._send_reports(worker, id_)
        else:
            self._report(worker, id_)

    def _run(self, worker: Worker, start: StartCommand, is_orphan: bool) -> None:
        """Let a command continue: it asks a question, waits for the answer, or ends."""
        if requested := worker.told_to_end or self._requested_end(start):
            worker.ending = requested
            self.stopped += requested == "stopped"
        elif worker.asks:
            if is_orphan and self._is_answered(worker.asks):
                worker.asks = None
            return
        elif self.random.random() < 0.1:
            worker.questions += 1
            place = start.item, start.round, start.epoch, worker.questions
            worker.asks = digest_bytes(repr(place).encode())
            self.questions.append(QuestionAsked(*place, worker.asks))
            return
        elif self.random.random() < 0.5:
            worker.ending = self.random.choice(("result",) * 6 + ("failed",) * 3 + ("blocked",))
        else:
            return
        del self.alive[start.item]
        worker.at = "ended"

    def _look(self, worker: Worker, is_orphan: bool) -> None:
        assert worker.start is not None
        item, round_ = worker.start.item, worker.start.round
        requested = self._requested_end(worker.start)
        if self.faults.looks_before_exec and (is_orphan or requested):
            worker.at = "ended"
            worker.ending = "cancelled" if requested == "cancelled" and not is_orphan else "unbegun"
            return
        assert requested != "cancelled", f"item {item} starts after a Cancel"
        assert item not in self.alive, f"two attempts of item {item} run at once"
        self.alive[item] = worker.holder
        self.execs[item, round_] += 1
        self.begun[item, worker.start.epoch] = round_
        worker.at = "running"

    def _requested_end(self, start: StartCommand) -> Literal["", "cancelled", "stopped"]:
        """Return how the first request that the coordinator had not read at the start ends the attempt."""
        id_ = self.agenda.ids[start.item]
        for body in (request.body for request in self.requests[start.requests :]):
            if isinstance(body, Cancel) or (isinstance(body, Skip) and body.task == id_ and body.round >= start.round):
                return "cancelled"
            if isinstance(body, Stop) and body.terminates and body.attempts.get(id_) == start.epoch:
                return "stopped"
        return ""

    def _report(self, worker: Worker, id_: WorkerId | None) -> None:
        start = worker.start
        assert start is not None
        if worker.ending == "stopped":
            self._send_reports(worker, id_, is_over=True)
            worker.start = None
            del self.workers[worker.holder]
            if id_ is not None:
                del self.mine[id_]
                self.inbox.append(WorkerDied(id_, "it"))
            return
        outcome = end_of(start, worker.ending, self.random)
        worker.held.append((start, outcome))
        if outcome.type == "result" and worker.behind and not worker.is_recalled and self.random.random() < 0.8:
            worker.give(worker.behind.pop(0))
            return
        self._send_reports(worker, id_, is_over=True)
        worker.start = None
        if id_ is not None:
            self.inbox.append(UnitDone(id_))

    def _send_reports(self, worker: Worker, id_: WorkerId | None, *, is_over: bool = False) -> None:
        """Commit the unreported outcomes of a worker. Report them, its unstarted commands and its current command."""
        for start, outcome in worker.held:
            self.commit(outcome)
            if id_ is not None:
                if worker.known is not start:
                    self.inbox.append(NextStarted(id_))
                    worker.known = start
                is_won = self.registers[start.item, start.round] is outcome
                self.inbox.append(OutcomesConcluded([outcome]) if is_won else self.concluded())
        worker.held.clear()
        if id_ is not None:
            if worker.behind or not is_over:
                self.inbox.append(QueuedReturned(id_, len(worker.behind)))
            if worker.known is not worker.start:
                self.inbox.append(NextStarted(id_))
                worker.known = worker.start
        worker.behind.clear()

    def _look_at_foreign(self) -> None:
        if self.end is not None:
            return
        dead = [item for item in self.conductor.adopted_items if self._holder_of(item) not in self.workers]
        if dead:
            self._sweep()
        self.handle(self.concluded())
        for item in dead:
            self.handle(CommandReleased(item, self.epochs()[item]))

    def _holder_of(self, item: int) -> int:
        return self.leases[item, self.epochs()[item]]

    # Faults

    def _kill_coordinator(self) -> None:
        self.kills += 1
        for worker in self.mine.values():
            if worker.start is None:
                self.workers.pop(worker.holder, None)
        self.begin()

    def _kill_worker(self, holder: int) -> None:
        self.kills += 1
        worker = self.workers.pop(holder)
        id_ = next((id_ for id_, mine in self.mine.items() if mine is worker), None)
        if id_ is None:
            return  # The worker is an orphan. Its coordinator is dead, and the next one notices by the lease.
        sent = [event for event in self.inbox if getattr(event, "worker", None) == id_]
        self.inbox = [event for event in self.inbox if event not in sent]
        self.handle(self.concluded())
        for event in sent:
            self.handle(event)
        if self.mine.pop(id_, None) is None:
            return  # The worker was retired just before.
        self._sweep()
        self.handle(self.concluded())
        while (item := self.conductor.next_item(id_)) is not None and self.leases.get((item, 1)) == holder:
            self.handle(NextStarted(id_))
        item = self.conductor.running_item(id_)
        start = None if item is None else next(given for given in reversed(worker.given) if given.item == item)
        if self.end is None:
            by = None if start is None else self.leases.get((start.item, start.epoch))
            self.handle(WorkerDied(id_, "nobody" if by is None else "it" if by == holder else "another"))

    def _kill_everybody(self, *, is_power_cut: bool) -> None:
        """Kill all processes except commands, which run on unless the power is cut."""
        self.kills += 1
        self.workers.clear()
        if is_power_cut:
            self._cut_power()
        self.begin()

    def _cut_power(self) -> None:
        self.alive.clear()
        for item, epoch in sorted(self.leases):  # A repeatable command starts before its first lease is durable.
            is_waited_for = epoch > 1 or not self.agenda.policies[item].is_repeatable
            if not is_waited_for and not self.has_end(item, epoch) and self.random.random() < 0.5:
                del self.leases[item, epoch]
                if (item, epoch) in self.begun:
                    self.execs[item, self.begun.pop((item, epoch))] -= 1
        if self.faults.has_volatile_leases:
            for place in sorted(self.leases):
                if self.random.random() < 0.7:
                    del self.leases[place]
