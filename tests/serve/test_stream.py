"""The live page's server as a process: events over WebSockets, signals, and clients that misbehave."""

from __future__ import annotations

import contextlib
import json
import os
import random
import shutil
import socket
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import ClientConnection

from codebatch.serve.app import SOCKETS_MAX
from codebatch.serve.server import CONNECTIONS_MAX
from codebatch.serve.socket_stream import BEHIND_EVENTS_MAX
from codebatch.serve.watcher import FRAME_EVENTS_MAX
from tests.serve.event_files import EventFiles
from tests.serve.server_process import (
    PATIENCE_SECONDS,
    ServerProcess,
    events_until,
    frame_of,
    resident_bytes,
    serve,
)
from tests.serve.serving import LiveStore, check_live_schema
from tests.support.command_line import CommandLine, make_modules, wait_until, write

pytestmark = pytest.mark.slow


def close_code_of(client: ClientConnection) -> int:
    """Read until a server closes a WebSocket. Return its code, or 1006 if the connection was lost."""
    while True:
        try:
            client.recv(PATIENCE_SECONDS)
        except ConnectionClosed as closed:
            return 1006 if closed.rcvd is None else closed.rcvd.code


# Events


def test_client_that_reconnects_receives_each_event_once(tmp_path: Path) -> None:
    """The server is killed and started again on its port while tasks run, and a client reconnects a hundred times."""
    codebatch, chance = CommandLine(tmp_path), random.Random(40)
    tasks = "[tasks.{id}]\nrun = 'sleep 0.02; test $(({id_number} % 50)) -ne 1'\nretries = 1\n"
    lists = [tasks.replace("{id}", f"t{n}").replace("{id_number}", str(n)) for n in range(400)]
    write(
        tmp_path / "work.toml",
        "max_parallel = 4\non_failure = 'continue'\n[defaults]\nbackoff_seconds = 0.01\n" + "".join(lists),
    )
    codebatch("init", "store")
    running = codebatch.start("work", "run", "--store", "store", "-q")
    wait_until(lambda: any(tmp_path.glob("store/batches/*/events/*")), "the run begins")
    (batch,) = (path.name for path in (tmp_path / "store" / "batches").glob("batch-*"))
    server = ServerProcess(tmp_path / "store")
    received: list[Any] = []
    try:
        for attempt in range(100):
            if attempt % 20 == 19:
                port = server.port
                server.kill()
                server = ServerProcess(tmp_path / "store", port=port)
            with server.connect(batch, received[-1]["cursor"] if received else None) as client:
                for _ in range(chance.randrange(4)):
                    try:
                        frame = json.loads(client.recv(0.5))
                    except TimeoutError:  # The run has ended.
                        break
                    assert frame.keys() == {"events", "cursor"}
                    received += frame["events"]
            if received and attempt % 10 == 5:  # Another client begins in the past.
                start = chance.randrange(len(received))
                with server.connect(batch, received[start]["cursor"]) as client:
                    expected = received[start + 1 :]
                    assert (
                        expected == events_until(client, received[-1]["cursor"])[: len(expected)] if expected else True
                    )
        codebatch.finish(running, status=3)
        expected = [json.loads(line) for line in codebatch("events", "--store", "store", "--json").lines]
        with server.connect(batch, received[-1]["cursor"]) as client:
            if received[-1]["cursor"] != expected[-1]["cursor"]:
                received += events_until(client, expected[-1]["cursor"])
        assert received == expected
        assert len(expected) > 1200
    finally:
        if running.poll() is None:
            running.kill()
            running.communicate()
        server.kill()


def test_analysis_is_followed_to_its_end(tmp_path: Path) -> None:
    codebatch = CommandLine(tmp_path)
    make_modules(tmp_path / "tree", 60)
    codebatch("init", "store")
    running = codebatch.start("run", "tree", "--store", "store", "-q", "-j", "1")
    wait_until(lambda: any(tmp_path.glob("store/batches/batch-*/plan.json")), "the run begins")
    (batch,) = (path.name for path in (tmp_path / "store" / "batches").glob("batch-*"))
    with serve(tmp_path / "store") as server, server.connect(batch) as client:
        names: list[str] = []
        progress: list[Any] = []
        while not names or names[-1] != "BATCH_COMPLETED":
            frame = frame_of(client)
            names += [event["event"] for event in frame.get("events", [])]
            progress += [frame["progress"]] if "progress" in frame else []
        codebatch.finish(running)
        while not progress or progress[-1]["counts"].keys() != {"DONE"}:
            progress.append(frame_of(client)["progress"])
        assert names[0] == "BATCH_STARTED"
        assert {task["task_id"] for task in progress[-1]["tasks"]} >= {"parse", "lint"}


def test_frames_have_at_most_500_events(files: tuple[LiveStore, EventFiles]) -> None:
    store, event_files = files
    event_files.write(1, 1, 1201)
    with serve(store.root) as server:
        server.get(store.path())  # Thus all events are there when the client comes.
        with server.connect(store.work) as client:
            frames = [frame_of(client) for _ in range(3)]
    assert [len(frame["events"]) for frame in frames] == [FRAME_EVENTS_MAX, FRAME_EVENTS_MAX, 201]
    assert [event["seq"] for frame in frames for event in frame["events"]] == [*range(1, 1202)]
    for frame in frames:
        check_live_schema("live-events", frame)


