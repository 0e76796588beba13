"""The scheduler in simulated worlds: after any kills, chains are complete and only items that kill workers fail."""

from __future__ import annotations

import os

import pytest

from codebatch.model.digest import Digest
from codebatch.model.outcome import Commit, HolderId, OutcomeRegister, TaskOutcome
from codebatch.model.record import FailureReason
from codebatch.model.shard import ProjectWork, ShardId
from codebatch.scheduling.actions import (
    AssignUnit,
    CommitFailure,
    CompleteSession,
    EndBroken,
    RetireWorker,
    SessionAction,
    ShrinkUnit,
    SpawnWorker,
    SurveyWorker,
)
from codebatch.scheduling.analysis.ledger import OutcomeLedger
from codebatch.scheduling.analysis.session import AnalysisSession
from codebatch.scheduling.events import (
    DrainRequested,
    LeaseRefused,
    OutcomesCommitted,
    SessionStarted,
    UnitDone,
    UnitReleased,
    WorkerId,
    WorkerIdle,
    WorkerLost,
    WorkerSurveyed,
)
from tests.scheduling.simulation import World, run_world
from tests.scheduling.work.batches import work_of

SEEDS = int(os.environ.get("CODEBATCH_PROOF_SEEDS", "500"))

S = ShardId("00000001")
W = WorkerId(1)


def _session(items: int, jobs: int = 1, cost_per_worker: float = 0.0) -> AnalysisSession:
    ledger = OutcomeLedger(work_of({S: items}), {"parse": ()})
    costs = {S: [float(n) for n in range(items + 1)]}
    return AnalysisSession(ledger, costs=costs, jobs=jobs, cost_per_worker=cost_per_worker)


def _result(start: int, end: int) -> Commit:
    return _committed(TaskOutcome(shard=S, task="parse", start=start, end=end, type="result"))


def _committed(outcome: TaskOutcome, round_: int = 1) -> Commit:
    return Commit(segment=HolderId("h"), epoch=1, round=round_, outcomes=(outcome,))


def _assigned(actions: list[SessionAction]) -> AssignUnit:
    (assign,) = [action for action in actions if isinstance(action, AssignUnit)]
    return assign


@pytest.mark.parametrize("first", range(0, SEEDS, 250))
def test_batch_completes_whatever_processes_are_killed(first: int) -> None:
    started_by_reports = 0
    for seed in range(first, first + 250):
        world = World(
            seed,
            shards=1 + seed % 7,
            items_max=12,
            poison=seed % 3,
            kill_rate=0.2 if seed % 2 else 0.0,
            is_observed=seed % 4 > 1,
        )
        try:
            run_world(world, jobs=1 + seed % 4, coordinators=1 + seed % 3, coordinator_kills=seed % 5)
            world.check()
        except AssertionError as error:
            raise AssertionError(f"seed {seed}: {error}") from error
        started_by_reports += world.started_by_reports
    assert started_by_reports > 50, "too few workers were started by reported progress"


@pytest.mark.parametrize("seed", range(30))
def test_only_late_owners_repeat_work_without_kills(seed: int) -> None:
    world = World(seed, shards=9, items_max=9, poison=0, kill_rate=0.0)
    run_world(world, jobs=3, coordinators=2, coordinator_kills=0)
    world.check()
    assert sum(count > 1 for count in world.executed.values()) <= len(world.executed) // 5


def test_a_small_plan_starts_few_workers() -> None:
    assert _session(5, jobs=64, cost_per_worker=5.0).handle(SessionStarted()) == [SpawnWorker()]
    assert _session(5, jobs=64, cost_per_worker=2.0).handle(SessionStarted()) == [SpawnWorker()] * 3


def test_empty_plan_completes_at_once() -> None:
    session = AnalysisSession(OutcomeLedger(work_of({}), {"parse": ()}), costs={}, jobs=4)
    assert session.handle(SessionStarted()) == [CompleteSession()]


