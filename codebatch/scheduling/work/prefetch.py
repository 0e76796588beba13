"""Runs: commands that a worker is given at once, to be begun one after the other without a word between.

That spares most of what a short command costs besides itself. A run grows while its commands are over at once, and is
one command where they are not: so nobody waits behind a long one for more than a worker takes to see that it is long.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from codebatch.scheduling.events import WorkerId
from codebatch.scheduling.work.events import StartCommand

RUN_COMMANDS_MAX = 16


class PrefetchedCommands:
    """What workers were given at once and have not begun, as far as is known."""

    def __init__(self) -> None:
        self._behind: dict[WorkerId, deque[StartCommand]] = {}
        self._begun: dict[WorkerId, int] = {}
        self._promised: set[int] = set()
        self._length = 1

    def __contains__(self, item: int) -> bool:
        """Whether an item is given to a worker that has not begun it."""
        return item in self._promised

    @property
    def workers(self) -> list[WorkerId]:
        """Those that have something before them."""
        return sorted(worker for worker, behind in self._behind.items() if behind)

    @property
    def promised(self) -> list[StartCommand]:
        """What workers have before them, and may have begun by now."""
        return [start for worker in self.workers for start in self._behind[worker]]

    def length(self, waiting: int, slots: int) -> int:
        """How many may be given at once where so many wait for so many slots: to each its share."""
        return min(self._length, max(1, -(-waiting // max(1, slots))))

    def begin(self, worker: WorkerId, behind: Iterable[StartCommand]) -> None:
        """A worker is given a command, and some behind it."""
        self._behind[worker] = deque(behind)
        self._begun[worker] = 1
        self._promised.update(start.item for start in self._behind[worker])

    def next(self, worker: WorkerId) -> StartCommand | None:
        """What a worker begins next by itself."""
        behind = self._behind.get(worker)
        return behind[0] if behind else None

    def go_on(self, worker: WorkerId) -> StartCommand:
        """It has begun that."""
        start = self._behind[worker].popleft()
        self._begun[worker] += 1
        self._promised.discard(start.item)
        return start

    def give_back(self, worker: WorkerId, count: int) -> list[int]:
        """It does not begin the last `count`; returns these. The next runs are as long as this one was."""
        behind = self._behind[worker]
        assert count <= len(behind), "more came back than was given"
        self._length = max(1, self._begun[worker] + len(behind) - count - 1)
        items = [behind.pop().item for _ in range(count)]
        self._promised.difference_update(items)
        self._begun[worker] = 0
        return items

    def end(self, worker: WorkerId, *, is_well: bool) -> list[int]:
        """It is through, or dead; returns what it did not begin. Where all went well and fast the next is longer."""
        behind, begun = self._behind.pop(worker, ()), self._begun.pop(worker, 0)
        if is_well and not behind:
            self._length = min(RUN_COMMANDS_MAX, max(self._length, 2 * begun))
        items = [start.item for start in behind]
        self._promised.difference_update(items)
        return items
