"""Waiting for processes of engines."""

from __future__ import annotations

import time
from collections.abc import Callable

import psutil

from codebatch.coordinator.engines.interface import Engine, EngineReply, RunPart

START_SECONDS = 120.0
_SECONDS_TRIED = (1, 10, 100)


def wait_for_slots(engine: Engine, count: int) -> None:
    """Wait until an engine has exactly `count` slots."""
    wait_until(lambda: engine.slots() == count)


def call_until_a_process_replies(engine: Engine, function: RunPart, argument: bytes) -> tuple[float, list[EngineReply]]:
    """Call a function in all processes with longer and longer time limits, until one replies in time.

    Return the limit, and the replies.
    """
    for seconds in _SECONDS_TRIED:
        replies = engine.call_everywhere(function, argument, seconds)
        if any(reply.answer is not None for reply in replies):
            return seconds, replies
    raise AssertionError(f"no process replied within {_SECONDS_TRIED[-1]} s")


def wait_until(condition: Callable[[], object], seconds: float = START_SECONDS) -> None:
    """Wait until a condition is true."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "the condition did not become true in time"
        time.sleep(0.02)


def process_is_running(pid: int) -> bool:
    """Return whether a process exists and has not ended."""
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