def test_costliest_unit_is_assigned_first() -> None:
    other = ShardId("00000002")
    ledger = OutcomeLedger(work_of({S: 1, other: 1}), {"parse": ()})
    session = AnalysisSession(ledger, costs={S: [0.0, 1.0], other: [0.0, 9.0]}, jobs=1)
    session.handle(SessionStarted())
    (assign,) = session.handle(WorkerIdle(W))
    assert isinstance(assign, AssignUnit)
    assert assign.unit.shard == other


def test_item_that_killed_a_worker_runs_alone_and_fails_when_it_kills_again() -> None:
    session = _session(5)
    session.handle(SessionStarted())
    session.handle(WorkerIdle(W))
    assert session.handle(WorkerLost(W, (2, 3), "crash")) == [SpawnWorker()]
    sizes = []
    for worker in (WorkerId(2), WorkerId(3), WorkerId(4)):
        actions = session.handle(WorkerIdle(worker))
        assign = next(action for action in actions if isinstance(action, AssignUnit))
        sizes.append((assign.unit.start, assign.unit.end))
        if assign.unit.start == 2:
            session.handle(WorkerLost(worker, (2, 3), "crash"))
            continue
        session.handle(OutcomesCommitted((_result(assign.unit.start, assign.unit.end),)))
        session.handle(UnitDone(worker))
        session.handle(WorkerLost(worker, None, "crash"))
    assert (2, 3) in sizes
    assert all(end - start == 1 or not start <= 2 < end for start, end in sizes)


def test_only_the_running_task_fails_when_it_is_known() -> None:
    ledger = OutcomeLedger(work_of({S: 1}), {"parse": (), "lint": ()})
    session = AnalysisSession(ledger, costs={S: [0.0, 1.0]}, jobs=1)
    session.handle(SessionStarted())
    actions: list[SessionAction] = []
    for number in (1, 2):
        session.handle(WorkerIdle(WorkerId(number)))
        actions = session.handle(WorkerLost(WorkerId(number), (0, 1), "crash", task="lint"))
    assert [action.tasks for action in actions if isinstance(action, CommitFailure)] == [("lint",)]
    (assign,) = session.handle(WorkerIdle(WorkerId(3)))
    assert isinstance(assign, AssignUnit)
    assert assign.unit.tasks == ("parse",)
    actions = session.handle(WorkerLost(WorkerId(3), (0, 1), "crash", is_from_outside=True, task="parse"))
    assert not [action for action in actions if isinstance(action, CommitFailure)], (
        "an innocent task failed because of another"
    )


def test_task_that_needs_a_failing_task_is_not_assigned() -> None:
    ledger = OutcomeLedger(work_of({S: 1}), {"parse": (), "lint": ("parse",), "count": ()})
    session = AnalysisSession(ledger, costs={S: [0.0, 1.0]}, jobs=1)
    session.handle(SessionStarted())
    for number in (1, 2):
        session.handle(WorkerIdle(WorkerId(number)))
        session.handle(WorkerLost(WorkerId(number), (0, 1), "crash", task="parse"))
    assert _assigned(session.handle(WorkerIdle(WorkerId(3)))).unit.tasks == ("count",)
    failed = TaskOutcome(shard=S, task="parse", start=0, end=1, type="failed", reason="crash")
    assert session.handle(OutcomesCommitted((_committed(failed),))) == [CommitFailure(S, 0, ("lint",), 1, "needs")]


@pytest.mark.parametrize("seed", range(20))
def test_settled_work_is_not_assigned_when_items_kill_workers(seed: int) -> None:
    world = World(seed, shards=1 + seed % 3, items_max=5, poison=1 + seed % 3, kill_rate=0.0)
    run_world(world, jobs=1 + seed % 4, coordinators=1, coordinator_kills=0)
    world.check()


def test_worker_deaths_in_a_row_without_a_commit_break_the_session() -> None:
    session = _session(5)
    session.handle(SessionStarted())
    for number in range(1, 100):
        actions = session.handle(WorkerLost(WorkerId(number), None, "crash"))
        if any(isinstance(action, EndBroken) for action in actions):
            assert number == 6
            return
    pytest.fail("the session did not break")


