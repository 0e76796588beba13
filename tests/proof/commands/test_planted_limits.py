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
    command_states,
)
from tests.proof.commands.drawn import draw_world
from tests.proof.commands.planted import plant_bug
from tests.proof.commands.world import FaultKind

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
    "cap on attempts is exceeded by one": Bug(caps, "use.attempts >= caps", "use.attempts > caps", 7),
    "cap on cost is exceeded by one": Bug(caps, "if cost >= caps.cost_max", "if cost > caps.cost_max", 3),
    "interrupted attempts do not count": Bug(
        caps, "self._histories.last_epoch(item) - (len(ended) - len(begun))", "len(begun) + runs", 25, DEADLY
    ),
    "interrupted attempts are free": Bug(caps, "attempts - runs - len(costs) - free", "0", 25, DEADLY),
    "caps of pools are ignored": Bug(caps, "(LIST_SCOPE, *pools, f", "(LIST_SCOPE, f", 7),
    "caps of tasks are ignored": Bug(caps, ', f"task.{self._agenda.ids[item]}") if', ") if", 17),
    "cap of the list is ignored": Bug(caps, "(LIST_SCOPE, *pools, f", "(*pools, f", 3),
    "met caps are ignored": Bug(
        command_states, "return may_start and self.caps.met_cap(item) is None", "return may_start", 3
    ),
    "leases are forgotten in a power loss": Bug(attempt_context, " and not conductor.has_caps", "", 33, POWERLESS),
    "the deadline is ignored": Bug(
        command_states,
        "self._requests.is_expired or self.clock.is_past_deadline or",
        "self._requests.is_expired or",
        25,
    ),
    "a new deadline is ignored": Bug(
        clock_limits,
        "new_deadline_ns or self._commands.deadline_ns",
        "self._commands.agenda.limits.deadline_ns",
        39,
    ),
    "requests start tasks at the time of the last turn": Bug(
        loop,
        "        self._read_clock()\n        self._append_waiting_stops()",
        "        self._append_waiting_stops()",
        5,
    ),
    "hours of pools are ignored": Bug(
        clock_limits, "{SLOTS_POOL: limits.hours, **limits.pool_hours}", "{SLOTS_POOL: limits.hours}", 17
    ),
    "hours of the list are ignored": Bug(
        clock_limits, "{SLOTS_POOL: limits.hours, **limits.pool_hours}", "limits.pool_hours", 5
    ),
    "the time of the start is ignored": Bug(clock_limits, "limits.start_at_ns if pool == SLOTS_POOL else 0", "0", 5),
    "hours never open again": Bug(
        clock_limits, "return None if self._current == before else self._current", "return None", 5
    ),
    "rate limits open the hours": Bug(command_states, "in (*limited, *by_clock)}", "in limited}", 5),
    "hours of another zone": Bug(limits, "at = local_time(at_ns, zone)", 'at = local_time(at_ns, "UTC")', 73),
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
