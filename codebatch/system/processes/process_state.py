"""The state of a process that code of others may change, and that is restored afterwards."""

from __future__ import annotations

import contextlib
import os
import resource
import signal
import sys
import threading

_TIMERS = (signal.ITIMER_REAL, signal.ITIMER_VIRTUAL, signal.ITIMER_PROF)
_LIMITS = tuple(getattr(resource, name) for name in dir(resource) if name.startswith("RLIMIT_"))


class ProcessState:
    """The umask, signal handlers, limits and entries of Python's path that a process has when this is made.

    The working directory is none of it: own tasks may count on the one that their module chose.
    """

    def __init__(self) -> None:
        self._pid = os.getpid()
        self._umask = os.umask(0o077)
        os.umask(self._umask)
        self._handlers = {number: signal.getsignal(number) for number in signal.valid_signals()}
        self._limits = {limit: resource.getrlimit(limit) for limit in _LIMITS}
        self._path = list(sys.path)

    def restore(self) -> None:
        """Change back what is not as it was. End the timers: nothing of ours has any. A fork ends here."""
        self.restore_files()
        if threading.current_thread() is threading.main_thread():  # No other may set handlers.
            for number, handler in self._handlers.items():
                if handler is not None and signal.getsignal(number) is not handler:
                    signal.signal(number, handler)
            for timer in _TIMERS:
                signal.setitimer(timer, 0.0)
        for limit, before in self._limits.items():
            if resource.getrlimit(limit) != before:
                with contextlib.suppress(ValueError, OSError):  # A hard limit may not be raised again.
                    resource.setrlimit(limit, before)
        sys.path += [entry for entry in self._path if entry not in sys.path]

    def restore_files(self) -> None:
        """Change back the umask, by which files are made, and end a fork, which would write the same files."""
        if os.getpid() != self._pid:
            os._exit(0)
        os.umask(self._umask)
