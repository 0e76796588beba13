"""Decisions about the number of workers: tables of progress reports and decisions, and properties."""

from __future__ import annotations

import math
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from codebatch.model.outcome import Commit, HolderId, TaskOutcome, WorkUnit
from codebatch.model.shard import ShardId
from codebatch.scheduling.actions import AssignUnit, EndBroken, SessionAction, ShrinkUnit, SpawnWorker, SurveyWorker
from codebatch.scheduling.analysis.ledger import OutcomeLedger
from codebatch.scheduling.analysis.session import FAILED_STARTS_MAX, AnalysisSession
from codebatch.scheduling.analysis.throughput import START_SECONDS, WorkerThroughput
from codebatch.scheduling.events import (
    OutcomesCommitted,
    ProgressReport,
    SessionStarted,
    UnitDone,
    WorkerId,
    WorkerIdle,
    WorkerLost,
    WorkerSurveyed,
)
from tests.scheduling.work.batches import work_of

S = ShardId("00000001")
W = WorkerId(1)
TICK = 0.1
NEVER = 1e9
"""Cost per worker that exceeds any work, so that the cost alone starts one worker."""


def _session(items: int, *, jobs: int = 64, starts_max: int | None = None) -> AnalysisSession:
    """Return a session with one shard whose items cost 1 each. Its first worker is at item 0."""
    ledger = OutcomeLedger(work_of({S: items}), {"parse": ()})
    costs = {S: [float(n) for n in range(items + 1)]}
    session = AnalysisSession(ledger, costs=costs, jobs=jobs, cost_per_worker=NEVER, starts_max=starts_max)
    assert session.handle(SessionStarted()) == [SpawnWorker()]
    session.handle(WorkerIdle(W))
    return session


def _report(session: AnalysisSession, seconds: float, *positions: int) -> int:
    """Report the positions of workers 1, 2, …. Return the number of workers that the session starts."""
    actions = session.handle(
        ProgressReport(seconds, tuple((WorkerId(n), at) for n, at in enumerate(positions, start=1)))
    )
    return _spawns(actions)


def _spawns(actions: Sequence[SessionAction]) -> int:
    return sum(isinstance(action, SpawnWorker) for action in actions)


def _warm_up(session: AnalysisSession, position: int = 0) -> None:
    """Let the first worker work for the initial time that is not observed."""
    assert _report(session, START_SECONDS, position) == 0


@pytest.mark.parametrize(
    ("items", "seconds", "position", "expected"),
    [
        # After `seconds` the worker is at `position`, so each remaining item takes at least seconds / (position + 1).
        (100, 1.0, 1, 63),
        (100, 1.0, 9, 18),
        (100, 1.0, 49, 2),
        (100, 1.0, 70, 0),
        (10, 30.0, 0, 9),
        (2, 30.0, 0, 1),
        (1, 30.0, 0, 0),
    ],
)
def test_workers_start_while_the_remaining_work_outlasts_a_start(
    items: int, seconds: float, position: int, expected: int
) -> None:
    session = _session(items)
    _warm_up(session)
    assert _report(session, seconds, position) == expected


def test_session_starts_only_as_many_workers_as_requested() -> None:
    session = _session(1000, jobs=8)
    _warm_up(session)
    assert _report(session, 1.0, 1) == 7
    assert _report(session, 1.0, 1) == 0


def test_first_seconds_of_a_worker_are_not_observed() -> None:
    """A new process loads modules and grammars in its first item."""
    session = _session(10)
    for _ in range(round(START_SECONDS / TICK)):
        assert _report(session, TICK, 0) == 0
    assert _report(session, TICK, 9) == 0, "the remaining items were finished at once"


def test_long_item_is_noticed_before_it_ends() -> None:
    session = _session(50)
    _warm_up(session)
    assert [_report(session, 0.25, 0) for _ in range(3)] == [24, 25, 0]


def test_worker_that_sets_up_its_tasks_starts_no_others() -> None:
    session = _session(1000)
    assert [_report(session, 1.0) for _ in range(20)] == [0] * 20


def test_long_set_up_requires_more_remaining_work_for_a_start() -> None:
    def started(set_up_seconds: float) -> int:
        session = _session(100)
        _report(session, set_up_seconds)
        _report(session, START_SECONDS + set_up_seconds, 0)
        return _report(session, 1.0, 9)

    assert (started(0.0), started(5.0), started(20.0)) == (18, 1, 0)


