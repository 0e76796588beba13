"""`python -m bench.probes.live_clients URL COUNT (replay CURSOR | follow SECONDS | time)`: clients of a live page.

URL is the address of the WebSocket of a batch, and the variable TOKEN the token of the server. With `replay`, all
clients read from the start until they have the event with a cursor. With `follow`, they read new events for some
seconds, and ask for the status every 5 s, as the page does. With `time`, a client measures the time from each event
until it has the event, up to the end of the batch. One line of JSON is printed at the end.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
import urllib.request
from datetime import datetime
from urllib.parse import urlsplit

import websockets
from websockets.typing import Origin, Subprotocol

_STATUS_SECONDS = 5.0
_OPEN_SECONDS_MAX = 60.0
_END_EVENTS = ("BATCH_COMPLETED", "BATCH_PARTIAL", "BATCH_FAILED", "BATCH_CANCELLED")


class Clients:
    """The clients of one server."""

    def __init__(self, url: str, token: str) -> None:
        self.address = urlsplit(url)
        self._url = url
        self._token = token

    def connect(self, since: str) -> websockets.connect:
        """Return a connection that is opened by `async with`."""
        return websockets.connect(
            f"{self._url}?since={since}",
            origin=Origin(f"http://{self.address.netloc}"),
            subprotocols=[Subprotocol("codebatch"), Subprotocol(f"codebatch.{self._token}")],
            max_size=None,
            open_timeout=_OPEN_SECONDS_MAX,
        )

    def read_status(self) -> None:
        """Ask for the status of the batch."""
        batch = self.address.path.rpartition("/")[2]
        request = urllib.request.Request(
            f"http://{self.address.netloc}/api/v1/batches/{batch}", headers={"Authorization": f"Bearer {self._token}"}
        )
        with urllib.request.urlopen(request) as response:
            response.read()

    async def replay(self, last: str) -> float:
        """Read everything. Return the seconds from the first connection until the last event."""
        began = time.perf_counter()
        async with self.connect("0.0") as socket:
            while _place(str(await socket.recv())) < _place(last):
                pass
        return time.perf_counter() - began

    async def handshakes(self, since: str, replaying: asyncio.Future[list[float]]) -> list[float]:
        """Connect again and again while others replay. Return the seconds of each handshake."""
        seconds: list[float] = []
        while not replaying.done():
            began = time.perf_counter()
            async with self.connect(since):
                seconds.append(time.perf_counter() - began)
            await asyncio.sleep(0.02)
        return seconds

    async def time_events(self) -> list[float]:
        """Return the seconds from the time of each event until a client has it, without earlier events."""
        seconds: list[float] = []
        async with self.connect("0.0") as socket:
            await socket.recv()
            name = ""
            while name not in _END_EVENTS:
                events = json.loads(await socket.recv())["events"]
                now, name = time.time(), events[-1]["event"]
                seconds += [
                    now - datetime.fromisoformat(event["at"].replace("Z", "+00:00")).timestamp() for event in events
                ]
        return seconds

    async def follow(self, seconds: float) -> None:
        """Read new events for some seconds."""
        end = time.monotonic() + seconds
        async with self.connect("0.0") as socket:
            next_status = time.monotonic()
            while (now := time.monotonic()) < end:
                if now >= next_status:
                    await asyncio.to_thread(self.read_status)
                    next_status = now + _STATUS_SECONDS
                try:
                    await asyncio.wait_for(socket.recv(), min(end, next_status) - now)
                except asyncio.TimeoutError:
                    continue


def _place(text: str) -> tuple[int, ...]:
    """Return the cursor at the end of a frame, or of a text, so that it can be compared."""
    return tuple(map(int, text.rpartition('"cursor":"')[2].rstrip('"}').split(".")))


async def _main(url: str, count: int, mode: str, value: str = "") -> object:
    clients = Clients(url, os.environ["TOKEN"])
    if mode == "follow":
        await asyncio.gather(*(clients.follow(float(value)) for _ in range(count)))
        return {}
    if mode == "time":
        return await clients.time_events()
    replaying = asyncio.gather(*(clients.replay(value) for _ in range(count)))
    handshakes = await clients.handshakes(value, replaying)
    return {"replays": await replaying, "handshakes": handshakes}


if __name__ == "__main__":
    print(json.dumps(asyncio.run(_main(sys.argv[1], int(sys.argv[2]), *sys.argv[3:5]))))
