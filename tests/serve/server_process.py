"""A server as a process of its own, and clients of its port."""

from __future__ import annotations

import http.client
import json
import os
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from websockets.sync.client import ClientConnection, connect
from websockets.typing import Origin, Subprotocol

from tests.serve.serving import check_live_schema
from tests.support.command_line import CommandLine, check_schema

PATIENCE_SECONDS = 60.0


class ServerProcess:
    """A server that runs. `token` is its token, and `store` the path of its store."""

    def __init__(self, store: Path, *options: str, port: int = 0, prefix: tuple[str, ...] = ()) -> None:
        self.store = store
        self._codebatch = CommandLine(store.parent, prefix=prefix)
        self.process = self._codebatch.start("serve", "--store", store, "--port", str(port), "--json", *options)
        assert self.process.stdout is not None
        lines = [b""]
        while lines[-1] != b"}\n":
            lines.append(self.process.stdout.readline())
            assert lines[-1], self.process.communicate()[1].decode()
        answer = json.loads(b"".join(lines))
        check_schema(answer)
        self.port: int = answer["port"]
        address, _, self.token = answer["url"].partition("#token=")
        assert address == f"http://127.0.0.1:{self.port}/"
        assert answer["pid"] == self.process.pid or prefix

    @property
    def origin(self) -> str:
        """The origin of the page."""
        return f"http://127.0.0.1:{self.port}"

    def headers(self) -> dict[str, str]:
        """Return the headers that the page sends."""
        return {"Authorization": f"Bearer {self.token}", "Origin": self.origin}

    def get(self, path: str, seconds: float = PATIENCE_SECONDS) -> tuple[int, bytes]:
        """Return the status and the body of a path."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=seconds)
        try:
            connection.request("GET", path, headers=self.headers())
            response = connection.getresponse()
            return response.status, response.read()
        finally:
            connection.close()

    def get_json(self, path: str) -> Any:
        """Return the document at a path."""
        status, body = self.get(path)
        assert status == 200, body
        return json.loads(body)

    def connect(self, batch: str, since: str | None = None, *, max_queue: int = 16) -> ClientConnection:
        """Connect a WebSocket to a batch. The client stops reading when it has `max_queue` frames."""
        query = "" if since is None else f"?since={since}"
        return connect(
            f"ws://127.0.0.1:{self.port}/ws/batch/{batch}{query}",
            sock=self.open_socket(),  # Thus no proxy is used.
            origin=Origin(self.origin),
            subprotocols=[Subprotocol("codebatch"), Subprotocol(f"codebatch.{self.token}")],
            max_size=None,
            max_queue=max_queue,
            open_timeout=PATIENCE_SECONDS,
        )

    def open_socket(self) -> socket.socket:
        """Open a connection that sends nothing."""
        return socket.create_connection(("127.0.0.1", self.port), PATIENCE_SECONDS)

    def kill(self) -> None:
        """Kill the process as `kill -9` does."""
        self.process.kill()
        self.process.communicate()

    def stop(self, number: signal.Signals = signal.SIGTERM) -> bytes:
        """Send a signal, and wait for the end. Return standard error."""
        self.process.send_signal(number)
        stdout, stderr = self.process.communicate(timeout=PATIENCE_SECONDS)
        assert stdout == b""
        assert self.token.encode() not in stderr
        return stderr


@contextmanager
def serve(store: Path, *options: str, port: int = 0, prefix: tuple[str, ...] = ()) -> Iterator[ServerProcess]:
    """Start a server. At the end, it must still run, and have written nothing but how it was stopped."""
    server = ServerProcess(store, *options, port=port, prefix=prefix)
    try:
        yield server
        assert server.process.poll() is None
        stderr = server.stop()
        assert json.loads(stderr)["error"]["message"] == "stopped by SIGTERM"
    finally:
        if server.process.poll() is None:
            server.kill()


def events_until(socket: ClientConnection, last: str) -> list[Any]:
    """Return the events that a client receives until it has the one with a cursor. Its frame may have later ones."""
    events: list[Any] = []
    while all(event["cursor"] != last for event in events):
        events += frame_of(socket).get("events", [])
    return events


def frame_of(socket: ClientConnection) -> Any:
    """Return the next frame."""
    frame = json.loads(socket.recv(PATIENCE_SECONDS))
    if "progress" in frame:
        check_live_schema("live-progress", frame)
    return frame


def free_port() -> int:
    """Return a port that no process listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def resident_bytes(process: subprocess.Popen[bytes]) -> int:
    """Return the resident memory of a process."""
    pages = Path(f"/proc/{process.pid}/statm").read_text().split()[1]
    return int(pages) * os.sysconf("SC_PAGE_SIZE")
