"""Event feeds: the events and the state of a batch, for programs that show a batch while it runs."""

from __future__ import annotations

import msgspec

from codebatch.model.work.event import FIRST_CURSOR, AnyEvent, EventCursor, RunningTask, cursor_text
from codebatch.operations.queries.batch_status import StatusAnswer, make_status_answer
from codebatch.operations.queries.batches import TaskStatus, task_states
from codebatch.operations.runs.events import AnalysisFollower
from codebatch.store.batches.batch_directory import BatchDir, is_work
from codebatch.store.batches.store_directory import StoreDir
from codebatch.work.control.batches import load_work_batch
from codebatch.work.control.follow import make_follower
from codebatch.work.control.status import WorkStatus, make_work_status


class AnalysisProgress(msgspec.Struct, frozen=True, kw_only=True):
    """The progress of an analysis.

    - `counts`: the number of pairs of a file and a task in each state.
    - `eta_seconds`: three estimates of the remaining time. The analysis ends within these times with a probability of
      10%, 50% and 90%. It is None if no estimate is possible.
    - `running`: the running task and the current file of each worker on this machine.
    - `tasks`: the progress of each task.
    """

    counts: dict[str, int]
    eta_seconds: tuple[float, float, float] | None
    running: tuple[RunningTask, ...]
    tasks: tuple[TaskStatus, ...]


class EventFeed:
    """A reader of the events of a batch that continues at its last position. The batch can be of either kind.

    It keeps no file open between two calls, and does not affect the batch. Only one thread may use it at a time.

    Every method raises StoreCorrupt, and BatchRemoved if the batch no longer exists.

    Example:

        feed = work.open_events(since=last_cursor)
        for event in feed.read(limit=500):
            print(event.cursor, event.counts)
    """

    def __init__(self, store: StoreDir, batch: BatchDir, since: EventCursor = FIRST_CURSOR) -> None:
        """Open the feed of a batch after the position `since`."""
        self.batch = batch
        self.since = since
        self._store = store
        self._follower = make_follower(store, batch, since)

    def read(self, limit: int | None = None) -> list[AnyEvent]:
        """Return the events since the last call, in order, but at most `limit` of them.

        `since` becomes the position after the last one.
        """
        events = self._follower.read(limit)
        if events:
            self.since = events[-1].place
        return events

    @property
    def cursor(self) -> str:
        """The cursor of the last event that was read. Pass it to another feed of this batch to continue there."""
        return cursor_text(self.batch.id, self.since)

    def status(self) -> WorkStatus | StatusAnswer:
        """Read the state of the batch. The result is the document that `codebatch status --json` prints."""
        if is_work(self.batch):
            return make_work_status(load_work_batch(self._store, self.batch))
        return make_status_answer(self._store, self.batch)

    def progress(self) -> AnalysisProgress | None:
        """Read the progress of an analysis. Return None for a task list, because its events report the progress."""
        if not isinstance(self._follower, AnalysisFollower):
            return None
        progress = self._follower.read_progress()
        return AnalysisProgress(
            counts=progress.counts,
            eta_seconds=progress.eta_seconds,
            running=progress.running,
            tasks=tuple(task_states(self._store, self.batch)),
        )
