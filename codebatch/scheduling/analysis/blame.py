"""Who is to blame for the deaths of workers: an item, or the machine.

1. The item that a worker died on is charged, and fails when it has been charged enough. A kill from outside weighs less
   than a crash, for it is hardly the item's fault.
2. Deaths in a row with no commit between mean that the machine, not an item, is at fault. Kills weigh less here too.
   So do overruns of a limit at one item, which say hardly anything of the machine.
"""

from __future__ import annotations

from codebatch.model.outcome import Unit
from codebatch.scheduling.events import UnitKey, WorkerLost

CHARGE_MAX = 10
CHARGE_OF_CRASH = 5
CHARGE_OF_KILL = 1

CRASHES_IN_A_ROW_MAX = 6
CRASHES_IN_A_ROW_PER_JOB_MAX = 3


class Blame:
    """The deaths that one coordinator saw."""

    def __init__(self, jobs: int) -> None:
        self._weight_max = CHARGE_OF_CRASH * max(CRASHES_IN_A_ROW_MAX, CRASHES_IN_A_ROW_PER_JOB_MAX * jobs)
        self._charges: dict[UnitKey, int] = {}
        self._weight = 0
        self.deaths = 0
        """Deaths since the last commit."""

    @property
    def is_on_machine(self) -> bool:
        """Whether so many died in a row that no item can be at fault."""
        return self._weight >= self._weight_max

    def count(self, lost: WorkerLost) -> None:
        """A worker died."""
        self.deaths += 1
        self._weight += CHARGE_OF_KILL if _is_overrun_at_item(lost) else _charge_of(lost)

    def forget_deaths(self) -> None:
        """Something was committed: the machine works."""
        self.deaths = self._weight = 0

    def charge(self, item: UnitKey, lost: WorkerLost) -> bool:
        """Charge an item with a death; whether it is guilty now. Then its account begins anew, for other tasks."""
        total = self._charges.get(item, 0) + _charge_of(lost)
        is_guilty = total >= CHARGE_MAX
        self._charges[item] = 0 if is_guilty else total
        return is_guilty

    def wants_fresh(self, unit: Unit) -> bool:
        """Whether a unit is one item that was ever charged: only a worker that did nothing before may try it."""
        return unit.end == unit.start + 1 and (unit.shard, unit.start) in self._charges


def _charge_of(lost: WorkerLost) -> int:
    return CHARGE_OF_KILL if lost.is_from_outside else CHARGE_OF_CRASH


def _is_overrun_at_item(lost: WorkerLost) -> bool:
    """Whether a worker was killed for the time or memory that one item took."""
    is_one = lost.items is not None and lost.items[1] == lost.items[0] + 1
    return is_one and lost.reason in ("timeout", "memory")
