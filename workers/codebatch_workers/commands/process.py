"""Commands as processes of this machine.

A command leads a session of its own. Its worker is a subreaper (prctl(2), Linux): what a command starts and leaves
becomes the worker's child, however it detached itself. So the attempt's processes are the children that the worker did
not have before, but for those that an earlier attempt started, which their mark tells. Only children are killed by
their id: nobody else reaps them, so none can be another's. Elsewhere there are process group and mark.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import resource
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Set
from pathlib import Path

from codebatch.protocol.launch import ATTEMPT_VARIABLE
from codebatch.system import proc
from codebatch.system.commands import Ended, NotStarted, Start
from codebatch.system.machine import kill_marked
from codebatch.system.processes import has_ended

READ_BYTES = 1 << 16
# How often is looked for the end where no descriptor tells it, and for that of what was killed.
_POLL_SECONDS = 0.05
_DEATH_SECONDS = 0.001
_RUSAGE_UNIT = 1 if sys.platform == "darwin" else 1024


class RealCommands:
    """The operating system's processes."""

    def start(self, start: Start) -> RealRunning:
        before = frozenset(_live_children())
        read, write = os.pipe()
        try:
            with _stdin(start.stdin) as stdin:
                process = subprocess.Popen(
                    start.arguments,
                    cwd=start.directory,
                    env=start.environment,
                    stdin=stdin,
                    stdout=write,
                    stderr=write,
                    start_new_session=True,
                )
        except (OSError, ValueError) as error:
            os.close(read)
            raise NotStarted(_why(start, error)) from error
        finally:
            os.close(write)
        os.set_blocking(read, False)
        return RealRunning(process, read, start.mark, before)


class RealRunning:
    """A process, its output, and what else it started."""

    def __init__(self, process: subprocess.Popen[bytes], output: int, mark: str, before: frozenset[int]) -> None:
        """`before` are the children that this process had when it was started."""
        self.pid = process.pid
        self.start_ticks = proc.start_ticks(self.pid) or 0
        self._process = process
        self._output: int | None = output
        self._mark = mark
        self._before = before
        self._end = _open_pidfd(self.pid)
        self._heard = select.poll()
        self._heard.register(output, select.POLLIN)
        if self._end is not None:
            self._heard.register(self._end, select.POLLIN)

    def wait(self, seconds: float, channel: int | None) -> None:
        if channel is not None:
            self._heard.register(channel, select.POLLIN)
        try:
            heard = self._heard.poll(1000 * (seconds if self._end is not None else min(seconds, _POLL_SECONDS)))
        finally:
            if channel is not None:
                self._heard.unregister(channel)
        if self._end is not None and any(descriptor == self._end for descriptor, _ in heard):
            self._heard.unregister(self._end)  # It is heard once: who waits on waits for something else.

    def read(self) -> bytes:
        if self._output is None:
            return b""
        try:
            data = os.read(self._output, READ_BYTES)
        except BlockingIOError:
            return b""
        if not data:
            self._close_output()
        return data

    def poll(self) -> bool:
        return has_ended(self._process)

    def signal(self, number: int) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, number)

    def has_company(self) -> bool:
        return any(self._is_of_session(pid) for pid in self._left())

    def resident_bytes(self) -> int:
        tree = [self.pid, *self._left()]
        for pid in tree:
            tree += proc.children(pid)
        return sum(proc.resident_bytes(pid) or 0 for pid in tree)

    def end(self, *, everything: bool, seconds: float) -> list[str]:
        deadline = time.monotonic() + seconds
        self.signal(signal.SIGKILL)
        # The kernel's list of children may miss one while others end (proc_pid_task_children(5)).
        quiet_looks = 2 if everything else 1
        while True:
            left = self._left()
            killed = left if everything else [pid for pid in left if self._is_of_session(pid)]
            for pid in killed:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, signal.SIGKILL)
            if not killed and not (everything and kill_marked(ATTEMPT_VARIABLE, {self._mark})):
                quiet_looks -= 1
            if quiet_looks == 0 or time.monotonic() > deadline:
                return [f"{pid} {proc.name(pid)}" for pid in left]
            time.sleep(_DEATH_SECONDS)

    def close(self) -> Ended | None:
        self._close_output()
        if self._end is not None:
            os.close(self._end)
        if not self.poll():
            self._process.returncode = 0  # Nobody waits for it any more.
            return None
        _, status, usage = os.wait4(self.pid, 0)
        self._process.returncode = os.waitstatus_to_exitcode(status)
        return Ended(
            exit_status=self._process.returncode,
            cpu_seconds=usage.ru_utime + usage.ru_stime,
            memory_peak_bytes=_own_peak(usage),
        )

    def _left(self) -> list[int]:
        """What became our child of all that the command started."""
        others = self._before | {self.pid}
        return [pid for pid in _live_children(others) if not self._is_of_another(pid)]

    def _is_of_another(self, pid: int) -> bool:
        """Whether an earlier attempt started it, which let it run on."""
        name = ATTEMPT_VARIABLE.encode()
        return any(variable == name and value != self._mark.encode() for variable, value in proc.environment(pid))

    def _is_of_session(self, pid: int) -> bool:
        found = proc.stat(pid)
        return found is not None and found.session == self.pid

    def _close_output(self) -> None:
        if self._output is not None:
            self._heard.unregister(self._output)
            os.close(self._output)
            self._output = None


def _own_peak(usage: resource.struct_rusage) -> int:
    """The most memory that a child had resident, in bytes; 0 where that is ours: it starts from its parent's peak."""
    ours = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return usage.ru_maxrss * _RUSAGE_UNIT if usage.ru_maxrss > ours else 0


def _live_children(but: Set[int] = frozenset()) -> list[int]:
    """Our children but some; the others that are dead are reaped."""
    found = []
    for pid in proc.children(os.getpid()):
        if pid not in but:
            with contextlib.suppress(ChildProcessError):
                if os.waitpid(pid, os.WNOHANG)[0] == 0:
                    found.append(pid)
    return found


@contextlib.contextmanager
def _stdin(path: Path | None) -> Iterator[int]:
    """What a command reads. A FIFO without a writer is at its end, and not waited for."""
    descriptor = os.open(os.devnull if path is None else path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    try:
        fcntl.fcntl(descriptor, fcntl.F_SETFL, 0)
        yield descriptor
    finally:
        os.close(descriptor)


def _why(start: Start, error: OSError | ValueError) -> str:
    """Why a command was not started, for people."""
    if isinstance(error, OSError):
        return f"{os.fsdecode(error.filename or start.arguments[0])}: {error.strerror}"
    return f"{start.arguments[0]}: {error}"


def _open_pidfd(pid: int) -> int | None:
    try:
        return os.pidfd_open(pid)
    except (AttributeError, OSError):
        return None
