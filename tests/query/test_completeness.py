"""Completeness of answers: every kind of missing result makes an answer incomplete, and is described."""

from __future__ import annotations

import pytest

from codebatch.query.completeness import Completeness

_WHOLE = {"planned": 4, "done": 4, "files": 2}


@pytest.mark.parametrize(
    ("missing", "text"),
    [
        ({"done": 3}, "75.0% of the batch is done"),
        ({"failed": 1, "failed_tasks": ("lint",)}, "1 of 4 results failed (lint)"),
        ({"lost": 1}, "1 file could not be read"),
        ({"lacks_files": True}, "the batch is restricted to a part of the project"),
        ({"unfollowed": "uses of cobol are not resolved"}, "uses of cobol are not resolved"),
        ({"doubt": "none, but 1 file"}, "none, but 1 file"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_answer_with_something_missing_is_incomplete(missing: dict[str, object], text: str) -> None:
    completeness = Completeness(**{**_WHOLE, **missing})  # type: ignore[arg-type]
    assert not completeness.is_complete
    assert text in completeness.missing_text


def test_answer_with_all_results_is_complete() -> None:
    completeness = Completeness(**_WHOLE)  # type: ignore[arg-type]
    assert (completeness.is_complete, completeness.missing_text, completeness.percent) == (True, "", 100.0)


@pytest.mark.parametrize(
    ("done", "failed", "lost", "percent"), [(4, 0, 0, 100.0), (4, 1, 0, 75.0), (4, 1, 1, 50.0), (1, 2, 0, 0.0)]
)
def test_failed_and_lost_results_lower_the_percentage(done: int, failed: int, lost: int, percent: float) -> None:
    assert Completeness(planned=4, done=done, failed=failed, lost=lost).percent == percent
