"""Stop signals of a coordinator.

The first signal requests a drain, the second terminates the process groups of workers, the third kills them. Ctrl-Z
(SIGTSTP) suspends the coordinator and its workers. Workers have their own sessions, so the terminal sends signals only
to the coordinator.
"""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Callable
from types import FrameType

HANDLED_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

_SignalHandler = Callable[[int, FrameType | None], object] | int | signal.Handlers | None


class SignalCounter:
    """Counter of stop signals between `begin` and `end`. Each signal makes the descriptor `wakeup` readable.

    Python delivers signals only in the main thread. If `begin` was called in another thread, the counter stays 0, and
    the caller must handle signals.
    """

    def __init__(self, *, hears_hangup: bool = True) -> None:
        """Create the counter.

        Without `hears_hangup`, SIGHUP has no effect on this process and is not counted. Programs that it starts have
        the default action for SIGHUP.
        """
        self._counts_hangup = hears_hangup
        self.count = 0
        self.first: signal.Signals | None = None
        self.is_suspension_asked = False
        self._previous_handlers: dict[signal.Signals, _SignalHandler] = {}

    def begin(self) -> None:
        """Install the handlers."""
        self.wakeup, self._wakeup_writer = os.pipe()
        os.set_blocking(self.wakeup, False)
        os.set_blocking(self._wakeup_writer, False)
        if threading.current_thread() is not threading.main_thread():
            return
        for number in (*HANDLED_SIGNALS, signal.SIGTSTP):
            # If a signal is ignored, it must stay ignored: nohup(1) and background jobs of shells rely on this.
            if signal.getsignal(number) is not signal.SIG_IGN:
                self._previous_handlers[number] = signal.signal(number, self._make_handler(number))

    def end(self) -> None:
        """Restore the previous handlers."""
        for number, handler in self._previous_handlers.items():
            signal.signal(number, handler)
        os.close(self.wakeup)
        os.close(self._wakeup_writer)

    def _make_handler(self, number: signal.Signals) -> Callable[[int, FrameType | None], None]:
        if number is signal.SIGTSTP:
            return self._handle_suspension
        return self._ignore_signal if number is signal.SIGHUP and not self._counts_hangup else self._handle_signal

    def _ignore_signal(self, number: int, frame: FrameType | None) -> None:
        """Do nothing.

        This handler is installed instead of SIG_IGN: execve(2) resets handlers, but not SIG_IGN. So programs that are
        started do not ignore the signal.
        """

    def _handle_signal(self, number: int, frame: FrameType | None) -> None:
        self.count += 1
        self.first = self.first or signal.Signals(number)
        with contextlib.suppress(BlockingIOError):
            os.write(self._wakeup_writer, b"!")

    def _handle_suspension(self, number: int, frame: FrameType | None) -> None:
        self.is_suspension_asked = True
        with contextlib.suppress(BlockingIOError):
            os.write(self._wakeup_writer, b"!")

    def suspend_process(self) -> None:
        """Stop this process. The call returns when the process is continued."""
        self.is_suspension_asked = False
        signal.raise_signal(signal.SIGSTOP)

    def drain_wakeup(self) -> None:
        """Make `wakeup` unreadable again."""
        with contextlib.suppress(BlockingIOError):
            os.read(self.wakeup, 512)

    @property
    def exit_status(self) -> int:
        """130 after SIGINT, 143 after SIGTERM, 129 after SIGHUP; 0 without a signal."""
        return 128 + self.first if self.first else 0
