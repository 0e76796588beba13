"""The conductor: the scheduler of one work batch's commands. Events in, actions out; no clock, no files, no processes.

The rules (SPEC.md "Commands"):
1. What a command is follows from its highest outcome and from requests alone (`_own`), and what its users may do from
   that (command_graph.py). So who reads the same files comes to the same states, be it to conduct or to look.
2. A command is open where it has no outcome, the highest is of an attempt that was not begun, or a request opens just
   that round.
3. One that may start waits in a heap for its demand of pools. The best head that fits starts; one that does not holds
   its pools, so that nobody behind it takes them, while others go on. Commands of live workers that an earlier
   coordinator left are `foreign`: they count, even above the limit.
4. A lease without an outcome is an interrupted attempt, once its holder is dead and what it ran is: it is started
   again in the next epoch, or settled, as its policy says.
5. Deaths in a row with no outcome between mean that the machine is at fault: nothing new starts, what runs ends.
"""

from __future__ import annotations

import heapq
from collections.abc import Collection, Iterable, Mapping

from codebatch.engine.actions import Break, Complete, Drained, Retire, Spawn
from codebatch.engine.agenda import SLOTS, Agenda, Demand
from codebatch.engine.command_events import (
    CommandAction,
    CommandEvent,
    Concluded,
    Conclusion,
    Lost,
    Released,
    Requested,
    Settle,
    Start,
    Terminate,
)
from codebatch.engine.command_graph import CommandGraph, Face
from codebatch.engine.events import DrainRequested, Finished, Ready, Refused, Started, WorkerId
from codebatch.engine.lifecycle import BatchState, CommandState
from codebatch.engine.requests_made import RequestsMade
from codebatch.model.request import Cancel, Request

DEATHS_MAX = 6


