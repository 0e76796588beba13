"""The commands of a work batch and the state of each: what their conductor decides by, and what others ask it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from codebatch.model.digest import Digest
from codebatch.model.work.work_batch import IfInterrupted
from codebatch.scheduling.events import WorkerId
from codebatch.scheduling.lifecycle import BatchState, CommandState, work_state
from codebatch.scheduling.work.attempt_histories import AttemptHistories
from codebatch.scheduling.work.command_plan import CommandPlan
from codebatch.scheduling.work.command_queue import CommandQueue
from codebatch.scheduling.work.command_states import CommandStates
from codebatch.scheduling.work.events import Conclusion
from codebatch.scheduling.work.interruptions import Interruptions
from codebatch.scheduling.work.live_questions import LiveCommandQuestions
from codebatch.scheduling.work.open_rule import CommandStateRule
from codebatch.scheduling.work.prefetch import PrefetchedCommands
from codebatch.scheduling.work.request_log import AttemptStop, RequestLog


class CommandBatch:
    """The state of the commands of one batch, by item. The conductor is what changes it. It has many methods."""

    def __init__(self, agenda: CommandPlan, epochs: Mapping[int, int]) -> None:
        """`epochs`: the highest that each item was leased under."""
        self.agenda = agenda
        self._histories = AttemptHistories(epochs)
        self._requests = RequestLog({id_: item for item, id_ in enumerate(agenda.ids)})
        self._states = CommandStates(agenda, self._histories, self._requests)
        self._interruptions = Interruptions(agenda, self._histories, self._requests)
        self._queue = CommandQueue(agenda, self._is_startable, self._states.closed_pools)
        self._asking = LiveCommandQuestions(self._histories, self._requests, self._queue)
        self._foreign: set[int] = set()
        self._at: dict[int, WorkerId] = {}
        self._running: dict[WorkerId, int] = {}
        self._runs_given = PrefetchedCommands()
        self._settling: set[int] = set()

    @property
    def foreign(self) -> frozenset[int]:
        """Items that run under leases of others: the coordinator watches them."""
        return frozenset(self._foreign)

    @property
    def running(self) -> frozenset[int]:
        """Items that run now, foreign ones among them."""
        return frozenset(self._foreign.union(self._at))

    @property
    def given(self) -> dict[int, tuple[int, WorkerId]]:
        """What workers of ours run, or may have begun by now: the lease epoch of each item, and the worker."""
        found = {start.item: (start.epoch, start.worker) for start in self._runs_given.promised}
        return found | {item: (self.epoch(item), worker) for item, worker in self._at.items() if self._runs(item)}

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
    def rule(self) -> CommandStateRule:
        """Return the state of each item by itself."""
        return self._states.rule

    @property
    def closed_pools(self) -> Mapping[str, int]:
        """Pools of which nothing is taken for a rate limit, and until when by the wall clock (ns)."""
        return self._states.closed_pools()

    def until_ns(self, item: int) -> int:
        """When an item that is WAITING for a rate limit is tried again, by the wall clock; 0: it waits for none."""
        return self._states.until_ns(item)

    def wait_seconds(self, item: int) -> float:
        """How long is waited in all before an item that is WAITING is tried again."""
        return self._states.wake(item).seconds

    def question(self, item: int) -> Digest | None:
        """What an item that is BLOCKED waits for an answer to."""
        if self._runs(item):
            return self._asking.question(item)
        waiting = self._states.question(item)
        return None if waiting is None else waiting.digest

    def find_stop(self, item: int, epoch: int | None = None) -> AttemptStop | None:
        """Why an attempt of an item, by default the last, was stopped; None if it was not, or has an outcome."""
        return self._interruptions.find_stop(item, epoch)

    def stops(self, item: int) -> Mapping[int, AttemptStop]:
        """Why attempts of an item were stopped, by lease epoch, be it that they came to an end before."""
        return self._interruptions.stops(item)

    def after_interruption(self, item: int, epoch: int) -> IfInterrupted:
        """Return what follows an attempt that has no outcome and does not run any more."""
        return self._interruptions.follows(item, epoch)

    @property
    def is_expired(self) -> bool:
        """Whether the time limit of the batch was reached, and nobody opened it since."""
        return self._requests.is_expired

    def cause(self, item: int) -> int:
        """The item for whose sake a skipped one is: itself, where that was asked for."""
        return self._states.graph.cause(item)

    def state(self, item: int) -> CommandState:
        """Return the state of a command."""
        if self._runs(item):
            return CommandState.RUNNING if self._asking.question(item) is None else CommandState.BLOCKED
        return self._states.ended(item) or self._states.open_state(item, is_judged=self._is_judged(item))

    def states(self) -> list[CommandState]:
        """Return the state of each command."""
        return list(map(self.state, range(len(self.agenda.ids))))

    def verdict(self, states: Sequence[CommandState] | None = None) -> BatchState:
        """Where the batch stands: by the `states` of all, where these are at hand."""
        states = self.states() if states is None else states
        leased, pending = self._histories.leased, CommandState.PENDING
        is_judged = any(states[item] is pending and self._is_judged(item) for item in leased)
        runs, is_cancelled = any(map(self._runs, self.running)), self._requests.is_cancelled
        return work_state(states, is_begun=bool(leased), is_at_work=runs or is_judged, is_cancelled=is_cancelled)

    def _runs(self, item: int) -> bool:
        return (item in self._at or item in self._foreign) and self._histories.unended(item) > 0

    def _is_judged(self, item: int) -> bool:
        """Whether it was interrupted, and what follows is to be settled by whoever conducts."""
        return item in self._settling or (not self._runs(item) and self._interruptions.follows(item) != "restart")

    def _is_startable(self, item: int) -> bool:
        return self._could_start(item) and not self._states.rests(item) and not self._states.rule.is_paused(item)

    def _could_start(self, item: int) -> bool:
        """Whether it may start, be it later, whatever becomes of the others."""
        is_held = item in self._at or item in self._foreign or item in self._settling or item in self._runs_given
        return not is_held and self._states.may_start(item)
