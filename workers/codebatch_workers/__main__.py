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
from typing import NoReturn


def main(arguments: list[str]) -> int:
    """Run one worker to its end."""
    gc.set_threshold(50_000, 20, 50)
    import socket

    from codebatch.errors import CodebatchError
    from codebatch.protocol.launch import STACK_SIGNAL, decode_launch
    from codebatch.system.processes import die_with_parent
    from codebatch_workers.runtime.channel import Channel, CoordinatorGone
    from codebatch_workers.runtime.worker import Worker, give_up

    launch = decode_launch(arguments[0])
    die_with_parent(launch.parent)
    if launch.store_lock is not None:
        os.set_inheritable(launch.store_lock, False)  # Ours until we end, and of no tool that a task starts.
    # Not SIG_IGN: that is what the tools would inherit that tasks start, and exec(2) resets a handler.
    signal.signal(signal.SIGINT, _pass)
    faulthandler.enable()
    faulthandler.register(STACK_SIGNAL)
    channel = Channel(socket.socket(fileno=launch.channel))
    try:
        try:
            worker = Worker(launch, channel, pid=os.getpid())
        except CodebatchError as error:
            give_up(channel, error)
            return error.exit_status
        gc.freeze()
        worker.run()
    except CoordinatorGone:
        return 0
    return 0


def _pass(*_: object) -> None:
    """Ctrl-C is the coordinator's to hear."""


def _end(status: int) -> NoReturn:
    """End the process as `sys.exit` does, but for freeing its memory, which the kernel does faster: it is 25 ms."""
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError, AttributeError):  # A task may have replaced it.
            stream.flush()
    os._exit(status)


if __name__ == "__main__":
    _end(main(sys.argv[1:]))
