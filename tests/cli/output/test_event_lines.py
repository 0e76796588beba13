"""Events as lines."""

from __future__ import annotations

from codebatch.cli.answers.event_lines import current_file_text
from codebatch.model.work.event import RunningTask


def test_current_file_is_the_one_that_takes_the_longest() -> None:
    running = [
        RunningTask(task="parse", seconds=1.0, path="a.py"),
        RunningTask(task="lint", seconds=75.0, path="b.py"),
        RunningTask(task="duplicates", seconds=90.0),
    ]
    assert current_file_text(running) == "lint b.py (1m 15s)"
    assert current_file_text(running[2:]) == ""
    assert current_file_text([]) == ""
