"""Attribution of worker deaths to an item or to the machine.

1. If a worker dies while it executes an item, the death is charged to the item. Once the item's charge reaches
   CHARGE_MAX, the item fails. A kill from outside charges less than a crash, because the item is probably not the
   cause.
2. If several workers die in a row without a commit, the machine is the cause. Again, a death weighs less if it was a
   kill from outside, or if one item took too much time or memory.
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
    """The deaths of the workers of one coordinator, and the charges of items."""

    def __init__(self, jobs: int) -> None:
        self._weight_max = CHARGE_OF_CRASH * max(CRASHES_IN_A_ROW_MAX, CRASHES_IN_A_ROW_PER_JOB_MAX * jobs)
        self._charges: dict[UnitKey, int] = {}
        self._weight = 0
        self.deaths = 0
        """Deaths of workers since the last commit of any outcome."""

    @property
    def is_on_machine(self) -> bool:
        """True if enough workers died in a row that the machine is the cause, not an item."""
        return self._weight >= self._weight_max

    def count(self, lost: WorkerLost) -> None:
        """Count the death of a worker."""
        self.deaths += 1
        self._weight += CHARGE_OF_KILL if _is_overrun_at_item(lost) else _death_charge(lost)

    def forget_deaths(self) -> None:
        """Reset the count of deaths in a row. Called after each commit, which shows that the machine works."""
        self.deaths = self._weight = 0

    def charge(self, item: UnitKey, lost: WorkerLost) -> bool:
        """Charge an item with a death. Return whether its charge has reached CHARGE_MAX.

        If it has, the charge is reset to 0, so that the item's other tasks can run.
        """
        total = self._charges.get(item, 0) + _death_charge(lost)
        is_guilty = total >= CHARGE_MAX
        self._charges[item] = 0 if is_guilty else total
        return is_guilty

    def wants_fresh(self, unit: Unit) -> bool:
        """Return whether a unit may be executed only by a worker that had no unit before.

        True if the unit is a single item to which a death was charged.
        """
        return unit.end == unit.start + 1 and (unit.shard, unit.start) in self._charges


def _death_charge(lost: WorkerLost) -> int:
    return CHARGE_OF_KILL if lost.is_from_outside else CHARGE_OF_CRASH


def _is_overrun_at_item(lost: WorkerLost) -> bool:
    """Return whether a worker was killed because a single item took too much time or memory."""
    is_one = lost.items is not None and lost.items[1] == lost.items[0] + 1
    return is_one and lost.reason in ("timeout", "memory")
