"""The notifications of a work batch, read from its events (SPEC.md "Notifications").

A runner records each notification by an event. So after a crash, the next runner knows which ones are owed. The runner
locks its event file while it delivers.
"""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from codebatch.errors import StoreError
from codebatch.model.text.quantities import count_text
from codebatch.model.work import event as events
from codebatch.model.work.event import event_name
from codebatch.model.work.work_batch import NotifySettings
from codebatch.store import layout
from codebatch.store.batches.batch_directory import BatchDir
from codebatch.store.work.events import EventReader

_STARTS = (events.BatchStarted, events.BatchResumed)
_ENDS = (events.BatchDrained, *events.END_EVENT_TYPES.values())


class NotificationHistory(NamedTuple):
    """The notifications of a batch so far.

    - `failed`: the notifications that were given up. `recent`: those of them after the last one that was delivered.
    - `owed`: the events whose notification a killed runner owes.
    - `lacks_end`: the last runner was killed before it reported how the batch ended.
    """

    failed: Sequence[events.BatchNotified] = ()
    recent: Sequence[events.BatchNotified] = ()
    owed: Sequence[events.AnyEvent] = ()
    lacks_end: bool = False

    @property
    def is_pending(self) -> bool:
        """Whether the next runner has a notification to deliver, even if no task is left."""
        return bool(self.owed) or self.lacks_end


def read_notifications(batch: BatchDir, notify: NotifySettings | None) -> NotificationHistory:
    """Return the notifications of a batch. Unreadable events count as missing."""
    if notify is None:
        return NotificationHistory()
    marks = {event_name(type_) for type_ in (events.BatchNotified, *_STARTS, *_ENDS)}
    read: list[events.AnyEvent] = []
    with contextlib.suppress(StoreError, OSError):
        read = EventReader(batch.files, batch.root, names={*marks, *notify.events}).read()
    records = [event for event in read if isinstance(event, events.BatchNotified)]
    recorded = {record.notified_cursor for record in records}
    # Runners of earlier versions recorded nothing, and a runner that is still delivering owes nothing yet.
    recording = {event.place.epoch for event in read if isinstance(event, _STARTS) and event.notifies is True}
    dead = {epoch for epoch in recording if not _is_locked(batch, epoch)}
    owed = [
        event
        for event in read
        if event.place.epoch in dead
        and event_name(event) in notify.events
        and event.cursor not in recorded
        and not isinstance(event, events.BatchProgress)
    ]
    failed = [record for record in records if record.problem]
    delivered = max((number for number, record in enumerate(records) if not record.problem), default=-1)
    last = next((event for event in reversed(read) if isinstance(event, (*_STARTS, *_ENDS))), None)
    lacks_end = isinstance(last, _STARTS) and last.place.epoch in dead
    return NotificationHistory(failed, records[delivered + 1 :], owed, lacks_end)


def _is_locked(batch: BatchDir, epoch: int) -> bool:
    with contextlib.suppress(StoreError, OSError):
        return batch.files.is_locked(batch.root / layout.EVENTS / layout.events_name(epoch))
    return False


def failed_notifications_text(failed: Sequence[events.BatchNotified]) -> str:
    """Return a text about the failed notifications, at least one: the last one, and all by name."""
    last = failed[-1]
    tries = f", {last.tries} tries" if last.tries > 1 else ""
    text = f"notification of {last.notified} failed: {last.problem}{tries}"
    if len(failed) == 1:
        return text
    counts = Counter(record.notified for record in failed)
    names = ", ".join(f"{count:,} {name}" for name, count in sorted(counts.items()))
    return f"{text}; failed in all: {count_text(len(failed), 'notification')} ({names})"
