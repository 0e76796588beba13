"""Attempts that were leased and have no outcome, once nothing of them runs: stopped on purpose, or interrupted.

Rules (SPEC.md "Commands"):
1. An attempt that a request names as stopped is no accident. Its command is begun again, whatever its policy says.
2. If the request let the attempt run on and it died all the same, the user's signal is the reason only where the
   command may be begun twice. The others are judged as after any death, for nobody told them to end.
3. No stopped attempt counts for `restarts_max`.
"""

from __future__ import annotations

from collections.abc import Mapping

from codebatch.model.work.work_batch import IfInterrupted
from codebatch.scheduling.work.attempt_histories import AttemptHistories
from codebatch.scheduling.work.command_plan import CommandPlan
from codebatch.scheduling.work.request_log import AttemptStop, RequestLog


class Interruptions:
    """Decides what follows an attempt without an outcome. All of it is derived from what is on disk."""

    def __init__(self, agenda: CommandPlan, histories: AttemptHistories, requests: RequestLog) -> None:
        self._agenda = agenda
        self._histories = histories
        self._requests = requests

    def find_stop(self, item: int, epoch: int | None = None) -> AttemptStop | None:
        """Why an attempt without an outcome was stopped, by default the last of an item. None: it was not."""
        epoch = self._histories.epoch(item) if epoch is None else epoch
        last = self._histories.last(item)
        return None if last is not None and last.epoch >= epoch else self.stops(item).get(epoch)

    def stops(self, item: int) -> Mapping[int, AttemptStop]:
        """Why attempts of an item were stopped, by lease epoch. One may have had an outcome all the same."""
        may_repeat = self._agenda.policies[item].if_interrupted == "restart"
        return {epoch: one for epoch, one in self._requests.stops(item).items() if one.ends or may_repeat}

    def follows(self, item: int, epoch: int | None = None) -> IfInterrupted:
        """What follows an attempt, by default the last of an item, of which nothing runs. One that was not interrupted
        may be begun as ever.
        """
        epoch = self._histories.epoch(item) if epoch is None else epoch
        last = self._histories.last(item)
        begun = range(1 + (last.epoch if last else 0), epoch + 1)
        if not begun or self.find_stop(item, epoch) is not None:
            return "restart"
        accidents = len(begun) - sum(each in begun for each in self._requests.stops(item))
        return self._agenda.policies[item].after_interruption(accidents)
