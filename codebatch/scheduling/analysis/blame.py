"""Attribution of worker deaths to an item or to the machine.

1. If a worker dies while it executes an item, the death is charged to the item. Once the item's charge reaches
   CHARGE_MAX, the item fails. A kill from outside charges less than a crash, because the item is probably not the
   cause.
2. If several workers die in a row without a commit, the machine is the cause. Again, a death weighs less if it was a
   kill from outside, or if one item took too much time or memory.
"""

from __future__ import annotations

from codebatch.model.outcome import WorkUnit
from codebatch.scheduling.events import UnitKey, WorkerLost

DEATH_CHARGE_MAX = 10
CRASH_CHARGE = 5
KILL_CHARGE = 1

CRASHES_IN_A_ROW_MAX = 6
CRASHES_IN_A_ROW_PER_JOB_MAX = 3


class DeathBlame:
    """The deaths of the workers of one coordinator, and the charges of items."""

    def __init__(self, jobs: int) -> None:
        self._weight_max = CRASH_CHARGE * max(CRASHES_IN_A_ROW_MAX, CRASHES_IN_A_ROW_PER_JOB_MAX * jobs)
        self._charges_by_item: dict[UnitKey, int] = {}
        self._weight = 0
        self.deaths = 0
        """Deaths of workers since the last commit of any outcome."""

    @property
    def is_on_machine(self) -> bool:
        """True if enough workers died in a row that the machine is the cause, not an item."""
        return self._weight >= self._weight_max

    def count_death(self, lost: WorkerLost) -> None:
        """Count the death of a worker."""
        self.deaths += 1
        self._weight += KILL_CHARGE if _is_overrun_at_item(lost) else _death_charge(lost)

    def forget_deaths(self) -> None:
        """Reset the count of deaths in a row. Called after each commit, which shows that the machine works."""
        self.deaths = self._weight = 0

    def charge_item(self, item: UnitKey, lost: WorkerLost) -> bool:
        """Charge an item with a death. Return whether its charge has reached CHARGE_MAX.

        If it has, the charge is reset to 0, so that the item's other tasks can run.
        """
        total = self._charges_by_item.get(item, 0) + _death_charge(lost)
        is_guilty = total >= DEATH_CHARGE_MAX
        self._charges_by_item[item] = 0 if is_guilty else total
        return is_guilty

    def wants_fresh_worker(self, unit: WorkUnit) -> bool:
        """Return whether a unit may be executed only by a worker that had no unit before.

        True if the unit is a single item to which a death was charged.
        """
        return unit.end == unit.start + 1 and (unit.shard, unit.start) in self._charges_by_item


def _death_charge(lost: WorkerLost) -> int:
    return KILL_CHARGE if lost.is_from_outside else CRASH_CHARGE


def _is_overrun_at_item(lost: WorkerLost) -> bool:
    """Return whether a worker was killed because a single item took too much time or memory."""
    is_one = lost.items is not None and lost.items[1] == lost.items[0] + 1
    return is_one and lost.reason in ("timeout", "memory")
