"""Following an analysis: a stream of events made up of what stands on disk, for it has none of its own.

It begins, it is so far, it is over. Places in it are (how often somebody began, how many results there were then), so
that who comes again with a cursor is told what came since.
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
from codebatch.model.work.event import Cursor
from codebatch.operations.runs.run_result import cancelled
from codebatch.query.status.batch_status import CurrentState, read_current_state
from codebatch.scheduling.lifecycle import BatchState
from codebatch.store import layout
from codebatch.store.batches import journal
from codebatch.store.batches.batches import BatchDir
from codebatch.system.clock import running_ns, wall_ns
from codebatch.system.host import is_here
from codebatch.system.processes.progress_cell import NO_TASK, ProgressCell, Step

PROGRESS_SECONDS = 5.0
_SHARE = 20
"""Of the time that passes, looking takes a part of so many at most."""
_SPREAD = (0.75, 1.0, 1.25)


E = TypeVar("E", bound=events.BatchEvent)


class Seen(msgspec.Struct, frozen=True, kw_only=True):
    """Who is at work on a batch that is followed: somebody who conducts it, or, `alone`, what ends by itself.

    `counts` are None where they were not looked at. `shortfall` is what lacks of all, where nobody is at work.
    """

    is_conducted: bool
    is_over: bool = False
    alone: int = 0
    counts: Mapping[str, int] | None = None
    shortfall: BatchIncomplete | None = None


@dataclass(slots=True)
class _Spell:
    """The time in which somebody was at work: so many results came of it, and so it came to its end."""

    began_ns: int
    last_ns: int = 0
    results: int = 0
    left_by: Literal["kill", "drain", "request"] = "kill"


class AnalysisFollowed:
    """An analysis that is followed, from a place in its stream on."""

    def __init__(self, batch: BatchDir, since: Cursor, *, now: Callable[[], float] = time.monotonic) -> None:
        """`now` is a clock in seconds."""
        self._batch = batch
        self._plan = batch.plan()
        self._since = since
        self._now = now
        self._journals = journal.JournalReader(batch.files, batch.root)
        self._spells: list[_Spell] = []
        self._last_ns = 0
        self._seen = read_current_state(batch)
        self._next_look = 0.0

    def read(self) -> list[events.AnyEvent]:
        """What can be told since: at most one event of each kind, of progress one each 5 s."""
        if self._now() < self._next_look:
            return []
        self._look()
        stands, tally = self._seen, self._seen.tally
        ended = tally.planned - tally.open
        epoch = max(1, len(self._spells))
        found: list[events.AnyEvent] = []
        if stands.state is not BatchState.PENDING:
            if (begun := self._begun(epoch)) is not None:
                found.append(begun)
            if not stands.state.is_final or stands.holders:
                found.append(self._progress(Cursor(epoch, 2 + ended)))
            else:
                end: Callable[..., events.AnyEvent] = events.ENDS[stands.state.value]
                place = Cursor(epoch, 3 + tally.planned)
                last_ns = self._last_ns or wall_ns()
                seconds, in_all = self._seconds(last_ns), self._all_seconds(last_ns)
                found.append(
                    self._make(
                        end, place, at_ns=last_ns, seconds=seconds, total_seconds=in_all, task_count=tally.planned
                    )
                )
        new = [event for event in found if event.place > self._since]
        if new:
            self._since = new[-1].place
        return new

    def look(self, *, closely: bool) -> Seen:
        """Who is at work on it."""
        stands = self._seen = read_current_state(self._batch)
        if stands.holders:
            return Seen(is_conducted=True, counts=counts_of(stands))
        self._next_look = 0.0
        is_over = stands.state.is_final
        return Seen(
            is_conducted=False, is_over=is_over, counts=counts_of(stands), shortfall=shortfall_of(self._batch, stands)
        )

    def _look(self) -> None:
        began = self._now()
        self._seen = read_current_state(self._batch)
        with contextlib.suppress(StoreError):
            for line in self._journals.read():
                self._last_ns = max(self._last_ns, line.at_ns)
                self._note(line)
        self._next_look = self._now() + max(PROGRESS_SECONDS, _SHARE * (self._now() - began))
        if not self._seen.holders:
            self._next_look = self._now() + 1.0

    def _note(self, line: journal.JournalLine) -> None:
        match line.event:
            case journal.Started():
                self._spells.append(_Spell(line.at_ns))
            case _ if not self._spells:
                return
            case journal.Committed(start=start, end=end) | journal.Failed(start=start, end=end):
                self._spells[-1].results += end - start
            case journal.Drained(reason=reason):
                self._spells[-1].left_by = "request" if reason == "cancel" else "drain"
            case journal.Ended(reason="complete"):
                self._spells[-1].left_by = "request"
            case journal.Ended(reason="break"):
                self._spells[-1].left_by = "drain"
            case _:
                pass
        self._spells[-1].last_ns = line.at_ns

    def _begun(self, epoch: int) -> events.AnyEvent | None:
        place = Cursor(epoch, 1)
        if place <= self._since:
            return None
        at_ns = self._spells[-1].began_ns if self._spells else wall_ns()
        if epoch > 1:
            after = self._spells[-2].left_by
            return self._make(events.BatchResumed, place, at_ns=at_ns, after=after, reopened=(), adopted=())
        return self._make(
            events.BatchStarted,
            place,
            at_ns=at_ns,
            source=", ".join(part.decode("utf-8", "backslashreplace") for part in self._batch.about.sources),
            strategy="parallel",
            max_parallel=max(1, sum(holder.role == "worker" for holder in self._seen.holders)),
            on_failure="continue",
            task_count=len(self._plan.tasks),
            task_ids=tuple(self._plan.task_names),
            edges={"file": sum(len(task.needs) for task in self._plan.tasks)},
        )

    def _progress(self, place: Cursor) -> events.BatchProgress:
        now_ns = wall_ns()
        tally, seconds = self._seen.tally, self._seconds(now_ns)
        done = self._spells[-1].results if self._spells else 0
        eta = tuple(round(seconds * tally.open / done * each, 1) for each in _SPREAD) if done else None
        return self._make(events.BatchProgress, place, at_ns=now_ns, eta_seconds=eta, running=tuple(self._at_work()))

    def _at_work(self) -> list[events.TaskAtWork]:
        found: list[events.TaskAtWork] = []
        for holder in self._seen.holders:
            step = self._step(holder.holder) if holder.role == "worker" and is_here(holder.host) else None
            if step is not None and step.items is not None:
                name = self._plan.task_names[step.task] if step.task < len(self._plan.tasks) else "-"
                seconds = round(max(0, running_ns() - step.since_ns) / 1e9, 1)
                found.append(events.TaskAtWork(task=name if step.task != NO_TASK else "-", seconds=seconds))
        return found

    def _step(self, holder: str) -> Step | None:
        try:
            cell = ProgressCell(
                self._batch.files, self._batch.root / layout.HOLDERS / layout.cell_name(holder), create=False
            )
        except FileNotFoundError:
            return None
        try:
            return cell.read()
        finally:
            cell.close()

    def _seconds(self, until_ns: int) -> float:
        """Since somebody began, as the journals have it."""
        return round(max(0, until_ns - self._spells[-1].began_ns) / 1e9, 3) if self._spells else 0.0

    def _all_seconds(self, until_ns: int) -> float:
        """How long somebody was at work on it, whenever that was."""
        before = sum(max(0, each.last_ns - each.began_ns) for each in self._spells[:-1])
        return round(before / 1e9 + self._seconds(until_ns), 3)

    def _make(self, make: Callable[..., E], place: Cursor, *, at_ns: int, **fields: object) -> E:
        return make(
            cursor=str(place),
            seq=place.seq,
            at=events.instant_ms(at_ns),
            batch_id=self._batch.id,
            counts=counts_of(self._seen),
            **fields,
        )


def counts_of(stands: CurrentState) -> dict[str, int]:
    """How many pairs of a file and a task are in which state, by the names that commands have."""
    tally = stands.tally
    found = {"DONE": tally.results, "FAILED": tally.failed, "CANCELLED": tally.cancelled, "PENDING": tally.open}
    return {name: count for name, count in found.items() if count}


def shortfall_of(batch: BatchDir, stands: CurrentState) -> BatchIncomplete | None:
    """What lacks of an analysis on which nobody is at work; None where nothing does."""
    if stands.state is BatchState.COMPLETED:
        return None
    tally, resume = stands.tally, f"codebatch resume --batch {batch.id}"
    if stands.state is BatchState.CANCELLED:
        return cancelled(batch)
    if not stands.state.is_final:
        return BatchIncomplete(
            (
                f"{tally.open:,} of {tally.planned:,} results of batch {batch.id} are missing, and no process "
                "is running it"
            ),
            hint=f"resume it with: {resume}",
        )
    hint = f"see: codebatch errors --batch {batch.id}; retry them with: {resume}"
    return BatchIncomplete(f"{tally.failed + tally.cancelled:,} of {tally.planned:,} results failed", hint=hint)