def test_longest_set_up_is_the_duration_of_a_start() -> None:
    units = {W: WorkUnit(shard=S, start=0, end=50, tasks=("parse",))}
    throughput = WorkerThroughput({S: [float(n) for n in range(100)]}, units, NEVER)
    throughput.observe(ProgressReport(5.0, ()))
    throughput.observe(ProgressReport(START_SECONDS + 5.0, ((W, 0),)))
    units[WorkerId(2)] = WorkUnit(shard=S, start=50, end=99, tasks=("parse",))
    throughput.observe(ProgressReport(TICK, ((W, 0), (WorkerId(2), 50))))
    assert throughput.workers_worth(0.0, 0) == math.ceil(99 * TICK / (START_SECONDS + 5.0))


def test_units_that_end_between_two_reports_count_as_done() -> None:
    sizes = {S: 60, ShardId("00000002"): 40}
    costs = {shard: [float(n) for n in range(size + 1)] for shard, size in sizes.items()}
    session = AnalysisSession(OutcomeLedger(work_of(sizes), {"parse": ()}), costs=costs, jobs=64, cost_per_worker=NEVER)
    session.handle(SessionStarted())
    session.handle(WorkerIdle(W))
    _warm_up(session)
    outcome = TaskOutcome(shard=S, task="parse", start=0, end=60, type="result")
    session.handle(OutcomesCommitted((Commit(segment=HolderId("h"), epoch=1, round=1, outcomes=(outcome,)),)))
    session.handle(UnitDone(W))
    assert _report(session, 1.0, 0) == 1


def _throughput(cost_per_worker: float) -> WorkerThroughput:
    """Return the throughput of one worker that has a unit of 100 items."""
    unit = WorkUnit(shard=S, start=0, end=100, tasks=("parse",))
    return WorkerThroughput({S: [float(n) for n in range(101)]}, {W: unit}, cost_per_worker)


def test_position_of_a_worker_never_decreases() -> None:
    """A reader that races with a writer of the progress cell may read a mix of two steps."""
    throughput = _throughput(10.0)
    for position in (30, 10):
        throughput.observe(ProgressReport(TICK, ((W, position),)))
        assert throughput.workers_worth(0.0, 0) == 7


def test_worker_that_commits_counts_as_working() -> None:
    throughput = _throughput(0.1)
    throughput.observe(ProgressReport(TICK, ((W, 100),)))
    assert throughput.workers_worth(3.0, 3) == 4


def test_rounded_cost_of_no_work_is_accepted_before_any_progress() -> None:
    throughput = WorkerThroughput({}, {}, 0.0)
    assert throughput.workers_worth(-1e-12, 3) == 3


def test_start_limit_bounds_concurrent_starts() -> None:
    session = _session(1000, jobs=8, starts_max=3)
    _warm_up(session)
    assert _report(session, 1.0, 1) == 3
    assert _report(session, 1.0, 1) == 0
    assert _spawns(session.handle(WorkerIdle(WorkerId(2)))) == 1
    assert _spawns(session.handle(WorkerLost(WorkerId(3), None, "crash"))) == 1


def test_repeated_failed_starts_end_further_starts() -> None:
    """Otherwise starts on a machine without room for more workers would fail until the session ends as broken."""
    session = _session(1000, jobs=64, starts_max=2)
    _warm_up(session)
    assert _report(session, 1.0, 1) == 2
    spawned = [
        _spawns(session.handle(WorkerLost(WorkerId(10 + number), None, "crash")))
        for number in range(FAILED_STARTS_MAX + 1)
    ]
    assert spawned == [1] * (FAILED_STARTS_MAX - 1) + [0, 0]
    assert _report(session, 10.0, 1) == 0
    assert _spawns(session.handle(WorkerLost(W, None, "crash"))) == 1, "the last worker must be replaced"


def test_successful_start_resets_the_failed_starts() -> None:
    session = _session(1000, jobs=64, starts_max=1)
    _warm_up(session)
    assert _report(session, 1.0, 1) == 1
    for number in range(2, 20):
        assert _spawns(session.handle(WorkerLost(WorkerId(100 + number), None, "crash"))) == 1
        assert _spawns(session.handle(WorkerIdle(WorkerId(number)))) == 1


def test_session_breaks_if_all_starts_fail() -> None:
    ledger = OutcomeLedger(work_of({S: 9}), {"parse": ()})
    session = AnalysisSession(ledger, costs={S: [float(n) for n in range(10)]}, jobs=1, cost_per_worker=NEVER)
    session.handle(SessionStarted())
    ends = [session.handle(WorkerLost(WorkerId(number), None, "crash"))[-1] for number in range(1, 7)]
    assert ends == [SpawnWorker()] * 5 + [EndBroken(6)]


def test_work_leased_by_others_starts_no_worker() -> None:
    ledger = OutcomeLedger(work_of({S: 100}), {"parse": ()})
    costs = {S: [float(n) for n in range(101)]}
    session = AnalysisSession(ledger, costs=costs, jobs=8, cost_per_worker=NEVER, leased={(S, 10): 1})
    session.handle(SessionStarted())
    session.handle(WorkerIdle(W))
    _report(session, START_SECONDS, 0)
    assert _report(session, 10.0, 8) == 1, "two unleased items are left"


