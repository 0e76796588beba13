"""The length of the queues at workers: it follows the number of commands that a worker begins before a slow one."""

from __future__ import annotations

from codebatch.scheduling.events import WorkerId
from codebatch.scheduling.work.events import StartCommand
from codebatch.scheduling.work.prefetch import PREFETCHED_COMMANDS_MAX, PrefetchedCommands

_WORKER = WorkerId(1)


def _start(item: int) -> StartCommand:
    return StartCommand(item=item, worker=_WORKER, round=1, epoch=1, requests=0, failed_tries=0)


def _end_with(prefetched: PrefetchedCommands, length: int) -> int:
    """Have the worker begin and end an assignment. Return the length of the next one."""
    prefetched.begin_assignment(_WORKER, [_start(item) for item in range(1, length)])
    for _ in range(1, length):
        prefetched.advance_worker(_WORKER)
    assert prefetched.end_assignment(_WORKER, is_well=True) == []
    return prefetched.assignment_length(waiting=1000, slots=1)


def test_queues_become_twice_as_long_while_commands_end_quickly() -> None:
    prefetched = PrefetchedCommands()
    lengths = [prefetched.assignment_length(waiting=1000, slots=1)]
    for _ in range(6):
        lengths.append(_end_with(prefetched, lengths[-1]))
    assert lengths == [1, 2, 4, 8, PREFETCHED_COMMANDS_MAX, PREFETCHED_COMMANDS_MAX, PREFETCHED_COMMANDS_MAX]
    assert prefetched.assignment_length(waiting=9, slots=4) == 3
    assert prefetched.assignment_length(waiting=0, slots=0) == 1


def test_returned_commands_limit_later_queues() -> None:
    prefetched = PrefetchedCommands()
    prefetched.begin_assignment(_WORKER, [_start(item) for item in range(1, 6)])
    prefetched.advance_worker(_WORKER)
    prefetched.advance_worker(_WORKER)
    assert prefetched.take_back(_WORKER, 3) == [5, 4, 3]
    assert prefetched.end_assignment(_WORKER, is_well=True) == []
    assert prefetched.assignment_length(waiting=1000, slots=1) == 2, "it began two commands before the slow one"
