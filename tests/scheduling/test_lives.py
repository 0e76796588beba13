"""Sessions, workers and batches make all transitions of `state_machines`, and no others."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from codebatch.model.digest import Digest
from codebatch.model.outcome import Commit, HolderId, OutcomeRegister, OutcomeType, TaskOutcome, WorkUnit
from codebatch.model.shard import ProjectWork, ShardId
from codebatch.scheduling.actions import AssignUnit, CommitFailure, RetireWorker, SessionAction, ShrinkUnit
from codebatch.scheduling.analysis.ledger import OutcomeLedger
from codebatch.scheduling.analysis.session import AnalysisSession
from codebatch.scheduling.events import (
    LeaseRefused,
    OutcomesCommitted,
    SessionEvent,
    SessionStarted,
    UnitDone,
    UnitReleased,
    WorkerId,
    WorkerIdle,
    WorkerLost,
)
from codebatch.scheduling.lifecycle import BatchState, batch_state
from codebatch.store.results.ledgers import count_ledger_outcomes
from tests.scheduling.simulation import World, run_world
from tests.scheduling.state_machines import BATCH_LIFE, WORK_LIFE, WORKER_LIFE, Transition, WorkerState, WorkState
from tests.scheduling.work.batches import work_of

Pair = tuple[ShardId, int, str]


class ResumedWorld(World):
    """A world whose coordinators retry failed work, once it `is_resumed`."""

    is_resumed = False

    def ledger(self) -> OutcomeLedger:
        """Return the ledger that `codebatch run` has, or `codebatch resume` once the world is resumed."""
        ledger = super().ledger()
        if self.is_resumed:
            ledger.retry_unsuccessful()
        return ledger


class Watch:
    """A check of every event of sessions against the tables. `seen` counts the transitions that were made."""

    def __init__(self) -> None:
        self.seen: Counter[Transition[Any]] = Counter()
        self._pairs: dict[AnalysisSession, dict[Pair, WorkState]] = {}
        self._workers: dict[AnalysisSession, dict[WorkerId, WorkerState]] = {}
        self._batches: dict[AnalysisSession, BatchState] = {}

    def handle(
        self,
        session: AnalysisSession,
        event: SessionEvent,
        original: Callable[[AnalysisSession, SessionEvent], list[SessionAction]],
    ) -> list[SessionAction]:
        """Call `original`, and check the resulting transitions against the tables."""
        running = dict(session._pool.running)
        actions = original(session, event)
        self._check_workers(session, event, actions)
        before, after = self._pairs.get(session), _pairs_of(session)
        self._pairs[session] = after
        if before is not None:
            for pair, state in after.items():
                self._check(WORK_LIFE, before[pair], _triggers(pair, event, actions, running), state)
        batch_before = self._batches.get(session)
        batch = self._batches[session] = batch_state(
            count_ledger_outcomes(session.ledger), is_started=bool(session._epochs)
        )
        if batch_before is not None:
            self._check(BATCH_LIFE, batch_before, [*_event_per_commit(event), *actions], batch)
        return actions

    def _check(self, life: Sequence[Transition[Any]], before: Any, triggers: Sequence[object], after: Any) -> None:
        """Check that a path of transitions leads from one state to another.

        An event may leave a state unchanged. An action that names an item must change the item's state.
        """
        ways: dict[Any, tuple[Transition[Any], ...]] = {before: ()}
        for trigger in triggers:
            transitions = [
                transition for transition in life if transition.before in ways and isinstance(trigger, transition.by)
            ]
            ahead = {transition.after: (*ways[transition.before], transition) for transition in reversed(transitions)}
            is_optional = isinstance(trigger, SessionEvent) or life is BATCH_LIFE
            ways = {**ahead, **ways} if is_optional else ahead
        assert after in ways, f"{before} -> {after} by {triggers}"
        self.seen.update(ways[after])

    def _check_workers(self, session: AnalysisSession, event: SessionEvent, actions: Sequence[SessionAction]) -> None:
        """Check that each worker makes transitions of the table, and that the pool has the state of the last one."""
        states = self._workers.setdefault(session, {})
        pool = session._pool
        for trigger in (event, *actions):
            if isinstance(
                trigger, WorkerIdle | UnitDone | LeaseRefused | WorkerLost | AssignUnit | ShrinkUnit | RetireWorker
            ):
                before = states.get(trigger.worker, WorkerState.SPAWNING)
                (transition,) = [
                    transition
                    for transition in WORKER_LIFE
                    if (transition.before, transition.by) == (before, type(trigger))
                ]
                states[trigger.worker] = transition.after
                self.seen[transition] += 1
        pool_states = {
            **dict.fromkeys(pool.idle, WorkerState.IDLE),
            **dict.fromkeys(pool.fresh, WorkerState.FRESH),
            **dict.fromkeys(pool.running, WorkerState.RUNNING),
            **dict.fromkeys(pool.retired, WorkerState.RETIRED),
        }
        assert pool_states == {worker: state for worker, state in states.items() if state is not WorkerState.DEAD}


def _event_per_commit(event: SessionEvent) -> list[object]:
    """Return an event once for each of its commits and unreadable registers, because each causes a transition."""
    return [event] * (len(event.commits) + len(event.unreadable)) if isinstance(event, OutcomesCommitted) else [event]


def _triggers(
    pair: Pair, event: SessionEvent, actions: Sequence[SessionAction], running: dict[WorkerId, WorkUnit]
) -> list[object]:
    """Return the triggers of transitions of an item and task: the event and the actions that concern it."""
    shard, item, task = pair

    def is_in(unit: WorkUnit | None) -> bool:
        return unit is not None and unit.shard == shard and unit.start <= item < unit.end and task in unit.tasks

    match event:
        case OutcomesCommitted():
            triggers = _event_per_commit(event)
        case UnitReleased(key):
            triggers = [event] if key[0] == shard else []
        case UnitDone(worker) | LeaseRefused(worker) | WorkerLost(worker):
            unit = running.get(worker)
            triggers = [event] if unit is not None and unit.shard == shard else []
        case _:
            triggers = []  # Other events concern no work.
    for action in actions:
        match action:
            case AssignUnit(unit=unit) if is_in(unit):
                triggers.append(action)
            case ShrinkUnit(worker, end) if is_in(running.get(worker)) and item >= end:
                triggers.append(action)
            case CommitFailure() if (action.shard, action.item) == (shard, item) and task in action.tasks:
                triggers.append(action)
            case _:
                pass
    return triggers


def _pairs_of(session: AnalysisSession) -> dict[Pair, WorkState]:
    """Return the state of every item for every task, read from the internals of a session."""
    ledger, work = session.ledger, session._open_units
    states: dict[Pair, WorkState] = {}
    for shard, shard_work in ledger.work.items():
        units = ledger.open_units(shard)
        free = {
            (i, task)
            for part in work._free_parts(shard, units)
            for i in range(part.start, part.end)
            for task in part.tasks
        }
        still = {(i, task) for unit in units for i in range(unit.start, unit.end) for task in unit.tasks}
        busy = {item: unit for unit in session._pool.running_units_in(shard) for item in range(unit.start, unit.end)}
        for task in ledger._tasks[shard]:
            for item in range(shard_work.items):
                if (item, task) not in still:
                    is_waiting = isinstance(shard_work, ProjectWork) and task not in ledger._project._readiness._settled
                    state = WorkState.WAITING if is_waiting else WorkState.SETTLED
                elif (item, task) in work._failing_tasks.get(shard, ()):
                    state = WorkState.FAILING
                elif item in busy:
                    state = WorkState.RUNNING if task in busy[item].tasks else WorkState.OPEN
                else:
                    state = WorkState.OPEN if (item, task) in free else WorkState.FOREIGN
                states[shard, item, task] = state
    return states


def _watched(seed: int, watch: Watch, patch: pytest.MonkeyPatch) -> None:
    """Run a small world, and resume it if some items kill their workers."""
    original = AnalysisSession.handle
    patch.setattr(AnalysisSession, "handle", lambda session, event: watch.handle(session, event, original))
    world = ResumedWorld(seed, shards=1 + seed % 3, items_max=5, poison=seed % 4, kill_rate=0.2 if seed % 2 else 0.0)
    run_world(world, jobs=1 + seed % 4, coordinators=2 + seed % 2, coordinator_kills=seed % 3)
    if world.poison:
        world.poison.clear()
        world.is_resumed = True
        run_world(world, jobs=2, coordinators=2, coordinator_kills=0)


@pytest.mark.parametrize("seed", range(10))
def test_sessions_make_only_transitions_of_the_tables(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    _watched(seed, Watch(), monkeypatch)


@pytest.mark.slow
def test_sessions_make_every_transition_of_the_tables() -> None:
    watch = Watch()
    wanted = {transition for life in (WORK_LIFE, WORKER_LIFE, BATCH_LIFE) for transition in life}
    _run_manual_scenarios(watch)
    # The first seeds make all transitions, unless the simulation draws other worlds now.
    for seed in (222, 861, 791, 405, 169, 113, 949, 829, *range(1000)):
        if wanted <= watch.seen.keys():
            return
        with pytest.MonkeyPatch.context() as patch:
            _watched(seed, watch, patch)
    pytest.fail(f"transitions that were never made: {wanted - watch.seen.keys()}")


def _run_manual_scenarios(watch: Watch) -> None:
    """Run scenarios that no simulated world has.

    A worker dies before it is ready, or ends a unit without processing it. A register cannot be read. A batch has only
    file tasks.
    """
    shard, worker = ShardId("00000001"), WorkerId(1)
    session = AnalysisSession(OutcomeLedger(work_of({shard: 2}), {"parse": ()}), costs={shard: [0.0, 1.0, 2.0]}, jobs=1)
    failed = [_outcome(shard, item, "failed") for item in (0, 1)]
    events: list[SessionEvent] = [
        SessionStarted(), WorkerLost(worker, None, "crash"), WorkerIdle(WorkerId(2)), UnitDone(WorkerId(2)),
        _committed(1, *failed), *(_committed(2, _outcome(shard, item, "result")) for item in (0, 1)),
    ]  # fmt: skip
    for event in events:
        watch.handle(session, event, AnalysisSession.handle)
    session = AnalysisSession(OutcomeLedger(work_of({shard: 1}), {"parse": ()}), costs={shard: [0.0, 1.0]}, jobs=1)
    for event in (
        SessionStarted(),
        WorkerIdle(worker),
        _committed(1, failed[0]),
        _committed(2, _outcome(shard, 0, "result")),
    ):
        watch.handle(session, event, AnalysisSession.handle)
    session = AnalysisSession(OutcomeLedger(work_of({shard: 1}), {"parse": ()}), costs={shard: [0.0, 1.0]}, jobs=1)
    deaths = [WorkerLost(WorkerId(number), (0, 1), "crash", task="parse") for number in (1, 2)]
    events = [SessionStarted(), *(event for death in deaths for event in (WorkerIdle(death.worker), death))]
    for event in (*events, OutcomesCommitted((), (OutcomeRegister(shard, 0, "parse", 1),))):
        watch.handle(session, event, AnalysisSession.handle)
    sum_ = ProjectWork("sum")
    ledger = OutcomeLedger(work_of({shard: 1}, ["sum"]), {"parse": (), "sum": ("parse",)})
    session = AnalysisSession(ledger, costs={shard: [0.0, 1.0], sum_.id: [0.0, 1.0]}, jobs=1)
    for event in (SessionStarted(), WorkerIdle(worker), _committed(1, failed[0]), UnitDone(worker)):
        watch.handle(session, event, AnalysisSession.handle)
    result = TaskOutcome(shard=sum_.id, task="sum", start=0, end=1, type="result", inputs=ledger.inputs_digest("sum"))
    for event in (_committed(1, result), UnitDone(worker), _committed(2, _outcome(shard, 0, "result", "other"))):
        watch.handle(session, event, AnalysisSession.handle)


def _outcome(shard: ShardId, item: int, type_: OutcomeType, digest: str = "") -> TaskOutcome:
    return TaskOutcome(shard=shard, task="parse", start=item, end=item + 1, type=type_, digest=Digest(digest))


def _committed(round_: int, *outcomes: TaskOutcome) -> OutcomesCommitted:
    return OutcomesCommitted((Commit(segment=HolderId("h"), epoch=1, round=round_, outcomes=outcomes),))
