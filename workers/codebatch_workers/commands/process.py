"""Commands as processes of this machine.

A command leads its own session. Its worker is a subreaper (prctl(2), Linux). So if a command leaves a process behind,
the worker becomes the parent of this process, however the process detached itself.

Each attempt has a *mark*: a value of the environment variable ATTEMPT_VARIABLE, which all processes of the attempt
inherit. A child of the worker counts as part of an attempt under two conditions. It was not yet a child when the
command started, and its environment does not have the mark of another attempt.

Only children are killed by process ID. No other process reaps them, so the kernel cannot reuse their IDs. On systems
other than Linux, the process group and the mark identify the processes of an attempt.
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
from codebatch.system.processes.command_processes import ProcessEnded, ProcessNotStarted, ProcessStart
from codebatch.system.processes.memory import kill_marked
from codebatch.system.processes.processes import close_descriptors_on_exec, is_dead_child

READ_BYTES = 1 << 16
# If there is no pidfd, `_POLL_SECONDS` is the time between two checks whether a process has ended. After a kill,
# `_DEATH_SECONDS` is the time between two checks.
_POLL_SECONDS = 0.05
_DEATH_SECONDS = 0.001
_SHEBANG_BYTES_MAX = 256
"""The maximum length of a script's first line that Linux reads for `#!` (BINPRM_BUF_SIZE, execve(2))."""
_MISSING_ERRORS = (errno.ENOENT, errno.ENOTDIR)
_SIGNALS_IGNORED_BY_PYTHON = (signal.SIGPIPE, signal.SIGXFSZ)
_TICK_NS = 1_000_000_000 // os.sysconf("SC_CLK_TCK")
_RUSAGE_MEMORY_UNIT = 1 if sys.platform == "darwin" else 1024


class RealCommandStarter:
    """A starter of real processes.

    A start changes the working directory of this process for a moment, so this process must have only one thread. The
    descriptors that every start needs are opened once. Started programs do not inherit them.
    """

    def __init__(self) -> None:
        self._has_kernel_clock = False

    def start(self, start: ProcessStart) -> RealRunningProcess:
        before = _children_before()
        read, write = os.pipe()
        ticks = _ticks_now()
        try:
            with self._open_stdin(start.stdin) as stdin, self._in_directory(start.directory):
                pid = _spawn_command(start, stdin, write)
        except (OSError, ValueError) as error:
            os.close(read)
            raise ProcessNotStarted(_describe_failure(start, error)) from error
        finally:
            os.close(write)
        os.set_blocking(read, False)
        return RealRunningProcess(pid, self._start_ticks(pid, ticks), read, start.mark, before)

    def _start_ticks(self, pid: int, before: int) -> int:
        """Return the start time of a new process in clock ticks after boot.

        `before` is a time just before the start of the process. If the clock still shows this tick, the process started
        in this tick. Then /proc is not read, because reading it takes a tenth of the time of a start.
        """
        if self._has_kernel_clock and before == _ticks_now():
            return before
        start_ticks = proc.process_start_ticks(pid) or 0
        self._has_kernel_clock = before <= start_ticks <= _ticks_now()
        return start_ticks

    @contextlib.contextmanager
    def _in_directory(self, path: Path) -> Iterator[None]:
        """Change to a directory, in which a child then starts. On exit from the context, change back."""
        own_directory = self._working_directory
        os.chdir(path)
        try:
            yield
        finally:
            os.fchdir(own_directory)

    @contextlib.contextmanager
    def _open_stdin(self, path: Path | None) -> Iterator[int]:
        """Open the standard input of a command. If it is a FIFO without a writer, opening does not block.

        The command then reads end of file.
        """
        if path is None:
            yield self._dev_null
            return
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        try:
            fcntl.fcntl(descriptor, fcntl.F_SETFL, 0)
            yield descriptor
        finally:
            os.close(descriptor)

    @cached_property
    def _working_directory(self) -> int:
        return os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)

    @cached_property
    def _dev_null(self) -> int:
        return os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)


