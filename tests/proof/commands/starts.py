"""How often commands of a simulated batch were begun, and how often they may be."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from codebatch.model.work.command import CommandId
from codebatch.model.work.request import Cancel, Request, Stop
from codebatch.model.work.work_batch import Work
from codebatch.store import layout
from codebatch.store.batches.batch_directory import BatchDir


@dataclass
class Starts:
    """Starts by command and round, and under the names of their leases."""

    work: Work
    execs: Counter[tuple[str, int]] = field(default_factory=Counter)
    by_lease: dict[str, tuple[str, int]] = field(default_factory=dict)

    def add(self, task: str, round_: int, mark: str) -> None:
        """A command begins."""
        self.execs[task, round_] += 1
        self.by_lease[mark.partition(".")[2]] = task, round_

    def was_begun(self, task: str) -> bool:
        """Whether it ever was."""
        return any(known == task for known, _ in self.execs)

    def forget(self, batch: BatchDir) -> int:
        """The first start of what may be begun again is not waited for: where its lease is lost it does not count.

        Returns how many were lost.
        """
        leases = set(batch.files.listing(batch.root / layout.LEASES))
        lost = [
            name
            for name, (task, _) in self.by_lease.items()
            if name not in leases and name.endswith(".1") and self.work.task_policy(CommandId(task)).is_repeatable
        ]
        for name in lost:
            self.execs[self.by_lease.pop(name)] -= 1
        return len(lost)

    def check(self, requests: Sequence[Request]) -> None:
        """None was begun more often than it may be: once more for each time that it was stopped on purpose."""
        named = {
            (task, epoch)
            for body in (request.body for request in requests)
            if isinstance(body, Stop | Cancel)
            for task, epoch in body.attempts.items()
        }
        stops = Counter(task for task, _ in named)
        for (task, round_), count in self.execs.items():
            policy = self.work.task_policy(CommandId(task))
            most = 1 + policy.restarts_max if policy.if_interrupted == "restart" else 1
            most += stops[CommandId(task)]
            assert count <= most, f"{task} was begun {count} times in round {round_}"
