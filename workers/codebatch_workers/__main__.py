"""The entry point of workers, `python -m codebatch_workers`. Only coordinators start it.

There are two roles: a worker of an analysis, and a worker of a work batch. Each role imports its modules only when it
begins, because the other role does not need them.
"""

from __future__ import annotations

import atexit
import contextlib
import faulthandler
import gc
import os
import signal
import socket
import sys
from typing import NoReturn

from codebatch.errors import CodebatchError
from codebatch.protocol.launch import STACK_SIGNAL, WorkerLaunch, decode_launch
from codebatch.system.processes.environment import original_environment
from codebatch.system.processes.processes import die_with_parent, set_subreaper
from codebatch_workers.runtime.channel import CoordinatorChannel, CoordinatorLost, report_fatal_error

_STDERR_DESCRIPTOR = 2
# The time that third-party tasks get for finishing their threads and exit handlers, in seconds.
_FORCED_EXIT_SECONDS = 2.0


def main(arguments: list[str]) -> int:
    """Run one worker until it ends. Return its exit status."""
    gc.set_threshold(50_000, 20, 50)
    launch = decode_launch(arguments[0])
    if launch.store_lock is not None:
        # Only this process keeps the lock. A tool that a task starts must not inherit it.
        os.set_inheritable(launch.store_lock, False)
    # Tools that tasks start would inherit SIG_IGN, but exec(2) resets a handler.
    signal.signal(signal.SIGINT, _ignore_signal)
    faulthandler.enable()
    faulthandler.register(STACK_SIGNAL)
    channel = CoordinatorChannel(socket.socket(fileno=launch.channel))
    return _run_supervisor(launch, channel) if launch.role == "commands" else _run_worker(launch, channel)


def _run_worker(launch: WorkerLaunch, channel: CoordinatorChannel) -> int:
    die_with_parent(launch.parent)
    from codebatch_workers.runtime.worker import AnalysisWorker

    try:
        try:
            worker = AnalysisWorker(launch, channel, pid=os.getpid())
        except CodebatchError as error:
            report_fatal_error(channel, error)
            return error.exit_status
        gc.freeze()
        worker.run()
    except CoordinatorLost:
        _end_process()  # The coordinator has ended, so it cannot end this process if a thread of a task keeps it alive.
    finally:  # This process never waits for a thread that does not finish.
        with contextlib.suppress(RuntimeError):  # No thread could be started for it.
            faulthandler.dump_traceback_later(_FORCED_EXIT_SECONDS, exit=True, file=_STDERR_DESCRIPTOR)
    if worker.has_only_built_in_tasks:
        _end_process()
    return 0


def _run_supervisor(launch: WorkerLaunch, channel: CoordinatorChannel) -> int:
    """Run the worker of a work batch. It outlives the coordinator, because the command that it runs does."""
    from codebatch_workers.commands.supervisor import Supervisor

    set_subreaper(True)
    # A service manager sends SIGTERM to every process. The coordinator decides which of them must end.
    signal.signal(signal.SIGTERM, _ignore_signal)
    try:
        try:
            supervisor = Supervisor(launch, channel, pid=os.getpid(), environment=original_environment())
        except CodebatchError as error:
            report_fatal_error(channel, error)
            return error.exit_status
        gc.freeze()
        supervisor.run()
    except CoordinatorLost:
        pass
    return _end_process()


def _ignore_signal(*_: object) -> None:
    """Ignore a signal. Only the coordinator reacts to it."""


def _end_process() -> NoReturn:
    """End the process at once. This is faster than an orderly exit, because the kernel frees the memory.

    Threads are not waited for, and open files are not flushed. So built-in tasks must leave neither behind.
    """
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError, AttributeError):  # A task may have replaced the stream.
            stream.flush()
    os._exit(0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
