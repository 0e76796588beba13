"""What must hold of the events of a work batch whose coordinator came to an end."""

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
    """Each end of an attempt is told once over all coordinators, and the last word of each is that all is over.

    Where it `is_whole` nothing is missing, for the disk refused nothing.
    """
    told: Counter[tuple[str, int]] = Counter()
    last: dict[int, AnyEvent] = {}
    for event in EventReader(batch.files, batch.root).read():
        before = last.get(event.place.epoch)
        assert not isinstance(before, BatchEnded), f"{event} behind the last word"
        last[event.place.epoch] = event
        if isinstance(event, TaskEvent) and is_end(event):
            told[event.task, event.round] += 1
    twice = [place for place, count in told.items() if count > 1]
    assert not twice, f"told twice: {twice}"
    commands = read_command_ids(store, batch, read_work(batch))
    concluded = AttemptReader(batch.plan(), OutcomeRegisters(batch.files, batch.root)).read()
    ended = {(commands[one.item], one.round) for one in concluded.conclusions if one.reason != "unbegun"}
    assert not told.keys() - ended, f"told of nothing: {told.keys() - ended}"
    if is_whole:
        assert not ended - told.keys(), f"not told: {ended - told.keys()}"
        assert isinstance(last[max(last)], BatchEnded), "there is no last word"
