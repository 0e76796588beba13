"""The meter of a provider: it counts every start of a command, and survives all processes and power losses."""

from __future__ import annotations

from collections import Counter

from codebatch.model.work.command import CommandId
from codebatch.model.work.limits import Caps, WorkLimits
from codebatch.model.work.work_batch import Work


class Meter:
    """The number of starts of each task. It fails at a start that no cap allows."""

    def __init__(self, work: Work) -> None:
        self._work = work
        self.starts: Counter[str] = Counter()

    def count(self, task: str, running: int) -> None:
        """Count a start of a task while `running` commands run. Each start costs 1."""
        self.starts[task] += 1
        policy, limits = self._work.task_policy(CommandId(task)), self._work.limits_or_none
        assert policy.attempts_max is None or self.starts[task] <= policy.attempts_max, f"{task} exceeds its cap"
        scopes: dict[str, tuple[WorkLimits | Caps | None, int]] = {"the list": (limits, self.starts.total())}
        for pool in policy.pools:
            users = [id_ for id_ in self._work.order if pool in self._work.task_policy(id_).pools]
            scopes[f"pool {pool}"] = (limits.pools.get(pool), sum(self.starts[user] for user in users))
        for name, (caps, starts) in scopes.items():
            if caps is None:
                continue
            assert caps.attempts_max is None or starts <= caps.attempts_max, f"{name} exceeds its cap on attempts"
            # A worker that died leaves a command that still runs, besides those that the limit allows.
            allowed = None if caps.cost_max is None else caps.cost_max + max(running, self._work.max_parallel - 1)
            assert allowed is None or starts <= allowed, f"{name} exceeds its cap on cost: {starts} of {allowed}"