def test_client_of_a_stream_that_started_again_is_reset(files: tuple[LiveStore, EventFiles]) -> None:
    store, event_files = files
    event_files.write(1, 1, 3)
    with serve(store.root) as server:
        other = "batch-20000101-000000-000000-000000"
        for since in ("1.4", "7.1", "999999999.999999999999", f"{other}:1.1"):
            with server.connect(store.work, since if ":" in since else f"{store.work}:{since}") as client:
                assert frame_of(client) == {"reset": True}
                assert [event["seq"] for event in frame_of(client)["events"]] == [1, 2, 3]
        with server.connect(store.work, f"{store.work}:1.3") as client:
            event_files.write(1, 4, 1)
            assert [event["seq"] for event in frame_of(client)["events"]] == [4]


def test_client_that_stops_reading_is_told_and_catches_up(files: tuple[LiveStore, EventFiles]) -> None:
    store, event_files = files
    event_files.write(1, 1, 1)
    count = 100_000
    with serve(store.root) as server, server.connect(store.work, max_queue=1) as client:
        received = frame_of(client)["events"]
        time.sleep(0.5)  # The client is current.
        event_files.write(1, 2, count - 1)
        wait_until(
            lambda: server.get_json(store.path())["cursor"].endswith(f":1.{count}"), "the watcher has all events"
        )
        before = resident_bytes(server.process)
        while "behind" not in (frame := frame_of(client)):
            received += frame["events"]
        assert frame == {"behind": received[-1]["cursor"]}
        assert close_code_of(client) == 1013
        assert count - len(received) > BEHIND_EVENTS_MAX
        while (page := server.get_json(store.path(f"/events?since={received[-1]['cursor']}")))["events"]:
            received += page["events"]
        assert [event["seq"] for event in received] == [*range(1, count + 1)]
        assert before < 250_000_000


def test_new_client_is_served_while_others_replay(files: tuple[LiveStore, EventFiles]) -> None:
    """The others read only after it, so the server has not sent all events to them."""
    store, event_files = files
    event_files.write(1, 1, 30_000)
    with serve(store.root) as server, contextlib.ExitStack() as opened:
        replaying = [opened.enter_context(server.connect(store.work, max_queue=1)) for _ in range(20)]
        with server.connect(store.work, f"{store.work}:1.29999") as client:
            assert frame_of(client)["cursor"] == f"{store.work}:1.30000"
        for other in replaying:
            assert frame_of(other)["events"][0]["cursor"] == f"{store.work}:1.1"


def test_batch_that_is_removed_closes_its_sockets(live_store: LiveStore, tmp_path: Path) -> None:
    store = live_store.copy(tmp_path)
    with serve(store.root) as server:
        with server.connect(store.work) as work, server.connect(store.analysis) as analysis:
            frame_of(work)
            frame_of(analysis)
            shutil.rmtree(store.root / "batches")
            assert (close_code_of(work), close_code_of(analysis)) == (1011, 1011)
        with pytest.raises(InvalidStatus) as refused, server.connect(store.work):
            pass
        assert refused.value.response.status_code == 404


# Refusals of real handshakes


def test_handshake_with_an_old_token_is_refused(live_store: LiveStore) -> None:
    """A page whose server was killed and started again on its port learns that its token is old."""
    server = ServerProcess(live_store.root)
    server.kill()
    old_token = server.token
    with serve(live_store.root, port=server.port) as restarted:
        assert restarted.get("/api/v1/session")[0] == 200
        restarted.token = old_token
        status, body = restarted.get("/api/v1/session")
        assert (status, json.loads(body)["error"]["code"]) == (403, "forbidden")
        with pytest.raises(InvalidStatus) as refused, restarted.connect(live_store.work):
            pass
        response = refused.value.response
        assert (response.status_code, json.loads(response.body)["error"]["code"]) == (403, "forbidden")
        assert response.headers["X-Content-Type-Options"] == "nosniff"


def test_raw_requests_are_refused(server: ServerProcess, live_store: LiveStore) -> None:
    token = f"Authorization: Bearer {server.token}"
    host = f"Host: 127.0.0.1:{server.port}"
    cases = {
        b"GET /api/v1/session HTTP/1.1\r\n%b\r\n%b\r\n\r\n" % (host.encode(), token.encode()): b"200",
        b"GET /api/v1/session HTTP/1.1\r\n%b\r\n%b\r\n%b\r\n\r\n"
        % (host.encode(), host.encode(), token.encode()): b"40",
        b"GET /api/v1/session HTTP/1.1\r\n%b\r\n\r\n" % token.encode(): b"40",
        b"GET /api/v1/session HTTP/1.0\r\n%b\r\n\r\n" % token.encode(): b"403",
        b"GET http://attacker.example/ HTTP/1.1\r\nHost: attacker.example\r\n\r\n": b"403",
        b"GET /%2e%2e/%2e%2e/etc/passwd HTTP/1.1\r\n" + host.encode() + b"\r\n\r\n": b"40",
        b"GET /static/%2e%2e%2fapp.py HTTP/1.1\r\n" + host.encode() + b"\r\n\r\n": b"404",
        b"GET /" + b"a" * 1_000_000 + b" HTTP/1.1\r\n" + host.encode() + b"\r\n\r\n": b"40",
        b"\0\xff garbage\r\n\r\n": b"400",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n": b"400",
    }
    for request, status in cases.items():
        with server.open_socket() as connection:
            try:
                connection.sendall(request)
                answer = connection.recv(1 << 16)
            except ConnectionError:  # It was closed before everything was sent.
                answer = b"HTTP/1.1 400 "
            assert answer.startswith(b"HTTP/1.1 " + status), (request[:60], answer[:200])
            assert server.token.encode() not in answer


