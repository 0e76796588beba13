"""The event streams of a work batch: one file for each coordinator lease, with a single writer (SPEC.md "Events").

Each line is a document. Damaged and incomplete lines are ignored. No decision depends on events, so damage to these
files affects only what users see.
"""

from __future__ import annotations

import contextlib
from collections import deque
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
)
from codebatch.store import layout
from codebatch.system.files.file_reader import FileReader
from codebatch.system.files.files import FileAppender, StoreFiles

PIECE_BYTES = 1 << 20
PENDING_BYTES_MAX = 64 * 1024 * 1024
_END_BYTES = 1 << 18
_PROGRESS_START = b'{"event":"BATCH_PROGRESS"'

_event_decoder: msgspec.json.Decoder[AnyEvent] = msgspec.json.Decoder(AnyEvent)


class EventWriter:
    """The event stream of one coordinator. Events that cannot be written are buffered and written later.

    If the buffer exceeds PENDING_BYTES_MAX, the oldest events are dropped. The last event always stays, because it
    reports how the batch ended.
    """

    def __init__(self, files: StoreFiles, batch_root: Path, epoch: int) -> None:
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


class EventReader:
    """A reader of the events of a work batch, in order. Each call of `read` continues after the previous one."""

    def __init__(self, files: FileReader, batch_root: Path, since: EventCursor = FIRST_CURSOR) -> None:
        self._files = files
        self._directory = batch_root / layout.EVENTS
        self._since = since
        self._places: dict[int, int] = {}

    def read(self) -> list[AnyEvent]:
        """Return the events that were written since the last call, in order."""
        events: list[AnyEvent] = []
        for epoch in self._list_epochs():
            if epoch < self._since.epoch:
                continue
            for line in self._read_new_lines(epoch):
                event = _decode_event(line, epoch)
                if event is not None and event.place > self._since:
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

    def _read_new_lines(self, epoch: int) -> list[bytes]:
        """Return the complete lines of an event file that were written since the last call.

        If the file has become shorter, read it from its start.
        """
        path = self._directory / layout.events_name(epoch)
        size = self._files.size(path) or 0
        place = self._places.get(epoch, 0)
        if size < place:
            place = 0
        lines: list[bytes] = []
        incomplete_line = b""
        try:
            while place + len(incomplete_line) < size and (
                piece := self._files.read_range(
                    path, place + len(incomplete_line), min(PIECE_BYTES, size - place - len(incomplete_line))
                )
            ):
                *complete, incomplete_line = (incomplete_line + piece).split(b"\n")
                place += sum(map(len, complete)) + len(complete)
                lines += [line + b"\n" for line in complete]
        except (FileNotFoundError, StoreError):
            pass
        self._places[epoch] = place
        return lines


def _decode_event(line: bytes, epoch: int) -> AnyEvent | None:
    """Decode a line of the event file of an epoch.

    Return None if the line is damaged or was written by a later version.
    """
    try:
        head = decode_document(line, EventHead, EVENT_FORMAT)
        event = decode_json(line, _event_decoder.decode)
    except DocumentError:
        return None
    return event if head.place == EventCursor(epoch, head.seq) else None
