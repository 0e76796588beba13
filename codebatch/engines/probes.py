"""Calls of a function in each process of an engine whose executor cannot choose a process."""

from __future__ import annotations

import os
import socket
import time
from concurrent.futures import Executor, wait

import msgspec

from codebatch.coordinator.engines.foreign_objects import describe_error
from codebatch.coordinator.engines.interface import EngineReply, RunPart

UNKNOWN_PROCESS = "unknown process"

_CALLS_PER_PROCESS = 2
_PAUSE_SECONDS = 0.1
_PAUSE_SECONDS_MAX = 2.0


def call_each_process(
    executor: Executor, slots: int, function: RunPart, argument: bytes, seconds: float
) -> list[EngineReply]:
    """Call a function in each of the `slots` processes, and return one reply per process, sorted by process.

    The executor decides where a call is executed. So the function is called twice per missing process, until all have
    replied. After each call, its process is busy for a while, so that other processes get the other calls. These
    pauses become longer. If a call fails outside of the function, or if processes have not replied within `seconds`,
    one more reply has the error.
    """
    deadline = time.monotonic() + seconds
    replies: dict[str, EngineReply] = {}
    failures: list[str] = []
    pause = _PAUSE_SECONDS
    while len(replies) < slots and time.monotonic() < deadline and not failures:
        calls = [
            executor.submit(probe_process, function, argument, pause)
            for _ in range(_CALLS_PER_PROCESS * (slots - len(replies)))
        ]
        done, late = wait(calls, timeout=max(0.0, deadline - time.monotonic()))
        for call in late:
            call.cancel()
        for call in done:
            try:
                reply = msgspec.msgpack.decode(call.result(), type=EngineReply)
            except Exception as error:
                failures.append(describe_error(error))
            else:
                replies.setdefault(reply.process, reply)
        pause = min(2 * pause, _PAUSE_SECONDS_MAX)
    if failures or len(replies) < slots:
        problem = failures[0] if failures else f"{slots - len(replies)} of {slots} did not reply within {seconds:g} s"
        replies[UNKNOWN_PROCESS] = EngineReply(process=UNKNOWN_PROCESS, error=problem)
    return [replies[process] for process in sorted(replies)]


def probe_process(function: RunPart, argument: bytes, pause: float) -> bytes:
    """Call a function in a process of an engine, and return the encoded reply of this process after a pause."""
    process = f"{socket.gethostname()}:{os.getpid()}"
    try:
        reply = EngineReply(process=process, answer=function(argument))
    except Exception as error:
        reply = EngineReply(process=process, error=describe_error(error))
    time.sleep(pause)
    return msgspec.msgpack.encode(reply)
