"""Attempts with a lease and without outcome whose processes are dead: stopped on purpose, or interrupted.

Rules (SPEC.md "Commands"):

1. If a Stop request names an attempt, the attempt counts as stopped, not as interrupted. Its command is started again,
   whatever its policy.
2. A Stop request may let attempts finish. If such an attempt dies before it finishes, it counts as interrupted, because
   it was not asked to end. Exception: it counts as stopped if the policy of its command is `restart`.
3. Stopped attempts do not count for `restarts_max`.
"""

from __future__ import annotations

from collections.abc import Mapping

from codebatch.model.work.work_batch import InterruptedAction
from codebatch.scheduling.work.attempt_histories import AttemptHistories
from codebatch.scheduling.work.command_plan import CommandPlan
from codebatch.scheduling.work.request_log import AttemptStop, RequestLog


class InterruptionRules:
    """The rules for what happens after an attempt without an outcome. They depend only on files of the batch."""

    def __init__(self, agenda: CommandPlan, histories: AttemptHistories, requests: RequestLog) -> None:
        self._agenda = agenda
        self._histories = histories
        self._requests = requests

    def find_stop(self, item: int, epoch: int | None = None) -> AttemptStop | None:
        """Return the reason why an attempt without an outcome was stopped.

        By default, the attempt is the item's last one.

        Return None if the attempt was not stopped or has an outcome.
        """
        epoch = self._histories.last_epoch(item) if epoch is None else epoch
        last = self._histories.last_outcome(item)
        return None if last is not None and last.epoch >= epoch else self.stops_by_epoch(item).get(epoch)

    def stops_by_epoch(self, item: int) -> Mapping[int, AttemptStop]:
        """Map the lease epochs of an item's stopped attempts to the reasons.

        Stopped attempts that have an outcome are included.
        """
        may_repeat = self._agenda.policies[item].if_interrupted == "restart"
        return {epoch: one for epoch, one in self._requests.stops_by_epoch(item).items() if one.ends or may_repeat}

    def next_action(self, item: int, epoch: int | None = None) -> InterruptedAction:
        """Return what happens to an item after an attempt. By default, the attempt is the item's last one.

        No process of the attempt may be running. If the attempt was not interrupted, return "restart".
        """
        epoch = self._histories.last_epoch(item) if epoch is None else epoch
        last = self._histories.last_outcome(item)
        begun = range(1 + (last.epoch if last else 0), epoch + 1)
        if not begun or self.find_stop(item, epoch) is not None:
            return "restart"
        accidents = len(begun) - sum(stopped_epoch in begun for stopped_epoch in self._requests.stops_by_epoch(item))
        return self._agenda.policies[item].after_interruption(accidents)
