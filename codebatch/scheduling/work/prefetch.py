"""Prefetching: commands are queued at a worker, which begins them one after another without a round trip.

This saves most of the overhead of short commands. While the commands of a worker end quickly, its queue may become
longer. If a command takes long, its worker returns the queued commands, so that other workers can run them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from codebatch.scheduling.events import WorkerId
from codebatch.scheduling.work.events import StartCommand

PREFETCHED_COMMANDS_MAX = 16


class PrefetchedCommands:
    """The commands that are queued at workers. As far as the conductor knows, the workers have not begun them."""

    def __init__(self) -> None:
        self._queues: dict[WorkerId, deque[StartCommand]] = {}
        self._begun_starts: dict[WorkerId, int] = {}
        self._queued: set[int] = set()
        self._length = 1

    def __contains__(self, item: int) -> bool:
        """Return whether an item is queued at a worker."""
        return item in self._queued

    @property
    def busy_workers(self) -> list[WorkerId]:
        """The workers with queued commands, sorted."""
        return sorted(worker for worker, behind in self._queues.items() if behind)

    @property
    def queued_starts(self) -> list[StartCommand]:
        """The StartCommand actions of the queued commands. The workers may have begun some of them by now."""
        return [start for worker in self.busy_workers for start in self._queues[worker]]

    def assignment_length(self, waiting: int, slots: int) -> int:
        """Return the number of commands to assign at once to a worker, including the one that it begins now.

        It is at most the number of `waiting` commands divided by the number of slots, rounded up.
        """
        return min(self._length, max(1, -(-waiting // max(1, slots))))

    def begin_assignment(self, worker: WorkerId, behind: Iterable[StartCommand]) -> None:
        """Record that a worker got a command, with further commands queued behind it."""
        self._queues[worker] = deque(behind)
        self._begun_starts[worker] = 1
        self._queued.update(start.item for start in self._queues[worker])

    def next_start(self, worker: WorkerId) -> StartCommand | None:
        """Return the next start that is queued at a worker, or None."""
        behind = self._queues.get(worker)
        return behind[0] if behind else None

    def advance_worker(self, worker: WorkerId) -> StartCommand:
        """Record that a worker has begun the next command of its queue. Return the start of this command."""
        start = self._queues[worker].popleft()
        self._begun_starts[worker] += 1
        self._queued.discard(start.item)
        return start

    def take_back(self, worker: WorkerId, count: int) -> list[int]:
        """Record that a worker returned the last `count` commands of its queue. Return their items.

        From now on, queues are limited to the number of commands that this worker began before its current one.
        """
        behind = self._queues[worker]
        assert count <= len(behind), "more came back than was given"
        self._length = max(1, self._begun_starts[worker] + len(behind) - count - 1)
        items = [behind.pop().item for _ in range(count)]
        self._queued.difference_update(items)
        self._begun_starts[worker] = 0
        return items

    def end_assignment(self, worker: WorkerId, *, is_well: bool) -> list[int]:
        """Record that a worker is idle or dead. Return the queued items that it did not begin.

        `is_well` is set if the worker is alive. If it has begun all queued commands, later queues may be twice as long.
        """
        behind, begun = self._queues.pop(worker, ()), self._begun_starts.pop(worker, 0)
        if is_well and not behind:
            self._length = min(PREFETCHED_COMMANDS_MAX, max(self._length, 2 * begun))
        items = [start.item for start in behind]
        self._queued.difference_update(items)
        return items