class Conductor:
    """One coordinator's run over one work batch, until Complete, Drained or Break is returned.

    Methods are many, for so is what it is asked.
    """

    def __init__(
        self,
        agenda: Agenda,
        *,
        concluded: Concluded,
        epochs: Mapping[int, int],
        foreign: Collection[int] = (),
        requests: Iterable[Request] = (),
    ) -> None:
        """All that is on disk: outcomes, the highest epoch that each item was leased under, those whose holder lives,
        and requests.
        """
        self.agenda = agenda
        self._graph = CommandGraph(agenda.needs, goes_on=agenda.on_failure == "continue")
        self._links: dict[int, Conclusion] = {}
        self._taken: dict[int, int] = {}
        self._epochs = dict(epochs)
        self._requests = RequestsMade({id_: item for item, id_ in enumerate(agenda.ids)})
        self._foreign: set[int] = set()
        self._at: dict[int, WorkerId] = {}
        self._running: dict[WorkerId, int] = {}
        self._idle: set[WorkerId] = set()
        self._spawning = 0
        self._settling: set[int] = set()
        self._failed: set[int] = set()
        self._used = dict.fromkeys(agenda.capacity, 0)
        self._heaps: dict[Demand, list[tuple[tuple[int, int, int], int]]] = {}
        self._queued: set[int] = set()
        self._deaths = 0
        self._is_draining = self._has_ended = False
        self._note(concluded)
        for request in requests:
            self._requests.add(request)
        for item in foreign:  # A live worker holds its leases of what it has done too.
            if self._unended_starts(item) > 0:
                self._hold(item)
        for item in range(len(agenda.ids)):
            self._refresh(item)

    # What stands

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

    def running_item(self, worker: WorkerId) -> int | None:
        """The item that a worker has now."""
        return self._running.get(worker)

    def epoch(self, item: int) -> int:
        """The highest epoch that an item was leased under, or is to be."""
        return self._epochs.get(item, 0)

    def attempt(self, item: int) -> tuple[int, int]:
        """The round and epoch of the last attempt of an item, be it under way; (0, 0) where it never began."""
        if self._unended_starts(item) > 0:
            return self._next_round(item), self.epoch(item)
        link = self._links.get(item)
        return (link.round, link.epoch) if link else (0, 0)

    def conclusion(self, item: int) -> Conclusion | None:
        """The highest outcome of an item."""
        return self._links.get(item)

    def cause(self, item: int) -> int:
        """The item for whose sake a skipped one is."""
        return self._graph.cause(item)

    def state(self, item: int) -> CommandState:
        """Where a command stands."""
        if (item in self._at or item in self._foreign) and self._unended_starts(item) > 0:
            return CommandState.RUNNING
        own = self._graph.own(item)
        if own == "good":
            return CommandState.DONE
        if own == "held":
            return CommandState.BLOCKED
        if own == "bad":
            is_cancelled = self._links[item].type == "cancelled"
            return CommandState.CANCELLED if is_cancelled else CommandState.FAILED
        if self._graph.is_skipped(item):
            return CommandState.SKIPPED
        if self._requests.forbids(item):
            return CommandState.CANCELLED
        may_start = self._graph.may_start(item) and item not in self._settling and not self._is_stopped
        return CommandState.READY if may_start else CommandState.PENDING

    def verdict(self) -> BatchState:
        """Where the batch stands."""
        states = [self.state(item) for item in range(len(self.agenda.ids))]
        kinds = set(states)
        if kinds <= {CommandState.DONE}:
            return BatchState.COMPLETED
        if CommandState.RUNNING in kinds or CommandState.READY in kinds:
            has_begun = bool(self._links or self._epochs)
            return BatchState.RUNNING if has_begun else BatchState.PENDING
        if self._requests.is_cancelled:
            return BatchState.CANCELLED
        return BatchState.PARTIAL if kinds & {CommandState.DONE, CommandState.BLOCKED} else BatchState.FAILED

    # What happens

    def handle(self, event: CommandEvent) -> list[CommandAction]:
        """Take an event, return what to do, in order."""
        actions: list[CommandAction] = []
        match event:
            case Started():
                for item in sorted(self._epochs.keys() - self._foreign):
                    actions += self._look_at_interrupted(item)
            case Ready(worker):
                self._spawning -= 1
                self._idle.add(worker)
            case Refused(worker, epoch):
                refused = self._end(worker)
                self._idle.add(worker)
                self._epochs[refused] = max(epoch, self.epoch(refused))
                self._hold(refused)
            case Finished(worker):
                finished = self._end(worker)
                self._idle.add(worker)
                actions += self._reopen(finished)
            case Concluded():
                actions += self._conclude(event)
            case Lost():
                actions += self._bury(event)
            case Released(item, epoch):
                if item in self._foreign:
                    self._epochs[item] = max(epoch, self.epoch(item))
                    self._let_go(item)
                    actions += self._reopen(item)
            case Requested(request):
                actions += self._request(request)
            case DrainRequested():
                self._is_draining = True
        return actions + self._go_on()

    def _conclude(self, concluded: Concluded) -> list[CommandAction]:
        for item in self._note(concluded):
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

    def _note(self, concluded: Concluded) -> list[int]:
        """Take note of outcomes; returns the items of which one is higher than what was known."""
        for item, round_ in concluded.unreadable:
            self._taken[item] = max(round_, self._taken.get(item, 0))
        news: list[int] = []
        for one in concluded.conclusions:
            known = self._links.get(one.item)
            # A register may name an epoch whose lease never came to be.
            self._epochs[one.item] = max(one.epoch, self.epoch(one.item))
            self._taken[one.item] = max(one.round, self._taken.get(one.item, 0))
            if known is None or known.round < one.round:
                self._links[one.item] = one
                news.append(one.item)
        return news

    def _bury(self, lost: Lost) -> list[CommandAction]:
        if lost.worker not in self._running:
            if lost.worker in self._idle:
                self._idle.discard(lost.worker)
            else:
                self._spawning -= 1
                self._deaths += 1
            return []
        self._deaths += 1
        item = self._end(lost.worker)
        if lost.leased_by == "another":
            self._hold(item)
            return []
        if lost.leased_by == "nobody" and self._unended_starts(item) > 0:
            self._epochs[item] -= 1
        return self._reopen(item)

    def _request(self, request: Request) -> list[CommandAction]:
        for item in self._requests.add(request):
            self._refresh(item)
        if isinstance(request.body, Cancel):
            return [Terminate(worker, request.body.grace_seconds) for worker in sorted(self._running)]
        return []

    # What a command is

    def _own(self, item: int) -> Face:
        link = self._links.get(item)
        if link is None or link.reason == "unbegun" or self._requests.opens(item, link.round):
            return "open"
        if link.type == "blocked":
            decision = self._requests.decision(item, link.round)
            return "held" if decision is None else "good" if decision == "done" else "bad"
        return "good" if link.type == "result" else "bad"

    def _refresh(self, item: int) -> None:
        own = self._own(item)
        if own == "bad" and self._links[item].type != "cancelled":
            self._failed.add(item)
        else:
            self._failed.discard(item)
        for touched in self._graph.set(item, own):
            self._queue(touched)

    def _unended_starts(self, item: int) -> int:
        link = self._links.get(item)
        return self.epoch(item) - (link.epoch if link else 0)

    def _look_at_interrupted(self, item: int) -> list[CommandAction]:
        """Judge an item that was begun and has no end. Nothing of it runs any more."""
        starts = self._unended_starts(item)
        if starts <= 0 or self._graph.own(item) != "open" or item in self._settling:
            return []
        then = self.agenda.policies[item].after_interruption(starts)
        if then == "restart":
            return []
        self._settling.add(item)
        round_ = self._next_round(item)
        return [Settle(item, round_, "blocked" if then == "ask" else "failed", self.epoch(item))]

    def _reopen(self, item: int) -> list[CommandAction]:
        """Nothing runs of an item any more: it is judged, and waits again where it may start."""
        actions = self._look_at_interrupted(item)
        self._queue(item)
        return actions

    def _next_round(self, item: int) -> int:
        return self._taken.get(item, 0) + 1

    # Who starts

    @property
    def _is_stopped(self) -> bool:
        return self.agenda.on_failure == "stop" and len(self._failed) >= self.agenda.failures_max

    def _is_startable(self, item: int) -> bool:
        return (
            self._graph.may_start(item)
            and item not in self._at
            and item not in self._foreign
            and item not in self._settling
            and not self._requests.forbids(item)
        )

    def _queue(self, item: int) -> None:
        if item not in self._queued and self._is_startable(item):
            self._queued.add(item)
            heap = self._heaps.setdefault(self.agenda.demands[item], [])
            heapq.heappush(heap, (self.agenda.keys[item], item))

    def _hold(self, item: int) -> None:
        self._foreign.add(item)
        self._use(item, 1)

    def _let_go(self, item: int) -> None:
        self._foreign.discard(item)
        self._use(item, -1)

    def _use(self, item: int, times: int) -> None:
        for pool, amount in self.agenda.demands[item]:
            self._used[pool] += times * amount

    def _end(self, worker: WorkerId) -> int:
        """A worker has nothing now; returns the item that it had."""
        item = self._running.pop(worker)
        del self._at[item]
        self._use(item, -1)
        return item

    def _go_on(self) -> list[CommandAction]:
        if self._has_ended:
            return []
        is_broken = self._deaths >= DEATHS_MAX
        may_begin = not (self._is_draining or is_broken or self._is_stopped)
        actions = self._hand_out() if may_begin else []
        waits_for_others = (
            bool(self._foreign) and not self._is_draining
        )  # They go on without us, and are adopted again.
        if self._running or waits_for_others or self._settling or (may_begin and self._heads()):
            return actions
        self._has_ended = True
        actions += [Retire(worker) for worker in sorted(self._idle)]
        self._idle.clear()
        if is_broken and not self._is_draining:
            return [*actions, Break(self._deaths)]
        return [*actions, Drained() if self._is_draining else Complete()]

    def _hand_out(self) -> list[CommandAction]:
        actions: list[CommandAction] = []
        while (demand := self._best()) is not None:
            if not self._idle:
                free = self.agenda.capacity[SLOTS] - self._used[SLOTS]
                missing = max(0, min(len(self._queued), free) - self._spawning)
                self._spawning += missing
                return actions + [Spawn()] * missing
            _, item = heapq.heappop(self._heaps[demand])
            actions.append(self._start(item))
        return actions

    def _heads(self) -> list[tuple[tuple[int, int, int], Demand]]:
        """Of each demand the first item that waits, the first of all first."""
        heads: list[tuple[tuple[int, int, int], Demand]] = []
        for demand, heap in self._heaps.items():
            while heap and not self._is_startable(heap[0][1]):
                self._queued.discard(heapq.heappop(heap)[1])
            if heap:
                heads.append((heap[0][0], demand))
        return sorted(heads)

    def _best(self) -> Demand | None:
        """The demand of the item that is to start now; None where none may."""
        held: set[str] = set()
        for _, demand in self._heads():
            (slots, taken), *pools = demand
            if self._used[slots] + taken > self.agenda.capacity[slots]:
                return None
            if all(self._used[pool] + amount <= self.agenda.capacity[pool] for pool, amount in pools) and not any(
                pool in held for pool, _ in pools
            ):
                return demand
            held.update(pool for pool, _ in pools)
        return None

    def _start(self, item: int) -> Start:
        self._queued.discard(item)
        worker = min(self._idle)
        self._idle.discard(worker)
        self._running[worker] = item
        self._at[item] = worker
        self._use(item, 1)
        self._epochs[item] = self.epoch(item) + 1
        return Start(worker, item, self._next_round(item), self._epochs[item], self._requests.count)
