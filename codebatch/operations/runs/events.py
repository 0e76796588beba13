"""The event stream of an analysis. It is derived from the files of the batch, because an analysis stores no events.

The events are: started, progress, ended. A cursor, the position in the stream, has the number of coordinator starts and
the number of results so far. So a client that reconnects with a cursor receives only newer events.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal, TypeVar

import msgspec

from codebatch.errors import BatchIncomplete, StoreError
from codebatch.model.work import event as events
from codebatch.model.work.event import EventCursor
from codebatch.operations.runs.run_result import cancelled_error
from codebatch.operations.runs.running_tasks import RunningTaskReader
from codebatch.query.status.batch_status import CurrentState, read_current_state
from codebatch.scheduling.lifecycle import BatchState
from codebatch.store.batches import journal
from codebatch.store.batches.batch_directory import BatchDir
from codebatch.store.batches.store_directory import StoreDir
from codebatch.system.clock import wall_ns

PROGRESS_SECONDS = 5.0
_READING_TIME_SHARE = 20
"""Reading the batch takes at most 1/_SHARE of the time of a follower."""
_ETA_FACTORS = (0.75, 1.0, 1.25)


E = TypeVar("E", bound=events.BatchEvent)


class BatchActivity(msgspec.Struct, frozen=True, kw_only=True):
    """The activity on a followed batch.

    - `is_conducted`: whether a coordinator runs the batch.
    - `silent_since_ns`: the time of the last report of a coordinator that is not responding, otherwise None.
    - `orphaned_commands`: the number of commands that run without a coordinator.
    - `counts`: the number of tasks in each state, or None if not read.
    - `shortfall`: if no process runs the batch, the error that describes missing results.
    """

    is_conducted: bool
    silent_since_ns: int | None = None
    is_over: bool = False
    orphaned_commands: int = 0
    counts: Mapping[str, int] | None = None
    shortfall: BatchIncomplete | None = None


@dataclass(slots=True)
class _CoordinatorLifetime:
    """The time during which one coordinator ran, the number of its results, and how it ended."""

    began_ns: int
    last_ns: int = 0
    results: int = 0
    is_continued: bool = False
    left_by: Literal["kill", "drain", "request"] = "kill"


class AnalysisFollower:
    """A follower of an analysis. It returns the events after a cursor."""

    def __init__(
        self, store: StoreDir, batch: BatchDir, since: EventCursor, *, now: Callable[[], float] = time.monotonic
    ) -> None:
        """Open the batch. `now` is a monotonic clock in seconds."""
        self._batch = batch
        self._plan = batch.plan()
        self._since = since
        self._now = now
        self._running = RunningTaskReader(store, batch, self._plan)
        self._journals = journal.JournalReader(batch.files, batch.root)
        self._lifetimes: list[_CoordinatorLifetime] = []
        self._last_ns = 0
        self._state = read_current_state(batch)
        self._next_look = 0.0

    def read(self, limit: int | None = None) -> list[events.AnyEvent]:
        """Return the new events: at most one of each kind, and progress at most every 5 seconds.

        If there are more than `limit`, the next call returns the others.
        """
        started_at = self._now()
        if started_at < self._next_look:
            return []
        self._refresh_state()
        self._next_look = self._now() + max(PROGRESS_SECONDS, _READING_TIME_SHARE * (self._now() - started_at))
        if not self._state.holders:
            self._next_look = self._now() + 1.0
        state, tally = self._state, self._state.tally
        epoch = max(1, len(self._lifetimes))
        generated: list[events.AnyEvent] = []
        if state.state is not BatchState.PENDING:
            if (started := self._started_event(epoch)) is not None:
                generated.append(started)
            if not state.state.is_final or state.holders:
                generated.append(self._progress_event())
            else:
                end: Callable[..., events.AnyEvent] = events.END_EVENT_TYPES[state.state.value]
                place = EventCursor(epoch, 3 + tally.planned)
                last_ns = self._last_ns or wall_ns()
                seconds, total_seconds = self._current_run_seconds(last_ns), self._all_runs_seconds(last_ns)
                generated.append(
                    self._make_event(
                        end,
                        place,
                        at_ns=last_ns,
                        seconds=seconds,
                        total_seconds=total_seconds,
                        task_count=tally.planned,
                    )
                )
        new_events = [event for event in generated if event.place > self._since]
        if limit is not None and len(new_events) > limit:
            new_events = new_events[:limit]
            self._next_look = 0.0
        if new_events:
            self._since = new_events[-1].place
        return new_events

    def read_progress(self) -> events.BatchProgress:
        """Return the present progress of the analysis. It is read from disk, and `read` does not return it."""
        self._refresh_state()
        return self._progress_event()

    def read_activity(self, *, closely: bool) -> BatchActivity:
        """Return the activity on the batch. `closely` has no effect for an analysis, only for work batches."""
        state = self._state = read_current_state(self._batch)
        if state.holders:
            return BatchActivity(is_conducted=True, counts=count_pair_states(state))
        self._next_look = 0.0
        is_over = state.state.is_final
        return BatchActivity(
            is_conducted=False,
            is_over=is_over,
            counts=count_pair_states(state),
            shortfall=find_shortfall(self._batch, state),
        )

    def _refresh_state(self) -> None:
        self._state = read_current_state(self._batch)
        self._running.read_steps(self._state.holders)
        with contextlib.suppress(StoreError):
            for line in self._journals.read():
                self._last_ns = max(self._last_ns, line.at_ns)
                self._note_line(line)
                self._running.add_line(line)

    def _note_line(self, line: journal.JournalLine) -> None:
        match line.event:
            case journal.Started():
                if self._lifetimes and self._lifetimes[-1].is_continued:
                    self._lifetimes[-1].is_continued = False
                else:
                    self._lifetimes.append(_CoordinatorLifetime(line.at_ns))
            case _ if not self._lifetimes:
                return
            case journal.Committed(start=start, end=end) | journal.Failed(start=start, end=end):
                self._lifetimes[-1].results += end - start
            case journal.PartReceived(results=results):
                self._lifetimes[-1].results += results
            case journal.Ended(reason=journal.ENGINE_ENDED):
                self._lifetimes[-1].is_continued = True
            case journal.Drained(reason=reason):
                self._lifetimes[-1].left_by = "request" if reason == "cancel" else "drain"
            case journal.Ended(reason="complete"):
                self._lifetimes[-1].left_by = "request"
            case journal.Ended(reason="break"):
                self._lifetimes[-1].left_by = "drain"
            case _:
                pass
        self._lifetimes[-1].last_ns = line.at_ns

    def _started_event(self, epoch: int) -> events.AnyEvent | None:
        place = EventCursor(epoch, 1)
        if place <= self._since:
            return None
        at_ns = self._lifetimes[-1].began_ns if self._lifetimes else wall_ns()
        if epoch > 1:
            after = self._lifetimes[-2].left_by
            return self._make_event(events.BatchResumed, place, at_ns=at_ns, after=after, reopened=(), adopted=())
        return self._make_event(
            events.BatchStarted,
            place,
            at_ns=at_ns,
            source=", ".join(part.decode("utf-8", "backslashreplace") for part in self._batch.about.sources),
            strategy="parallel",
            max_parallel=max(1, sum(holder.role == "worker" for holder in self._state.holders)),
            on_failure="continue",
            task_count=len(self._plan.tasks),
            task_ids=tuple(self._plan.task_names),
            edges={"file": sum(len(task.needs) for task in self._plan.tasks)},
        )

    def _progress_event(self) -> events.BatchProgress:
        now_ns = wall_ns()
        tally, seconds = self._state.tally, self._current_run_seconds(now_ns)
        done = self._lifetimes[-1].results if self._lifetimes else 0
        eta = tuple(round(seconds * tally.open_count / done * factor, 1) for factor in _ETA_FACTORS) if done else None
        place = EventCursor(max(1, len(self._lifetimes)), 2 + tally.planned - tally.open_count)
        running = tuple(self._running.running_tasks())
        return self._make_event(events.BatchProgress, place, at_ns=now_ns, eta_seconds=eta, running=running)

    def _current_run_seconds(self, until_ns: int) -> float:
        """Return the seconds from the start of the current coordinator until `until_ns`. Journals record the start."""
        return round(max(0, until_ns - self._lifetimes[-1].began_ns) / 1e9, 3) if self._lifetimes else 0.0

    def _all_runs_seconds(self, until_ns: int) -> float:
        """Return the total seconds during which a coordinator was running."""
        before = sum(max(0, lifetime.last_ns - lifetime.began_ns) for lifetime in self._lifetimes[:-1])
        return round(before / 1e9 + self._current_run_seconds(until_ns), 3)

    def _make_event(self, event_type: Callable[..., E], place: EventCursor, *, at_ns: int, **fields: object) -> E:
        return event_type(
            cursor=events.cursor_text(self._batch.id, place),
            seq=place.seq,
            at=events.instant_ms(at_ns),
            batch_id=self._batch.id,
            counts=count_pair_states(self._state),
            **fields,
        )


def count_pair_states(state: CurrentState) -> dict[str, int]:
    """Return the number of (file, task) pairs in each state. The state names are those of commands.

    Zeros are omitted.
    """
    tally = state.tally
    counts = {"DONE": tally.results, "FAILED": tally.failed, "CANCELLED": tally.cancelled, "PENDING": tally.open_count}
    return {name: count for name, count in counts.items() if count}


def find_shortfall(batch: BatchDir, state: CurrentState) -> BatchIncomplete | None:
    """Return an error that describes which results are missing, or None if none is missing.

    The caller must know that no process runs the batch: the result does not take running work into account.
    """
    if state.state is BatchState.COMPLETED:
        return None
    tally, resume = state.tally, f"codebatch resume --batch {batch.id}"
    if state.state is BatchState.CANCELLED:
        return cancelled_error(batch)
    if not state.state.is_final:
        return BatchIncomplete(
            (
                f"{tally.open_count:,} of {tally.planned:,} results of batch {batch.id} are missing, and no process "
                "is running it"
            ),
            hint=f"resume it with: {resume}",
        )
    hint = f"see: codebatch errors --batch {batch.id}; retry them with: {resume}"
    return BatchIncomplete(f"{tally.failed + tally.cancelled:,} of {tally.planned:,} results failed", hint=hint)
