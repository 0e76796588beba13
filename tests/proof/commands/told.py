"""A check of the events of a work batch whose coordinator has ended."""

from __future__ import annotations

from collections import Counter

from codebatch.model.work.event import AnyEvent, BatchEnded, TaskEvent
from codebatch.store.batches.batch_directory import BatchDir
from codebatch.store.batches.store_directory import StoreDir
from codebatch.store.results.outcomes import OutcomeRegisters
from codebatch.store.work.attempts import AttemptReader
from codebatch.store.work.event_history import is_end
from codebatch.store.work.events import EventReader
from codebatch.store.work.work_batches import read_command_ids, read_work


def check_told(store: StoreDir, batch: BatchDir, *, is_whole: bool) -> None:
    """Check that each end of an attempt is emitted once over all coordinators, and that BatchEnded is the last event.

    If the stream `is_whole`, no event may be missing, because the disk refused no write.
    """
    emitted: Counter[tuple[str, int]] = Counter()
    last: dict[int, AnyEvent] = {}
    for event in EventReader(batch.files, batch.root).read():
        before = last.get(event.place.epoch)
        assert not isinstance(before, BatchEnded), f"{event} follows the end of the batch"
        last[event.place.epoch] = event
        if isinstance(event, TaskEvent) and is_end(event):
            emitted[event.task, event.round] += 1
    twice = [place for place, count in emitted.items() if count > 1]
    assert not twice, f"ends emitted twice: {twice}"
    commands = read_command_ids(store, batch, read_work(batch))
    concluded = AttemptReader(batch.plan(), OutcomeRegisters(batch.files, batch.root)).read()
    outcomes = [outcome for outcome in concluded.conclusions if outcome.reason != "unbegun"]
    ended = {(commands[outcome.item], outcome.round) for outcome in outcomes}
    assert not emitted.keys() - ended, f"events of attempts that did not end: {emitted.keys() - ended}"
    if is_whole:
        assert not ended - emitted.keys(), f"ends not emitted: {ended - emitted.keys()}"
        assert isinstance(last[max(last)], BatchEnded), "the last event is not the end of the batch"
