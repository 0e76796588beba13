"""Caps on the cost and the number of attempts of a list, a pool or a task (SPEC.md "Limits").

Rules:

1. An attempt counts when its lease is taken, before its command starts. An attempt that never began does not count,
   nor does one that ran nothing because nothing had changed.
2. The cost of an attempt counts when the attempt has ended. Running attempts have no cost yet, so the cost can exceed
   its cap by the cost of the tasks that then run.
3. An attempt that reported no cost counts as the highest cost of an attempt in the batch. If no attempt has reported a
   cost, it counts as the first cap of the scope. A rate limit without a cost is free, and so is an attempt
   that had nothing to do or whose command could not be started.
4. A task starts only if no cap of its scopes is met: those of the list, of its pools, and of the task itself. A cap on
   cost applies only to tasks that report a cost.

So all use follows from leases and outcomes, and every process that reads them computes the same.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Literal, NamedTuple

from codebatch.model.digest import Digest
from codebatch.model.outcome import COST_MAX
from codebatch.model.work.limits import NO_CAPS, Caps, WorkLimits
from codebatch.model.work.question import CAP_STOP, cap_question_digest, raised_cap
from codebatch.model.work.work_batch import TaskPolicy
from codebatch.scheduling.work.attempt_histories import AttemptHistories
from codebatch.scheduling.work.command_plan import CommandPlan
from codebatch.scheduling.work.events import AttemptOutcome

LIST_SCOPE = ""
_FREE_REASONS = ("limited", "start", "conflict", "when", "unneeded")
_UNCOUNTED_REASONS = ("unbegun", "unchanged")
CapName = Literal["cost_max", "attempts_max", "deadline"]


class MetCap(NamedTuple):
    """A cap that is met, so that no more tasks of its scope start. `scope` is as in the request Set."""

    scope: str
    name: CapName
    limit: float
    used: float


class CapUse(NamedTuple):
    """The use of a task or a scope: the number of attempts, the known cost, and the number of unknown costs."""

    attempts: int = 0
    cost: float = 0.0
    unknown_costs: int = 0


class CapMeter:
    """The use of each scope with a cap. It is empty, and costs nothing, if the batch has no caps."""

    def __init__(self, agenda: CommandPlan, histories: AttemptHistories) -> None:
        self._agenda = agenda
        self._histories = histories
        self._caps = scope_caps(agenda.limits, dict(zip(agenda.ids, agenda.policies, strict=True)))
        self._defined = dict(self._caps)
        self._use_by_item: dict[int, CapUse] = {}
        self._use: dict[str, CapUse] = dict.fromkeys(self._caps, CapUse())
        self._highest_cost: float | None = None
        self._last_highest: float | None = None
        self._declined: set[Digest] = set()
        self.has_opened = False
        """True if a met cap may have opened again since the conductor has reset this."""

    def is_asked(self, cap: MetCap) -> bool:
        """Return whether a met cap has a question without an answer."""
        return self._agenda.limits.on_cap == "ask" and cap_digest(cap) not in self._declined

    def add_answer(self, question: Digest, text: str) -> None:
        """Apply the first answer to a question about a cap. An answer to another question has no effect."""
        if self._agenda.limits.on_cap != "ask" or question in self._declined:
            return
        if text == CAP_STOP:
            self._declined.add(question)
            return
        for scope, caps in list(self._caps.items()):
            for name, limit in (("cost_max", caps.cost_max), ("attempts_max", caps.attempts_max)):
                if limit is None or cap_question_digest(scope, name, limit) != question:
                    continue
                if (value := raised_cap(text, limit)) is not None:
                    self.has_opened = True
                    new = Caps(cost_max=value) if name == "cost_max" else Caps(attempts_max=int(value))
                    self.change({scope: new})

    @property
    def is_active(self) -> bool:
        """Whether the batch has any caps."""
        return bool(self._caps)

    def change(self, caps: Mapping[str, Caps]) -> None:
        """Replace caps, as the request Set does. Caps that a change omits stay."""
        if not self._caps:  # Without caps, nothing was counted.
            self._use_by_item = {item: self._item_use(item, runs=False) for item in self._histories.leased_items}
        for scope, new in caps.items():
            old = self._caps.get(scope, Caps())
            self._caps[scope] = Caps(
                cost_max=old.cost_max if new.cost_max is None else new.cost_max,
                attempts_max=old.attempts_max if new.attempts_max is None else new.attempts_max,
            )
            if self._defined.get(scope, NO_CAPS).cost_max is None:
                self._defined[scope] = self._caps[scope]
            if scope not in self._use:
                self._use[scope] = CapUse()
                for item, use in self._use_by_item.items():
                    if scope in self._scopes(item):
                        self._add(scope, CapUse(), use)

    def update_item(self, item: int, *, runs: bool) -> None:
        """Count the attempts of an item again."""
        if not self._caps:
            return
        new, old = self._item_use(item, runs=runs), self._use_by_item.get(item, CapUse())
        if new != old:
            was_met, highest = self.met_cap(item) is not None, self._highest_cost
            self._use_by_item[item] = new
            for scope in self._scopes(item):
                self._add(scope, old, new)
            # A cost that becomes known can be lower than the assumed one, so a met cap can open again.
            self.has_opened |= highest != self._last_highest or (was_met and self.met_cap(item) is None)
            self._last_highest = highest

    def met_cap(self, item: int) -> MetCap | None:
        """Return the first cap that keeps an item from starting, or None."""
        if not self._caps:
            return None
        has_cost = self._agenda.policies[item].has_cost
        for scope in self._scopes(item):
            for cap in self._met_caps(scope):
                if has_cost or cap.name == "attempts_max":
                    return cap
        return None

    def unknown_cost_count(self) -> int:
        """Return the number of attempts whose cost is unknown although a cap on cost applies to them."""
        return sum(use.unknown_costs for use in self._use_by_item.values())

    def _scopes(self, item: int) -> list[str]:
        pools = (f"pool.{pool}" for pool in self._agenda.policies[item].pools)
        return [scope for scope in (LIST_SCOPE, *pools, f"task.{self._agenda.ids[item]}") if scope in self._caps]

    def _add(self, scope: str, old: CapUse, new: CapUse) -> None:
        attempts, cost, unknown_costs = self._use[scope]
        self._use[scope] = CapUse(
            attempts + new.attempts - old.attempts,
            cost + new.cost - old.cost,
            unknown_costs + new.unknown_costs - old.unknown_costs,
        )

    def _item_use(self, item: int, *, runs: bool) -> CapUse:
        ended = self._histories.outcomes_by_round(item).values()
        begun = [one for one in ended if one.reason not in _UNCOUNTED_REASONS]
        attempts = self._histories.last_epoch(item) - (len(ended) - len(begun))
        if not self._agenda.policies[item].has_cost:
            return CapUse(attempts)
        costs = _reported_costs(begun)
        self._highest_cost = max((*costs, self._highest_cost or 0.0)) if costs else self._highest_cost
        unpaid = [one for one in begun if one.reason in _FREE_REASONS]
        free = len(unpaid) - len(_reported_costs(unpaid))
        return CapUse(attempts, sum(costs), attempts - runs - len(costs) - free)

    def _met_caps(self, scope: str) -> list[MetCap]:
        caps, use = self._caps[scope], self._use[scope]
        met: list[MetCap] = []
        if caps.attempts_max is not None and use.attempts >= caps.attempts_max:
            met.append(MetCap(scope, "attempts_max", caps.attempts_max, use.attempts))
        if caps.cost_max is not None:
            defined = self._defined[scope].cost_max
            share = self._highest_cost if self._highest_cost is not None else defined or caps.cost_max
            cost = round(use.cost + use.unknown_costs * share, 6)
            if cost >= caps.cost_max:
                met.append(MetCap(scope, "cost_max", caps.cost_max, cost))
        return met


def cap_digest(cap: MetCap) -> Digest:
    """Return the digest of the question about a met cap."""
    return cap_question_digest(cap.scope, cap.name, cap.limit)


def attempts_cost(outcomes: Iterable[AttemptOutcome]) -> float | None:
    """Return the sum of the costs that attempts reported, or None if none reported a cost."""
    costs = _reported_costs(outcomes)
    return round(math.fsum(costs), 6) if costs else None


def _reported_costs(outcomes: Iterable[AttemptOutcome]) -> list[float]:
    """Return the readable costs that attempts reported."""
    costs = (one.said.cost for one in outcomes if one.said is not None)
    return [cost for cost in costs if cost is not None and cost <= COST_MAX]


def scope_caps(limits: WorkLimits, policies: Mapping[str, TaskPolicy]) -> dict[str, Caps]:
    """Map each scope with a cap to its caps: first the list, then pools, then tasks."""
    scopes = {LIST_SCOPE: Caps(cost_max=limits.cost_max, attempts_max=limits.attempts_max)}
    scopes |= {f"pool.{pool}": caps for pool, caps in limits.pools.items()}
    scopes |= {
        f"task.{id_}": Caps(cost_max=policy.cost_max, attempts_max=policy.attempts_max)
        for id_, policy in policies.items()
        if policy.cost_max is not None or policy.attempts_max is not None
    }
    return {scope: caps for scope, caps in scopes.items() if caps != Caps()}
