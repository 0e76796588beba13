"""The stream of events of a work batch on a disk that refuses writes: the last event is the last that is lost."""

from __future__ import annotations

from pathlib import Path

import pytest

from codebatch.errors import StoreUnwritable
from codebatch.model.work.event import BatchDrained, BatchEvent, BatchPaused
from codebatch.store.work import events
from codebatch.store.work.events import EventReader, EventWriter
from codebatch.system.files.files import FileAppender, RealFiles
from codebatch.system.files.system_calls import SHARED_MODE


class SmallDisk(RealFiles):
    """Files of a disk that takes no write of more than `room` bytes."""

    room = 0

    def open_append(self, path: Path | str, *, directory_mode: int = SHARED_MODE) -> FileAppender:
        appender = super().open_append(path, directory_mode=directory_mode)
        append = appender.append

        def refuse(data: bytes) -> int:
            if len(data) > self.room:
                raise StoreUnwritable("the disk is full")
            return append(data)

        appender.append = refuse  # type: ignore[method-assign]
        return appender


def event(seq: int) -> BatchEvent:
    """An event that is not the last one."""
    return BatchPaused(cursor=f"1.{seq}", seq=seq, at="", batch_id="b", counts={}, by="somebody", request=1)


def last_event(seq: int) -> BatchEvent:
    """The last event."""
    return BatchDrained(cursor=f"1.{seq}", seq=seq, at="", batch_id="b", counts={}, error="the disk is full")


def written_sequence_numbers(root: Path) -> list[int]:
    """The numbers of the events on disk."""
    return [one.seq for one in EventReader(RealFiles(), root).read()]


def test_event_writer_drops_the_oldest_pending_events_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events, "PENDING_BYTES_MAX", 1000)
    disk = SmallDisk()
    writer = EventWriter(disk, tmp_path, 1)
    for seq in range(1, 20):
        writer.add(event(seq))
        writer.flush()
    writer.add(last_event(20))
    disk.room = 1000
    writer.finish()
    writer.close()
    found = written_sequence_numbers(tmp_path)
    assert len(found) > 1
    assert found == [*range(21 - len(found), 21)]


def test_last_event_is_written_to_a_nearly_full_disk(tmp_path: Path) -> None:
    disk = SmallDisk()
    disk.room = 300
    writer = EventWriter(disk, tmp_path, 1)
    for one in (event(1), event(2), last_event(3)):
        writer.add(one)
    writer.finish()
    writer.close()
    assert written_sequence_numbers(tmp_path) == [3]
