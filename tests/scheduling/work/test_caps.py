"""Caps on cost and attempts, and the effect of the clock: pure decisions."""

from __future__ import annotations

import datetime

import pytest

from codebatch.model.outcome import CommandReport
from codebatch.model.work.command import CommandId
from codebatch.model.work.limits import Caps, WorkLimits, find_hours_problem, next_opening_ns
from codebatch.model.work.work_batch import TaskPolicy, Work
from codebatch.scheduling.work.attempt_histories import AttemptHistories
from codebatch.scheduling.work.backoff import rate_limit_seconds
from codebatch.scheduling.work.caps import CapMeter, MetCap, attempts_cost, cap_digest
from codebatch.scheduling.work.clock_limits import read_clock
from codebatch.scheduling.work.command_plan import make_command_plan
from codebatch.scheduling.work.events import AttemptOutcome, OutcomesConcluded

A, B = CommandId("a"), CommandId("b")
BERLIN = "Europe/Berlin"


def _meter(outcomes: list[AttemptOutcome], epochs: dict[int, int], limits: WorkLimits, **policy: object) -> CapMeter:
    policies = {id_: TaskPolicy(has_cost=True, pools={"api": 1}, **policy) for id_ in (A, B)}  # type: ignore[arg-type] # Settings of a case.
    work = Work(source="", root=b"/", order=(A, B), policies=policies, pools={"api": 1}, limits=limits)
    histories = AttemptHistories(epochs)
    histories.add(OutcomesConcluded(outcomes))
    meter = CapMeter(make_command_plan(work, [A, B]), histories)
    for item in (0, 1):
        meter.update_item(item, runs=False)
    return meter


def _ended(epoch: int, cost: float | None, reason: str | None = None) -> AttemptOutcome:
    report = None if cost is None else CommandReport(cost=cost)
    type_ = "cancelled" if reason == "unbegun" else "failed"
    return AttemptOutcome(item=0, round=epoch, type=type_, reason=reason, epoch=epoch, said=report)  # type: ignore[arg-type] # Reasons of cases.


@pytest.mark.parametrize(
    ("outcomes", "epochs", "limits", "used"),
    [
        ([], {0: 2}, WorkLimits(attempts_max=2), 2),
        ([], {0: 1}, WorkLimits(attempts_max=2), None),
        ([], {0: 1, 1: 1}, WorkLimits(pools={"api": Caps(attempts_max=2)}), 2),
        ([_ended(1, None, "unbegun")], {0: 1}, WorkLimits(attempts_max=1), None),
        ([_ended(1, None, "unchanged")], {0: 1}, WorkLimits(attempts_max=1), None),
        ([_ended(1, None, "unchanged")], {0: 1}, WorkLimits(cost_max=1), None),
        ([_ended(1, 1.0, "limited")], {0: 1}, WorkLimits(attempts_max=1), 1),
        ([_ended(1, 2.0)], {0: 1}, WorkLimits(cost_max=2), 2),
        ([_ended(1, 1.9)], {0: 1}, WorkLimits(cost_max=2), None),
        ([_ended(1, 1.5), _ended(2, None)], {0: 2}, WorkLimits(cost_max=3), 3),
        ([_ended(1, 1.5)], {0: 2}, WorkLimits(cost_max=3), 3),
        ([_ended(1, None)], {0: 1}, WorkLimits(cost_max=5), 5),
        ([_ended(1, 1e308), _ended(2, 1e308)], {0: 2}, WorkLimits(cost_max=5), 10),
        ([_ended(1, None, "limited"), _ended(2, None, "start")], {0: 2}, WorkLimits(cost_max=5), None),
    ],
)
def test_cap_is_met(
    outcomes: list[AttemptOutcome], epochs: dict[int, int], limits: WorkLimits, used: float | None
) -> None:
    met = _meter(outcomes, epochs, limits).met_cap(1)
    assert (None if met is None else met.used) == used


def test_cap_of_a_task_stops_only_this_task_until_it_is_raised() -> None:
    meter = _meter([], {0: 2}, WorkLimits(), attempts_max=2)
    assert meter.met_cap(0) == ("task.a", "attempts_max", 2, 2)
    assert meter.met_cap(1) is None
    meter.change({"task.a": Caps(attempts_max=3)})
    assert meter.met_cap(0) is None


@pytest.mark.parametrize("limits", [WorkLimits(attempts_max=9), WorkLimits()])
def test_cap_that_is_set_later_counts_earlier_attempts(limits: WorkLimits) -> None:
    meter = _meter([], {0: 2}, limits)
    meter.change({"pool.api": Caps(attempts_max=2)})
    assert meter.met_cap(1) == ("pool.api", "attempts_max", 2, 2)


