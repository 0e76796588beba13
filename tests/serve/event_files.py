"""The event files of a batch, which a test writes as a coordinator does."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from hypothesis import strategies as st

from codebatch.model.documents import encode_document
from codebatch.model.work.event import BatchPaused, EventCursor, cursor_text, parse_cursor
from codebatch.store import layout
from codebatch.store.work.events import EventReader
from codebatch.system.files.files import RealFiles


@dataclass(frozen=True, slots=True)
class EventFiles:
    """The event files of a batch in the directory `batch_root`."""

    batch_root: Path

    def path(self, epoch: int) -> Path:
        """Return the event file of a coordinator."""
        return self.batch_root / layout.EVENTS / layout.events_name(epoch)

    def clear(self) -> None:
        """Remove all events."""
        for path in (self.batch_root / layout.EVENTS).glob("*"):
            path.unlink()

    def write(self, epoch: int, first: int, count: int) -> None:
        """Append events with consecutive numbers to the file of a coordinator."""
        events = (make_event(epoch, seq, self.batch_root.name) for seq in range(first, first + count))
        data = b"".join(map(encode_document, events))
        self.path(epoch).parent.mkdir(exist_ok=True)
        with open(self.path(epoch), "ab") as file:
            file.write(data)

    def cursors(self) -> list[EventCursor]:
        """Return the cursors of all events."""
        return [event.place for event in EventReader(RealFiles(), self.batch_root).read()]


def place_of(cursor: str) -> EventCursor:
    """Return the position that a cursor names."""
    parsed = parse_cursor(cursor)
    assert parsed is not None
    return parsed[1]


def make_event(epoch: int, seq: int, batch: str) -> BatchPaused:
    """Return an event with a number."""
    cursor = cursor_text(batch, EventCursor(epoch, seq))
    return BatchPaused(cursor=cursor, seq=seq, at="", batch_id=batch, counts={}, by="x", request=seq)


file_steps = st.one_of(
    st.tuples(st.just("write"), st.integers(1, 3), st.integers(1, 700)),
    st.tuples(st.just("cut"), st.integers(1, 3), st.integers(0, 400)),
    st.tuples(
        st.just("junk"), st.integers(1, 3), st.sampled_from([b"\xff\0\n", b'{"event":"BATCH_PAUSED"', b"\n\n", b"x"])
    ),
    st.tuples(st.just("remove"), st.integers(1, 3), st.none()),
    st.tuples(st.just("read"), st.none(), st.none()),
)
"""A change of the file of a coordinator: the kind of change, the number of the coordinator, and an amount or bytes."""
