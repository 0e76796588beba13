"""Starting of workers, and killing of the processes that they leave behind."""

from __future__ import annotations

import contextlib
import ctypes
import functools
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path

from codebatch.system.files.os_errors import translating_start_errors
from codebatch.system.processes.proc import has_file_open

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_PR_GET_CHILD_SUBREAPER = 37
_CLOSE_RANGE_CLOEXEC = 4
_GENERATIONS_MAX = 100
REAP_SECONDS = 5.0


def die_with_parent(parent: int) -> None:
    """Let the kernel kill this process when the thread that started it ends (prctl(2), Linux only).

    If the parent has died before this call, the kernel does nothing. So afterwards, the pid of the parent is compared
    with `parent`. If it differs, this process ends.
    """
    if sys.platform == "linux":
        _load_libc().prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        os._exit(0)


class OrphanReaper:
    """The orphaned descendants of this process: those whose parent has died.

    They are found without a mark in their environment, and in any session.

    The kernel makes orphans children of this process (prctl(2), Linux), so that it can reap and kill them. Children
    that existed before this object was created are excluded: they may belong to a shell that became this process by
    exec.

    On other systems, and without /proc, no orphans are found. In threads other than the main thread, none are found
    either, because children that the thread itself started could not be distinguished.
    """

    def __init__(self) -> None:
        self._is_main_thread = threading.current_thread() is threading.main_thread()
        self._earlier_children = _child_pids()
        self._was_subreaper = _is_subreaper()
        if self._is_main_thread:
            set_subreaper(True)

    def reap_ended(self, own_children: Collection[int]) -> None:
        """Reap orphans that have ended. `own_children` are the pids of children that other code reaps."""
        with contextlib.suppress(ChildProcessError):
            for pid in self._orphan_pids() - set(own_children):
                os.waitpid(pid, os.WNOHANG)

    def kill_all(self) -> None:
        """Kill all orphans, and the orphans that a killed orphan leaves. Then adopt orphans only if this was so before.

        When this is called, no child may be alive that is not an orphan.
        """
        self._kill_orphans()
        if self._is_main_thread and not self._was_subreaper:
            set_subreaper(False)

    def _orphan_pids(self) -> set[int]:
        return _child_pids() - self._earlier_children if self._is_main_thread else set()

    def _kill_orphans(self) -> None:
        for _ in range(_GENERATIONS_MAX):
            orphans = self._orphan_pids()
            if not orphans:
                return
            for pid in orphans:
                with contextlib.suppress(ProcessLookupError, PermissionError, ChildProcessError):
                    os.kill(pid, signal.SIGKILL)
                    os.waitpid(pid, 0)


@contextlib.contextmanager
def killing_orphans() -> Iterator[None]:
    """At the end of the `with`, kill all processes that programs started inside of it have left behind.

    They are found as by OrphanReaper. So processes that this process itself starts inside must have ended, and in other
    threads than the main one none are found.
    """
    orphans = OrphanReaper()
    try:
        yield
    finally:
        orphans.kill_all()


def set_subreaper(is_enabled: bool) -> None:
    """Make this process the parent of its orphaned descendants, or stop doing so (prctl(2), Linux)."""
    if sys.platform == "linux":
        _load_libc().prctl(_PR_SET_CHILD_SUBREAPER, int(is_enabled), 0, 0, 0)


def _is_subreaper() -> bool:
    """Return whether this process is the parent of its orphaned descendants."""
    if sys.platform != "linux":
        return False
    state = ctypes.c_int()
    _load_libc().prctl(_PR_GET_CHILD_SUBREAPER, ctypes.byref(state), 0, 0, 0)
    return state.value != 0


def close_descriptors_on_exec() -> None:
    """Mark all open descriptors above 2 close-on-exec, so that programs do not inherit them (close_range(2))."""
    libc = _load_libc()
    # glibc has close_range since 2.34.
    if not hasattr(libc, "close_range") or libc.close_range(3, 0xFFFFFFFF, _CLOSE_RANGE_CLOEXEC) != 0:
        for name in os.listdir("/dev/fd"):
            with contextlib.suppress(OSError):  # The descriptor of the listing is already closed.
                os.set_inheritable(int(name), int(name) <= 2)


@functools.cache
def _load_libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def _child_pids() -> set[int]:
    try:
        return set(map(int, Path(f"/proc/self/task/{os.getpid()}/children").read_bytes().split()))
    except OSError:
        return set()


def start_process(
    arguments: list[str], *, cwd: Path, environment: dict[str, str], inherited: Sequence[int], stderr: int
) -> subprocess.Popen[bytes]:
    """Start a process in its own session, so that Ctrl-C in a terminal does not reach it. Raises ProcessRefused.

    The process gets only the descriptors in `inherited`, with the same numbers. The calling thread must live longer
    than the process: if the process calls `die_with_parent`, the kernel kills it when this thread ends.
    """
    with translating_start_errors():
        return subprocess.Popen(
            arguments,
            cwd=cwd,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=stderr,
            stderr=stderr,
            pass_fds=inherited,
            start_new_session=True,
        )


def has_ended(process: subprocess.Popen[bytes]) -> bool:
    """Return whether a process has ended, without reaping it. So its pid and process group ID are not used again."""
    if not hasattr(os, "waitid"):  # macOS before Python 3.13 has no waitid.
        return process.poll() is not None
    return is_dead_child(process.pid)


def is_dead_child(pid: int) -> bool:
    """Return whether a child of this process has ended, without reaping it."""
    return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


def reap_killed(process: subprocess.Popen[bytes]) -> int:
    """Wait for a killed process and set its `returncode`. Return its peak resident memory in bytes: wait4(2).

    On Linux the peak of a child starts at the peak of its parent, so the value is never below the parent's peak. If
    another process traces the killed process (ptrace(2)), it cannot be reaped until the tracer ends or detaches. So
    after REAP_SECONDS, set `returncode` without reaping it, and return 0.
    """
    if process.returncode is not None:
        return 0
    deadline = time.monotonic() + REAP_SECONDS
    while not (result := os.wait4(process.pid, os.WNOHANG))[0]:
        if time.monotonic() > deadline:
            process.returncode = -signal.SIGKILL
            return 0
        time.sleep(0.001)
    _, status, usage = result
    process.returncode = os.waitstatus_to_exitcode(status)
    return usage.ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def kill_group(process: subprocess.Popen[bytes], signal_number: int = signal.SIGKILL) -> None:
    """Send a signal to the process group of a process that `start_process` started."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal_number)


def kill_holder(pid: int, file: Path) -> bool:
    """Kill the process with the pid `pid` if it has the holder file `file` open. Return whether it was killed.

    The pid may come from another PID namespace, so a different process may have this pid here. That process does not
    have the file open. Works only on Linux.
    """
    if sys.platform != "linux":
        return False
    try:
        process = os.pidfd_open(pid)
    except OSError:
        return False
    try:
        if not has_file_open(pid, file):
            return False
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(process, signal.SIGKILL)
        return True
    finally:
        os.close(process)


def describe_end(returncode: int) -> str:
    """Describe the end of a process for people: `exit status 3`, `killed by SIGSEGV`."""
    if returncode >= 0:
        return f"exit status {returncode}"
    name = signal_name(-returncode)
    return f"killed by {'signal ' if name.isdigit() else ''}{name}"


def signal_name(number: int) -> str:
    """Return the name of a signal: `SIGTERM`. Most real-time signals have none; for these, return the number: `35`."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return str(number)