class RealRunningProcess:
    """A running process of a command, with its output, and the processes that the command started."""

    def __init__(self, pid: int, start_ticks: int, output: int, mark: str, before: frozenset[int]) -> None:
        """`before` has the process IDs of all children that this worker had before the start."""
        self.pid = pid
        self.start_ticks = start_ticks
        self._output: int | None = output
        self._mark = mark
        self._earlier_children = before
        self._end_of_process: ProcessEnded | None = None
        self._output_end = _open_pidfd(self.pid)
        self._poller = select.poll()
        self._poller.register(output, select.POLLIN)
        if self._output_end is not None:
            self._poller.register(self._output_end, select.POLLIN)

    def wait(self, seconds: float, channel: int | None) -> None:
        if channel is not None:
            self._poller.register(channel, select.POLLIN)
        try:
            ready = self._poller.poll(1000 * (seconds if self._output_end is not None else min(seconds, _POLL_SECONDS)))
        finally:
            if channel is not None:
                self._poller.unregister(channel)
        if self._output_end is not None and any(descriptor == self._output_end for descriptor, _ in ready):
            # The end of the process needs to be reported only once. Later waits are for other events.
            self._poller.unregister(self._output_end)

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

    def has_ended(self) -> bool:
        return self._end_of_process is not None or is_dead_child(self.pid)

    def signal_group(self, number: int) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, number)

    def has_other_processes(self) -> bool:
        return any(self._belongs_to_session(pid) for pid in self._live_orphans())

    def resident_bytes(self) -> int:
        tree = [self.pid, *self._live_orphans()]
        for pid in tree:
            tree += proc.child_pids(pid)
        return sum(proc.resident_bytes(pid) or 0 for pid in tree)

    def kill_and_wait(self, *, everything: bool, seconds: float) -> list[str]:
        self.signal_group(signal.SIGKILL)
        if not everything and self.has_ended():
            self._reap_process()
            if not _has_children():  # Orphaned processes would be children of this worker. It has none.
                return []
        deadline = time.monotonic() + seconds
        # While processes end, the kernel's list of children can be incomplete (proc_pid_task_children(5)).
        quiet_looks = 2 if everything else 1
        while True:
            orphans = self._live_orphans()
            killed = orphans if everything else [pid for pid in orphans if self._belongs_to_session(pid)]
            for pid in killed:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, signal.SIGKILL)
            if not killed and not (everything and kill_marked(ATTEMPT_VARIABLE, {self._mark})):
                quiet_looks -= 1
            if quiet_looks == 0 or time.monotonic() > deadline:
                return [f"{pid} {proc.process_name(pid)}" for pid in orphans]
            time.sleep(_DEATH_SECONDS)

    def close(self) -> ProcessEnded | None:
        self._close_output()
        if self._output_end is not None:
            os.close(self._output_end)
        if self.has_ended():
            self._reap_process()
        return self._end_of_process

    def _reap_process(self) -> None:
        """Record exit status and resources of the ended process. Then the kernel may reuse its process ID."""
        if self._end_of_process is None:
            _, status, usage = os.wait4(self.pid, 0)
            self._end_of_process = ProcessEnded(
                exit_status=os.waitstatus_to_exitcode(status),
                cpu_seconds=usage.ru_utime + usage.ru_stime,
                memory_peak_bytes=_child_memory_peak(usage),
            )

    def _live_orphans(self) -> list[int]:
        """Return the live children of this worker that belong to this attempt, except for the command itself."""
        excluded_pids = self._earlier_children | {self.pid}
        return [pid for pid in _live_children(excluded_pids) if not self._belongs_to_earlier_attempt(pid)]

    def _belongs_to_earlier_attempt(self, pid: int) -> bool:
        """Return whether the environment of a process has the mark of another attempt."""
        name = ATTEMPT_VARIABLE.encode()
        return any(
            variable == name and value != self._mark.encode() for variable, value in proc.process_environment(pid)
        )

    def _belongs_to_session(self, pid: int) -> bool:
        stat = proc.process_stat(pid)
        return stat is not None and stat.session == self.pid

    def _close_output(self) -> None:
        if self._output is not None:
            self._poller.unregister(self._output)
            os.close(self._output)
            self._output = None


def _ticks_now() -> int:
    """Return the time since boot in clock ticks, the unit in /proc/PID/stat. Without such a clock, return 0."""
    try:
        return time.clock_gettime_ns(time.CLOCK_BOOTTIME) // _TICK_NS
    except (AttributeError, OSError):
        return 0