@pytest.mark.parametrize("reason", ["memory", "timeout"])
def test_items_that_exceed_a_limit_fail_before_the_session_breaks(reason: FailureReason) -> None:
    """Each item kills a worker before any item is retried. As many crashes would count as a broken machine."""
    session = _session(20)
    actions = session.handle(SessionStarted())
    failed: list[int] = []
    for number in map(WorkerId, range(1, 100)):
        actions = session.handle(WorkerIdle(number))
        start = _assigned(actions).unit.start
        actions = session.handle(WorkerLost(number, (start, start + 1), reason, task="parse"))
        for fail in (action for action in actions if isinstance(action, CommitFailure)):
            failed.append(fail.item)
            outcome = TaskOutcome(
                shard=S, task="parse", start=fail.item, end=fail.item + 1, type="failed", reason=reason
            )
            actions = session.handle(OutcomesCommitted((_committed(outcome),)))
        if CompleteSession() in actions:
            break
    assert sorted(failed) == list(range(20))


def test_idle_worker_steals_the_tail_of_a_running_unit() -> None:
    session = _session(8, jobs=2, cost_per_worker=1.0)
    session.handle(SessionStarted())
    session.handle(WorkerIdle(W))
    thief = WorkerId(2)
    assert session.handle(WorkerIdle(thief)) == [SurveyWorker(W)]
    shrink, assign = session.handle(WorkerSurveyed(W, 1))
    assert shrink == ShrinkUnit(W, 5)
    assert isinstance(assign, AssignUnit)
    assert (assign.worker, assign.unit.start, assign.unit.end) == (thief, 5, 8)


def test_worker_at_its_last_item_is_not_stolen_from() -> None:
    session = _session(8, jobs=2, cost_per_worker=1.0)
    session.handle(SessionStarted())
    session.handle(WorkerIdle(W))
    session.handle(WorkerIdle(WorkerId(2)))
    assert session.handle(WorkerSurveyed(W, 7)) == []


def test_costly_item_is_assigned_without_its_neighbours() -> None:
    ledger = OutcomeLedger(work_of({S: 5}), {"parse": ()})
    session = AnalysisSession(ledger, costs={S: [0.0, 1.0, 2.0, 92.0, 93.0, 94.0]}, jobs=2)
    session.handle(SessionStarted())
    (assign,) = session.handle(WorkerIdle(W))
    assert isinstance(assign, AssignUnit)
    assert (assign.unit.start, assign.unit.end) == (2, 3)


def test_item_whose_workers_are_killed_from_outside_fails_at_the_tenth_time() -> None:
    """An item whose task kills its own worker with SIGKILL must fail in the end, too."""
    session = _session(1)
    session.handle(SessionStarted())
    fails = []
    for number in range(1, 11):
        session.handle(WorkerIdle(WorkerId(number)))
        actions = session.handle(WorkerLost(WorkerId(number), (0, 1), "crash", is_from_outside=True))
        fails += [number for action in actions if isinstance(action, CommitFailure)]
    assert fails == [10]


def test_unit_is_leased_above_every_known_epoch() -> None:
    session = _session(4)
    session.handle(SessionStarted())
    assert _assigned(session.handle(WorkerIdle(W))).epoch == 1
    session.handle(LeaseRefused(W, 4))
    assert _assigned(session.handle(UnitReleased((S, 0), 0))).epoch == 5
    session.handle(LeaseRefused(W, 6))
    assert _assigned(session.handle(UnitReleased((S, 0), 9))).epoch == 10


def test_settled_unit_is_not_foreign() -> None:
    """Otherwise the session would check the leases of such units at each turn, although it does not wait for them."""
    ledger = OutcomeLedger(work_of({S: 4}), {"parse": ()})
    ledger.add(_result(0, 2))
    session = AnalysisSession(ledger, costs={S: [0.0, 1.0, 2.0, 3.0, 4.0]}, jobs=1, leased={(S, 0): 1, (S, 2): 1})
    assert session.handle(SessionStarted()) == []
    assert session.leased_elsewhere == {(S, 2)}


