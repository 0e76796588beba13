"""State of this process that foreign code may change, such as signal handlers.

It is saved before foreign code runs, and restored afterwards.
"""

from __future__ import annotations

import contextlib
import os
import resource
import signal
import sys
import threading

_TIMER_KINDS = (signal.ITIMER_REAL, signal.ITIMER_VIRTUAL, signal.ITIMER_PROF)
_LIMIT_KINDS = tuple(getattr(resource, name) for name in dir(resource) if name.startswith("RLIMIT_"))


class ProcessState:
    """The umask, signal handlers, resource limits and `sys.path` at the time when this object is created.

    The working directory is not included, because custom tasks may rely on the directory that their module chose.
    """

    def __init__(self) -> None:
        self._pid = os.getpid()
        self._umask = os.umask(0o077)
        os.umask(self._umask)
        self._handlers = {number: signal.getsignal(number) for number in signal.valid_signals()}
        self._limits = {limit: resource.getrlimit(limit) for limit in _LIMIT_KINDS}
        self._path = list(sys.path)

    def restore(self) -> None:
        """Restore the saved state, and stop all timers, which codebatch does not use.

        If this process is a fork, end the process.
        """
        self.restore_files()
        if threading.current_thread() is threading.main_thread():  # Only the main thread may set handlers.
            for number, handler in self._handlers.items():
                if handler is not None and signal.getsignal(number) is not handler:
                    signal.signal(number, handler)
            for timer in _TIMER_KINDS:
                signal.setitimer(timer, 0.0)
        for limit, limit_before in self._limits.items():
            if resource.getrlimit(limit) != limit_before:
                with contextlib.suppress(ValueError, OSError):  # A hard limit that was lowered cannot be raised again.
                    resource.setrlimit(limit, limit_before)
        sys.path += [entry for entry in self._path if entry not in sys.path]

    def restore_files(self) -> None:
        """Restore the umask, which affects new files. If this process is a fork, end the process.

        A fork that foreign code made would otherwise continue here and write the same files.
        """
        if os.getpid() != self._pid:
            os._exit(0)
        os.umask(self._umask)
