"""Attempts with a lease and without outcome, once their processes are dead: stopped on purpose, or interrupted.

Rules (SPEC.md "Commands"):

1. An attempt that a stop request names was not interrupted. Its command is begun again, regardless of its policy.
2. If the request let the attempt run on and it died all the same, it counts as stopped only if the command may be
   repeated. Otherwise it is judged as after any death, because it was not asked to end.
3. Stopped attempts do not count for `restarts_max`.
"""

from __future__ import annotations

from collections.abc import Mapping

from codebatch.model.work.work_batch import IfInterrupted
from codebatch.scheduling.work.attempt_histories import AttemptHistories
from codebatch.scheduling.work.command_plan import CommandPlan
from codebatch.scheduling.work.request_log import AttemptStop, RequestLog


class Interruptions:
    """Rules for what follows an attempt without an outcome, derived only from state on disk."""

    def __init__(self, agenda: CommandPlan, histories: AttemptHistories, requests: RequestLog) -> None:
        self._agenda = agenda
        self._histories = histories
        self._requests = requests

    def find_stop(self, item: int, epoch: int | None = None) -> AttemptStop | None:
        """Return why an attempt without outcome was stopped, by default the last of an item.

        Return None if it was not.
        """
        epoch = self._histories.epoch(item) if epoch is None else epoch
        last = self._histories.last(item)
        return None if last is not None and last.epoch >= epoch else self.stops(item).get(epoch)

    def stops(self, item: int) -> Mapping[int, AttemptStop]:
        """Return why attempts of an item were stopped, by lease epoch, including attempts with an outcome."""
        may_repeat = self._agenda.policies[item].if_interrupted == "restart"
        return {epoch: one for epoch, one in self._requests.stops(item).items() if one.ends or may_repeat}

    def follows(self, item: int, epoch: int | None = None) -> IfInterrupted:
        """Return what follows an attempt, by default the last of an item. No process of the attempt may be running.

        If the attempt was not interrupted, return "restart".
        """
        epoch = self._histories.epoch(item) if epoch is None else epoch
        last = self._histories.last(item)
        begun = range(1 + (last.epoch if last else 0), epoch + 1)
        if not begun or self.find_stop(item, epoch) is not None:
            return "restart"
        accidents = len(begun) - sum(stopped_epoch in begun for stopped_epoch in self._requests.stops(item))
        return self._agenda.policies[item].after_interruption(accidents)
