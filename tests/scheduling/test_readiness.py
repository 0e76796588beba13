"""Readiness of project tasks: they open when their needs are settled, at a cost linear in edges, not in paths."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from codebatch.model.outcome import Commit, HolderId, OutcomeType, TaskOutcome, WorkUnit
from codebatch.model.shard import ProjectWork, ShardId
from codebatch.scheduling.actions import AssignUnit, CompleteSession
from codebatch.scheduling.analysis.ledger import OutcomeLedger
from codebatch.scheduling.analysis.session import AnalysisSession
from codebatch.scheduling.events import OutcomesCommitted, SessionStarted, UnitDone, WorkerId, WorkerIdle
from tests.scheduling.work.batches import work_of
from tests.support.resources import cpu_time_below

S = ShardId("00000001")
Needs = dict[str, Sequence[str]]


def _chain(length: int) -> Needs:
    return {f"t{n}": (f"t{n - 1}",) if n else () for n in range(length)}


def _diamonds(count: int) -> Needs:
    needs: Needs = {"t0": ()}
    for n in range(count):
        needs |= {f"l{n}": (f"t{n}",), f"r{n}": (f"t{n}",), f"t{n + 1}": (f"l{n}", f"r{n}")}
    return needs


def _commit(ledger: OutcomeLedger, unit: WorkUnit, type_: OutcomeType = "result") -> Commit:
    outcomes = tuple(
        TaskOutcome(shard=unit.shard, task=task, start=0, end=unit.end, type=type_, inputs=ledger.inputs_digest(task))
        if unit.shard != S
        else TaskOutcome(shard=S, task=task, start=unit.start, end=unit.end, type=type_)
        for task in unit.tasks
    )
    return Commit(segment=HolderId("h"), epoch=1, round=unit.round, outcomes=outcomes)


def _open_project_tasks(ledger: OutcomeLedger) -> list[str]:
    return [unit.tasks[0] for work in ledger.project_work for unit in ledger.open_units(work.id)]


@pytest.mark.parametrize("needs", [_chain(5000), _diamonds(40)], ids=["a chain of 5,000", "40 diamonds"])
def test_open_project_tasks_of_a_deep_graph_are_computed_quickly(needs: Needs) -> None:
    ledger = OutcomeLedger(work_of({}, needs), needs)
    with cpu_time_below(1):
        assert _open_project_tasks(ledger) == ["t0"]


@pytest.mark.parametrize("make", [lambda: _chain(2000), lambda: _diamonds(40)], ids=["a chain of 2,000", "40 diamonds"])
def test_session_executes_a_deep_graph_in_dependency_order(make: Callable[[], Needs]) -> None:
    needs = make()
    ledger = OutcomeLedger(work_of({}, needs), needs)
    session = AnalysisSession(ledger, costs={shard: [0.0, 1.0] for shard in ledger.work}, jobs=1)
    worker = WorkerId(1)
    session.handle(SessionStarted())
    actions = session.handle(WorkerIdle(worker))
    executed: list[str] = []
    while CompleteSession() not in actions:
        (unit,) = [action.unit for action in actions if isinstance(action, AssignUnit)]
        assert set(needs[unit.tasks[0]]) <= set(executed)
        executed += unit.tasks
        actions = session.handle(OutcomesCommitted((_commit(ledger, unit),)))
        actions += session.handle(UnitDone(worker))
    assert sorted(executed) == sorted(needs)


@settings(max_examples=50)
@given(st.data())
def test_incremental_readiness_matches_a_full_computation(data: st.DataObject) -> None:
    """The graph, the order of commits, failures, files and a resume are random."""
    names = [f"t{n}" for n in range(data.draw(st.integers(1, 7)))]
    needs: Needs = {"parse": ()}
    for place, name in enumerate(names):
        needs[name] = tuple(data.draw(st.lists(st.sampled_from(["parse", *names[:place]]), unique=True)))
    ledger = OutcomeLedger(work_of({S: 2}, names), needs)
    for _ in range(data.draw(st.integers(0, 12))):
        assert _open_project_tasks(ledger) == _open_by_full_scan(ledger, needs, names)
        units = [unit for shard in ledger.work for unit in ledger.open_units(shard)]
        if not units or data.draw(st.booleans()):
            ledger.retry_unsuccessful()
        else:
            unit = data.draw(st.sampled_from(units))
            ledger.add(_commit(ledger, unit, data.draw(st.sampled_from(["result", "failed"]))))
    assert _open_project_tasks(ledger) == _open_by_full_scan(ledger, needs, names)


def _open_by_full_scan(ledger: OutcomeLedger, needs: Needs, names: Sequence[str]) -> list[str]:
    settled: dict[str, bool] = {"parse": not ledger.open_units(S)}
    opened = []
    for name in names:
        own = ProjectWork(name).id
        is_ready = all(settled[need] for need in needs[name])
        links = list(ledger.iter_links(own, name))
        retried = ledger._chains._retried.get((own, name, 0)) == links[0].round if links else False
        settled[name] = (
            is_ready and bool(links) and links[0].outcome.inputs == ledger.inputs_digest(name) and not retried
        )
        if is_ready and not settled[name]:
            opened.append(name)
    return opened


def test_project_task_with_changed_inputs_and_its_dependents_reopen() -> None:
    needs: Needs = {"parse": (), "a": ("parse",), "b": ("a",), "c": ("b",)}
    ledger = OutcomeLedger(work_of({S: 1}, "abc"), needs)
    ledger.add(_commit(ledger, ledger.open_units(S)[0], "failed"))
    while units := [unit for work in ledger.project_work for unit in ledger.open_units(work.id)]:
        ledger.add(_commit(ledger, units[0]))
    ledger.retry_unsuccessful()
    assert _open_project_tasks(ledger) == []
    (unit,) = ledger.open_units(S)
    outcome = TaskOutcome(shard=S, task="parse", start=0, end=1, type="result", digest=ledger.inputs_digest("a"))
    ledger.add(Commit(segment=HolderId("h"), epoch=1, round=unit.round, outcomes=(outcome,)))
    assert _open_project_tasks(ledger) == ["a"]
    ledger.add(_commit(ledger, ledger.open_units(ProjectWork("a").id)[0]))
    assert _open_project_tasks(ledger) == [], "dependents reopened although the outcome is the same"


class _CountingLedger(OutcomeLedger):
    call_count = 0

    def open_units(self, shard: ShardId) -> list[WorkUnit]:
        self.call_count += 1
        return super().open_units(shard)


def _needs_of_many_readers(count: int) -> Needs:
    return {"parse": (), "lint": (), **{f"t{n}": ("parse",) for n in range(count)}, "last": ("lint",)}


@pytest.mark.parametrize("needs", [_chain(5000), _diamonds(40)], ids=["a chain of 5,000", "40 diamonds"])
def test_event_examines_only_the_tasks_that_it_affects(needs: Needs) -> None:
    """Each commit and end of a task examines only this task and the tasks that need it."""
    ledger = _CountingLedger(work_of({}, needs), needs)
    session = AnalysisSession(ledger, costs={shard: [0.0, 1.0] for shard in ledger.work}, jobs=1)
    session.handle(SessionStarted())
    actions = session.handle(WorkerIdle(WorkerId(1)))
    needed_by = Counter(need for needed in needs.values() for need in needed)
    for _ in range(min(len(needs) - 1, 200)):
        (unit,) = [action.unit for action in actions if isinstance(action, AssignUnit)]
        ledger.call_count = 0
        session.handle(OutcomesCommitted((_commit(ledger, unit),)))
        actions = session.handle(UnitDone(WorkerId(1)))
        assert ledger.call_count <= 4 + 2 * needed_by[unit.tasks[0]]


def test_file_task_outcome_affects_only_project_tasks_that_read_it() -> None:
    needs = _needs_of_many_readers(50)
    ledger = OutcomeLedger(work_of({S: 1}, [name for name in needs if name not in ("parse", "lint")]), needs)
    assert _open_project_tasks(ledger) == []
    ledger.changed_projects()
    ledger.add(Commit(segment=HolderId("h"), epoch=1, round=1, outcomes=(_file_outcome("lint"),)))
    assert [work.task for work in ledger.changed_projects()] == ["last"]
    assert _open_project_tasks(ledger) == ["last"]
    ledger.add(Commit(segment=HolderId("h"), epoch=1, round=1, outcomes=(_file_outcome("parse"),)))
    assert [work.task for work in ledger.changed_projects()] == [f"t{n}" for n in range(50)]


def _file_outcome(task: str) -> TaskOutcome:
    return TaskOutcome(shard=S, task=task, start=0, end=1, type="result")