def test_idle_worker_prevents_further_starts() -> None:
    session = _session(8)
    _warm_up(session)
    assert _report(session, 5.0, 5) == 2
    session.handle(WorkerIdle(WorkerId(2)))
    session.handle(WorkerSurveyed(W, 5))
    session.handle(WorkerIdle(WorkerId(3)))
    session.handle(WorkerSurveyed(W, 5))
    assert _report(session, 5.0, 5, 7) == 0


@pytest.mark.parametrize("items", [5, 1])
def test_workers_by_cost_do_not_exceed_the_items(items: int) -> None:
    ledger = OutcomeLedger(work_of({S: items}), {"parse": ()})
    costs = {S: [1000.0 * n for n in range(items + 1)]}
    session = AnalysisSession(ledger, costs=costs, jobs=64, cost_per_worker=1.0)
    assert session.handle(SessionStarted()) == [SpawnWorker()] * items


reports = st.lists(st.tuples(st.floats(0.0, 2.0), st.integers(0, 20)), max_size=30)


@settings(max_examples=300, deadline=None)
@given(reports, st.floats(1.0, 1e6), st.integers(0, 50))
def test_wanted_workers_do_not_exceed_the_items(
    observed: list[tuple[float, int]], cost_per_worker: float, queued: int
) -> None:
    unit = WorkUnit(shard=S, start=0, end=20, tasks=("parse",))
    throughput = WorkerThroughput({S: [float(n) for n in range(21)]}, {W: unit}, cost_per_worker)
    for seconds, position in observed:
        throughput.observe(ProgressReport(seconds, ((W, position),)))
    assert 1 <= throughput.workers_worth(float(queued), queued) <= 20 + queued


@settings(max_examples=200, deadline=None)
@given(st.floats(0.005, 5.0), st.integers(2, 400), st.integers(1, 50))
def test_wanted_workers_do_not_exceed_the_seconds_left_per_start(item_seconds: float, items: int, ticks: int) -> None:
    """The prediction of the remaining time is too low, by the current item."""
    unit = WorkUnit(shard=S, start=0, end=items, tasks=("parse",))
    throughput = WorkerThroughput({S: [float(n) for n in range(items + 1)]}, {W: unit}, NEVER)
    wanted, position = 1, 0
    for tick in range(1, ticks + 1):
        position = min(items, int(tick * TICK / item_seconds))
        throughput.observe(ProgressReport(TICK, ((W, position),)))
        wanted = throughput.workers_worth(0.0, 0)
    left = (items - position) * item_seconds
    assert wanted <= max(1, math.ceil(1.5 * left / START_SECONDS + 1))


@settings(max_examples=200, deadline=None)
@given(st.lists(st.floats(0.01, 1.0), min_size=2, max_size=40))
def test_stalled_worker_never_reduces_the_wanted_workers(seconds: list[float]) -> None:
    unit = WorkUnit(shard=S, start=0, end=100, tasks=("parse",))
    throughput = WorkerThroughput({S: [float(n) for n in range(101)]}, {W: unit}, NEVER)
    wanted = []
    for interval in seconds:
        throughput.observe(ProgressReport(interval, ((W, 3),)))
        wanted.append(throughput.workers_worth(0.0, 0))
    assert wanted == sorted(wanted)


def test_recent_items_outweigh_the_first_items() -> None:
    """The costliest units are executed first, and differ from the last ones."""
    unit = WorkUnit(shard=S, start=0, end=2000, tasks=("parse",))
    throughput = WorkerThroughput({S: [float(n) for n in range(2001)]}, {W: unit}, NEVER)
    for position in (0, *range(100, 1000, 100), *range(900, 917)):
        throughput.observe(ProgressReport(1.0, ((W, position),)))
    by_the_mean = (2000 - 916) / (916 / 26) / START_SECONDS
    assert throughput.workers_worth(0.0, 0) > 2 * by_the_mean
    for position in range(1000, 1600, 100):
        throughput.observe(ProgressReport(1.0, ((W, position),)))
    assert throughput.workers_worth(0.0, 0) < 1.7 * (2000 - 1500) / 100 / START_SECONDS


def test_work_finished_by_others_is_not_counted() -> None:
    other = ShardId("00000002")
    sizes = {S: 200, other: 100}
    costs = {shard: [float(n) for n in range(size + 1)] for shard, size in sizes.items()}
    session = AnalysisSession(OutcomeLedger(work_of(sizes), {"parse": ()}), costs=costs, jobs=64, cost_per_worker=NEVER)
    session.handle(SessionStarted())
    session.handle(WorkerIdle(W))
    outcome = TaskOutcome(shard=other, task="parse", start=0, end=100, type="result")
    session.handle(OutcomesCommitted((Commit(segment=HolderId("other"), epoch=1, round=1, outcomes=(outcome,)),)))
    _report(session, START_SECONDS, 199)
    assert _report(session, 30.0, 199) == 0


