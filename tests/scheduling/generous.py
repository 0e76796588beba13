"""Runs that are as long as there is something to give: small worlds see few else."""

from __future__ import annotations

from codebatch.scheduling.work.prefetch import PREFETCHED_COMMANDS_MAX, PrefetchedCommands


class GenerousRuns(PrefetchedCommands):
    """Gives all at once, to whoever is first."""

    def assignment_length(self, waiting: int, slots: int) -> int:
        return PREFETCHED_COMMANDS_MAX
