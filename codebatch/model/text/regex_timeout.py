"""A time limit for regular expressions from users, which may take exponential time."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator

MATCH_SECONDS_MAX = 1.0
"""Default limit of the CPU time for one search, in seconds."""

_REPEAT_SECONDS = 0.1


class MatchTimeout(Exception):
    """The error that the search for a pattern exceeded its time limit."""


@contextlib.contextmanager
def cpu_time_limit(seconds: float = MATCH_SECONDS_MAX) -> Iterator[None]:
    """Raise MatchTimeout inside the `with` after `seconds` of CPU time of this process.

    A timer sends a signal, which `re` handles while it matches. The signal is repeated, because Python ignores what is
    raised during `__del__` and callbacks of the garbage collector. Python handles signals only in the main thread, so
    in other threads there is no limit.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    previous_handler = signal.signal(signal.SIGVTALRM, _raise_timeout)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds, _REPEAT_SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, previous_handler)


def _raise_timeout(*_: object) -> None:
    raise MatchTimeout
