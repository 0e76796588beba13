"""Commands as processes of this machine.

A command leads a session of its own. Its worker is a subreaper (prctl(2), Linux): what a command starts and leaves
becomes the worker's child, however it detached itself. So the attempt's processes are the children that the worker did
not have before, but for those that an earlier attempt started, which their mark tells. Only children are killed by
their id: nobody else reaps them, so none can be another's. Elsewhere there are process group and mark.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import resource
import select
import signal
import sys
import time
from collections.abc import Iterator, Mapping, Set
from functools import cached_property
from pathlib import Path

from codebatch.protocol.launch import ATTEMPT_VARIABLE
from codebatch.system.processes import proc
from codebatch.system.processes.command_processes import NotStarted, ProcessEnded, ProcessStart
from codebatch.system.processes.memory import kill_marked
from codebatch.system.processes.processes import bequeath_no_descriptors, is_dead_child

READ_BYTES = 1 << 16
# How often is looked for the end where no descriptor tells it, and for that of what was killed.
_POLL_SECONDS = 0.05
_DEATH_SECONDS = 0.001
_SHEBANG_BYTES_MAX = 256
"""Of a script, what Linux looks at (BINPRM_BUF_SIZE, execve(2))."""
_NOT_THERE = (errno.ENOENT, errno.ENOTDIR)
_IGNORED_BY_PYTHON = (signal.SIGPIPE, signal.SIGXFSZ)
_TICK_NS = 1_000_000_000 // os.sysconf("SC_CLK_TCK")
_RUSAGE_UNIT = 1 if sys.platform == "darwin" else 1024


class RealCommands:
    """The operating system's processes. While one is started its directory is ours: there is to be one thread.

    What each start needs is kept open, and no program inherits it.
    """

    def __init__(self) -> None:
        self._clock_is_theirs = False

    def start(self, start: ProcessStart) -> RealRunning:
        before = _children_before()
        read, write = os.pipe()
        ticks = _ticks_now()
        try:
            with self._stdin(start.stdin) as stdin, self._directory(start.directory):
                pid = _spawn(start, stdin, write)
        except (OSError, ValueError) as error:
            os.close(read)
            raise NotStarted(_why(start, error)) from error
        finally:
            os.close(write)
        os.set_blocking(read, False)
        return RealRunning(pid, self._start_ticks(pid, ticks), read, start.mark, before)

    def _start_ticks(self, pid: int, before: int) -> int:
        """When a process was started that was not yet there `before`, in clock ticks after boot.

        Where no tick lies between, there is no other answer. To be told takes a tenth of what starting it does.
        """
        if self._clock_is_theirs and before == _ticks_now():
            return before
        told = proc.start_ticks(pid) or 0
        self._clock_is_theirs = before <= told <= _ticks_now()
        return told

    @contextlib.contextmanager
    def _directory(self, path: Path) -> Iterator[None]:
        """Be in a directory, which a child then begins in."""
        ours = self._ours
        os.chdir(path)
        try:
            yield
        finally:
            os.fchdir(ours)

    @contextlib.contextmanager
    def _stdin(self, path: Path | None) -> Iterator[int]:
        """What a command reads. A FIFO without a writer is at its end, and not waited for."""
        if path is None:
            yield self._nothing
            return
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        try:
            fcntl.fcntl(descriptor, fcntl.F_SETFL, 0)
            yield descriptor
        finally:
            os.close(descriptor)

    @cached_property
    def _ours(self) -> int:
        return os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)

    @cached_property
    def _nothing(self) -> int:
        return os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)


class RealRunning:
    """A process, its output, and what else it started."""

    def __init__(self, pid: int, start_ticks: int, output: int, mark: str, before: frozenset[int]) -> None:
        """`before` are the children that this process had when it was started."""
        self.pid = pid
        self.start_ticks = start_ticks
        self._output: int | None = output
        self._mark = mark
        self._before = before
        self._ended: ProcessEnded | None = None
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
        return self._ended is not None or is_dead_child(self.pid)

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
        self.signal(signal.SIGKILL)
        if not everything and self.poll():
            self._reap()
            if not _has_children():  # What it left would be: so it left nothing.
                return []
        deadline = time.monotonic() + seconds
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

    def close(self) -> ProcessEnded | None:
        self._close_output()
        if self._end is not None:
            os.close(self._end)
        if self.poll():
            self._reap()
        return self._ended

    def _reap(self) -> None:
        """Take note of how it ended, which it has. Its id may be another's from then on."""
        if self._ended is None:
            _, status, usage = os.wait4(self.pid, 0)
            self._ended = ProcessEnded(
                exit_status=os.waitstatus_to_exitcode(status),
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


def _ticks_now() -> int:
    """The time since boot in clock ticks, as /proc/PID/stat counts; 0 where there is no such clock."""
    try:
        return time.clock_gettime_ns(time.CLOCK_BOOTTIME) // _TICK_NS
    except (AttributeError, OSError):
        return 0


def _own_peak(usage: resource.struct_rusage) -> int:
    """The most memory that a child had resident, in bytes; 0 where that is ours: it starts from its parent's peak."""
    ours = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return usage.ru_maxrss * _RUSAGE_UNIT if usage.ru_maxrss > ours else 0


def _spawn(start: ProcessStart, stdin: int, output: int) -> int:
    """Start a command in this directory, in a session of its own; returns its id. Raises OSError, ValueError.

    It is looked for as execvpe(3) does, on the PATH that it is given. posix_spawn(3) takes a third of what Popen does.
    """
    name = start.arguments[0]
    places = [name] if "/" in name else _places(name, start.environment)
    bequeath_no_descriptors()
    refused = OSError(errno.ENOENT, os.strerror(errno.ENOENT), name)
    for place in places:
        try:
            return os.posix_spawn(
                place,
                list(start.arguments),
                start.environment,
                file_actions=[(os.POSIX_SPAWN_DUP2, stdin, 0), *((os.POSIX_SPAWN_DUP2, output, to) for to in (1, 2))],
                setsid=True,
                setsigdef=_IGNORED_BY_PYTHON,
            )
        except OSError as error:
            if refused.errno in _NOT_THERE:
                why = _missing_interpreter(place) if error.errno == errno.ENOENT else ""
                refused = OSError(error.errno, why or error.strerror, name)
    raise refused


def _missing_interpreter(place: str) -> str:
    """Return why a script that is there cannot be started: its interpreter is missing. Empty for any other file."""
    try:
        with open(place, "rb") as script:
            line = script.readline(_SHEBANG_BYTES_MAX)
    except OSError:
        return ""
    interpreter = line[2:].strip(b" \t\n").partition(b" ")[0]
    if not line.startswith(b"#!") or os.path.exists(interpreter):
        return ""
    reason = f"its interpreter {os.fsdecode(interpreter)!r} does not exist"
    is_of_windows = interpreter.endswith(b"\r")
    return f"{reason}: the script has CR LF line endings instead of LF" if is_of_windows else reason


def _places(name: str, environment: Mapping[str, str]) -> list[str]:
    """Where a program may be that is looked for. To try one that is not there takes as long as to start it."""
    places = [os.path.join(directory, name) for directory in os.get_exec_path(environment)]
    return [place for place in places if not _is_missing(place)]


def _is_missing(path: str) -> bool:
    try:
        os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        return True
    except OSError:  # Whoever starts it says what is wrong.
        return False
    return False


def _children_before() -> frozenset[int]:
    """The children that we have. Who has none, be it dead, has started nothing that still runs: all would be ours."""
    return frozenset(_live_children()) if _has_children() else frozenset()


def _has_children() -> bool:
    """Whether we have any, be they dead: one system call, where to list them takes a dozen."""
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return False
    return True


def _live_children(but: Set[int] = frozenset()) -> list[int]:
    """Our children but some; the others that are dead are reaped."""
    found = []
    for pid in proc.children(os.getpid()):
        if pid not in but:
            with contextlib.suppress(ChildProcessError):
                if os.waitpid(pid, os.WNOHANG)[0] == 0:
                    found.append(pid)
    return found


def _why(start: ProcessStart, error: OSError | ValueError) -> str:
    """Why a command was not started, for people."""
    if isinstance(error, OSError):
        return f"{os.fsdecode(error.filename or start.arguments[0])}: {error.strerror}"
    return f"{start.arguments[0]}: {error}"


def _open_pidfd(pid: int) -> int | None:
    try:
        return os.pidfd_open(pid)
    except (AttributeError, OSError):
        return None
