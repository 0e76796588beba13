"""The commands of a work batch and their states: the state of the conductor, with queries for other modules."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from codebatch.model.digest import Digest
from codebatch.model.work.request import Add, Answer, Request, Set
from codebatch.model.work.work_batch import InterruptedAction
from codebatch.scheduling.events import WorkerId
from codebatch.scheduling.lifecycle import BatchState, CommandState, work_state
from codebatch.scheduling.work.attempt_histories import AttemptHistories
from codebatch.scheduling.work.caps import LIST_SCOPE, MetCap, attempts_cost, cap_digest
from codebatch.scheduling.work.command_plan import SLOTS_POOL, CommandPlan
from codebatch.scheduling.work.command_queue import CommandQueue
from codebatch.scheduling.work.command_states import CommandStates
from codebatch.scheduling.work.events import AttemptOutcome, ClockRead
from codebatch.scheduling.work.interruptions import InterruptionRules
from codebatch.scheduling.work.live_questions import LiveCommandQuestions
from codebatch.scheduling.work.open_rule import CommandStateRule
from codebatch.scheduling.work.prefetch import PrefetchedCommands
from codebatch.scheduling.work.request_log import AttemptStop, RequestLog


class CommandBatch:
    """The state of the commands of one batch, by item. Only the conductor changes it. It has many methods."""

    def __init__(self, agenda: CommandPlan, epochs: Mapping[int, int]) -> None:
        """Start without outcomes. `epochs` maps each item to its highest lease epoch."""
        self.agenda = agenda
        self._histories = AttemptHistories(epochs)
        self._items = {id_: item for item, id_ in enumerate(agenda.ids)}
        self._requests = RequestLog(self._items)
        self._states = CommandStates(agenda, self._histories, self._requests)
        self._interruptions = InterruptionRules(agenda, self._histories, self._requests)
        self._queue = CommandQueue(agenda, self._is_startable, self._states.closed_pools)
        self._live_questions = LiveCommandQuestions(self._histories, self._requests, self._queue)
        self._adopted_items: set[int] = set()
        self._worker_by_item: dict[int, WorkerId] = {}
        self._running: dict[WorkerId, int] = {}
        self._prefetched = PrefetchedCommands()
        self._settling_items: set[int] = set()

    @property
    def adopted_items(self) -> frozenset[int]:
        """Items whose commands run in workers of earlier coordinators. The coordinator watches these workers."""
        return frozenset(self._adopted_items)

    @property
    def running_items(self) -> frozenset[int]:
        """All running items, including those in workers of earlier coordinators."""
        return frozenset(self._adopted_items.union(self._worker_by_item))

    @property
    def leased_items(self) -> dict[int, tuple[int, WorkerId]]:
        """The items that workers of this coordinator run, and queued items that they may have begun by now.

        Maps each item to its lease epoch and its worker.
        """
        queued = {start.item: (start.epoch, start.worker) for start in self._prefetched.queued_starts}
        return queued | {
            item: (self.last_epoch(item), worker)
            for item, worker in self._worker_by_item.items()
            if self._is_running(item)
        }

    @property
    def handled_request_count(self) -> int:
        """The number of requests that the conductor has handled so far."""
        return self._requests.count

    @property
    def is_paused(self) -> bool:
        """True if the last Pause has not been undone."""
        return self._requests.is_paused

    @property
    def capacity(self) -> Mapping[str, int]:
        """The present capacity of each pool."""
        return self._queue.capacity

    def retries(self, item: int, round_: int) -> int:
        """Return the maximum number of retries after a failure of an item in a round."""
        return self._requests.retries(item, round_, self.agenda.policies[item].retries)

    def priority(self, item: int) -> int:
        """Return the priority of an item."""
        return self._requests.priority(item, self.agenda.policies[item].priority)

    def _note_request(self, request: Request) -> list[int]:
        """Apply a request, and return the items that it may have changed."""
        touched, body = self._requests.add(request), request.body
        if isinstance(body, Set):
            slots = {} if body.max_parallel is None else {SLOTS_POOL: body.max_parallel}
            self._queue.set_capacity(body.pools | slots)
            self._states.caps.change(body.caps)
            self._queue.set_priorities({item: self.priority(item) for item in touched})
        elif isinstance(body, Answer):
            self._states.caps.add_answer(body.question, body.text)
        elif isinstance(body, Add) and body.commands[0].id not in self._items:
            touched = self.agenda.add(body)
            self._items.update((self.agenda.ids[item], item) for item in touched)
            self._states.add(touched)
            self._queue.set_priorities({})
        return touched

    def running_item(self, worker: WorkerId) -> int | None:
        """Return the item that a worker runs, or None."""
        return self._running.get(worker)

    def next_item(self, worker: WorkerId) -> int | None:
        """Return the next item that is queued at a worker, or None."""
        start = self._prefetched.next_start(worker)
        return None if start is None else start.item

    def last_epoch(self, item: int) -> int:
        """Return the highest lease epoch of an item. If its worker is about to lease it, that lease counts too."""
        return self._histories.last_epoch(item)

    def last_attempt(self, item: int) -> tuple[int, int]:
        """Return the round and epoch of the last attempt of an item, which may still run.

        Return (0, 0) if the item never began.
        """
        return self._histories.last_attempt(item)

    def last_outcome(self, item: int) -> AttemptOutcome | None:
        """Return the outcome of an item in its highest round, or None."""
        return self._histories.last_outcome(item)

    def last_begun_outcome(self, item: int) -> AttemptOutcome | None:
        """Return the outcome of the last attempt that a worker began, or None.

        Outcomes without execution are skipped.
        """
        return self._histories.last_begun_outcome(item)

    def outcomes_by_round(self, item: int) -> Mapping[int, AttemptOutcome]:
        """Return the outcomes of an item by round."""
        return self._histories.outcomes_by_round(item)

    @property
    def state_rule(self) -> CommandStateRule:
        """The rule that computes the state of an item without regard to the commands that it needs."""
        return self._states.rule

    @property
    def closed_pools(self) -> Mapping[str, int]:
        """The closed pools, each with the time (ns, wall clock) when it opens again.

        A rate limit or the hours close a pool. The hours of the list close the pool of slots.
        """
        return self._states.closed_pools()

    @property
    def rate_limited_pools(self) -> Collection[str]:
        """The pools that a rate limit has closed."""
        return self._states.rate_limit_ends_by_pool().keys()

    def start_clock(self, clock: ClockRead) -> None:
        """Set the effect of the clock, before the first event. Until then, no clock limits the batch."""
        self._states.clock = clock

    @property
    def deadline_ns(self) -> int:
        """The deadline (ns, wall clock), or 0. A request may have changed it."""
        return self._requests.deadline_ns or self.agenda.limits.deadline_ns

    @property
    def has_caps(self) -> bool:
        """Whether the batch has caps on cost or attempts."""
        return self._states.caps.is_active

    def met_cap(self, item: int) -> MetCap | None:
        """Return the cap that keeps an item from starting, or None."""
        return self._states.caps.met_cap(item)

    def asked_cap(self, item: int) -> MetCap | None:
        """Return the met cap whose open question keeps an item from starting, or None."""
        return None if self._is_running(item) else self._states.asked_cap(item)

    def met_caps(self) -> list[MetCap]:
        """Return the caps that keep an item from starting. The deadline is one of them if it has passed."""
        if not (self.has_caps or self._states.clock.is_past_deadline):
            return []
        graph = self._states.graph
        open_items = [
            item for item in range(len(self.agenda.ids)) if graph.may_start(item) and not self._is_running(item)
        ]
        met = dict.fromkeys(cap for item in open_items if (cap := self.met_cap(item)) is not None)
        if self._states.clock.is_past_deadline and open_items:
            met[MetCap(LIST_SCOPE, "deadline", self.deadline_ns, self.deadline_ns)] = None
        return [*met]

    @property
    def cost(self) -> float | None:
        """The sum of the costs that attempts reported, or None if none reported a cost."""
        items = range(len(self.agenda.ids))
        return attempts_cost(one for item in items for one in self._histories.outcomes_by_round(item).values())

    @property
    def unknown_cost_count(self) -> int:
        """The number of attempts whose cost is unknown although a cap on cost applies to them."""
        return self._states.caps.unknown_cost_count()

    def until_ns(self, item: int) -> int:
        """Return the wall-clock time (ns) until which an item waits for a rate limit; 0 if it does not wait."""
        return self._states.until_ns(item)

    def wait_seconds(self, item: int) -> float:
        """Return the whole waiting time in seconds before the next try of an item in state WAITING."""
        return self._states.wait_timer(item).seconds

    def question(self, item: int) -> Digest | None:
        """Return the digest of the question that a BLOCKED item waits for, or None.

        All items that a cap holds back wait for the same question.
        """
        if self._is_running(item):
            return self._live_questions.open_question(item)
        if (cap := self.asked_cap(item)) is not None:
            return cap_digest(cap)
        waiting = self._states.question(item)
        return None if waiting is None else waiting.digest

    def find_stop(self, item: int, epoch: int | None = None) -> AttemptStop | None:
        """Return the reason why an attempt of an item was stopped. By default, the attempt is the item's last one.

        Return None if the attempt was not stopped or has an outcome.
        """
        return self._interruptions.find_stop(item, epoch)

    def stops_by_epoch(self, item: int) -> Mapping[int, AttemptStop]:
        """Map the lease epochs of an item's stopped attempts to the reasons.

        Stopped attempts that have an outcome are included.
        """
        return self._interruptions.stops_by_epoch(item)

    def after_interruption(self, item: int, epoch: int) -> InterruptedAction:
        """Return what happens next to an item after its attempt with the lease epoch `epoch`.

        The attempt must have ended without an outcome.
        """
        return self._interruptions.next_action(item, epoch)

    @property
    def is_expired(self) -> bool:
        """True if the batch has reached its time limit, and no later request has opened it again."""
        return self._requests.is_expired

    def skip_cause(self, item: int) -> int:
        """Return the item that caused a skipped item to be skipped.

        If a request skipped the item, return the item itself.
        """
        return self._states.graph.skip_cause(item)

    def state(self, item: int) -> CommandState:
        """Return the state of a command."""
        if self._is_running(item):
            return CommandState.RUNNING if self._live_questions.open_question(item) is None else CommandState.BLOCKED
        return self._states.final_state(item) or self._states.open_state(item, is_judged=self._needs_settling(item))

    def states(self) -> list[CommandState]:
        """Return the state of each command, in item order."""
        return list(map(self.state, range(len(self.agenda.ids))))

    def batch_state(self, states: Sequence[CommandState] | None = None) -> BatchState:
        """Return the state of the batch.

        If the caller already has the states of all commands, it passes them as `states`.
        """
        states = self.states() if states is None else states
        leased, pending = self._histories.leased_items, CommandState.PENDING
        is_judged = any(states[item] is pending and self._needs_settling(item) for item in leased)
        runs, is_cancelled = any(map(self._is_running, self.running_items)), self._requests.is_cancelled
        return work_state(states, is_begun=bool(leased), is_at_work=runs or is_judged, is_cancelled=is_cancelled)

    def _is_running(self, item: int) -> bool:
        return (item in self._worker_by_item or item in self._adopted_items) and self._histories.unended_lease_count(
            item
        ) > 0

    def is_interrupted(self, item: int) -> bool:
        """Return whether the last attempt of an item was interrupted, and its policy does not start it again."""
        last = self._histories.last_outcome(item)
        is_settled = last is not None and last.reason == "interrupted" and not self._histories.unended_lease_count(item)
        is_held = is_settled and self._states.rule.own_state(item) in ("failed", "blocked")
        return is_held or (not self._is_running(item) and self._interruptions.next_action(item) != "restart")

    def _needs_settling(self, item: int) -> bool:
        """Return whether an item was interrupted and the coordinator must still decide what happens to it."""
        return item in self._settling_items or (
            not self._is_running(item) and self._interruptions.next_action(item) != "restart"
        )

    def _is_startable(self, item: int) -> bool:
        return self._could_start(item) and not self._states.is_waiting(item) and not self._states.rule.is_paused(item)

    def _could_start(self, item: int) -> bool:
        """Return whether an item may start, now or after a waiting time.

        Free tokens, pauses and limits are not considered.
        """
        is_held = (
            item in self._worker_by_item
            or item in self._adopted_items
            or item in self._settling_items
            or item in self._prefetched
        )
        return not is_held and self._states.may_start(item)