def test_refused_lease_of_a_settled_unit_is_not_foreign() -> None:
    session = _session(2)
    session.handle(SessionStarted())
    session.handle(WorkerIdle(W))
    session.handle(OutcomesCommitted((_result(0, 2),)))
    session.handle(LeaseRefused(W, 1))
    assert not session.leased_elsewhere


def test_failure_is_committed_in_the_round_that_is_open() -> None:
    """The register of the dead worker's round may be taken, so a failure under that name would never be published."""
    session = _session(1)
    session.handle(SessionStarted())
    session.handle(WorkerIdle(W))
    session.handle(WorkerLost(W, (0, 1), "crash", task="parse"))
    session.handle(WorkerIdle(WorkerId(2)))
    session.handle(OutcomesCommitted((), (OutcomeRegister(S, 0, "parse", 1),)))
    actions = session.handle(WorkerLost(WorkerId(2), (0, 1), "crash", task="parse"))
    assert [action for action in actions if isinstance(action, CommitFailure)] == [
        CommitFailure(S, 0, ("parse",), 2, "crash")
    ]


def test_charged_item_waits_for_a_fresh_worker() -> None:
    session = AnalysisSession(OutcomeLedger(work_of({S: 2}), {"parse": ()}), costs={S: [0.0, 1.0, 9.0]}, jobs=1)
    used = WorkerId(2)
    session.handle(SessionStarted())
    session.handle(WorkerIdle(W))
    session.handle(WorkerLost(W, (0, 1), "crash"))
    assert _assigned(session.handle(WorkerIdle(used))).unit.start == 1, "the costliest unit must be assigned first"
    session.handle(OutcomesCommitted((_result(1, 2),)))
    assert session.handle(UnitDone(used)) == [RetireWorker(used), SpawnWorker()]
    assert _assigned(session.handle(WorkerIdle(WorkerId(3)))).unit.start == 0


def test_failed_project_task_reopens_when_its_inputs_change() -> None:
    own = ProjectWork("sum").id
    ledger = OutcomeLedger(work_of({S: 1}, ["sum"]), {"parse": (), "sum": ("parse",)})
    session = AnalysisSession(ledger, costs={S: [0.0, 1.0], own: [0.0, 1.0]}, jobs=1)
    session.handle(SessionStarted())
    assert _assigned(session.handle(WorkerIdle(W))).unit.tasks == ("parse",)
    session.handle(OutcomesCommitted((_result(0, 1),)))
    assert _assigned(session.handle(UnitDone(W))).unit.shard == own
    session.handle(WorkerLost(W, (0, 1), "crash", task="sum"))
    session.handle(WorkerIdle(WorkerId(2)))
    (fail,) = [
        a for a in session.handle(WorkerLost(WorkerId(2), (0, 1), "crash", task="sum")) if isinstance(a, CommitFailure)
    ]
    failed = TaskOutcome(shard=own, task="sum", start=0, end=1, type="failed", inputs=ledger.inputs_digest("sum"))
    other = TaskOutcome(shard=S, task="parse", start=0, end=1, type="result", digest=Digest("changed"))
    session.handle(OutcomesCommitted((_committed(failed, fail.round), _committed(other, 2))))
    assign = _assigned(session.handle(WorkerIdle(WorkerId(3))))
    assert (assign.unit.shard, assign.unit.tasks, assign.unit.round) == (own, ("sum",), 2)


def test_work_without_cost_gets_a_worker() -> None:
    session = AnalysisSession(
        OutcomeLedger(work_of({S: 2}), {"parse": ()}), costs={S: [0.0, 0.0, 0.0]}, jobs=4, cost_per_worker=5.0
    )
    assert session.handle(SessionStarted()) == [SpawnWorker()]


def test_a_worn_worker_is_replaced() -> None:
    session = _session(4)
    session.handle(SessionStarted())
    session.handle(WorkerIdle(W))
    session.handle(OutcomesCommitted((_result(0, 2),)))
    assert session.handle(UnitDone(W, is_worn=True)) == [RetireWorker(W), SpawnWorker()]


