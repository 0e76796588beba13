"""Processes: starting a worker, and making sure that nothing outlives what it works for."""

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
from collections.abc import Collection, Sequence
from pathlib import Path

from codebatch.system.files.os_errors import starting_process
from codebatch.system.processes.proc import has_open

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_CLOSE_RANGE_CLOEXEC = 4
_GENERATIONS_MAX = 100
REAP_SECONDS = 5.0


def die_with_parent(parent: int) -> None:
    """Have the kernel kill this process when the thread that started it ends (prctl(2), Linux); elsewhere do nothing.

    The parent may have died before the call took effect, so its pid is compared afterwards.
    """
    if sys.platform == "linux":
        _libc().prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        os._exit(0)


class Orphans:
    """What our descendants leave behind as they die, detached as it may be and without a mark in its environment.

    The kernel makes it our child (prctl(2), Linux), for us to reap, and to kill. Children that we had before are not
    ours to touch: a shell may have started them and become us. Elsewhere, and without /proc, there are none; nor in
    another thread than the main one, whose own children, of which we know nothing, are found where orphans are.
    """

    def __init__(self) -> None:
        self._is_here = threading.current_thread() is threading.main_thread()
        self._before = _children()
        if self._is_here:
            be_subreaper(True)

    def reap(self, ours: Collection[int]) -> None:
        """Reap those that ended. `ours` are processes that somebody else waits for."""
        with contextlib.suppress(ChildProcessError):
            for pid in self._left() - set(ours):
                os.waitpid(pid, os.WNOHANG)

    def end(self) -> None:
        """Kill those that are left, and what these leave in turn; adopt no more. Nobody else of ours may be alive."""
        self._kill()
        if self._is_here:
            be_subreaper(False)

    def _left(self) -> set[int]:
        return _children() - self._before if self._is_here else set()

    def _kill(self) -> None:
        for _ in range(_GENERATIONS_MAX):
            left = self._left()
            if not left:
                return
            for pid in left:
                with contextlib.suppress(ProcessLookupError, PermissionError, ChildProcessError):
                    os.kill(pid, signal.SIGKILL)
                    os.waitpid(pid, 0)


def be_subreaper(is_one: bool) -> None:
    """Have what our descendants leave behind become our children (prctl(2), Linux), or not any more."""
    if sys.platform == "linux":
        _libc().prctl(_PR_SET_CHILD_SUBREAPER, int(is_one), 0, 0, 0)


def bequeath_no_descriptors() -> None:
    """Have no program that we start from now on inherit a descriptor above 2 that we have now (close_range(2))."""
    libc = _libc()
    # glibc has it from 2.34 on.
    if not hasattr(libc, "close_range") or libc.close_range(3, 0xFFFFFFFF, _CLOSE_RANGE_CLOEXEC) != 0:
        for name in os.listdir("/dev/fd"):
            with contextlib.suppress(OSError):  # The listing's own.
                os.set_inheritable(int(name), int(name) <= 2)


@functools.cache
def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def _children() -> set[int]:
    try:
        return set(map(int, Path(f"/proc/self/task/{os.getpid()}/children").read_bytes().split()))
    except OSError:
        return set()


def start_process(
    arguments: list[str], *, cwd: Path, environment: dict[str, str], inherited: Sequence[int], stderr: int
) -> subprocess.Popen[bytes]:
    """Start a process in a session of its own, so that a terminal's Ctrl-C does not reach it.

    Of our descriptors it gets those that are `inherited`, by their numbers.
    The calling thread must outlive it: the kernel ties the death signal to the thread. Raises ProcessRefused.
    """
    with starting_process():
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
    """Whether a process has ended. It stays unreaped, so that its id, and its group's, cannot be given to another."""
    if not hasattr(os, "waitid"):  # macOS before Python 3.13
        return process.poll() is not None
    return is_dead_child(process.pid)


def is_dead_child(pid: int) -> bool:
    """Whether a child of ours has ended. It stays unreaped."""
    return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


def reap(process: subprocess.Popen[bytes]) -> int:
    """Wait for a process that was killed, set its `returncode`, and return the most memory that it had resident, in
    bytes: wait4(2).

    On Linux a child starts from the peak of its parent, so the figure is never below that. A process that is traced
    stays a zombie until its tracer ends or detaches (ptrace(2)). After REAP_SECONDS it counts as killed.
    """
    if process.returncode is not None:
        return 0
    deadline = time.monotonic() + REAP_SECONDS
    while not (found := os.wait4(process.pid, os.WNOHANG))[0]:
        if time.monotonic() > deadline:
            process.returncode = -signal.SIGKILL
            return 0
        time.sleep(0.001)
    _, status, usage = found
    process.returncode = os.waitstatus_to_exitcode(status)
    return usage.ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def kill_group(process: subprocess.Popen[bytes], signal_number: int = signal.SIGKILL) -> None:
    """Signal a process started by `start_process` and whatever it left behind in its group."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal_number)


def kill_holder(pid: int, file: Path) -> bool:
    """Kill the process that has the file of a holder open, in whatever namespace its id was told; whether it was there.

    Another process of that id has not. Linux alone.
    """
    if sys.platform != "linux":
        return False
    try:
        process = os.pidfd_open(pid)
    except OSError:
        return False
    try:
        if not has_open(pid, file):
            return False
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(process, signal.SIGKILL)
        return True
    finally:
        os.close(process)


def describe_end(returncode: int) -> str:
    """How a process ended, for people: `exit status 3`, `killed by SIGSEGV`."""
    if returncode >= 0:
        return f"exit status {returncode}"
    try:
        return f"killed by {signal.Signals(-returncode).name}"
    except ValueError:
        return f"killed by signal {-returncode}"
