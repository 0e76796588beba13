"""What a file may cost, on the clock of the one who looks (SPEC.md "Limits")."""

from __future__ import annotations

import pytest

from codebatch.coordinator.limits import Limits, Stopwatch
from codebatch.system.cell import PHASE_BATCHED, PHASE_ITEM, Step


def test_time_in_which_nobody_looked_counts_for_nobody() -> None:
    watch: Stopwatch[str] = Stopwatch()
    watch.look(100.0)
    assert watch.seconds("worker", 1) == 0.0
    watch.look(100.5)
    assert watch.seconds("worker", 1) == 0.5
    watch.look(4000.0)
    assert watch.seconds("worker", 1) == 0.5
    watch.look(4000.25)
    assert watch.seconds("worker", 1) == 0.75


def test_a_new_step_begins_anew() -> None:
    watch: Stopwatch[str] = Stopwatch()
    for now in (1.0, 1.5):
        watch.look(now)
        watch.seconds("worker", 1)
    assert watch.seconds("worker", 2) == 0.0


def test_a_batched_step_may_take_a_tenth_more_for_each_further_file() -> None:
    limits = Limits(project_seconds=100.0, file_seconds=30.0, memory_bytes=1)
    assert limits.seconds_for(Step(0, 0, 0, 0, 4, 5, PHASE_ITEM)) == 30.0
    assert limits.seconds_for(Step(0, 0, 0, 0, 0, 64, PHASE_BATCHED)) == pytest.approx(219.0)
