"""Telling what happens in a work batch: the events of one coordinator, for whoever follows (SPEC.md "Events").

Nothing is decided by them. What the disk refuses is told later or never, and what is damaged is as if it was not told:
the batch goes on, and where each command stands is the same.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from codebatch.coordinator.crew import Member
from codebatch.coordinator.event_teller import EventTeller
from codebatch.engine.actions import Break, Complete, Drained
from codebatch.engine.command_events import CommandEvent, Concluded, Start
from codebatch.engine.conductor import Conductor
from codebatch.engine.story import Story
from codebatch.model import batch_event as events
from codebatch.model.outcome import Commit, Used
from codebatch.model.request import Request
from codebatch.model.work import Work
from codebatch.store.attempts import Attempts
from codebatch.store.batches import Batch
from codebatch.store.holders import Lease
from codebatch.store.told_before import ToldBefore, used_by_the_journals

PROGRESS_SECONDS = 5.0


class Telling:
    """What one coordinator tells."""

    def __init__(
        self,
        batch: Batch,
        work: Work,
        conductor: Conductor,
        attempts: Attempts,
        epoch: int,
        *,
        concluded: Concluded,
        requests: Sequence[Request],
        leases: Mapping[int, Lease],
        wall_ns: Callable[[], int],
        running_ns: Callable[[], int],
    ) -> None:
        """The batch is ours. `concluded` is all that ended before, `leases` are those of its commands by item."""
        self._conductor = conductor
        self._attempts = attempts
        self._running_ns = running_ns
        self._progress_ns = running_ns()
        self._signal = ""
        ids = conductor.agenda.ids
        before = ToldBefore(batch, epoch, {id_: item for item, id_ in enumerate(ids)})
        self._story = Story(conductor, requests, before.told)
        self._teller = EventTeller(
            batch,
            work,
            attempts.places,
            epoch,
            conductor,
            self._story,
            leases=leases,
            started=before.started,
            wall_ns=wall_ns,
            running_ns=running_ns,
        )
        untold = {(one.item, one.round) for one in concluded.conclusions} - before.told.ends
        if untold:
            self._teller.used.update(used_by_the_journals(batch, attempts.places, untold))
        opened = tuple(ids[item] for item in self._story.opened_before)
        found = self._story.begin(concluded)
        if before.last is None:
            self._teller.started(len(requests))
        else:
            self._teller.tell(
                events.BatchResumed,
                after=before.left_by,
                opened=opened,
                adopted=tuple(ids[item] for item in sorted(conductor.foreign)),
                requests=len(requests),
            )
        self._teller.tell_all(found)
        self._teller.flush()

    def starts(self, start: Start, member: Member) -> None:
        """A command is given to a worker."""
        self._teller.members[start.item] = member.holder, member.pid
        self._story.start(start)

    def uses(self, commit: Commit, used: Used | None) -> None:
        """An attempt took so much. To be called before its end is handled."""
        if used is not None:
            self._teller.used.update({(one.item, one.round): used for one in self._attempts.of_commit(commit)})

    def handled(self, event: CommandEvent) -> None:
        """The conductor has taken an event, and what it asked for is done."""
        self._teller.tell_all(self._story.after(event))

    def turned(self) -> None:
        """A turn is over: what it brought about is written; now and then how far all is."""
        now = self._running_ns()
        if now - self._progress_ns >= PROGRESS_SECONDS * 1e9 and self._conductor.running:
            self._progress_ns = now
            self._teller.progress()
        self._teller.flush()

    def drains(self, reason: str) -> None:
        """Somebody wanted an end, for a signal of that name."""
        self._signal = reason

    def end(self, how: Complete | Drained | Break | None) -> None:
        """Nothing is done here any more: the last event."""
        self._teller.tell_all(self._story.rest())
        if isinstance(how, Complete):
            self._teller.end()
        else:
            self._teller.tell(events.BatchDrained, signal=self._signal)
        self._teller.flush()

    def close(self) -> None:
        """Release the file."""
        self._teller.close()