def test_item_not_worth_a_worker_is_assigned_with_its_neighbours() -> None:
    costs = {S: [0.0, 1.0, 2.0, 92.0, 93.0, 94.0]}
    session = AnalysisSession(
        OutcomeLedger(work_of({S: 5}), {"parse": ()}), costs=costs, jobs=2, cost_per_worker=1000.0
    )
    session.handle(SessionStarted())
    unit = _assigned(session.handle(WorkerIdle(W))).unit
    assert (unit.start, unit.end) == (0, 5)


def _session_with_running_units(*sizes: int) -> AnalysisSession:
    """Return a session with one running unit for each shard, and an empty queue. `sizes` must be descending."""
    shards = [ShardId(f"0000000{number}") for number in range(len(sizes))]
    ledger = OutcomeLedger(work_of(dict(zip(shards, sizes, strict=True))), {"parse": ()})
    costs = {shard: [float(n) for n in range(size + 1)] for shard, size in zip(shards, sizes, strict=True)}
    session = AnalysisSession(ledger, costs=costs, jobs=len(sizes) + 1, cost_per_worker=1.0)
    session.handle(SessionStarted())
    for number in range(len(sizes)):
        session.handle(WorkerIdle(WorkerId(number + 1)))
    return session


def test_worker_with_less_work_left_than_another_is_not_stolen_from() -> None:
    session = _session_with_running_units(10, 8)
    assert session.handle(WorkerIdle(WorkerId(3))) == [SurveyWorker(WorkerId(1))]
    assert session.handle(WorkerSurveyed(WorkerId(1), 6)) == [SurveyWorker(WorkerId(2))]


def test_committed_tail_is_not_stolen() -> None:
    session = _session_with_running_units(10)
    assert session.handle(WorkerIdle(WorkerId(2))) == [SurveyWorker(W)]
    tail = TaskOutcome(shard=ShardId("00000000"), task="parse", start=4, end=10, type="result")
    session.handle(OutcomesCommitted((_committed(tail),)))
    actions = session.handle(WorkerSurveyed(W, 1))
    assert not [action for action in actions if isinstance(action, ShrinkUnit | AssignUnit)]


def test_used_worker_is_not_retired_if_another_worker_can_start() -> None:
    """A charged item waits for a fresh worker. The limit of two workers allows it to start beside the used one."""
    session = AnalysisSession(OutcomeLedger(work_of({S: 3}), {"parse": ()}), costs={S: [0.0, 1.0, 2.0, 12.0]}, jobs=2)
    session.handle(SessionStarted())
    session.handle(WorkerIdle(W))
    session.handle(WorkerLost(W, (0, 1), "crash"))
    used = WorkerId(2)
    assert _assigned(session.handle(WorkerIdle(used))).unit.start == 2, "the costliest unit must be assigned first"
    session.handle(OutcomesCommitted((_result(2, 3),)))
    assert RetireWorker(used) not in session.handle(UnitDone(used))


def test_drain_with_everything_done_is_complete() -> None:
    session = _session(2)
    session.handle(SessionStarted())
    session.handle(WorkerIdle(W))
    session.handle(DrainRequested())
    session.handle(OutcomesCommitted((_result(0, 2),)))
    assert session.handle(UnitDone(W)) == [RetireWorker(W), CompleteSession()]


def test_end_of_a_retired_worker_is_not_a_death() -> None:
    session = _session(4)
    session.handle(SessionStarted())
    session.handle(WorkerIdle(W))
    assert session.handle(UnitDone(W, is_worn=True)) == [RetireWorker(W), SpawnWorker()]
    assert session.handle(WorkerLost(W, None, "crash")) == []


def test_many_workers_may_die_at_once_before_the_session_breaks() -> None:
    session = _session(5, jobs=4)
    session.handle(SessionStarted())
    for number in range(1, 12):
        actions = session.handle(WorkerLost(WorkerId(number), None, "crash"))
        assert not any(isinstance(action, EndBroken) for action in actions)
    actions = session.handle(WorkerLost(WorkerId(12), None, "crash"))
    assert any(isinstance(action, EndBroken) for action in actions)