@pytest.mark.parametrize(
    ("answers", "met"),
    [
        (["stop"], ("", "attempts_max", 2, 2)),
        (["stop", "3"], ("", "attempts_max", 2, 2)),
        (["2", "2.5", "nan", "1e9", "", "3", "9"], None),
    ],
)
def test_first_valid_answer_raises_a_cap_or_declines(answers: list[str], met: MetCap | None) -> None:
    meter = _meter([], {0: 2}, WorkLimits(attempts_max=2, on_cap="ask"))
    cap = meter.met_cap(1)
    assert cap is not None
    assert meter.is_asked(cap)
    for answer in answers:
        meter.add_answer(cap_digest(cap), answer)
    assert meter.met_cap(1) == met
    assert not meter.is_asked(cap) or met is None


def test_raised_cap_that_was_set_later_is_not_met_by_the_same_unknown_cost() -> None:
    meter = _meter([], {0: 2}, WorkLimits(attempts_max=9))
    meter.change({"": Caps(cost_max=1)})
    assert meter.met_cap(0) == ("", "cost_max", 1, 2)
    meter.change({"": Caps(cost_max=3)})
    assert meter.met_cap(0) is None


def test_answer_for_an_old_value_of_a_cap_has_no_effect() -> None:
    meter = _meter([], {0: 2}, WorkLimits(attempts_max=2, on_cap="ask"))
    old = meter.met_cap(1)
    meter.change({"": Caps(attempts_max=4)})
    assert old is not None
    meter.add_answer(cap_digest(old), "3")
    meter.change({"": Caps(attempts_max=1)})
    assert meter.met_cap(1) == ("", "attempts_max", 1, 2)


def test_repeated_rate_limit_waits_longer_up_to_an_hour() -> None:
    assert [rate_limit_seconds(1, waits) for waits in (1, 2, 3, 40)] == [1, 2, 4, 3600]
    assert rate_limit_seconds(7200, 3) == 7200


def _ns(text: str) -> int:
    return round(datetime.datetime.fromisoformat(text).timestamp()) * 1_000_000_000


@pytest.mark.parametrize(
    ("hours", "now", "opens"),
    [
        ("22:00-08:00", "2026-07-01T21:59:59+02:00", "2026-07-01T22:00:00+02:00"),
        ("22:00-08:00", "2026-07-01T22:00:00+02:00", None),
        ("22:00-08:00", "2026-07-02T07:59:59+02:00", None),
        ("22:00-08:00", "2026-07-02T08:00:00+02:00", "2026-07-02T22:00:00+02:00"),
        ("09:00-17:00", "2026-07-02T17:00:00+02:00", "2026-07-03T09:00:00+02:00"),
        ("02:30-08:00", "2026-03-29T01:59:00+01:00", "2026-03-29T03:00:00+02:00"),
        ("02:15-02:45", "2026-03-29T00:00:00+01:00", "2026-03-30T02:15:00+02:00"),
        ("02:00-02:30", "2026-10-25T02:31:00+02:00", "2026-10-25T02:00:00+01:00"),
        ("22:00-08:00", "2026-10-24T21:00:00+02:00", "2026-10-24T22:00:00+02:00"),
    ],
)
def test_hours_follow_the_wall_clock_of_their_zone(hours: str, now: str, opens: str | None) -> None:
    assert next_opening_ns(hours, BERLIN, _ns(now)) == (0 if opens is None else _ns(opens))


def test_hours_and_start_time_combine() -> None:
    limits = WorkLimits(hours="22:00-08:00", zone=BERLIN, start_at_ns=_ns("2026-07-02T12:00:00+02:00"))
    clock = read_clock(limits, _ns("2026-07-01T23:00:00+02:00"), 0)
    assert clock.closed == {"": _ns("2026-07-02T22:00:00+02:00")}
    assert read_clock(limits, _ns("2026-07-02T22:00:00+02:00"), 0, clock).closed == {}


def test_deadline_is_over_at_its_time() -> None:
    assert not read_clock(WorkLimits(), 9, 10).is_past_deadline
    assert read_clock(WorkLimits(), 10, 10).is_past_deadline


@pytest.mark.parametrize("hours", ["22-08", "24:00-08:00", "08:00-08:00", "22:00 - 08:00"])
def test_invalid_hours_are_refused(hours: str) -> None:
    assert find_hours_problem(hours)


def test_sum_of_costs_leaves_out_unreadable_ones() -> None:
    assert attempts_cost([_ended(1, 1e308), _ended(2, 1e308)]) is None
    assert attempts_cost([_ended(1, 1e308), _ended(2, 1.5)]) == 1.5
