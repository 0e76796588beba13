"""Assignments of maximal length. Small simulated worlds would rarely have long assignments otherwise."""

from __future__ import annotations

from codebatch.scheduling.work.prefetch import PREFETCHED_COMMANDS_MAX, PrefetchedCommands


class GenerousRuns(PrefetchedCommands):
    """A prefetch policy that assigns all waiting commands to the first worker."""

    def assignment_length(self, waiting: int, slots: int) -> int:
        return PREFETCHED_COMMANDS_MAX
