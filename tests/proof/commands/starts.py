"""The number of starts of each command of a simulated batch, and a check against the allowed number."""

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
    """The starts of commands, by command and round, and by the names of their leases."""

    work: Work
    execs: Counter[tuple[str, int]] = field(default_factory=Counter)
    by_lease: dict[str, tuple[str, int]] = field(default_factory=dict)

    def add(self, task: str, round_: int, mark: str) -> None:
        """Record that a command starts."""
        self.execs[task, round_] += 1
        self.by_lease[mark.partition(".")[2]] = task, round_

    def was_begun(self, task: str) -> bool:
        """Return whether a task was ever started."""
        return any(known == task for known, _ in self.execs)

    def forget(self, batch: BatchDir) -> int:
        """Remove starts whose lease was lost. Return their number.

        Only the first lease of a repeatable command may be lost, because its start does not wait for the fsync.
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
        """Check that no command was started more often than allowed. Each deliberate stop allows one more start."""
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
            assert count <= most, f"{task} was started {count} times in round {round_}"