def _child_memory_peak(usage: resource.struct_rusage) -> int:
    """Return the peak memory of a child in bytes, or 0 if unknown.

    At its start, a child inherits the peak of its parent. So the child's own peak is unknown if it is smaller than
    that.
    """
    own_peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return usage.ru_maxrss * _RUSAGE_MEMORY_UNIT if usage.ru_maxrss > own_peak else 0


def _spawn_command(start: ProcessStart, stdin: int, output: int) -> int:
    """Start a command in the current directory, as the leader of a new session. Return its process ID.

    The program is searched on the PATH of `start.environment`, like by execvpe(3). posix_spawn(3) is used, because it
    takes a third of the time of `subprocess.Popen`. Raises OSError or ValueError.
    """
    name = start.arguments[0]
    candidates = [name] if "/" in name else _candidate_paths(name, start.environment)
    close_descriptors_on_exec()
    failure = OSError(errno.ENOENT, os.strerror(errno.ENOENT), name)
    for candidate in candidates:
        try:
            return os.posix_spawn(
                candidate,
                list(start.arguments),
                start.environment,
                file_actions=[(os.POSIX_SPAWN_DUP2, stdin, 0), *((os.POSIX_SPAWN_DUP2, output, to) for to in (1, 2))],
                setsid=True,
                setsigdef=_SIGNALS_IGNORED_BY_PYTHON,
            )
        except OSError as error:
            if failure.errno in _MISSING_ERRORS:
                reason = _missing_interpreter(candidate) if error.errno == errno.ENOENT else ""
                failure = OSError(error.errno, reason or error.strerror, name)
    raise failure


def _missing_interpreter(candidate: str) -> str:
    """Return a message if a script's `#!` line names an interpreter that does not exist, otherwise an empty text."""
    try:
        with open(candidate, "rb") as script:
            line = script.readline(_SHEBANG_BYTES_MAX)
    except OSError:
        return ""
    interpreter = line[2:].strip(b" \t\n").partition(b" ")[0]
    if not line.startswith(b"#!") or os.path.exists(interpreter):
        return ""
    reason = f"its interpreter {os.fsdecode(interpreter)!r} does not exist"
    has_crlf = interpreter.endswith(b"\r")
    return f"{reason}: the script has CR LF line endings instead of LF" if has_crlf else reason


def _candidate_paths(name: str, environment: Mapping[str, str]) -> list[str]:
    """Return the paths at which the program may be, in the order of PATH.

    Directories without a file of this name are skipped, because each failed start is slow.
    """
    candidates = [os.path.join(directory, name) for directory in os.get_exec_path(environment)]
    return [candidate for candidate in candidates if not _is_missing(candidate)]


def _is_missing(path: str) -> bool:
    try:
        os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        return True
    except OSError:  # The start of the program reports this error.
        return False
    return False


def _children_before() -> frozenset[int]:
    """Return the process IDs of the live children of this process.

    Listing the children is expensive. So first, one system call checks that there are any children, live or dead.
    """
    return frozenset(_live_children()) if _has_children() else frozenset()


def _has_children() -> bool:
    """Return whether this process has any child, live or dead. The check is one system call."""
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return False
    return True


def _live_children(except_for: Set[int] = frozenset()) -> list[int]:
    """Return the live children of this process, except for those in `except_for`. Reap the dead ones."""
    live = []
    for pid in proc.child_pids(os.getpid()):
        if pid not in except_for:
            with contextlib.suppress(ChildProcessError):
                if os.waitpid(pid, os.WNOHANG)[0] == 0:
                    live.append(pid)
    return live


def _describe_failure(start: ProcessStart, error: OSError | ValueError) -> str:
    """Return the reason why a command did not start, as text for users."""
    if isinstance(error, OSError):
        return f"{os.fsdecode(error.filename or start.arguments[0])}: {error.strerror}"
    return f"{start.arguments[0]}: {error}"


def _open_pidfd(pid: int) -> int | None:
    try:
        return os.pidfd_open(pid)
    except (AttributeError, OSError):
        return None
