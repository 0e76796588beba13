"""`python -m codebatch_workers`: started by a coordinator, never by hand.

What is imported here comes before anything that takes time: while modules are made there is no garbage to collect.
"""

from __future__ import annotations

import atexit
import contextlib
import faulthandler
import gc
import os
import signal
import sys
from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    from codebatch.protocol.launch import Launch
    from codebatch_workers.runtime.channel import Channel

_STDERR = 2
# How long tasks of others have for their threads and all else that is to be done at the end.
_EXIT_SECONDS = 2.0


def main(arguments: list[str]) -> int:
    """Run one worker to its end."""
    gc.set_threshold(50_000, 20, 50)
    import socket

    from codebatch.protocol.launch import STACK_SIGNAL, decode_launch
    from codebatch_workers.runtime.channel import Channel

    launch = decode_launch(arguments[0])
    if launch.store_lock is not None:
        os.set_inheritable(launch.store_lock, False)  # Ours until we end, and of no tool that a task starts.
    # Not SIG_IGN: that is what the tools would inherit that tasks start, and exec(2) resets a handler.
    signal.signal(signal.SIGINT, _pass)
    faulthandler.enable()
    faulthandler.register(STACK_SIGNAL)
    channel = Channel(socket.socket(fileno=launch.channel))
    return _supervise(launch, channel) if launch.role == "commands" else _work(launch, channel)


def _work(launch: Launch, channel: Channel) -> int:
    from codebatch.system.processes.processes import die_with_parent

    die_with_parent(launch.parent)
    from codebatch.errors import CodebatchError
    from codebatch_workers.runtime.channel import CoordinatorGone, give_up
    from codebatch_workers.runtime.worker import Worker

    try:
        try:
            worker = Worker(launch, channel, pid=os.getpid())
        except CodebatchError as error:
            give_up(channel, error)
            return error.exit_status
        gc.freeze()
        worker.run()
    except CoordinatorGone:
        _end()  # Nobody is left who would end us where a task's thread goes on.
    finally:  # However we end, a thread that never does is not waited for.
        with contextlib.suppress(RuntimeError):  # There is no thread to be had for it.
            faulthandler.dump_traceback_later(_EXIT_SECONDS, exit=True, file=_STDERR)
    if worker.has_built_in_tasks_alone:
        _end()
    return 0


def _supervise(launch: Launch, channel: Channel) -> int:
    """What runs outlives the coordinator, and so do we."""
    from codebatch.errors import CodebatchError
    from codebatch.system.processes.environment import given_environment
    from codebatch.system.processes.processes import be_subreaper
    from codebatch_workers.commands.supervisor import Supervisor
    from codebatch_workers.runtime.channel import CoordinatorGone, give_up

    be_subreaper(True)
    signal.signal(signal.SIGTERM, _pass)  # A service manager sends it to all: the coordinator decides what ends.
    try:
        try:
            supervisor = Supervisor(launch, channel, pid=os.getpid(), environment=given_environment())
        except CodebatchError as error:
            give_up(channel, error)
            return error.exit_status
        gc.freeze()
        supervisor.run()
    except CoordinatorGone:
        pass
    return _end()


def _pass(*_: object) -> None:
    """Handle a signal that is the coordinator's to hear."""


def _end() -> NoReturn:
    """End the process at once: the kernel frees its memory faster, by 25 ms.

    Threads are not waited for, files of whoever leaves them open not flushed: so no built-in task leaves any.
    """
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError, AttributeError):  # A task may have replaced it.
            stream.flush()
    os._exit(0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
