"""The meter of a provider: it counts every start of a command, and survives all processes and power losses.

It computes the limits in force from the task list and the requests, without the code under test.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from codebatch.model.digest import Digest
from codebatch.model.work.command import CommandId
from codebatch.model.work.limits import Caps
from codebatch.model.work.question import cap_question_digest
from codebatch.model.work.request import Answer, Open, Request, RequestBody, Set
from codebatch.model.work.work_batch import Work
from codebatch.scheduling.work.events import AttemptOutcome


class Meter:
    """The starts and the costs of each task. It fails at a start that no limit allows."""

    def __init__(self, work: Work) -> None:
        self._work = work
        self.starts: Counter[str] = Counter()
        self.costs: Counter[str] = Counter()

    def count(self, task: str, cost: int, running: int, requests: Sequence[Request], known: int) -> None:
        """Count a start of a task while `running` commands run. It will cost `cost`.

        The coordinator that decided on the start knew `known` requests.
        """
        self.starts[task] += 1
        has_cost = self._work.task_policy(CommandId(task)).has_cost
        for scope, users in self._scopes(task).items():
            in_force = list(self._caps_in_force(scope, requests, known))
            starts = sum(self.starts[user] for user in users)
            most = [caps.attempts_max for caps in in_force]
            assert None in most or starts <= max(filter(None, most)), f"{scope or 'list'} exceeds its cap on attempts"
            # A worker that died leaves a command that still runs, besides those that the limit allows.
            paid = sum(self.costs[user] for user in users) - max(running, self._work.max_parallel - 1)
            most_costs = [caps.cost_max if has_cost else None for caps in in_force]
            assert None in most_costs or paid < max(filter(None, most_costs)), (
                f"{scope or 'list'} exceeds its cap on cost"
            )
        self.costs[task] += cost

    def has_reached(self, scope: str, limit: float) -> bool:
        """Return whether the tasks of a scope started as often as a cap on attempts allows."""
        return sum(self.starts[user] for user in self._users(scope)) >= limit

    def deadlines_ns(self, requests: Sequence[Request], known: int) -> set[int]:
        """Return the deadlines in force after the first `known` requests, and after each later one. 0 is none."""
        bodies = [(request.n, request.body) for request in requests if isinstance(request.body, Set)]
        changes = [(n, body.deadline_ns) for n, body in bodies if body.deadline_ns]
        known_ns = [deadline_ns for n, deadline_ns in changes if n <= known]
        first_ns = known_ns[-1] if known_ns else self._work.limits_or_none.deadline_ns
        return {first_ns, *(deadline_ns for n, deadline_ns in changes if n > known)}

    def _scopes(self, task: str) -> dict[str, list[CommandId]]:
        pools = [f"pool.{pool}" for pool in self._work.task_policy(CommandId(task)).pools]
        return {scope: self._users(scope) for scope in ("", *pools, f"task.{task}")}

    def _users(self, scope: str) -> list[CommandId]:
        kind, _, name = scope.partition(".")
        if kind == "task":
            return [CommandId(name)]
        return [id_ for id_ in self._work.order if not kind or name in self._work.task_policy(id_).pools]

    def _caps_in_force(self, scope: str, requests: Sequence[Request], known: int) -> Iterator[Caps]:
        """Yield the caps after the first `known` requests, and after each later one: others may have started first."""
        self._declined: set[Digest] = set()
        limits, (kind, _, name) = self._work.limits_or_none, scope.partition(".")
        policy = self._work.task_policy(CommandId(name))
        caps = {
            "": Caps(cost_max=limits.cost_max, attempts_max=limits.attempts_max),
            "pool": limits.pools.get(name, Caps()),
            "task": Caps(cost_max=policy.cost_max, attempts_max=policy.attempts_max),
        }[kind]
        for request in requests:
            if request.n > known:
                yield caps
            new = self._changed_caps(scope, caps, request.body)
            cost_max = caps.cost_max if new.cost_max is None else new.cost_max
            attempts_max = caps.attempts_max if new.attempts_max is None else new.attempts_max
            caps = Caps(cost_max=cost_max, attempts_max=attempts_max)
        yield caps

    def _changed_caps(self, scope: str, caps: Caps, body: RequestBody) -> Caps:
        """Return the caps that a request changes: those of a Set, or the one that an answer raises."""
        if isinstance(body, Set):
            return body.caps.get(scope, Caps())
        if not isinstance(body, Answer) or self._work.limits_or_none.on_cap != "ask":
            return Caps()
        if body.text == "stop":
            self._declined.add(body.question)
        if not body.text.isdecimal() or body.question in self._declined:
            return Caps()
        value, attempts_max, cost_max = int(body.text), caps.attempts_max, caps.cost_max
        if (
            attempts_max
            and value > attempts_max
            and body.question == cap_question_digest(scope, "attempts_max", attempts_max)
        ):
            return Caps(attempts_max=value)
        if cost_max and value > cost_max and body.question == cap_question_digest(scope, "cost_max", cost_max):
            return Caps(cost_max=float(value))
        return Caps()


def check_tries(work: Work, task: str, ended: Sequence[AttemptOutcome], requests: Sequence[Request]) -> None:
    """Check that a task that starts again has a retry or a wait left, unless a request may have opened it."""
    bodies = [request.body for request in requests]
    if any(isinstance(body, Open) or (isinstance(body, Answer) and body.task == task) for body in bodies):
        return
    policy = work.task_policy(CommandId(task))
    failed = waits = 0
    for outcome in sorted(ended, key=lambda one: one.round):
        if outcome.reason == "unbegun":
            continue
        assert outcome.type != "result", f"{task} starts again, but is done"
        waits = waits + 1 if outcome.reason == "limited" else 0
        failed += outcome.type == "failed" and not 0 < waits <= policy.waits_max
    settings = [body.tasks.get(CommandId(task)) for body in bodies if isinstance(body, Set)]
    changed = [one.retries for one in settings if one is not None and one.retries is not None]
    assert failed <= max([policy.retries, *changed]), f"{task} starts after {failed} failed tries"
