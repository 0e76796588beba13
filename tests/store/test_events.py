"""Tests of the event stream of a work batch: on a disk that refuses writes, and read in steps of any size."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from codebatch.errors import StoreUnwritable
from codebatch.model.documents import encode_document
from codebatch.model.work.event import BatchDrained, BatchEvent, BatchPaused, EventCursor
from codebatch.store import layout
from codebatch.store.work import events
from codebatch.store.work.events import EventReader, EventWriter
from codebatch.system.files.files import FileAppender, RealFiles
from codebatch.system.files.system_calls import SHARED_MODE


class SmallDisk(RealFiles):
    """Files of a disk that refuses each write of more than `room` bytes."""

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


class CountingDisk(RealFiles):
    """Files of a disk that counts the bytes read from it."""

    bytes_read = 0

    def read_range(self, path: Path | str, offset: int, length: int) -> bytes:
        data = super().read_range(path, offset, length)
        self.bytes_read += len(data)
        return data


def event(seq: int, epoch: int = 1) -> BatchEvent:
    """Return an event that is not the last one."""
    return BatchPaused(cursor=f"b:{epoch}.{seq}", seq=seq, at="", batch_id="b", counts={}, by="somebody", request=1)


def last_event(seq: int) -> BatchEvent:
    """Return the last event of a stream."""
    return BatchDrained(cursor=f"b:1.{seq}", seq=seq, at="", batch_id="b", counts={}, error="the disk is full")


def written_sequence_numbers(root: Path) -> list[int]:
    """Return the sequence numbers of the events on disk."""
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
    numbers = written_sequence_numbers(tmp_path)
    assert len(numbers) > 1
    assert numbers == [*range(21 - len(numbers), 21)]


def test_last_event_is_written_to_a_nearly_full_disk(tmp_path: Path) -> None:
    disk = SmallDisk()
    disk.room = 300
    writer = EventWriter(disk, tmp_path, 1)
    for one in (event(1), event(2), last_event(3)):
        writer.add(one)
    writer.finish()
    writer.close()
    assert written_sequence_numbers(tmp_path) == [3]


def test_cursor_of_an_earlier_version_gets_the_batch(tmp_path: Path) -> None:
    old = [replace(event(seq), cursor=cursor) for seq, cursor in ((1, "1.1"), (2, "1.3"), (3, "2.3"), (4, "c:1.4"))]
    events_path(tmp_path, 1).write_bytes(b"".join(map(encode_document, [*old, event(5)])))
    found = EventReader(RealFiles(), tmp_path).read()
    assert [(one.cursor, one.place) for one in found] == [("b:1.1", EventCursor(1, 1)), ("b:1.5", EventCursor(1, 5))]


def events_path(root: Path, epoch: int) -> Path:
    """The event file of an epoch, in a directory that exists."""
    path = root / layout.EVENTS / layout.events_name(epoch)
    path.parent.mkdir(exist_ok=True)
    return path


@given(
    steps=st.lists(
        st.one_of(
            st.tuples(st.just("write"), st.integers(1, 2), st.integers(1, 400)),
            st.tuples(st.just("read"), st.just(0), st.one_of(st.none(), st.integers(1, 4))),
        ),
        max_size=40,
    ),
    since=st.tuples(st.integers(0, 2), st.integers(0, 6)),
)
def test_event_reader_returns_each_event_once_for_any_limits(
    tmp_path_factory: pytest.TempPathFactory,
    steps: list[tuple[str, int, int | None]],
    since: tuple[int, int],
) -> None:
    """The writer appends any number of bytes at a time. The second epoch starts when the first is complete."""
    root = tmp_path_factory.mktemp("events")
    streams = {epoch: b"".join(encode_document(event(seq, epoch)) for seq in range(1, 7)) for epoch in (1, 2)}
    unwritten = dict(streams)
    reader = EventReader(RealFiles(), root, EventCursor(*since))
    found: list[EventCursor] = []
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(events, "PIECE_BYTES", 150)
        for action, epoch, amount in [*steps, ("write", 1, 10**6), ("write", 2, 10**6), ("read", 0, None)]:
            if action == "read":
                events_read = reader.read(amount)
                assert amount is None or len(events_read) <= amount
                found += [one.place for one in events_read]
            elif epoch == 1 or not unwritten[1]:
                with events_path(root, epoch).open("ab") as file:
                    file.write(unwritten[epoch][:amount])
                unwritten[epoch] = unwritten[epoch][amount:]
    every = [EventCursor(epoch, seq) for epoch in (1, 2) for seq in range(1, 7)]
    assert found == [place for place in every if place > EventCursor(*since)]


def test_event_reader_reads_each_byte_once_for_small_limits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stream = b"".join(encode_document(event(seq)) for seq in range(1, 101))
    events_path(tmp_path, 1).write_bytes(stream)
    piece = len(stream) // 3
    monkeypatch.setattr(events, "PIECE_BYTES", piece)
    disk = CountingDisk()
    reader = EventReader(disk, tmp_path)
    assert [one.seq for one in reader.read(10)] == [*range(1, 11)]
    assert disk.bytes_read == piece, "only the first piece is needed"
    found = [one.seq for _ in range(9) for one in reader.read(10)]
    assert found == [*range(11, 101)]
    assert reader.read(10) == []
    longest_line = max(map(len, stream.splitlines(keepends=True)))
    assert disk.bytes_read <= len(stream) + 3 * longest_line, "only an incomplete line is read again"


def test_event_reader_starts_again_at_a_file_that_was_truncated(tmp_path: Path) -> None:
    lines = [encode_document(event(seq)) for seq in range(1, 6)]
    path = events_path(tmp_path, 1)
    path.write_bytes(b"".join(lines[:3]))
    reader = EventReader(RealFiles(), tmp_path)
    assert [one.seq for one in reader.read(2)] == [1, 2]
    path.write_bytes(lines[3])
    assert [one.seq for one in reader.read()] == [3, 4], "event 3 was read before the file was truncated"
    path.write_bytes(b"".join(lines[3:]))
    assert [one.seq for one in reader.read()] == [5]


def test_event_reader_starts_again_at_a_file_that_was_removed(tmp_path: Path) -> None:
    """A coordinator recreates its file, which can be longer at the next read than at the last."""
    lines = [encode_document(event(seq)) for seq in range(1, 5)]
    path = events_path(tmp_path, 1)
    path.write_bytes(lines[0])
    reader = EventReader(RealFiles(), tmp_path)
    assert [one.seq for one in reader.read()] == [1]
    path.unlink()
    assert reader.read() == []
    path.write_bytes(b"".join(lines[1:]))
    assert [one.seq for one in reader.read()] == [2, 3, 4]