def test_server_listens_only_on_loopback_addresses(server: ServerProcess) -> None:
    listening = {
        line.split()[1].rpartition(":")[0]
        for table in ("tcp", "tcp6")
        for line in Path("/proc/net", table).read_text().splitlines()[1:]
        if line.split()[3] == "0A" and int(line.split()[1].rpartition(":")[2], 16) == server.port
    }
    assert "0100007F" in listening
    assert listening <= {"0100007F", "00000000000000000000000001000000"}


# Clients that misbehave


@pytest.mark.parametrize(("data", "code"), [("hello", 1008), (b"\0" * 100, 1008), ("", 1008), ("x" * 10_000_000, 1009)])
def test_client_that_sends_data_is_disconnected(
    server: ServerProcess, live_store: LiveStore, data: str | bytes, code: int
) -> None:
    with server.connect(live_store.work) as client:
        frame_of(client)
        with contextlib.suppress(ConnectionClosed):
            client.send(data)
        # The code is lost if the server closes the connection while data arrives.
        assert close_code_of(client) in ((code,) if len(data) < 1000 else (code, 1006))
    assert server.get("/api/v1/session")[0] == 200


def test_client_that_sends_garbage_is_disconnected(server: ServerProcess, live_store: LiveStore) -> None:
    with server.connect(live_store.work) as client:
        frame_of(client)
        client.socket.sendall(b"\xff" * 10_000)
        assert close_code_of(client) in (1002, 1006)
    assert server.get("/api/v1/session")[0] == 200


def test_endless_pings_do_not_stop_the_server(server: ServerProcess, live_store: LiveStore) -> None:
    with server.connect(live_store.work) as client:
        for _ in range(2000):
            client.ping()
        assert server.get("/api/v1/session", 5.0)[0] == 200


def test_sockets_are_limited(live_store: LiveStore) -> None:
    with serve(live_store.root) as server, contextlib.ExitStack() as opened:
        for _ in range(SOCKETS_MAX - 1):
            frame_of(opened.enter_context(server.connect(live_store.work)))
        with server.connect(live_store.work) as last:
            frame_of(last)
            with server.connect(live_store.work) as client:
                assert close_code_of(client) == 1013
        wait_until(lambda: _is_served(server, live_store.work), "a place is free")


def _is_served(server: ServerProcess, batch: str) -> bool:
    with server.connect(batch) as client:
        try:
            frame_of(client)
        except ConnectionClosed:
            return False
        return True


@pytest.mark.parametrize(
    "start", [b"", b"GET / HTTP/1.1\r\nHost: ", b"GET /ws/batch/x HTTP/1.1\r\nUpgrade: websocket\r\n"]
)
def test_connections_without_a_request_do_not_shut_out_others(live_store: LiveStore, start: bytes) -> None:
    with serve(live_store.root) as server, server.connect(live_store.work) as client:
        frame_of(client)
        idle = []
        for _ in range(CONNECTIONS_MAX + 50):
            idle.append(server.open_socket())
            idle[-1].sendall(start)
        assert server.get("/api/v1/session")[0] == 200
        client.ping().wait(PATIENCE_SECONDS)
        assert is_closed(idle[0])
        assert not is_closed(idle[-1])
        assert open_descriptors(server) < CONNECTIONS_MAX + 100
        wait_until(lambda: all(map(is_closed, idle)), "connections without a request end")
        for connection in idle:
            connection.close()


def is_closed(connection: socket.socket) -> bool:
    """Return whether a server has closed a connection on which it sends nothing."""
    connection.setblocking(False)
    try:
        return connection.recv(1) == b""
    except BlockingIOError:
        return False
    except ConnectionResetError:
        return True


def open_descriptors(server: ServerProcess) -> int:
    """Return the number of descriptors that a server has open."""
    return len(os.listdir(f"/proc/{server.process.pid}/fd"))


def test_thousand_requests_leave_nothing_open(server: ServerProcess, live_store: LiveStore) -> None:
    def ask() -> None:
        for _ in range(100):
            assert server.get("/api/v1/session")[0] == 200

    threads = [threading.Thread(target=ask) for _ in range(10)]
    before = open_descriptors(server)
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    wait_until(lambda: open_descriptors(server) <= before + 5, "connections are closed")
