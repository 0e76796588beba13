"""Workers that are forked from their coordinator, which has already imported the modules that workers need.

Imports are most of the time of a small run. A forked worker has its own session, environment, directory and
descriptors, and is killed and reaped like any process. But its interpreter is not initialized again, and it starts with
a copy of the coordinator's memory. Tests that depend on these start real workers: tests of commands that run in the
background, tests that set a hash seed or another variable of Python, and the tests of every command line in README and
the help pages.
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import json
import os
import signal
import subprocess
import sys
import threading
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from codebatch.coordinator.processes import workers
from codebatch.protocol.launch import WORKER_MODULE
from codebatch.system.processes.processes import start_process


def fork_workers() -> None:
    """Fork every worker that this process starts from now on."""
    vars(workers)["start_process"] = _start


class _Forked(subprocess.Popen[bytes]):
    """A Popen object for a child that `subprocess` did not start."""

    def __init__(self, arguments: list[str], pid: int) -> None:
        self.args, self.pid, self.returncode = arguments, pid, None
        self.stdin = self.stdout = self.stderr = None
        self._waitpid_lock = threading.Lock()
        self._child_created = True


def _start(
    arguments: list[str], *, cwd: Path, environment: dict[str, str], inherited: Sequence[int], stderr: int
) -> subprocess.Popen[bytes]:
    if environment.get("PYTHONHASHSEED") != "0":
        return start_process(arguments, cwd=cwd, environment=environment, inherited=inherited, stderr=stderr)
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        _become(arguments, cwd, environment, inherited, stderr)
    os.close(write)
    with open(read, "rb") as begun:
        # The pipe ends when the child has its own session and has closed all other descriptors.
        begun.read()
    return _Forked(arguments, pid)


def _become(
    arguments: list[str], cwd: Path, environment: dict[str, str], inherited: Sequence[int], stderr: int
) -> NoReturn:
    try:
        gc.freeze()
        os.setsid()
        signal.set_wakeup_fd(-1)
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            if signal.getsignal(number) is not signal.SIG_IGN:
                signal.signal(number, signal.SIG_DFL)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(stderr, 1)
        os.dup2(stderr, 2)
        _close_all_but({0, 1, 2, *inherited})
        atexit._clear()
        os.chdir(cwd)
        # The launcher of processes does the same.
        module = arguments.index(WORKER_MODULE)
        settings = json.loads(arguments[module + 1])
        os.environ.clear()
        os.environ.update(environment | settings["environment"])
        sys.path[:] = settings["path"]
        sys.argv[:] = [WORKER_MODULE, *arguments[module + 2 :]]

        from codebatch_workers.__main__ import main

        status = main(sys.argv[1:])
        atexit._run_exitfuncs()
        os._exit(status)
    except SystemExit as end:
        os._exit(end.code if isinstance(end.code, int) else 1)
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(1)


def _close_all_but(kept: set[int]) -> None:
    for name in os.listdir("/proc/self/fd"):
        if int(name) not in kept:
            with contextlib.suppress(OSError):  # The descriptor of the listing itself is already closed.
                os.close(int(name))
