"""The effect of the clock on a work batch: its hours, the time of its start, and its deadline (SPEC.md "Limits")."""

from __future__ import annotations

from collections.abc import Callable

from codebatch.model.work.limits import WorkLimits, next_opening_ns
from codebatch.scheduling.work.command_batch import CommandBatch
from codebatch.scheduling.work.command_plan import SLOTS_POOL
from codebatch.scheduling.work.events import ClockRead


def read_clock(limits: WorkLimits, now_ns: int, deadline_ns: int, known: ClockRead | None = None) -> ClockRead:
    """Return the effect of the clock at `now_ns` (wall clock). If `deadline_ns` is not 0, it is the deadline.

    The search for an opening takes milliseconds. So openings in `known` that have not passed are kept.
    """
    closed: dict[str, int] = {}
    for pool, hours in {SLOTS_POOL: limits.hours, **limits.pool_hours}.items():
        opening_ns = 0 if known is None else known.closed.get(pool, 0)
        if opening_ns <= now_ns:
            start_ns = max(now_ns, limits.start_at_ns if pool == SLOTS_POOL else 0)
            opening_ns = (next_opening_ns(hours, limits.zone, start_ns) if hours else 0) or start_ns
        if opening_ns > now_ns:
            closed[pool] = opening_ns
    return ClockRead(closed, bool(deadline_ns) and now_ns >= deadline_ns)


class ClockWatch:
    """A watch that sets the effect of the clock on a batch, and reports each change.

    A clock that was set back is read again.
    """

    def __init__(self, commands: CommandBatch, wall_ns: Callable[[], int]) -> None:
        self._commands = commands
        self._wall_ns = wall_ns
        self._read_ns = wall_ns()
        self._current = read_clock(commands.agenda.limits, self._read_ns, commands.deadline_ns)
        commands.start_clock(self._current)

    def read_change(self, new_deadline_ns: int = 0) -> ClockRead | None:
        """Return the effect of the clock if it has changed since the last call, or None.

        If `new_deadline_ns` is not 0, it is the deadline that the next request sets.
        """
        limits, deadline_ns = self._commands.agenda.limits, new_deadline_ns or self._commands.deadline_ns
        if not (limits.has_clock or deadline_ns):
            return None
        now_ns = self._wall_ns()
        known = self._current if now_ns >= self._read_ns else None
        before, self._read_ns = self._current, now_ns
        self._current = read_clock(limits, now_ns, deadline_ns, known)
        return None if self._current == before else self._current
