"""`python -m codebatch_workers`: started by a coordinator, never by hand."""

from __future__ import annotations

import faulthandler
import gc
import os
import signal
import socket
import sys

import msgspec

from codebatch.errors import CodebatchError
from codebatch.protocol.launch import STACK_SIGNAL, Launch
from codebatch.system.own_tasks import OWN_TASKS
from codebatch.system.processes import die_with_parent
from codebatch_workers.channel import Channel, CoordinatorGone
from codebatch_workers.worker import Worker, give_up


def main(arguments: list[str]) -> int:
    """Run one worker to its end."""
    launch = msgspec.json.decode(arguments[0], type=Launch)
    die_with_parent(launch.parent)
    OWN_TASKS.use(launch.own_tasks)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    faulthandler.enable()
    faulthandler.register(STACK_SIGNAL)
    gc.set_threshold(50_000, 20, 50)
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


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
