"""Dependency counting of project tasks: for each task, the number of needed tasks that are not settled.

If a task becomes settled or unsettled, the tasks that need it are marked. The next query evaluates all marked tasks in
plan order, so each task comes after those that it needs. A change therefore costs one step for each edge, however many
paths the graph has.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Mapping, Sequence


class TaskReadiness:
    """The project tasks of a plan. A task is settled if it was executed with its present inputs."""

    def __init__(self, needs: Mapping[str, Sequence[str]]) -> None:
        """Start with all tasks marked for evaluation.

        `needs` maps each project task, in plan order, to the project tasks that it needs.
        """
        self._tasks = tuple(needs)
        self._places = {task: place for place, task in enumerate(needs)}
        self._waits_for = {task: len(set(needed)) for task, needed in needs.items()}
        self._needed_by: dict[str, list[str]] = {task: [] for task in needs}
        for task, needed in needs.items():
            for need in dict.fromkeys(needed):
                self._needed_by[need].append(task)
        self._settled: set[str] = set()
        self._heap: list[int] = []
        self._changed_tasks: set[int] = set()
        self._changed: set[int] = set()
        for task in needs:
            self.mark_changed(task)

    def needed_by(self, task: str) -> Sequence[str]:
        """Return the project tasks that need a task."""
        return self._needed_by[task]

    def mark_changed(self, task: str) -> None:
        """Mark a task so that the next `update` evaluates it again."""
        place = self._places[task]
        if place not in self._changed_tasks:
            self._changed_tasks.add(place)
            heapq.heappush(self._heap, place)

    def update(self, is_settled: Callable[[str], bool]) -> None:
        """Evaluate all marked tasks again.

        `is_settled` is called only for a task whose needed tasks are all settled.
        """
        while self._heap:
            place = heapq.heappop(self._heap)
            self._changed_tasks.discard(place)
            self._changed.add(place)
            task = self._tasks[place]
            settled = not self._waits_for[task] and is_settled(task)
            if settled == (task in self._settled):
                continue
            (self._settled.add if settled else self._settled.discard)(task)
            for other in self._needed_by[task]:
                self._waits_for[other] -= 1 if settled else -1
                self.mark_changed(other)

    def is_next(self, task: str) -> bool:
        """Return whether a task is not settled while all project tasks that it needs are settled."""
        return not self._waits_for[task] and task not in self._settled

    def take_changed(self) -> list[str]:
        """Return the tasks that were evaluated again since the last call, in plan order."""
        changed = [self._tasks[place] for place in sorted(self._changed)]
        self._changed.clear()
        return changed
