"""What is told of a run: never more than there is to do."""

from __future__ import annotations

from pathlib import Path

from codebatch.coordinator.score import Score
from codebatch.engine.ledger import Ledger
from codebatch.model.counts import Counts
from codebatch.model.outcome import Commit, HolderId, Outcome, OutcomeType
from codebatch.store.store import create_store
from codebatch.system.files import RealFiles
from tests.proof.plans import make_batch


def test_what_is_told_is_what_stands_in_the_chains(tmp_path: Path) -> None:
    """A late owner's tail is garbage, a later round stands for the one before, and what is retried is not done."""
    store, _ = create_store(RealFiles(), tmp_path / "store")
    plan = make_batch(store, [b"a", b"b", b"c"], shard_items=3).plan()
    ledger = Ledger(plan.work().values(), {task.name: task.needs for task in plan.tasks})

    def commit(start: int, end: int, type_: OutcomeType = "result", round_: int = 1) -> Commit:
        counts = Counts(kinds={"metric": end - start})
        outcome = Outcome(shard=plan.shards[0].id, task="parse", start=start, end=end, type=type_, counts=counts)
        made = Commit(segment=HolderId("h"), epoch=1, round=round_, outcomes=(outcome,))
        ledger.add(made)
        return made

    def told(score: Score) -> tuple[int, int, int]:
        progress = score.progress(inflight=0, workers=0)
        return progress.done["parse"], progress.records, progress.failures

    score = Score(plan, ledger, is_retried=False)
    score.note([commit(2, 3, "failed"), commit(1, 3), commit(0, 3)])
    assert told(score) == (3, 3, 0)
    score = Score(plan, ledger, is_retried=False)
    score.note([commit(0, 2, round_=2)])
    assert told(score) == (3, 3, 1), "behind it begins what was garbage before"
    score = Score(plan, ledger, is_retried=True)
    assert told(score) == (2, 2, 0)
    score.note([commit(2, 3, "failed", round_=2)])
    assert told(score) == (3, 3, 1)
