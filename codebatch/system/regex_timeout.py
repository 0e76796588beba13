"""Regular expressions that users wrote: one may take exponentially long, so each has its time."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator

MATCH_SECONDS_MAX = 1.0
"""CPU time that looking for one pattern may take."""


class MatchTimeout(Exception):
    """A pattern was not matched in its time."""


@contextlib.contextmanager
def cpu_time_limit(seconds: float = MATCH_SECONDS_MAX) -> Iterator[None]:
    """Have what is matched inside raise TooSlow after so many seconds of our CPU time: `re` looks for signals.

    Only the main thread hears signals: in another one there is no end to it.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGVTALRM, _end)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


def _end(*_: object) -> None:
    raise MatchTimeout
