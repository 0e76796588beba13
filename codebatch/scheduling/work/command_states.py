"""The states of commands that do not run, derived from each command's outcomes, needs and waiting time."""

from __future__ import annotations

from collections.abc import Sequence

from codebatch.model.work.limits import NO_LIMITS
from codebatch.scheduling.lifecycle import CommandState
from codebatch.scheduling.work.attempt_histories import AttemptHistories
from codebatch.scheduling.work.backoff import backoff_seconds, rate_limit_seconds
from codebatch.scheduling.work.caps import CapMeter, MetCap, scope_caps
from codebatch.scheduling.work.command_graph import CommandGraph
from codebatch.scheduling.work.command_plan import CommandPlan
from codebatch.scheduling.work.events import ClockRead, SetTimer
from codebatch.scheduling.work.open_rule import DEPENDENCY_STATES, AwaitedQuestion, CommandStateRule, OwnState
from codebatch.scheduling.work.request_log import RequestLog

_STATE_BY_OWN_STATE: dict[OwnState, CommandState] = {
    "done": CommandState.DONE,
    "failed": CommandState.FAILED,
    "cancelled": CommandState.CANCELLED,
    "skipped": CommandState.SKIPPED,
    "blocked": CommandState.BLOCKED,
}


class CommandStates:
    """The states of the commands of a batch, updated by `update_state`.

    All states can be computed again from files, with one exception: whether a waiting time between tries has passed is
    known only in memory.
    """

    def __init__(self, agenda: CommandPlan, histories: AttemptHistories, requests: RequestLog) -> None:
        self._agenda = agenda
        self._histories = histories
        self._requests = requests
        self.rule = CommandStateRule(agenda, histories, requests)
        self.caps = CapMeter(agenda, histories)
        self.clock = ClockRead()
        self.graph = CommandGraph(agenda.needs, goes_on=agenda.on_failure == "continue")
        self._own_states: list[OwnState] = ["open"] * len(agenda.ids)
        self._failed: dict[int, None] = {}
        self._blocked: set[int] = set()
        self._ended_waits: dict[int, int] = {}
        self._limited_items: set[int] = set()

    def add(self, items: Sequence[int]) -> None:
        """Add new items of the plan, which follow the present items."""
        self.graph.add([self._agenda.needs[item] for item in items])
        self._own_states += ["open"] * len(items)
        self.caps.change(scope_caps(NO_LIMITS, {self._agenda.ids[item]: self._agenda.policies[item] for item in items}))

    def update_state(self, item: int, *, runs: bool) -> set[int]:
        """Compute the state of an item again.

        Return the items that may have become ready, or may not be ready any more.

        `runs` is set if the item is running.
        """
        self.caps.update_item(item, runs=runs)
        own_state = self._own_states[item] = "open" if runs else self.rule.own_state(item)
        last = self._histories.last_outcome(item)
        counts = own_state == "failed" and last is not None and not self._requests.is_acknowledged(item, last.round)
        if counts:
            self._failed.setdefault(item)
        else:
            self._failed.pop(item, None)
        (self._blocked.add if own_state == "blocked" else self._blocked.discard)(item)
        is_limited = own_state == "retry" and self.rule.is_limited(item)
        (self._limited_items.add if is_limited else self._limited_items.discard)(item)
        return self.graph.set(item, "runs" if runs else DEPENDENCY_STATES[own_state])

    @property
    def is_stopped(self) -> bool:
        """True if no command may start, because the batch reached its limit of failures or of time, or its deadline."""
        return self._requests.is_expired or self.clock.is_past_deadline or self.stopping_failure is not None

    @property
    def stopping_failure(self) -> int | None:
        """The item with the failure at which the batch reached its limit of failures.

        None if the limit is not reached.
        """
        if self._agenda.on_failure != "stop" or len(self._failed) < self._agenda.failures_max:
            return None
        return next(reversed(self._failed))

    @property
    def is_answer_awaited(self) -> bool:
        """True if a blocked command could continue after an answer."""
        if any(not self.rule.is_cancelled(item) for item in self._blocked):
            return True
        return any(self.asked_cap(item) is not None for item in range(len(self._agenda.ids)))

    def is_open(self, item: int) -> bool:
        """Return whether an item has not ended by its own outcome or by a request. Unmet needs make no difference."""
        return self.graph.own_state(item) == "open"

    def may_start(self, item: int) -> bool:
        """Return whether all needs of an item are met, no cap is met, and the item is not cancelled.

        The item may still wait for its next try.
        """
        may_start = self.graph.may_start(item) and not self.rule.is_cancelled(item)
        return may_start and self.caps.met_cap(item) is None

    def asked_cap(self, item: int) -> MetCap | None:
        """Return the met cap whose open question keeps an item from starting, or None."""
        if self._agenda.limits.on_cap != "ask" or self.is_stopped or not self.graph.may_start(item):
            return None
        cap = None if self.rule.is_cancelled(item) else self.caps.met_cap(item)
        return cap if cap is not None and self.caps.is_asked(cap) else None

    def record_wait_end(self, item: int, round_: int) -> None:
        """Record that the waiting time before an item's attempt in a round has passed."""
        self._ended_waits[item] = round_

    def is_waiting(self, item: int) -> bool:
        """Return whether the waiting time before the next try of an item has not passed yet."""
        if self._own_states[item] != "retry":
            return False
        is_wait_over = self._ended_waits.get(item) == self._histories.next_round(item)
        return not is_wait_over and (item in self._limited_items or self._agenda.policies[item].backoff_seconds > 0)

    def until_ns(self, item: int) -> int:
        """Return the wall-clock time (ns) until which an item waits for a rate limit; 0 if it does not wait."""
        last = self._histories.last_outcome(item)
        if item not in self._limited_items or last is None or not self.is_waiting(item):
            return 0
        extra = rate_limit_seconds(last.wait_seconds, self.rule.wait_count(item)) - last.wait_seconds
        return last.until_ns + round(extra * 1e9)

    def closed_pools(self) -> dict[str, int]:
        """Map each closed pool to the time (ns, wall clock) when it opens: because of a rate limit, or of the hours."""
        limited, by_clock = self.rate_limit_ends_by_pool(), self.clock.closed
        return {pool: max(limited.get(pool, 0), by_clock.get(pool, 0)) for pool in (*limited, *by_clock)}

    def rate_limit_ends_by_pool(self) -> dict[str, int]:
        """Map each pool of an item that waits for a rate limit to the time (ns, wall clock) when the wait ends."""
        closed: dict[str, int] = {}
        for item in self._limited_items:
            if self.is_waiting(item):
                for pool in self._agenda.policies[item].pools:
                    closed[pool] = max(self.until_ns(item), closed.get(pool, 0))
        return closed

    def wait_timer(self, item: int) -> SetTimer:
        """Return the Wake action that sets a timer for the end of an item's waiting time."""
        policy, id_ = self._agenda.policies[item], self._agenda.ids[item]
        round_ = self._histories.next_round(item)
        if item in self._limited_items:
            return SetTimer(item, round_, 0.0, self.until_ns(item))
        failed_tries = self.rule.failed_try_count(item)
        seconds = backoff_seconds(policy, failed_tries, batch=self._agenda.batch, command=id_, round_=round_)
        return SetTimer(item, round_, seconds)

    def question(self, item: int) -> AwaitedQuestion | None:
        """Return the question that a blocked item waits for, or None."""
        return self.rule.awaited_question(item) if self._own_states[item] == "blocked" else None

    def final_state(self, item: int) -> CommandState | None:
        """Return the final state that an item has by its own outcome or by a request.

        None if the item has not ended.
        """
        return _STATE_BY_OWN_STATE.get(self._own_states[item])

    def open_state(self, item: int, *, is_judged: bool) -> CommandState:
        """Return the state of an item that has not ended.

        `is_judged` is set if the item was interrupted and the coordinator must decide what happens to it.
        """
        if self.graph.is_skipped(item):
            return CommandState.SKIPPED
        if self.rule.is_cancelled(item):
            return CommandState.CANCELLED
        if is_judged or self.is_stopped or not self.graph.may_start(item):
            return CommandState.PENDING
        if (cap := self.caps.met_cap(item)) is not None:
            return CommandState.BLOCKED if self.caps.is_asked(cap) else CommandState.PENDING
        return CommandState.WAITING if self.is_waiting(item) else CommandState.READY
