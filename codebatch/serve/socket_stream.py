"""The WebSocket of a client: the events of a batch, in frames."""

from __future__ import annotations

import asyncio

import anyio
import msgspec
from anyio import to_thread
from starlette.websockets import WebSocket, WebSocketDisconnect

from codebatch.errors import CodebatchError, UnknownCursor
from codebatch.model.work.event import FIRST_CURSOR, EventCursor, cursor_text
from codebatch.serve.watcher import FRAME_EVENTS_MAX, BatchWatcher, Frame
from codebatch.store.batches.store_directory import StoreDir
from codebatch.work.control.event_feed import EventFeed
from codebatch.work.control.follow import check_cursor

BEHIND_EVENTS_MAX = 5000
SEND_SECONDS_MAX = 30.0
_WAIT_SECONDS = 1.0

GOING_AWAY = 1001
UNACCEPTABLE_DATA = 1008
SERVER_ERROR = 1011
TRY_AGAIN_LATER = 1013
"""Codes of RFC 6455, section 7.4.1, and of its IANA registry."""


class SocketStream:
    """Sends the events of a batch to one client until it disconnects or the server stops."""

    def __init__(self, socket: WebSocket, store: StoreDir, watcher: BatchWatcher, since: EventCursor | None) -> None:
        """`since` is the position after the last event that the client has. None: it has events of another stream."""
        self._socket = socket
        self._store = store
        self._watcher = watcher
        self._since = since or FIRST_CURSOR
        self._is_foreign = since is None
        self._older: EventFeed | None = None
        self._progress = b""
        self._was_current = False

    async def run(self, stopping: asyncio.Event) -> None:
        """Send until the client disconnects, or until `stopping` is set."""
        tasks = [asyncio.ensure_future(self._send_all()), asyncio.ensure_future(self._receive())]
        tasks.append(asyncio.ensure_future(stopping.wait()))
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            code = GOING_AWAY if stopping.is_set() else max((task.result() or 0 for task in done), default=0)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        if code:
            with anyio.move_on_after(1.0):
                await self._socket.close(int(code))

    async def _receive(self) -> int:
        """Wait until the client disconnects, and return 0. A client that sends anything gets an error."""
        message = await self._socket.receive()
        return 0 if message["type"] == "websocket.disconnect" else UNACCEPTABLE_DATA

    async def _send_all(self) -> int:
        """Send all events. Return the code with which to close the connection, or 0 if the client is gone."""
        try:
            if self._is_foreign or await to_thread.run_sync(self._is_after_all_events):
                self._since = FIRST_CURSOR
                await self._send(b'{"reset":true}')
            while True:
                if self._was_current and self._watcher.count_after(self._since) > BEHIND_EVENTS_MAX:
                    await self._send(b'{"behind":"%b"}' % cursor_text(self._watcher.batch.id, self._since).encode())
                    return TRY_AGAIN_LATER
                frame = await self._next_frame()
                is_idle = frame.cursor == self._since
                if frame.events:
                    await self._send(frame.encode())
                self._since = frame.cursor
                if self._watcher.progress != self._progress:
                    self._progress = self._watcher.progress
                    await self._send(self._progress)
                    is_idle = False
                if is_idle:
                    if self._watcher.error is not None:
                        return SERVER_ERROR
                    self._was_current = self._was_current or self._watcher.has_caught_up
                    await self._watcher.wait(_WAIT_SECONDS)
                # Other clients, and new connections, get their turn between two frames.
                await asyncio.sleep(0)
        except (CodebatchError, TimeoutError):
            return SERVER_ERROR
        except (WebSocketDisconnect, RuntimeError):
            return 0

    def _is_after_all_events(self) -> bool:
        """Return whether the client has events of a stream that no longer exists."""
        try:
            # Another reader of the batch may have seen an event before the watcher does.
            check_cursor(self._since, self._store, self._watcher.batch, self._watcher.newest)
        except UnknownCursor:
            return True
        return False

    async def _next_frame(self) -> Frame:
        """Return the next events, from disk if the watcher no longer keeps them."""
        frame = self._watcher.frame_after(self._since)
        if frame is not None:
            self._older = None
            return frame
        return await to_thread.run_sync(self._read_older)

    def _read_older(self) -> Frame:
        if self._older is None:
            self._older = EventFeed(self._store, self._watcher.batch, self._since)
        events = self._older.read(FRAME_EVENTS_MAX)
        if not events:  # They were removed from the disk. The client continues with those that are kept.
            return Frame(self._watcher.batch.id, [], self._watcher.kept_after)
        return Frame(self._watcher.batch.id, list(map(msgspec.json.encode, events)), self._older.since)

    async def _send(self, data: bytes) -> None:
        with anyio.fail_after(SEND_SECONDS_MAX):
            await self._socket.send_text(data.decode())
