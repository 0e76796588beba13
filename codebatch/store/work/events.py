"""The event streams of a work batch: one file for each coordinator lease, with a single writer (SPEC.md "Events").

Each line is a document. Damaged and incomplete lines are ignored. No decision depends on events, so damage to these
files affects only what users see.
"""

from __future__ import annotations

import contextlib
from collections import deque
from collections.abc import Collection, Iterator
from pathlib import Path

import msgspec

from codebatch.errors import StoreError
from codebatch.model.documents import DocumentError, decode_document, decode_json, encode_document
from codebatch.model.work.event import (
    EVENT_FORMAT,
    FIRST_CURSOR,
    AnyEvent,
    BatchEvent,
    BatchProgress,
    EventCursor,
    EventHead,
    cursor_text,
)
from codebatch.store import layout
from codebatch.system.files.file_reader import FileReader
from codebatch.system.files.files import FileAppender, FileLock, StoreFiles

PIECE_BYTES = 1 << 20
PENDING_BYTES_MAX = 64 * 1024 * 1024
_END_BYTES = 1 << 18
_LINE_START = '{"event":"%s"'
_PROGRESS_START = (_LINE_START % "BATCH_PROGRESS").encode()

_event_decoder: msgspec.json.Decoder[AnyEvent] = msgspec.json.Decoder(AnyEvent)


class EventWriter:
    """The event stream of one coordinator. Events that cannot be written are buffered and written later.

    If the buffer exceeds PENDING_BYTES_MAX, the oldest events are dropped. The last event always stays, because it
    reports how the batch ended. With `locks`, the file is locked until `close`, while this process delivers
    notifications of its events.
    """

    def __init__(self, files: StoreFiles, batch_root: Path, epoch: int, *, locks: bool = False) -> None:
        self._locks = locks
        self._lock: FileLock | None = None
        self._files = files
        self._path = batch_root / layout.EVENTS / layout.events_name(epoch)
        self._appender: FileAppender | None = None
        self._pending: deque[bytes] = deque()
        self._pending_bytes = 0

    def add(self, event: BatchEvent) -> None:
        """Buffer an event until the next `flush`."""
        data = encode_document(event)
        self._pending.append(data)
        self._pending_bytes += len(data)
        while self._pending_bytes > PENDING_BYTES_MAX and len(self._pending) > 1:
            self._pending_bytes -= len(self._pending.popleft())

    def flush(self, *, looks: bool = False) -> None:
        """Write the buffered events without syncing them.

        If `looks` is set, look whether the file was removed, and recreate it.
        """
        if not self._pending:
            return
        # A removed file is recreated, because no reader would find it otherwise. If the disk is full, events stay
        # buffered.
        with contextlib.suppress(StoreError, OSError):
            if looks and self._appender is not None and self._files.size(self._path) is None:
                self.close()
            if self._appender is None:
                self._appender = self._files.open_append(self._path)
                self._lock = self._files.try_lock(self._path, create=False) if self._locks else None
            self._appender.append(b"".join(self._pending))
            self._pending.clear()
            self._pending_bytes = 0

    def finish(self) -> None:
        """Write the buffered events. If the disk has no room for all of them, write only the last one."""
        self.flush(looks=True)
        if self._pending:
            self._pending = deque([self._pending[-1]])
            self.flush(looks=True)

    def close(self) -> None:
        """Close the file."""
        if self._appender is not None:
            self._appender.close()
            self._appender = None
        if self._lock is not None:
            self._lock.release()
            self._lock = None


class EventReader:
    """A reader of the events of a work batch, in order. Each call of `read` continues after the previous one.

    If `names` is not empty, only events with these names are read.
    """

    def __init__(
        self, files: FileReader, batch_root: Path, since: EventCursor = FIRST_CURSOR, names: Collection[str] = ()
    ) -> None:
        self._starts = tuple((_LINE_START % name).encode() for name in names) or b""
        self._files = files
        self._directory = batch_root / layout.EVENTS
        self._since = since
        self._places: dict[int, int] = {}
        self._lines: deque[tuple[bytes, int]] = deque()

    def read(self, limit: int | None = None) -> list[AnyEvent]:
        """Return the events that were written since the last call, in order, but at most `limit` of them.

        The next call continues after the last returned event. Lines that were read from a file but not returned stay
        in memory: at most those of one piece.
        """
        events: list[AnyEvent] = []
        pieces = self._read_pieces()
        while limit is None or len(events) < limit:
            if not self._lines:
                if next(pieces, None) is None:
                    break
                continue
            event = _decode_event(*self._lines.popleft(), since=self._since)
            if event is not None:
                self._since = event.place
                events.append(event)
        return events

    def last_progress(self) -> BatchProgress | None:
        """Return the last progress event of the last file, or None if there is none near the end of the file."""
        for epoch in self._list_epochs()[-1:]:
            path = self._directory / layout.events_name(epoch)
            size = self._files.size(path) or 0
            with contextlib.suppress(FileNotFoundError, StoreError):
                data = self._files.read_range(path, max(0, size - _END_BYTES), _END_BYTES)
                for line in reversed(data.splitlines(keepends=True)):
                    if line.startswith(_PROGRESS_START) and isinstance(
                        event := _decode_event(line, epoch), BatchProgress
                    ):
                        return event
        return None

    def _list_epochs(self) -> list[int]:
        names = (layout.parse_events_name(name) for name in self._files.listing(self._directory))
        return sorted(epoch for epoch in names if epoch is not None)

    def _read_pieces(self) -> Iterator[int]:
        """Read the files piece by piece, add their new complete lines to `_lines`, and yield after each piece.

        If a file has become shorter, or was removed and is there again, read it from its start.
        """
        epochs = self._list_epochs()
        self._places = {epoch: place for epoch, place in self._places.items() if epoch in epochs}
        for epoch in epochs:
            if epoch < self._since.epoch:
                continue
            path = self._directory / layout.events_name(epoch)
            size = self._files.size(path) or 0
            place = self._places.get(epoch, 0)
            self._places[epoch] = place = place if place <= size else 0
            incomplete_line = b""
            with contextlib.suppress(FileNotFoundError, StoreError):
                while place < size and (piece := self._files.read_range(path, place, min(PIECE_BYTES, size - place))):
                    place += len(piece)
                    *complete, incomplete_line = (incomplete_line + piece).split(b"\n")
                    self._places[epoch] = place - len(incomplete_line)
                    self._lines.extend((line + b"\n", epoch) for line in complete if line.startswith(self._starts))
                    yield epoch


def _decode_event(line: bytes, epoch: int, since: EventCursor = FIRST_CURSOR) -> AnyEvent | None:
    """Decode a line of the event file of an epoch.

    Return None if the event is not after the cursor `since`, or if the line is damaged or was written by a later
    version.
    """
    try:
        head = decode_document(line, EventHead, EVENT_FORMAT)
        place = EventCursor(epoch, head.seq)
        cursor = cursor_text(head.batch_id, place)
        if head.cursor not in (cursor, str(place)) or place <= since:
            return None
        event = decode_json(line, _event_decoder.decode)
        # Earlier versions wrote cursors without the batch.
        return event if event.cursor == cursor else msgspec.structs.replace(event, cursor=cursor)
    except DocumentError:
        return None
