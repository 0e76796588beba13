"""Chains: a walk covers every item once, holes are open, and later rounds replace earlier ones (SPEC.md "Chains")."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from codebatch.model.digest import Digest
from codebatch.model.outcome import Commit, HolderId, OutcomeRegister, OutcomeType, TaskOutcome
from codebatch.model.shard import ProjectWork, ShardId
from codebatch.scheduling.analysis.ledger import OutcomeLedger
from codebatch.scheduling.lifecycle import BatchState, batch_state, is_stalled
from codebatch.scheduling.outcome_counts import OutcomeCounts
from codebatch.store.results.ledgers import count_ledger_outcomes
from tests.scheduling.work.batches import work_of

S = ShardId("00000001")
ITEMS = 10


def _ledger() -> OutcomeLedger:
    return OutcomeLedger(work_of({S: ITEMS}), {"parse": (), "lint": ("parse",)})


def _add(
    ledger: OutcomeLedger, task: str, start: int, end: int, type_: OutcomeType = "result", round_: int = 1
) -> None:
    outcome = TaskOutcome(shard=S, task=task, start=start, end=end, type=type_)
    ledger.add(Commit(segment=HolderId("h"), epoch=1, round=round_, outcomes=(outcome,)))


@given(st.lists(st.tuples(st.integers(0, ITEMS - 1), st.integers(1, ITEMS)), max_size=30))
def test_walk_and_holes_partition_the_items(ranges: list[tuple[int, int]]) -> None:
    ledger = _ledger()
    for start, length in ranges:
        if not any(known.start == start for known in ledger.iter_links(S, "parse")):
            _add(ledger, "parse", start, min(ITEMS, start + length))
    pieces = sorted([(link.start, link.end) for link in ledger.iter_links(S, "parse")] + ledger.list_holes(S, "parse"))
    assert pieces[0][0] == 0
    assert pieces[-1][1] == ITEMS
    assert all(piece[1] == following[0] for piece, following in pairwise(pieces))


@given(st.lists(st.tuples(st.sampled_from(["parse", "lint"]), st.integers(0, 9), st.integers(1, 10)), max_size=20))
def test_finishing_all_open_units_completes_the_shard(ranges: list[tuple[str, int, int]]) -> None:
    ledger = _ledger()
    for task, start, length in ranges:
        _add(ledger, task, start, min(ITEMS, start + length))
    for unit in ledger.open_units(S):
        for task in unit.tasks:
            _add(ledger, task, unit.start, unit.end, round_=unit.round)
    assert not ledger.open_units(S)
    assert not ledger.list_holes(S, "parse") + ledger.list_holes(S, "lint")


def test_open_units_are_the_maximal_ranges_that_lack_the_same_tasks() -> None:
    ledger = _ledger()
    _add(ledger, "parse", 0, 4)
    _add(ledger, "lint", 6, 10)
    units = [(unit.start, unit.end, unit.tasks) for unit in ledger.open_units(S)]
    assert units == [(0, 4, ("lint",)), (4, 6, ("parse", "lint")), (6, 10, ("parse",))]


@pytest.mark.parametrize(
    ("start", "end", "is_fit"),
    [(0, ITEMS, True), (ITEMS - 1, ITEMS, True), (0, 0, False), (3, 3, False), (4, 3, False), (0, ITEMS + 1, False)],
)
def test_outcome_fits_the_plan_if_it_has_some_of_its_items(start: int, end: int, is_fit: bool) -> None:
    outcome = TaskOutcome(shard=S, task="parse", start=start, end=end, type="result")
    other = replace(outcome, start=0, end=1)
    commit = Commit(segment=HolderId("h"), epoch=1, round=1, outcomes=(other, outcome))
    assert _ledger().fits_plan(commit) == is_fit
    assert not _ledger().fits_plan(replace(commit, outcomes=(replace(other, task="other"),)))
    assert not _ledger().fits_plan(replace(commit, outcomes=(replace(other, shard=ShardId("00000002")),)))


def test_register_that_the_walk_does_not_reach_is_ignored() -> None:
    ledger = _ledger()
    _add(ledger, "parse", 5, 10)
    _add(ledger, "parse", 0, 7)
    assert [(link.start, link.end) for link in ledger.iter_links(S, "parse")] == [(0, 7)]
    assert ledger.list_holes(S, "parse") == [(7, 10)]


def test_later_round_replaces_a_failure_only_after_retry() -> None:
    ledger = _ledger()
    _add(ledger, "parse", 0, 3)
    _add(ledger, "parse", 3, 4, "failed")
    _add(ledger, "parse", 4, 10)
    _add(ledger, "lint", 0, 10)
    assert ledger.open_units(S) == []
    ledger.retry_unsuccessful()
    (unit,) = ledger.open_units(S)
    assert (unit.start, unit.end, unit.tasks, unit.round) == (3, 4, ("parse",), 2)
    _add(ledger, "parse", 3, 4, round_=2)
    assert ledger.open_units(S) == []
    assert ledger.unsuccessful_links(S, "parse") == []


def test_range_of_an_unreadable_register_is_open_in_the_next_round() -> None:
    ledger = _ledger()
    ledger.mark_unreadable(OutcomeRegister(S, 0, "parse", 1))
    _add(ledger, "lint", 0, 10)
    (unit,) = ledger.open_units(S)
    assert (unit.start, unit.end, unit.tasks, unit.round) == (0, 10, ("parse",), 2)


def test_task_waits_for_a_needed_task_that_is_retried() -> None:
    """The retry of the needed task decides whether the task can run or fails."""
    ledger = OutcomeLedger(work_of({S: 1}), {"parse": (), "lint": ("parse",), "report": ("lint",)})
    _add(ledger, "parse", 0, 1, "failed")
    _add(ledger, "parse", 0, 1, "failed", round_=2)
    _add(ledger, "lint", 0, 1, "failed")
    ledger.retry_unsuccessful()
    (unit,) = ledger.open_units(S)
    assert (unit.tasks, unit.round) == (("parse",), 3)
    _add(ledger, "parse", 0, 1, round_=3)
    assert [(unit.tasks, unit.round) for unit in ledger.open_units(S)] == [(("lint",), 2)]
    _add(ledger, "lint", 0, 1, round_=2)
    assert [(unit.tasks, unit.round) for unit in ledger.open_units(S)] == [(("report",), 1)]


def test_hole_is_split_at_an_unreadable_register() -> None:
    """Without the split, no worker could ever publish an outcome at the start of the unreadable register."""
    ledger = _ledger()
    ledger.mark_unreadable(OutcomeRegister(S, 4, "parse", 1))
    _add(ledger, "lint", 0, 10)
    assert [(unit.start, unit.end, unit.round) for unit in ledger.open_units(S)] == [(0, 4, 1), (4, 10, 2)]
    assert ledger.list_holes(S, "parse") == [(0, 10)]


def test_an_item_whose_needed_task_failed_is_doomed() -> None:
    ledger = _ledger()
    _add(ledger, "parse", 0, 2)
    _add(ledger, "parse", 2, 3, "failed")
    _add(ledger, "parse", 3, 10)
    (unit,) = ledger.open_units(S)
    assert ledger.doomed_items(unit) == [(2, ("lint",))]


def test_batch_state_follows_from_counts() -> None:
    table = [
        (OutcomeCounts(planned=4), False, BatchState.PENDING),
        (OutcomeCounts(planned=4), True, BatchState.RUNNING),
        (OutcomeCounts(planned=4, results=1), False, BatchState.RUNNING),
        (OutcomeCounts(planned=4, results=4), True, BatchState.COMPLETED),
        (OutcomeCounts(planned=4, results=3, failed=1), True, BatchState.PARTIAL),
        (OutcomeCounts(planned=4, failed=4), True, BatchState.FAILED),
        (OutcomeCounts(planned=4, results=3, cancelled=1), True, BatchState.CANCELLED),
        (OutcomeCounts(planned=0), True, BatchState.COMPLETED),
    ]
    for counts, is_started, state in table:
        assert batch_state(counts, is_started=is_started) is state
    assert is_stalled(BatchState.RUNNING, live_holders=0)
    assert not is_stalled(BatchState.RUNNING, live_holders=1)
    assert not is_stalled(BatchState.PARTIAL, live_holders=0)


def test_repeated_failure_is_not_executed_a_third_time() -> None:
    ledger = _ledger()
    _add(ledger, "parse", 0, 9)
    _add(ledger, "parse", 9, 10, "failed")
    _add(ledger, "lint", 0, 10)
    _add(ledger, "parse", 9, 10, "failed", round_=5)
    ledger.retry_unsuccessful()
    assert [unit.round for unit in ledger.open_units(S)] == [6]
    _add(ledger, "parse", 9, 10, "failed", round_=6)
    assert ledger.open_units(S) == []


def test_known_commit_is_ignored() -> None:
    ledger = _ledger()
    outcome = TaskOutcome(shard=S, task="parse", start=0, end=4, type="result")
    commit = Commit(segment=HolderId("h"), epoch=1, round=1, outcomes=(outcome,))
    assert ledger.add(commit) == [S]
    assert ledger.add(commit) == []


def _with_project_task() -> OutcomeLedger:
    return OutcomeLedger(work_of({S: ITEMS}, ["sum"]), {"parse": (), "sum": ("parse",)})


def test_inputs_digest_of_a_project_task_changes_with_later_rounds() -> None:
    ledger = _with_project_task()
    _add(ledger, "parse", 0, ITEMS)
    before = ledger.inputs_digest("sum")
    outcome = TaskOutcome(shard=S, task="parse", start=0, end=ITEMS, type="result", digest=Digest("other"))
    ledger.add(Commit(segment=HolderId("h"), epoch=1, round=2, outcomes=(outcome,)))
    assert ledger.inputs_digest("sum") != before


def test_project_task_waits_for_retried_file_tasks() -> None:
    ledger = _with_project_task()
    own = ProjectWork("sum").id
    _add(ledger, "parse", 0, 9)
    _add(ledger, "parse", 9, ITEMS, "failed")
    assert [unit.tasks for unit in ledger.open_units(own)] == [("sum",)]
    ledger.retry_unsuccessful()
    assert ledger.open_units(own) == []
    _add(ledger, "parse", 9, ITEMS, "failed", round_=2)
    assert [unit.tasks for unit in ledger.open_units(own)] == [("sum",)]


def test_failed_project_task_without_files_makes_the_batch_failed() -> None:
    own = ProjectWork("sum")
    ledger = OutcomeLedger([own], {"sum": ()})
    failed = TaskOutcome(shard=own.id, task="sum", start=0, end=1, type="failed", inputs=ledger.inputs_digest("sum"))
    ledger.add(Commit(segment=HolderId("h"), epoch=0, round=1, outcomes=(failed,)))
    (piece,) = ledger.iter_shard_results("sum")
    assert (piece.shard, piece.items, [link.type for link in piece.links]) == (own.id, 1, ["failed"])
    assert batch_state(count_ledger_outcomes(ledger), is_started=True) is BatchState.FAILED
    ledger.retry_unsuccessful()
    (unit,) = ledger.open_units(own.id)
    ledger.add(Commit(segment=HolderId("h"), epoch=1, round=unit.round, outcomes=(replace(failed, type="result"),)))
    assert list(ledger.iter_shard_results("sum")) == [(own.id, 0, [])]
    assert batch_state(count_ledger_outcomes(ledger), is_started=True) is BatchState.COMPLETED
