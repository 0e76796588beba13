"""Signals of a coordinator: the first asks for a drain, the second ends process groups, the third kills them.

Ctrl-Z (SIGTSTP) suspends it with its workers, which a terminal's own signal does not reach.
"""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Callable
from types import FrameType

HANDLED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

_Handler = Callable[[int, FrameType | None], object] | int | signal.Handlers | None


class SignalCounter:
    """Counts stop signals from `begin` to `end`, and makes `wakeup` readable at each.

    In the main thread alone; in another one there are none to count: Python gives them to the main thread, and what
    that does about them is up to our caller.
    """

    def __init__(self, *, hears_hangup: bool = True) -> None:
        """Who does not hear SIGHUP goes on without a terminal. What it starts is killed by one as ever."""
        self._hears_hangup = hears_hangup
        self.count = 0
        self.first: signal.Signals | None = None
        self.is_suspension_asked = False
        self._before: dict[signal.Signals, _Handler] = {}

    def begin(self) -> None:
        """Count from now on."""
        self.wakeup, self._write = os.pipe()
        os.set_blocking(self.wakeup, False)
        os.set_blocking(self._write, False)
        if threading.current_thread() is not threading.main_thread():
            return
        for number in (*HANDLED, signal.SIGTSTP):
            if signal.getsignal(number) is not signal.SIG_IGN:  # nohup(1) and background jobs stay as they were told.
                self._before[number] = signal.signal(number, self._handler_of(number))

    def end(self) -> None:
        """Leave signals to whom they were for before."""
        for number, handler in self._before.items():
            signal.signal(number, handler)
        os.close(self.wakeup)
        os.close(self._write)

    def _handler_of(self, number: signal.Signals) -> Callable[[int, FrameType | None], None]:
        if number is signal.SIGTSTP:
            return self._handle_suspension
        return self._pass if number is signal.SIGHUP and not self._hears_hangup else self._handle

    def _pass(self, number: int, frame: FrameType | None) -> None:
        """A handler, unlike SIG_IGN, is not inherited."""

    def _handle(self, number: int, frame: FrameType | None) -> None:
        self.count += 1
        self.first = self.first or signal.Signals(number)
        with contextlib.suppress(BlockingIOError):
            os.write(self._write, b"!")

    def _handle_suspension(self, number: int, frame: FrameType | None) -> None:
        self.is_suspension_asked = True
        with contextlib.suppress(BlockingIOError):
            os.write(self._write, b"!")

    def suspend(self) -> None:
        """Stop this process; returns when it is continued."""
        self.is_suspension_asked = False
        signal.raise_signal(signal.SIGSTOP)

    def clear(self) -> None:
        """Make `wakeup` unreadable again."""
        with contextlib.suppress(BlockingIOError):
            os.read(self.wakeup, 512)

    @property
    def exit_status(self) -> int:
        """130 after SIGINT, 143 after SIGTERM, 129 after SIGHUP; 0 where there was none."""
        return 128 + self.first if self.first else 0
