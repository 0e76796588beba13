"""Planted bugs in caps, hours, deadlines and requests that change them: the simulation finds each."""

from __future__ import annotations

from itertools import chain
from types import ModuleType
from typing import NamedTuple

import pytest

from codebatch.coordinator.work import attempt_context, loop
from codebatch.errors import CodebatchError
from codebatch.model.work import limits
from codebatch.scheduling.work import (
    caps,
    clock_limits,
    command_batch,
    command_queue,
    command_states,
    conductor,
    open_rule,
    request_log,
)
from tests.proof.commands.drawn import draw_world
from tests.proof.commands.world import FaultKind
from tests.support.planted import plant_bug

SEEDS_MAX = 400
CALM: tuple[FaultKind, ...] = ("request", "change limits", "set clock")
DEADLY: tuple[FaultKind, ...] = (*CALM, "kill worker", "kill coordinator", "kill self")
POWERLESS: tuple[FaultKind, ...] = ("lose power", "kill coordinator", "kill worker")


class Bug(NamedTuple):
    """A part of the code of a module, the bug that replaces it, and the seed that last found the bug."""

    module: ModuleType
    line: str
    bug: str
    found_by: int
    kinds: tuple[FaultKind, ...] = CALM


PLANTED: dict[str, Bug] = {
    "cap on attempts is exceeded by one": Bug(caps, "use.attempts >= caps", "use.attempts > caps", 0),
    "cap on cost is exceeded by one": Bug(caps, "if cost >= caps.cost_max", "if cost > caps.cost_max", 0),
    "running attempts do not count": Bug(
        caps, "self._histories.last_epoch(item) - (len(ended) - len(begun))", "len(begun)", 0
    ),
    "interrupted attempts do not count": Bug(
        caps, "self._histories.last_epoch(item) - (len(ended) - len(begun))", "len(begun) + runs", 0, DEADLY
    ),
    "attempts that never began count": Bug(caps, " - (len(ended) - len(begun))", "", 0, DEADLY),
    "attempts count again at each change": Bug(
        caps, "attempts + new.attempts - old.attempts", "attempts + new.attempts", 0
    ),
    "unknown costs are free": Bug(caps, "use.cost + use.unknown_costs * share", "use.cost", 0),
    "interrupted attempts are free": Bug(caps, "attempts - runs - len(costs) - free", "0", 0, DEADLY),
    "caps of pools are ignored": Bug(caps, "(LIST_SCOPE, *pools, f", "(LIST_SCOPE, f", 0),
    "caps of tasks are ignored": Bug(caps, ', f"task.{self._agenda.ids[item]}") if', ") if", 0),
    "cap of the list is ignored": Bug(caps, "(LIST_SCOPE, *pools, f", "(*pools, f", 0),
    "a new cap removes another": Bug(caps, "old.cost_max if new.cost_max is None else new.cost_max", "new.cost_max", 0),
    "earlier use does not count for a new cap": Bug(caps, "self._add(scope, CapUse(), use)", "pass", 0),
    "a changed cap is ignored": Bug(command_batch, "self._states.caps.change(body.caps)", "pass", 0),
    "met caps are ignored": Bug(
        command_states, "return may_start and self.caps.met_cap(item) is None", "return may_start", 0
    ),
    "raised caps start nothing": Bug(
        conductor,
        "case Pause() | Set():\n                self._queue_all()",
        "case Pause() | Set():\n                pass",
        0,
    ),
    "a known cost opens no cap": Bug(
        conductor, "self._states.caps.has_opened = False\n            self._queue_all()", "pass", 0
    ),
    "followers are not counted": Bug(
        conductor, "if limits.has_clock or self.deadline_ns or self._states.caps.is_active", "if limits.has_clock", 0
    ),
    "followers start at all hours": Bug(
        conductor,
        "if limits.has_clock or self.deadline_ns or self._states.caps.is_active",
        "if self._states.caps.is_active",
        0,
    ),
    "leases are forgotten in a power loss": Bug(attempt_context, " and not conductor.has_caps", "", 0, POWERLESS),
    "the deadline is ignored": Bug(
        command_states, "self._requests.is_expired or self.clock.is_past_deadline or", "self._requests.is_expired or", 0
    ),
    "a new deadline is ignored": Bug(
        clock_limits,
        "new_deadline_ns or self._commands.deadline_ns",
        "self._commands.agenda.limits.deadline_ns",
        0,
    ),
    "a request starts tasks before its deadline counts": Bug(
        clock_limits, "new_deadline_ns or self._commands", "self._commands", 0
    ),
    "requests start tasks at the time of the last turn": Bug(
        loop,
        "        self._read_clock()\n        self._append_waiting_stops()",
        "        self._append_waiting_stops()",
        0,
    ),
    "caps of a list that had none do not count": Bug(caps, "if not self._caps:  # Without", "if False:  # Without", 0),
    "only the first new deadline counts": Bug(
        request_log,
        "self.deadline_ns = deadline_ns or self.deadline_ns",
        "self.deadline_ns = self.deadline_ns or deadline_ns",
        0,
    ),
    "hours of pools are ignored": Bug(
        clock_limits, "{SLOTS_POOL: limits.hours, **limits.pool_hours}", "{SLOTS_POOL: limits.hours}", 0
    ),
    "hours of the list are ignored": Bug(
        clock_limits, "{SLOTS_POOL: limits.hours, **limits.pool_hours}", "limits.pool_hours", 0
    ),
    "the time of the start is ignored": Bug(clock_limits, "limits.start_at_ns if pool == SLOTS_POOL else 0", "0", 0),
    "hours never open again": Bug(
        clock_limits, "return None if self._current == before else self._current", "return None", 0
    ),
    "nothing starts when the hours open": Bug(
        conductor, "self._states.clock = event\n            self._queue_all()", "self._states.clock = event", 0
    ),
    "closed pools are used": Bug(command_queue, "if _demands_any(demand, closed):", "if False:", 0),
    "rate limits open the hours": Bug(command_states, "in (*limited, *by_clock)}", "in limited}", 0),
    "hours over midnight": Bug(limits, "minute >= opens or minute < closes", "minute >= opens", 0),
    "hours of another zone": Bug(limits, "at = local_time(at_ns, zone)", 'at = local_time(at_ns, "UTC")', 0),
    "rate limits without an end": Bug(open_rule, "waits <= policy.waits_max and not", "not", 0),
    "request is lost at the end": Bug(
        loop, "if self._end_action is None or not isinstance(event, RequestRead):", "if True:", 0
    ),
}


@pytest.mark.parametrize("name", PLANTED)
def test_planted_bug_is_found(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The seed that last found the bug is tried first. The simulation may draw other worlds since then."""
    planted = PLANTED[name]
    plant_bug(monkeypatch, planted.module, planted.line, planted.bug)
    for seed in chain([planted.found_by], range(SEEDS_MAX)):
        try:
            draw_world(seed, planted.kinds).run()
        except (AssertionError, CodebatchError):
            return
    pytest.fail(f"no seed found the bug: {name}")
