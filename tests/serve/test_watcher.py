"""Watchers: what they keep equals the event files, whatever happens to these."""

from __future__ import annotations

import asyncio
import json
import threading
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from starlette.types import Message, Scope
from starlette.websockets import WebSocket

from codebatch.model.work.event import FIRST_CURSOR, EventCursor, cursor_text
from codebatch.operations.project.stores import open_store
from codebatch.serve import socket_stream, watcher
from codebatch.serve.guard import SUBPROTOCOL
from codebatch.serve.socket_stream import SocketStream
from codebatch.serve.watcher import FRAME_EVENTS_MAX, BatchWatcher, Frame
from codebatch.store.batches.batch_directory import open_batch
from codebatch.work.control.event_feed import EventFeed
from tests.serve.event_files import file_steps, place_of
from tests.serve.serving import LiveStore
from tests.serve.watching import (
    PATIENCE_SECONDS,
    CountingFeed,
    Stream,
    run,
    until_files_were_read,
    until_newest,
    watching,
)


def kept(opened: BatchWatcher) -> list[EventCursor]:
    """Return the cursors of all events that a watcher keeps, as a client receives them frame by frame."""
    cursors: list[EventCursor] = []
    since = opened.kept_after
    while (frame := opened.frame_after(since)) is not None and frame.events:
        assert len(frame.events) <= FRAME_EVENTS_MAX
        cursors += cursors_of(frame)
        since = frame.cursor
    return cursors


def cursors_of(frame: Frame) -> list[EventCursor]:
    """Return the cursors of the events of a frame, and check that its own is the last of them."""
    document = json.loads(frame.encode())
    cursors = [place_of(event["cursor"]) for event in document["events"]]
    assert document["cursor"] == cursor_text(frame.batch_id, frame.cursor)
    assert not cursors or cursors[-1] == frame.cursor
    return cursors


# What a watcher keeps


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=st.lists(file_steps, min_size=1, max_size=12))
def test_watcher_keeps_the_events_of_the_files(
    stream: Stream, monkeypatch: pytest.MonkeyPatch, steps: list[tuple[str, Any, Any]]
) -> None:
    """A file that is truncated in the middle of a line and continued loses that line, and no other."""
    monkeypatch.setattr(watcher, "EventFeed", CountingFeed)
    stream.files.clear()
    next_seqs = {1: 1, 2: 1, 3: 1}
    newest_epoch = 1

    async def look() -> None:
        with watching(stream) as opened:
            feed = EventFeed(stream.store, stream.batch)
            expected: list[EventCursor] = []
            await until_files_were_read(opened)
            is_cut = False
            for kind, epoch, value in steps:
                if kind == "write" and is_cut:
                    await until_files_were_read(opened)
                    is_cut = False
                is_cut |= kind in ("cut", "remove")
                perform(kind, epoch, value)
                if kind == "read":
                    expected += [event.place for event in feed.read()]
                    if expected:
                        await until_newest(opened, expected[-1])
            expected += [event.place for event in feed.read()]
            if expected:
                await until_newest(opened, expected[-1])
            # The watcher may have seen events that were removed before `feed` read them, but none is missing, and each
            # is there once and in order.
            found = kept(opened)
            assert found == sorted(set(found))
            assert set(expected) <= set(found)
            assert not (set(found) - set(expected)) or any(kind in ("cut", "remove", "junk") for kind, *_ in steps)

    def perform(kind: str, epoch: int, value: Any) -> None:
        nonlocal newest_epoch
        path = stream.files.path(epoch) if epoch else None
        if kind == "write" and epoch >= newest_epoch:  # A coordinator that lost its lease writes no more.
            newest_epoch = epoch
            stream.files.write(epoch, next_seqs[epoch], value)
            next_seqs[epoch] += value
        elif kind == "cut" and path is not None and path.exists():
            with open(path, "r+b") as file:
                file.truncate(max(0, path.stat().st_size - value))
        elif kind == "junk" and path is not None and path.exists():
            with open(path, "ab") as file:
                file.write(value)
        elif kind == "remove" and path is not None:
            path.unlink(missing_ok=True)

    run(look)


