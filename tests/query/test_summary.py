"""Failures and findings that the end of a run shows."""

from __future__ import annotations

from pathlib import Path

from codebatch.model.record import Failure, FailureReason, Record
from codebatch.query.answers.summary import read_failures, worst_findings
from codebatch.query.sources.records import BatchRecords
from tests.index.batches import diagnostic, make_saying, make_store


def _failure(task: str, reason: FailureReason) -> Failure:
    return Failure(path="a", task=task, reason=reason)


def test_failures_of_dependent_tasks_are_shown_after_their_causes(tmp_path: Path) -> None:
    store = make_store(tmp_path)
    said: dict[str, list[list[Record]]] = {
        "parse": [[_failure("parse", "needs")], [_failure("parse", "exception")]],
        "symbols": [[_failure("symbols", "timeout")], [_failure("symbols", "needs")]],
    }
    records = BatchRecords(store, make_saying(store, 2, said))
    for limit in range(1, 5):
        failures = [(failure["task"], failure["reason"]) for failure in read_failures(records, limit)]
        assert failures == [
            ("parse", "exception"), ("symbols", "timeout"), ("parse", "needs"), ("symbols", "needs"),
        ][:limit]  # fmt: skip


def test_most_severe_findings_are_shown_first(tmp_path: Path) -> None:
    store = make_store(tmp_path)
    said = {"symbols": [[diagnostic("H", "hint")], [diagnostic("W", "warning")], [diagnostic("E1"), diagnostic("E2")]]}
    records = BatchRecords(store, make_saying(store, 3, said))
    for limit in range(1, 5):
        assert [finding["code"] for finding in worst_findings(records, limit)] == ["E1", "E2", "W", "H"][:limit]
