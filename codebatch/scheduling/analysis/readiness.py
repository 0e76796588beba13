"""Which project tasks wait for which: each counts the needs that are not settled yet.

What is touched is judged again when somebody asks, needs before what needs them. Only where a task begins or ceases to
be settled are those told that need it, so that each edge of the graph costs one step for each such change, however long
its chains and however many its ways.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Mapping, Sequence


class Readiness:
    """The project tasks of a plan, and which of them are settled: done, and made of what stands now."""

    def __init__(self, needs: Mapping[str, Sequence[str]]) -> None:
        """`needs`: each project task, in plan order, with the project tasks that it needs."""
        self._tasks = tuple(needs)
        self._places = {task: place for place, task in enumerate(needs)}
        self._waits_for = {task: len(set(needed)) for task, needed in needs.items()}
        self._needed_by: dict[str, list[str]] = {task: [] for task in needs}
        for task, needed in needs.items():
            for need in dict.fromkeys(needed):
                self._needed_by[need].append(task)
        self._settled: set[str] = set()
        self._heap: list[int] = []
        self._touched: set[int] = set()
        self._changed: set[int] = set()
        for task in needs:
            self.touch(task)

    def needed_by(self, task: str) -> Sequence[str]:
        """The project tasks that need one."""
        return self._needed_by[task]

    def touch(self, task: str) -> None:
        """Have a task judged again: something that it is judged by may have changed."""
        place = self._places[task]
        if place not in self._touched:
            self._touched.add(place)
            heapq.heappush(self._heap, place)

    def judge(self, is_settled: Callable[[str], bool]) -> None:
        """Judge what was touched. `is_settled` is asked only of tasks whose every need is settled."""
        while self._heap:
            place = heapq.heappop(self._heap)
            self._touched.discard(place)
            self._changed.add(place)
            task = self._tasks[place]
            settled = not self._waits_for[task] and is_settled(task)
            if settled == (task in self._settled):
                continue
            (self._settled.add if settled else self._settled.discard)(task)
            for other in self._needed_by[task]:
                self._waits_for[other] -= 1 if settled else -1
                self.touch(other)

    def is_next(self, task: str) -> bool:
        """Whether all project tasks that a task needs are settled, and it is not."""
        return not self._waits_for[task] and task not in self._settled

    def take_changed(self) -> list[str]:
        """The tasks that were judged since this was last asked, in plan order."""
        changed = [self._tasks[place] for place in sorted(self._changed)]
        self._changed.clear()
        return changed