def test_item_open_in_two_rounds_starts_a_single_worker() -> None:
    ledger = OutcomeLedger(work_of({S: 1}), {"parse": (), "count": ()})
    failed = TaskOutcome(shard=S, task="count", start=0, end=1, type="failed")
    ledger.add(Commit(segment=HolderId("h"), epoch=1, round=1, outcomes=(failed,)))
    ledger.retry_unsuccessful()
    assert [unit.round for unit in ledger.open_units(S)] == [1, 2]
    session = AnalysisSession(ledger, costs={S: [0.0, 1.0]}, jobs=64, cost_per_worker=0.1)
    assert session.handle(SessionStarted()) == [SpawnWorker()]


@pytest.mark.parametrize(
    ("seconds", "position", "expected"),
    [
        # In `seconds`, (position + 1) of 1,000 items are done, including the current one.
        (10.0, 99, None),
        (10.0, 69, 490),
        (10.0, 0, 7),
        (200.0, 0, 1),
        (1000.0, 998, None),
    ],
)
def test_unit_that_lasts_too_long_is_shortened(seconds: float, position: int, expected: int | None) -> None:
    unit = WorkUnit(shard=S, start=0, end=1000, tasks=("parse",))
    throughput = WorkerThroughput({S: [float(n) for n in range(1001)]}, {W: unit}, NEVER)
    throughput.observe(ProgressReport(START_SECONDS, ((W, 0),)))
    assert throughput.unit_end_in_time(W) is None, "the unit was shortened without an observation"
    throughput.observe(ProgressReport(seconds, ((W, position),)))
    assert throughput.unit_end_in_time(W) == expected


@pytest.mark.parametrize("workers", [1, 16])
def test_slow_items_are_averaged_over_a_longer_time(workers: int) -> None:
    """Each item takes three seconds, so a window of two seconds would contain only the current items."""
    shards = {WorkerId(n): ShardId(f"{n:08x}") for n in range(1, workers + 1)}
    costs = {shard: [float(n) for n in range(1001)] for shard in shards.values()}
    units = {worker: WorkUnit(shard=shard, start=0, end=1000, tasks=("parse",)) for worker, shard in shards.items()}
    throughput = WorkerThroughput(costs, units, NEVER)
    for tick in range(301):
        throughput.observe(ProgressReport(TICK, tuple((n, int(tick * TICK / 3.0 + n / 17)) for n in units)))
    end = throughput.unit_end_in_time(W)
    assert end is not None
    assert 60 <= (end - 10) * 3.0 <= 1.2 * 60


def test_unit_is_not_cut_before_a_single_long_item() -> None:
    unit = WorkUnit(shard=S, start=0, end=3, tasks=("parse",))
    throughput = WorkerThroughput({S: [0.0, 1.0, 2.0, 1000.0]}, {W: unit}, NEVER)
    for seconds in (START_SECONDS, 1.0):
        throughput.observe(ProgressReport(seconds, ((W, 0),)))
    assert throughput.unit_end_in_time(W) is None


def test_tail_of_a_shortened_unit_is_assigned_to_a_free_worker() -> None:
    session = _session(1000, jobs=1)
    _warm_up(session)
    assert session.handle(ProgressReport(10.0, ((W, 0),))) == [ShrinkUnit(W, 7)]
    assert session.handle(ProgressReport(0.1, ((W, 0),))) == []
    assert session._open_units.queue.items == 993
    outcome = TaskOutcome(shard=S, task="parse", start=0, end=7, type="result")
    session.handle(OutcomesCommitted((Commit(segment=HolderId("h"), epoch=1, round=1, outcomes=(outcome,)),)))
    (assign,) = session.handle(UnitDone(W))
    assert isinstance(assign, AssignUnit)
    assert (assign.unit.start, assign.unit.end) == (7, 1000)


def test_rest_of_a_shortened_unit_can_be_stolen() -> None:
    session = _session(1000, jobs=2, starts_max=1)
    _warm_up(session)
    assert session.handle(ProgressReport(10.0, ((W, 0),))) == [ShrinkUnit(W, 7), SpawnWorker()]
    (assign,) = session.handle(WorkerIdle(WorkerId(2)))
    assert isinstance(assign, AssignUnit)
    outcome = TaskOutcome(shard=S, task="parse", start=7, end=1000, type="result")
    session.handle(OutcomesCommitted((Commit(segment=HolderId("h"), epoch=1, round=1, outcomes=(outcome,)),)))
    assert session.handle(UnitDone(WorkerId(2))) == [SurveyWorker(W)]
