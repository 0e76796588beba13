"""Time limits that do not depend on the load of the machine.

The kernel counts for how long a process was ready to run but waited for a processor (/proc/PID/schedstat). This time
does not count for a limit. So a process that computes has as much time under load as on an idle machine, and one that
sleeps or waits for a file ends on time. If the kernel does not count these waits, all time counts.
"""

from __future__ import annotations

import os

from codebatch.system.clock import running_ns

WAITED_SHARE_MAX = 0.95
"""The maximum share of the time that is left out. It bounds the time of a process that never gets a processor."""


def processor_wait_ns(pid: int) -> int:
    """Return for how many nanoseconds the main thread of a process has waited for a processor. If unknown, 0."""
    try:
        with open(f"/proc/{pid}/schedstat", encoding="ascii") as statistics:
            return int(statistics.read().split()[1])
    except (OSError, ValueError, IndexError):  # The process has ended, or the kernel has no such file.
        return 0


class ProcessTimer:
    """The time that a process has had since the timer was made, without its waits for a processor.

    The waits of this process do not count either, because the other process may wait for its answers.
    """

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self.restart()

    def restart(self) -> None:
        """Count from now on."""
        self._began_ns = running_ns()
        self._waited_ns = self._wait_ns()

    def seconds(self) -> float:
        """Return the seconds that count."""
        passed_ns = running_ns() - self._began_ns
        return counted_seconds(passed_ns / 1e9, (self._wait_ns() - self._waited_ns) / 1e9)

    def _wait_ns(self) -> int:
        return processor_wait_ns(self._pid) + processor_wait_ns(os.getpid())


def counted_seconds(passed: float, waited: float) -> float:
    """Return how many of the seconds that have passed count for a limit, given the seconds of waits for a processor."""
    return passed - min(max(waited, 0.0), WAITED_SHARE_MAX * passed)
