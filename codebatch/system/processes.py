"""Processes: starting a worker, and making sure that nothing outlives what it works for."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import subprocess
import sys
from pathlib import Path

_PR_SET_PDEATHSIG = 1


def die_with_parent(parent: int) -> None:
    """Have the kernel kill this process when the thread that started it ends (prctl(2), Linux); elsewhere do nothing.

    The parent may have died before the call took effect, so its pid is compared afterwards.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        os._exit(0)


def start_process(
    arguments: list[str], *, cwd: Path, environment: dict[str, str], channel: int, stderr: int
) -> subprocess.Popen[bytes]:
    """Start a process in a session of its own, so that a terminal's Ctrl-C does not reach it.

    Must be called from the main thread: the kernel ties the death signal to the thread.
    """
    return subprocess.Popen(
        arguments,
        cwd=cwd,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=stderr,
        stderr=stderr,
        pass_fds=(channel,),
        start_new_session=True,
    )


def open_descriptors() -> int:
    """How many file descriptors this process has open; 0 where the system does not tell."""
    for directory in ("/proc/self/fd", "/dev/fd"):
        with contextlib.suppress(OSError):
            return len(os.listdir(directory))
    return 0


def kill_group(process: subprocess.Popen[bytes], signal_number: int = signal.SIGKILL) -> None:
    """Signal a process started by `start_process` and whatever it left behind in its group."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal_number)


def describe_end(returncode: int) -> str:
    """How a process ended, for people: `exit status 3`, `killed by SIGSEGV`."""
    if returncode >= 0:
        return f"exit status {returncode}"
    try:
        return f"killed by {signal.Signals(-returncode).name}"
    except ValueError:
        return f"killed by signal {-returncode}"
