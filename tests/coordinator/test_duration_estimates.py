"""Estimates of durations while a batch runs: of commands without a recorded duration, by those that have ended."""

from __future__ import annotations

from pathlib import Path

from codebatch.coordinator.work.duration_estimates import load_estimator
from codebatch.model.work.command import Command, CommandId
from codebatch.store.work.work_batches import read_work
from tests.support.work_batches import make_place


def test_unknown_duration_is_the_median_of_this_run_in_milliseconds(tmp_path: Path) -> None:
    place = make_place(tmp_path, *(Command(id=CommandId(name), run="true") for name in "abc"))
    estimator = load_estimator(place.store, place.batch, read_work(place.batch))
    assert estimator.expected(2) is None
    estimator.record_duration(0, 1.0001)
    assert estimator.expected(2) == 1.0
    estimator.record_duration(1, 3.0004)
    assert estimator.expected(2) == 2.0