def test_frames_are_consecutive_and_limited(stream: Stream) -> None:
    stream.files.clear()
    stream.files.write(1, 1, 1201)

    async def look() -> None:
        with watching(stream) as opened:
            await until_newest(opened, EventCursor(1, 1201))
            sizes, since = [], FIRST_CURSOR
            for _ in range(4):
                frame = opened.frame_after(since)
                assert frame is not None
                assert opened.count_after(since) == 1201 - since.seq
                sizes.append(len(frame.events))
                assert cursors_of(frame) == [EventCursor(1, since.seq + n + 1) for n in range(len(frame.events))]
                since = frame.cursor
            assert sizes == [500, 500, 201, 0]
            assert since == EventCursor(1, 1201)
            last = opened.frame_after(EventCursor(1, 1199), 1)
            assert last is not None
            assert cursors_of(last) == [EventCursor(1, 1200)]
            assert opened.frame_after(EventCursor(9, 9)) == Frame(opened.batch.id, [], EventCursor(9, 9))

    run(look)


def test_status_is_read_with_the_cursor_before_it(live_store: LiveStore, tmp_path: Path) -> None:
    copied = live_store.copy(tmp_path)
    store = open_store(copied.root)
    stream = Stream(store, open_batch(store, copied.work))
    last = stream.files.cursors()[-1]

    async def look() -> None:
        with watching(stream) as opened:
            status = await asyncio.to_thread(opened.read_status)
            assert status.cursor == last
            stream.files.write(last.epoch, last.seq + 1, 1)
            await until_newest(opened, EventCursor(last.epoch, last.seq + 1))
            assert opened.read_status() is status, "it is read at most once a second"
            assert status.work_batch is not None
            replaced = opened.put_status(status.cursor, status.work_batch)
            assert (replaced.cursor, opened.read_status()) == (last, replaced)

    run(look)


# Events that are no longer kept


@pytest.fixture
def small_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """Watchers keep about 500 events."""
    monkeypatch.setattr(watcher, "KEPT_BYTES_MAX", 500 * 200)


def test_old_events_are_dropped(stream: Stream, small_memory: None) -> None:
    stream.files.clear()
    stream.files.write(1, 1, 3000)

    async def look() -> None:
        with watching(stream) as opened:
            await until_newest(opened, EventCursor(1, 3000))
            oldest = opened.kept_after
            assert FIRST_CURSOR < oldest < EventCursor(1, 2999)
            assert opened.frame_after(FIRST_CURSOR) is None
            assert opened.frame_after(EventCursor(1, oldest.seq - 1)) is None
            first = opened.frame_after(oldest)
            assert first is not None
            assert cursors_of(first)[0] == EventCursor(1, oldest.seq + 1)
            assert kept(opened) == [EventCursor(1, seq) for seq in range(oldest.seq + 1, 3001)]
            assert opened.count_after(FIRST_CURSOR) == 3000 - oldest.seq
            assert sum(len(event) for event in opened._events) == opened._kept_bytes <= watcher.KEPT_BYTES_MAX

    run(look)


class Recorder:
    """The client of a WebSocket in memory. It keeps the messages that are sent to it, and disconnects at an event."""

    def __init__(self, last: EventCursor | None = None) -> None:
        self.documents: list[Any] = []
        self.close_code: int | None = None
        self._last = last
        self._is_over = asyncio.Event()

    async def receive(self) -> Message:
        await self._is_over.wait()
        return {"type": "websocket.disconnect", "code": 1000}

    async def send(self, message: Message) -> None:
        if message["type"] == "websocket.close":
            self.close_code = message["code"]
        elif message["type"] == "websocket.send":
            document = json.loads(message["text"])
            self.documents.append(document)
            if self._last is not None and document.get("cursor", "").endswith(f":{self._last}"):
                self._is_over.set()

    @property
    def cursors(self) -> list[str]:
        """The cursors of the events that were sent, without the batch."""
        return [str(place_of(event["cursor"])) for document in self.documents for event in document.get("events", [])]


async def send_stream(
    stream: Stream, opened: BatchWatcher, since: EventCursor, client: EventCursor | Recorder
) -> Recorder:
    """Send the events after a cursor to a client, by default one that disconnects after the event `client`."""
    client = client if isinstance(client, Recorder) else Recorder(client)
    scope: Scope = {"type": "websocket", "path": "/", "headers": [], "query_string": b"", "subprotocols": []}
    received: list[Message] = [{"type": "websocket.connect"}]

    async def receive() -> Message:
        return received.pop() if received else await client.receive()

    socket = WebSocket(scope, receive, client.send)
    await socket.accept(subprotocol=SUBPROTOCOL)
    await SocketStream(socket, stream.store, opened, since).run(asyncio.Event())
    return client


