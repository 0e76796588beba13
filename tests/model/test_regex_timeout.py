"""The CPU time limit for regular expressions from users."""

from __future__ import annotations

import time

import pytest

from codebatch.model.text.regex_timeout import MatchTimeout, cpu_time_limit


def use_cpu(seconds: float) -> None:
    end = time.process_time() + seconds
    while time.process_time() < end:
        pass


class SlowToDelete:
    def __del__(self) -> None:
        use_cpu(2)


def delete_then_use_cpu() -> None:
    SlowToDelete()  # Python ignores what is raised in __del__.
    use_cpu(5)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_limit_holds_if_python_ignored_the_first_exception() -> None:
    with pytest.raises(MatchTimeout), cpu_time_limit(0.01):
        delete_then_use_cpu()
