"""The conductor: the scheduler of one work batch's commands. Events in, actions out; no clock, no files, no processes.

The rules (SPEC.md "Commands"):
1. What a command is follows from how its attempts ended and from requests alone (open_rule.py), and what its users may
   do from that (command_graph.py). So who reads the same files comes to the same states, be it to conduct or to look.
2. One that may start waits in a queue (queue.py); one that failed and is tried again waits for a Due before that, as
   the next one does where there is to be some time between two starts.
   Commands of live workers that an earlier coordinator left are `foreign`: they count, even above the limit.
   Behind one that starts others may be given to its worker, to be begun in its place (runs.py).
3. A lease without an outcome is an interrupted attempt, once its holder is dead and what it ran is: it is started
   again in the next epoch, or settled, as its policy says.
4. One that asks while it runs gives its slots back. Once it is answered it has them again, before anything new starts.
5. Deaths in a row with no outcome between mean that the machine is at fault: nothing new starts, what runs ends.

It is one class, long as it is: every event may change what is to start.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from msgspec.structs import replace

from codebatch.engine.actions import Break, Complete, Drained, Retire, Spawn
from codebatch.engine.agenda import SLOTS, Agenda
from codebatch.engine.asking import Asking
from codebatch.engine.command_events import (
    Asked,
    CommandAction,
    CommandEvent,
    Concluded,
    Conclusion,
    Consult,
    Consulted,
    Due,
    GoneOn,
    Lost,
    Proceed,
    Recall,
    Released,
    Requested,
    Returned,
    Settle,
    Start,
    Terminate,
    Went,
)
from codebatch.engine.command_states import CommandStates
from codebatch.engine.events import DrainRequested, Finished, Ready, Refused, Started, WorkerId
from codebatch.engine.histories import Histories
from codebatch.engine.lifecycle import BatchState, CommandState, work_state
from codebatch.engine.open_rule import OpenRule
from codebatch.engine.queue import Queue
from codebatch.engine.requests_made import RequestsMade
from codebatch.engine.runs import Runs
from codebatch.model.digest import Digest
from codebatch.model.request import Cancel, Request, Set, Skip
from codebatch.model.work import IfInterrupted

DEATHS_MAX = 6


class Conductor:
    """One coordinator's run over one work batch, until Complete, Drained or Break is returned. Its methods are many."""

    def __init__(
        self,
        agenda: Agenda,
        *,
        concluded: Concluded,
        epochs: Mapping[int, int],
        foreign: Collection[int] = (),
        requests: Iterable[Request] = (),
        asked: Iterable[Asked] = (),
    ) -> None:
        """All that is on disk: outcomes, the highest epoch that each item was leased under, those whose holder lives,
        requests, and what commands asked while they ran.
        """
        self.agenda = agenda
        self._histories = Histories(epochs)
        self._requests = RequestsMade({id_: item for item, id_ in enumerate(agenda.ids)})
        self._states = CommandStates(agenda, self._histories, self._requests)
        self._queue = Queue(agenda, self._is_startable)
        self._asking = Asking(self._histories, self._requests, self._queue)
        self._foreign: set[int] = set()
        self._at: dict[int, WorkerId] = {}
        self._running: dict[WorkerId, int] = {}
        self._idle: set[WorkerId] = set()
        self._runs_given = Runs()
        self._spawning = 0
        self._settling: set[int] = set()
        self._resting: dict[int, int] = {}
        self._consulting: dict[Digest, bool] = {}
        self._wanted: list[CommandAction] = []
        self._deaths = 0
        self._is_draining = self._has_ended = False
        self._histories.add(concluded)
        for request in requests:
            self._note_request(request)
        for one in asked:
            self._asking.add(one)
        for item in foreign:  # A live worker holds its leases of what it has done too.
            if self._histories.unended(item) > 0:
                self._hold(item)
        items = range(len(agenda.ids))
        for item in items:
            self._states.refresh(item, runs=self._runs(item))
        for item in items:  # Once for each, and no sooner: until then what it needs seems open.
            self._queue.add(item)
            self._look_ahead(item)

    @property
    def foreign(self) -> frozenset[int]:
        """Items that run under leases of others: the coordinator watches them."""
        return frozenset(self._foreign)

    @property
    def running(self) -> frozenset[int]:
        """Items that run now, foreign ones among them."""
        return frozenset(self._foreign.union(self._at))

    @property
    def requests_seen(self) -> int:
        """How many requests were taken note of."""
        return self._requests.count

    @property
    def is_paused(self) -> bool:
        """Whether a Pause stands."""
        return self._requests.is_paused

    @property
    def capacity(self) -> Mapping[str, int]:
        """How large pools are now."""
        return self._queue.capacity

    def running_item(self, worker: WorkerId) -> int | None:
        """The item that a worker has now."""
        return self._running.get(worker)

    def next_item(self, worker: WorkerId) -> int | None:
        """The item that a worker begins next by itself, where it was given some at once."""
        start = self._runs_given.next(worker)
        return None if start is None else start.item

    def epoch(self, item: int) -> int:
        """The highest epoch that an item was leased under, or is to be."""
        return self._histories.epoch(item)

    def attempt(self, item: int) -> tuple[int, int]:
        """The round and epoch of the last attempt of an item, be it under way; (0, 0) where it never began."""
        return self._histories.attempt(item)

    def conclusion(self, item: int) -> Conclusion | None:
        """The highest outcome of an item."""
        return self._histories.last(item)

    def previous(self, item: int) -> Conclusion | None:
        """The highest outcome of an attempt of an item that was begun."""
        return self._histories.last_begun(item)

    @property
    def rule(self) -> OpenRule:
        """What each item is by itself."""
        return self._states.rule

    def wait_seconds(self, item: int) -> float:
        """How long is waited in all before an item that is WAITING is tried again."""
        return self._states.wake(item).seconds

    def question(self, item: int) -> Digest | None:
        """What an item that is BLOCKED waits for an answer to."""
        if self._runs(item):
            return self._asking.question(item)
        waiting = self._states.question(item)
        return None if waiting is None else waiting.digest

    def cause(self, item: int) -> int:
        """The item for whose sake a skipped one is: itself, where that was asked for."""
        return self._states.graph.cause(item)

    def state(self, item: int) -> CommandState:
        """Where a command stands."""
        if self._runs(item):
            return CommandState.RUNNING if self._asking.question(item) is None else CommandState.BLOCKED
        return self._states.ended(item) or self._states.open_state(item, is_judged=self._is_judged(item))

    def states(self) -> list[CommandState]:
        """Where each command stands."""
        return list(map(self.state, range(len(self.agenda.ids))))

    def verdict(self, states: Sequence[CommandState] | None = None) -> BatchState:
        """Where the batch stands: by the `states` of all, where these are at hand."""
        states = self.states() if states is None else states
        leased, pending = self._histories.leased, CommandState.PENDING
        is_judged = any(states[item] is pending and self._is_judged(item) for item in leased)
        runs, is_cancelled = any(map(self._runs, self.running)), self._requests.is_cancelled
        return work_state(states, is_begun=bool(leased), is_at_work=runs or is_judged, is_cancelled=is_cancelled)

    def handle(self, event: CommandEvent) -> list[CommandAction]:
        """Take an event, return what to do, in order."""
        actions: list[CommandAction] = []
        match event:
            case Started():
                actions += self._queue.space() if self._histories.leased else []
                for item in sorted(set(self._histories.leased) - self._foreign):
                    actions += self._look_at_interrupted(item)
            case Ready() | Refused() | Finished() | Went() | Returned() | Lost():
                actions += self._hear_of_worker(event)
            case Concluded():
                actions += self._conclude(event)
            case Released(item, epoch):
                if item in self._foreign:
                    self._histories.set_epoch(item, max(epoch, self.epoch(item)))
                    self._let_go(item)
                    actions += self._reopen(item)
            case Requested(request):
                actions += self._request(request)
            case Due(item, round_):
                self._states.has_rested(item, round_)
                self._resting.pop(item, None)
                self._queue.add(item)
            case Asked(item):
                self._asking.add(event)
                self._look_at_question(item)
            case Consulted(question):
                self._consulting[question] = False
            case DrainRequested():
                self._is_draining = True
                actions += [Recall(worker) for worker in self._runs_given.workers]
        return actions + self._go_on()

    def _hear_of_worker(self, event: Ready | Refused | Finished | Went | Returned | Lost) -> list[CommandAction]:
        match event:
            case Ready(worker):
                self._spawning -= 1
                self._idle.add(worker)
            case Refused(worker, epoch):
                refused = self._end(worker, is_well=False)
                self._idle.add(worker)
                self._histories.set_epoch(refused, max(epoch, self.epoch(refused)))
                self._hold(refused)
            case Finished(worker):
                finished = self._end(worker, is_well=True)
                self._idle.add(worker)
                return self._reopen(finished)
            case Went(worker):
                return self._go_on_to_next(worker)
            case Returned(worker, count):
                for item in self._runs_given.give_back(worker, count):
                    self._queue.add(item)
            case Lost():
                return self._bury(event)
        return []

    def _conclude(self, concluded: Concluded) -> list[CommandAction]:
        for item in self._histories.add(concluded):
            self._deaths = 0
            self._settling.discard(item)
            if item in self._foreign:
                self._let_go(item)
            self._refresh(item)
        actions: list[CommandAction] = []
        for item, _ in concluded.unreadable:
            if item in self._settling:  # The name that we wanted is taken by bytes that say nothing.
                self._settling.discard(item)
                actions += self._look_at_interrupted(item)
        return actions

    def _bury(self, lost: Lost) -> list[CommandAction]:
        if lost.worker not in self._running:
            if lost.worker in self._idle:
                self._idle.discard(lost.worker)
            else:
                self._spawning -= 1
                self._deaths += 1
            return []
        self._deaths += 1
        item = self._end(lost.worker, is_well=False)
        if lost.leased_by == "another":
            self._hold(item)
            return []
        if lost.leased_by == "nobody" and self._histories.unended(item) > 0:
            self._histories.set_epoch(item, self.epoch(item) - 1)
        return self._reopen(item)

    def _request(self, request: Request) -> list[CommandAction]:
        for item in self._note_request(request):
            self._refresh(item)
        match request.body:
            case Cancel(grace_seconds=grace):
                return [Terminate(worker, grace) for worker in sorted(self._running)]
            case Skip(task=task, over=over):
                at = [(item, worker) for item, worker in self._at.items() if self.agenda.ids[item] == task]
                return [Terminate(worker, None, task) for item, worker in at if self.attempt(item)[0] <= over]
            case _:
                return []

    def _note_request(self, request: Request) -> list[int]:
        if isinstance(request.body, Set):
            slots = request.body.max_parallel
            self._queue.set_capacity(request.body.pools | ({} if slots is None else {SLOTS: slots}))
        return self._requests.add(request)

    def _runs(self, item: int) -> bool:
        return (item in self._at or item in self._foreign) and self._histories.unended(item) > 0

    def _refresh(self, item: int) -> None:
        for touched in self._states.refresh(item, runs=self._runs(item)):
            self._queue.add(touched)
        self._look_ahead(item)

    def _look_ahead(self, item: int) -> None:
        """Have what comes of where an item stands be seen to: that it is tried again later, what it asks."""
        if self._states.rests(item):
            wake = self._states.wake(item)
            if self._resting.get(item) != wake.round:
                self._resting[item] = wake.round
                self._wanted.append(wake)
        self._look_at_question(item)

    def _look_at_question(self, item: int) -> None:
        if self._runs(item):
            self._asking.look(item, is_foreign=item in self._foreign)
            question = self._asking.question(item)
        else:
            waiting = self._states.question(item)
            question = waiting.digest if waiting is not None and waiting.ours is None else None
        if self.agenda.consults and question is not None and question not in self._consulting:
            self._consulting[question] = True
            self._wanted.append(Consult(item, question))

    def _is_judged(self, item: int) -> bool:
        """Whether it was interrupted, and what follows is to be settled by whoever conducts."""
        return item in self._settling or self._follows(item) != "restart"

    def _follows(self, item: int) -> IfInterrupted:
        """What follows where it was interrupted; where it was not, it may be begun as ever."""
        starts = self._histories.unended(item)
        is_interrupted = starts > 0 and not self._runs(item)
        return self.agenda.policies[item].after_interruption(starts) if is_interrupted else "restart"

    def _look_at_interrupted(self, item: int) -> list[CommandAction]:
        """Judge an item that was begun and has no end. Nothing of it runs any more."""
        then = self._follows(item)
        if then == "restart" or not self._states.is_open(item) or item in self._settling:
            return []
        self._settling.add(item)
        round_ = self._histories.next_round(item)
        return [Settle(item, round_, "blocked" if then == "ask" else "failed", self.epoch(item))]

    def _reopen(self, item: int) -> list[CommandAction]:
        """Nothing runs of an item any more: it is judged, and waits again where it may start."""
        self._refresh(item)
        actions = self._look_at_interrupted(item)
        self._queue.add(item)
        return actions

    def _is_startable(self, item: int) -> bool:
        return self._could_start(item) and not self._states.rests(item) and not self._states.rule.is_paused(item)

    def _could_start(self, item: int) -> bool:
        """Whether it may start, be it later, whatever becomes of the others."""
        is_held = item in self._at or item in self._foreign or item in self._settling or item in self._runs_given
        return not is_held and self._states.may_start(item)

    def _hold(self, item: int) -> None:
        self._foreign.add(item)
        self._queue.take(item)
        self._refresh(item)

    def _let_go(self, item: int) -> None:
        self._foreign.discard(item)
        self._give_back(item)

    def _end(self, worker: WorkerId, *, is_well: bool) -> int:
        """A worker has nothing now; returns the item that it had."""
        for behind in self._runs_given.end(worker, is_well=is_well):
            self._queue.add(behind)
        return self._leave(worker)

    def _leave(self, worker: WorkerId) -> int:
        item = self._running.pop(worker)
        del self._at[item]
        self._give_back(item)
        return item

    def _go_on_to_next(self, worker: WorkerId) -> list[CommandAction]:
        left = self._leave(worker)
        start = self._runs_given.go_on(worker)
        self._take(start)
        return [GoneOn(start), *self._reopen(left)]

    def _give_back(self, item: int) -> None:
        self._asking.forget(item)
        self._queue.give_back(item)

    def _go_on(self) -> list[CommandAction]:
        if self._has_ended:
            return []
        actions, self._wanted = self._wanted, []
        actions += [Proceed(self._at[item]) for item in self._asking.iter_proceeding()]
        is_broken = self._deaths >= DEATHS_MAX
        may_begin = not (self._is_draining or is_broken or self._states.is_stopped)
        if may_begin and not self._asking.is_waited_for:
            actions += self._hand_out()
        # Those of others go on without us, and are adopted again.
        waits_for_others = bool(self._foreign) and not self._is_draining
        if self._running or waits_for_others or self._settling or (may_begin and self._has_more_to_do()):
            return actions
        self._has_ended = True
        actions += [Retire(worker) for worker in sorted(self._idle)]
        self._idle.clear()
        if is_broken and not self._is_draining:
            return [*actions, Break(self._deaths)]
        return [*actions, Drained() if self._is_draining else Complete()]

    def _has_more_to_do(self) -> bool:
        """Whether something starts now, or once its time has come, somebody has answered, or a Pause is over."""
        if self._queue.has_any() or any(self._could_start(item) for item in self._resting):
            return True
        if any(self._consulting.values()) or (self.agenda.waits_for_answers and self._states.is_answer_awaited):
            return True
        return self._requests.is_paused and any(self._could_start(item) for item in range(len(self.agenda.ids)))

    def _hand_out(self) -> list[CommandAction]:
        actions: list[CommandAction] = []
        while (self._idle or self._queue.free_slots > self._spawning) and (item := self._queue.best()) is not None:
            if not self._idle:
                missing = max(0, min(len(self._queue), self._queue.free_slots) - self._spawning)
                self._spawning += missing
                return actions + [Spawn()] * missing
            actions += [self._start(item), *self._queue.space()]
        return actions

    def _start(self, item: int) -> Start:
        worker = min(self._idle)
        self._idle.discard(worker)
        start = self._start_of(worker, item)
        may_follow = self._may_follow(item)
        self._take(start)
        then = tuple(self._start_of(worker, each) for each in self._followers(item)) if may_follow else ()
        self._runs_given.begin(worker, then)
        return replace(start, then=then) if then else start

    def _start_of(self, worker: WorkerId, item: int) -> Start:
        round_, tried = self._histories.next_round(item), self.rule.tried(item)
        return Start(worker, item, round_, self.epoch(item) + 1, self._requests.count, tried)

    def _take(self, start: Start) -> None:
        self._queue.take(start.item)
        self._running[start.worker], self._at[start.item] = start.item, start.worker
        self._histories.set_epoch(start.item, max(start.epoch, self.epoch(start.item)))
        self._refresh(start.item)

    def _followers(self, item: int) -> list[int]:
        """What is given to a worker behind an item, taken out of the queue: whatever would be next without a word."""
        found: list[int] = []
        most = self._runs_given.length(len(self._queue), self._queue.capacity[SLOTS])
        while len(found) < most - 1 and (follower := self._queue.follower(item, self._may_follow)) is not None:
            found.append(follower)
        return found

    def _may_follow(self, item: int) -> bool:
        """Whether an item may be one of a run: nothing of it was begun, and it may be begun twice.

        What was given at once starts whatever became of the one before, and no time lies between.
        """
        agenda = self.agenda
        if agenda.on_failure == "stop" or agenda.start_every_seconds or not agenda.policies[item].is_repeatable:
            return False
        return self.epoch(item) == 0 and self._histories.next_round(item) == 1
