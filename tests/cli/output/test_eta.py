"""Text for the remaining time."""

from __future__ import annotations

import pytest

from codebatch.cli.output.eta import eta_text


@pytest.mark.parametrize(
    ("eta", "unknown", "blocked", "past", "expected"),
    [
        (None, 0, 0, 0.0, ""),
        (None, 3, 1, 0.0, ""),
        ((0.0, 0.0, 0.0), 0, 0, 0.0, "0-1 s left"),
        ((12.0, 15.0, 19.0), 0, 0, 0.0, "12-19 s left"),
        ((12.0, 15.0, 19.0), 0, 0, 10.0, "2-9 s left"),
        ((12.0, 15.0, 19.0), 0, 0, 100.0, "0-1 s left"),
        ((60.0, 61.0, 62.0), 0, 0, 0.0, "60-62 s left"),
        ((120.0, 121.0, 122.0), 0, 0, 0.0, "about 2 m left"),
        ((7200.0, 9000.0, 14400.0), 0, 0, 0.0, "2-4 h left"),
        ((12.0, 15.0, 19.0), 2, 0, 0.0, "at least 12 s left"),
        ((12.0, 15.0, 19.0), 0, 1, 0.0, "12-19 s left once questions are answered"),
        ((120.0, 121.0, 122.0), 0, 2, 0.0, "about 2 m left once questions are answered"),
        ((12.0, 15.0, 19.0), 2, 1, 0.0, "at least 12 s left once questions are answered"),
    ],
)
def test_eta_text_shows_remaining_time(
    eta: tuple[float, float, float] | None, unknown: int, blocked: int, past: float, expected: str
) -> None:
    assert eta_text(eta, unknown=unknown, blocked=blocked, past=past) == expected
