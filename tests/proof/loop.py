"""The real loop of the coordinator, with checks of the events that it handles and of the progress that it counts."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import TYPE_CHECKING

from msgspec.structs import replace

from codebatch.coordinator.analysis.adoption import ReuseSource
from codebatch.coordinator.analysis.loop import Coordinator
from codebatch.coordinator.analysis.progress_counter import ProgressCounter, RunScope
from codebatch.model.entry import Entry
from codebatch.model.plan import Plan
from codebatch.model.shard import ProjectWork
from codebatch.scheduling.actions import SpawnWorker
from codebatch.scheduling.analysis.driver import ExecutableAction
from codebatch.scheduling.events import OutcomesCommitted, ProgressReport, SessionEvent
from codebatch.store.batches.batch_directory import BatchDir
from codebatch.store.batches.holders import HolderFile
from codebatch.system.clock import wall_ns
from codebatch.system.host import this_host
from tests.proof.crew import SimulatedCrew

if TYPE_CHECKING:
    from tests.proof.world import World


WORTH_ONE = 1e9
"""Cost for which one worker is started. It is so large that the cost alone never starts a second one."""


class WatchedLoop(Coordinator):
    """A loop that records when it has handled the outcomes it read, and checks its progress against a recount."""

    def __init__(
        self,
        world: World,
        batch: BatchDir,
        plan: Plan,
        items: Sequence[Entry],
        crew: SimulatedCrew,
        *,
        jobs: int,
        is_retrying: bool,
        reuse: ReuseSource,
    ) -> None:
        self._world = world
        self._simulated = crew
        self._looks: deque[int] = deque()
        self._is_retrying = is_retrying
        self._costs = {
            **{shard.id: [float(n) for n in range(shard.items + 1)] for shard in plan.shards},
            **{ProjectWork(task).id: [0.0, 1.0] for task in plan.project_tasks},
        }
        super().__init__(
            batch,
            plan,
            items,
            crew,
            about=HolderFile(holder=crew.holder, role="coordinator", pid=0, host=this_host(), since_ns=wall_ns()),
            jobs=jobs,
            costs=self._costs,
            cost_per_worker=WORTH_ONE if world.is_observed else 0.0,
            starts_max=8,
            scope=RunScope(retry_failed=is_retrying),
            watcher=None,
            wall_ns=wall_ns,
            reuse=reuse,
        )

    def _handle_event(self, event: SessionEvent) -> None:
        self._looks.append(self._simulated.looked_at)
        super()._handle_event(event)

    def _note_handled_event(self, event: SessionEvent) -> None:
        self._simulated.scanned_at = self._looks.popleft()
        if isinstance(event, OutcomesCommitted):
            for commit in event.commits:
                if commit.segment == self._simulated.holder:
                    self._world.note_reported(commit)
        self._is_report = isinstance(event, ProgressReport)
        super()._note_handled_event(event)

    def _execute_action(self, action: ExecutableAction) -> None:
        self._world.started_by_reports += self._is_report and isinstance(action, SpawnWorker)
        super()._execute_action(action)

    def _run_turn(self) -> None:
        super()._run_turn()
        shown = self.progress
        recounted = ProgressCounter(self._plan, self.ledger, self._costs, RunScope()).progress(
            (), workers=shown.workers
        )
        assert self._is_retrying or recounted.results_done <= shown.results_done, (
            "progress must include uncommitted results of workers"
        )
        shown = replace(shown, results_done=recounted.results_done, work_done=recounted.work_done)
        assert self._is_retrying or shown == recounted, "progress differs from the recount of the ledger"
        assert all(shown.done[task] <= planned for task, planned in shown.planned.items())