@pytest.mark.parametrize("since", [0, 1, 700, 2999])
def test_dropped_events_are_sent_from_the_disk(stream: Stream, small_memory: None, since: int) -> None:
    stream.files.clear()
    stream.files.write(1, 1, 3000)

    async def look() -> None:
        with watching(stream) as opened:
            await until_newest(opened, EventCursor(1, 3000))
            client = await send_stream(stream, opened, EventCursor(1, since), EventCursor(1, 3000))
            assert client.cursors == [f"1.{seq}" for seq in range(since + 1, 3001)]
            assert max(len(document["events"]) for document in client.documents) <= FRAME_EVENTS_MAX

    run(look)


def test_client_that_needs_the_disk_again_receives_each_event_once(
    stream: Stream, small_memory: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    stream.files.clear()
    stream.files.write(1, 1, 3000)
    monkeypatch.setattr(socket_stream, "BEHIND_EVENTS_MAX", 10_000)

    class SlowClient(Recorder):
        async def send(self, message: Message) -> None:
            await super().send(message)
            if self.cursors[-1:] == ["1.3000"]:
                stream.files.write(1, 3001, 3000)
                await until_newest(opened, EventCursor(1, 6000))

    opened: BatchWatcher

    async def look() -> None:
        nonlocal opened
        with watching(stream) as opened:
            await until_newest(opened, EventCursor(1, 3000))
            client = await send_stream(stream, opened, FIRST_CURSOR, SlowClient(EventCursor(1, 6000)))
            assert client.cursors == [f"1.{seq}" for seq in range(1, 6001)]

    run(look)


def test_events_that_were_dropped_and_removed_from_the_disk_are_skipped(stream: Stream, small_memory: None) -> None:
    stream.files.clear()
    stream.files.write(1, 1, 3000)

    async def look() -> None:
        with watching(stream) as opened:
            await until_newest(opened, EventCursor(1, 3000))
            stream.files.clear()
            client = await send_stream(stream, opened, FIRST_CURSOR, EventCursor(1, 3000))
            assert client.cursors == [f"1.{seq}" for seq in range(opened.kept_after.seq + 1, 3001)]

    run(look)


# What a client receives


def test_client_with_a_cursor_after_all_events_starts_again(stream: Stream) -> None:
    stream.files.clear()
    stream.files.write(1, 1, 3)

    async def look() -> None:
        with watching(stream) as opened:
            for foreign in (EventCursor(1, 4), EventCursor(2, 0), EventCursor(2, 1)):
                client = await send_stream(stream, opened, foreign, EventCursor(1, 3))
                assert client.documents[0] == {"reset": True}
                assert client.cursors == ["1.1", "1.2", "1.3"]

    run(look)


def test_client_with_a_cursor_that_the_watcher_has_not_read_yet_keeps_it(
    stream: Stream, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another server of the same store may have sent the event before."""
    stream.files.clear()
    stream.files.write(1, 1, 3)
    read_events, is_held = BatchWatcher._read_events, threading.Event()
    monkeypatch.setattr(
        BatchWatcher, "_read_events", lambda self, feed: not is_held.is_set() and read_events(self, feed)
    )

    async def look() -> None:
        with watching(stream) as opened:
            await until_newest(opened, EventCursor(1, 3))
            is_held.set()
            await asyncio.sleep(0.2)
            stream.files.write(1, 4, 1)
            sending = asyncio.ensure_future(send_stream(stream, opened, EventCursor(1, 4), EventCursor(1, 5)))
            await asyncio.sleep(0.3)
            assert not sending.done()
            stream.files.write(1, 5, 1)
            is_held.clear()
            assert (await sending).documents[0]["events"][0]["seq"] == 5

    run(look)


@pytest.mark.parametrize("since", [EventCursor(0, 0), EventCursor(1, 0), EventCursor(1, 2), EventCursor(0, 99)])
def test_client_with_an_own_cursor_receives_only_later_events(stream: Stream, since: EventCursor) -> None:
    stream.files.clear()
    stream.files.write(1, 1, 3)

    async def look() -> None:
        with watching(stream) as opened:
            client = await send_stream(stream, opened, since, EventCursor(1, 3))
            assert client.cursors == [f"1.{seq}" for seq in range(1, 4) if EventCursor(1, seq) > since]

    run(look)


def test_client_that_is_too_slow_is_told_its_cursor(stream: Stream, monkeypatch: pytest.MonkeyPatch) -> None:
    stream.files.clear()
    stream.files.write(1, 1, 10)
    monkeypatch.setattr(socket_stream, "BEHIND_EVENTS_MAX", 100)

    class SlowClient(Recorder):
        async def send(self, message: Message) -> None:
            await super().send(message)
            if self.cursors[-1:] == ["1.11"]:
                stream.files.write(1, 12, 189)
                await until_newest(opened, EventCursor(1, 200))

    opened: BatchWatcher

    async def look() -> None:
        nonlocal opened
        with watching(stream) as opened:
            await until_newest(opened, EventCursor(1, 10))
            client = SlowClient()
            sending = asyncio.ensure_future(send_stream(stream, opened, FIRST_CURSOR, client))
            while len(client.cursors) < 10:
                await asyncio.sleep(0.01)
            stream.files.write(1, 11, 1)
            await sending
            assert client.documents[-1] == {"behind": f"{stream.batch.id}:1.11"}
            assert client.close_code == socket_stream.TRY_AGAIN_LATER
            assert client.cursors == [f"1.{seq}" for seq in range(1, 12)]

    run(look)


def test_client_that_replays_is_not_behind(stream: Stream, monkeypatch: pytest.MonkeyPatch) -> None:
    """The history of a batch may have any length."""
    stream.files.clear()
    stream.files.write(1, 1, 2000)
    monkeypatch.setattr(socket_stream, "BEHIND_EVENTS_MAX", 100)

    async def look() -> None:
        with watching(stream) as opened:
            client = await send_stream(stream, opened, FIRST_CURSOR, EventCursor(1, 2000))
            assert len(client.cursors) == 2000

    run(look)


def test_other_clients_have_their_turn_between_two_frames(stream: Stream) -> None:
    stream.files.clear()
    stream.files.write(1, 1, 10 * FRAME_EVENTS_MAX)

    async def look() -> None:
        with watching(stream) as opened:
            await until_newest(opened, EventCursor(1, 10 * FRAME_EVENTS_MAX))
            turns = [0]

            async def take_turns() -> None:
                while True:
                    turns[0] += 1
                    await asyncio.sleep(0)

            other = asyncio.ensure_future(take_turns())
            client = await send_stream(stream, opened, FIRST_CURSOR, EventCursor(1, 10 * FRAME_EVENTS_MAX))
            other.cancel()
            assert len(client.documents) == 10
            assert turns[0] >= 10

    run(look)


def test_client_that_does_not_read_is_disconnected(stream: Stream, monkeypatch: pytest.MonkeyPatch) -> None:
    stream.files.clear()
    stream.files.write(1, 1, 3)
    monkeypatch.setattr(socket_stream, "SEND_SECONDS_MAX", 0.1)

    class StuckClient(Recorder):
        async def send(self, message: Message) -> None:
            if message["type"] == "websocket.send":
                await asyncio.Event().wait()
            await super().send(message)

    async def look() -> None:
        with watching(stream) as opened:
            client = await send_stream(stream, opened, FIRST_CURSOR, StuckClient())
            assert client.close_code == socket_stream.SERVER_ERROR

    run(look)


@pytest.mark.parametrize("steps", range(6))
def test_client_that_leaves_when_an_event_comes_is_cancelled(stream: Stream, steps: int) -> None:
    async def look() -> None:
        with watching(stream) as opened:
            waiting = asyncio.ensure_future(opened.wait(PATIENCE_SECONDS))
            await asyncio.sleep(0)
            opened._wake_clients()
            for _ in range(steps):
                await asyncio.sleep(0)
            is_cancelled = waiting.cancel()
            await asyncio.wait([waiting])
            assert waiting.cancelled() == is_cancelled

    run(look)


def test_batch_that_is_removed_closes_its_clients(live_store: LiveStore, tmp_path: Path) -> None:
    copied = live_store.copy(tmp_path)
    store = open_store(copied.root)
    for id_ in (copied.work, copied.analysis):
        stream = Stream(store, open_batch(store, id_))

        async def look(stream: Stream = stream) -> None:
            with watching(stream) as opened:
                while not opened.has_caught_up:
                    await opened.wait(0.05)
                sending = asyncio.ensure_future(send_stream(stream, opened, FIRST_CURSOR, Recorder()))
                await asyncio.sleep(0.2)
                stream.batch.root.rename(tmp_path / stream.batch.id)
                assert (await sending).close_code == socket_stream.SERVER_ERROR

        run(look)
