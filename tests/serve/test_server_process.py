"""The server process: its signals, its port and its output."""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import json
import os
import signal
import socket
import stat
import sys
from pathlib import Path

import pytest
import uvicorn
from starlette.types import Receive, Scope, Send
from uvicorn.server import ServerState
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import ClientConnection

from codebatch.cli import cli
from codebatch.cli.framework.exit import run_to_exit_status
from codebatch.installation import extra_command
from codebatch.operations.project.stores import open_store
from codebatch.serve.app import LiveApp
from codebatch.serve.server import _Connection, _ProblemPrinter, open_sockets, serve_until_signal
from tests.serve.event_files import EventFiles
from tests.serve.server_process import (
    PATIENCE_SECONDS,
    ServerProcess,
    frame_of,
    free_port,
    serve,
)
from tests.serve.serving import LiveStore, make_live_store
from tests.support.command_line import UNPRIVILEGED, CommandLine, permissions_bind, wait_until, write

pytestmark = pytest.mark.slow


def close_code_of(client: ClientConnection) -> int:
    """Read until a server closes a WebSocket. Return its code, or 1006 if the connection was lost."""
    while True:
        try:
            client.recv(PATIENCE_SECONDS)
        except ConnectionClosed as closed:
            return 1006 if closed.rcvd is None else closed.rcvd.code


# Signals, and the command


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_signal_closes_sockets_and_ends_the_server(live_store: LiveStore, number: signal.Signals, status: int) -> None:
    server = ServerProcess(live_store.root)
    try:
        with contextlib.ExitStack() as opened:
            batches = (live_store.work, live_store.work, live_store.analysis)
            clients = [opened.enter_context(server.connect(batch)) for batch in batches]
            for client in clients:
                frame_of(client)
            opened.enter_context(server.open_socket()).sendall(b"GET /")
            stderr = server.stop(number)
            assert [close_code_of(client) for client in clients] == [1001] * 3
        assert server.process.returncode == status
        assert json.loads(stderr)["error"]["message"] == f"stopped by {number.name}"
    finally:
        server.kill()


def test_signal_ends_a_server_whose_client_does_not_read(files: tuple[LiveStore, EventFiles]) -> None:
    store, event_files = files
    event_files.write(1, 1, 60_000)
    server = ServerProcess(store.root)
    try:
        with server.connect(store.work, max_queue=1):
            wait_until(
                lambda: server.get_json(store.path())["cursor"].endswith(":1.60000"), "the watcher has all events"
            )
            server.stop()
        assert server.process.returncode == 143
    finally:
        server.kill()


def test_refused_connections_print_at_most_one_line(live_store: LiveStore) -> None:
    """With a limit of 64 open files, few of the connections can be served."""
    server = ServerProcess(live_store.root, prefix=("sh", "-c", 'ulimit -n 64; exec "$@"', "sh"))
    try:
        with contextlib.ExitStack() as opened:
            for _ in range(200):
                with contextlib.suppress(OSError):
                    opened.enter_context(server.open_socket()).sendall(b"GET /api/v1/batches HTTP/1.1\r\n\r\n")
            assert server.get(live_store.path())[0] == 200
            stderr = server.stop()
        assert b"Traceback" not in stderr
        assert len(stderr.partition(b"{")[0].splitlines()) <= 1, stderr
    finally:
        server.kill()


def test_connections_beyond_the_limit_are_closed_without_a_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    """The only allowed connection has a request without a response, so it does not make room for another."""
    monkeypatch.setattr("codebatch.serve.server.CONNECTIONS_MAX", 1)
    problems: list[object] = []

    async def answer_never(_scope: Scope, _receive: Receive, _send: Send) -> None:
        begun.set()
        await asyncio.Event().wait()

    async def connect_twice() -> bytes:
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _loop, context: problems.append(context))
        config, state = uvicorn.Config(answer_never, lifespan="off"), ServerState()
        config.load()
        server = await loop.create_server(lambda: _Connection(config, state, {}), "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        _, busy = await asyncio.open_connection("127.0.0.1", port)
        busy.write(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        await begun.wait()
        reader, refused = await asyncio.open_connection("127.0.0.1", port)
        with contextlib.suppress(ConnectionResetError):
            received = await reader.read()
        for writer in (busy, refused):
            writer.close()
        for task in state.tasks:
            task.cancel()
        server.close()
        await server.wait_closed()
        return received

    begun = asyncio.Event()
    assert asyncio.run(asyncio.wait_for(connect_twice(), PATIENCE_SECONDS)) == b""
    assert problems == []


def test_second_signal_ends_the_server_at_once(live_store: LiveStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first signal would leave clients an hour to close their connections."""
    monkeypatch.setattr("codebatch.serve.server._SHUTDOWN_SECONDS", 3600.0)
    sockets = open_sockets(0)

    def send_signals() -> None:
        asyncio.get_running_loop().call_later(PATIENCE_SECONDS, sys.exit, "the server did not end")
        for number in (signal.SIGTERM, signal.SIGINT):
            os.kill(os.getpid(), number)

    app = LiveApp(open_store(live_store.root), token="x", port=sockets[0].getsockname()[1], allows_control=False)
    assert serve_until_signal(app, sockets, send_signals) in (signal.SIGTERM, signal.SIGINT)


def test_running_batch_does_not_notice_the_end_of_a_server(tmp_path: Path) -> None:
    codebatch = CommandLine(tmp_path)
    write(tmp_path / "work.toml", "[tasks.a]\nrun = 'while ! test -e go; do sleep 0.02; done'\n")
    codebatch("init", "store")
    running = codebatch.start("work", "run", "--store", "store", "-q")
    wait_until(lambda: any(tmp_path.glob("store/batches/*/events/*")), "the run begins")
    (batch,) = (path.name for path in (tmp_path / "store" / "batches").glob("batch-*"))
    for _ in range(2):
        server = ServerProcess(tmp_path / "store", "--allow-control")
        with server.connect(batch) as client:
            frame_of(client)
            server.kill()
    write(tmp_path / "go", "")
    codebatch.finish(running)
    assert codebatch("status", "--store", "store", "--json").json["status"] == "COMPLETED"


def test_port_in_use_is_an_error(server: ServerProcess, live_store: LiveStore) -> None:
    codebatch = CommandLine(live_store.root.parent)
    port = str(server.port)
    error = codebatch("serve", "--store", "store", "--port", port, "--json", status=2).error
    assert (error["code"], error["message"]) == ("invalid_input", f"port {port} is in use")
    assert "free" in error["hint"]


def test_address_is_the_only_line_of_output(live_store: LiveStore) -> None:
    codebatch = CommandLine(live_store.root.parent)
    port = free_port()
    process = codebatch.start("serve", "--store", "store", "--port", str(port))
    try:
        assert process.stdout is not None
        line = process.stdout.readline().decode()
        assert line.startswith(f"http://127.0.0.1:{port}/#token=")
        assert len(line.strip().partition("=")[2]) == 43
    finally:
        process.terminate()
        stdout, stderr = process.communicate()
    assert (process.returncode, stdout) == (143, b"")
    assert stderr == b"error: stopped by SIGTERM\n"


def test_missing_packages_are_an_error(
    live_store: LiveStore, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("codebatch.cli.run.serve.find_spec", lambda name: None if name == "uvicorn" else name)
    assert run_to_exit_status(cli, ["serve", "--store", str(live_store.root)]) == 2
    written = capsys.readouterr()
    assert written.out == ""
    assert "not installed: uvicorn" in written.err
    assert f"hint: install them with: {extra_command('serve')}\n" in written.err


def test_missing_store_is_an_error(tmp_path: Path) -> None:
    assert CommandLine(tmp_path)("serve", "--store", "nowhere", "--json", status=4).error["code"] == "store_not_found"


@permissions_bind
def test_read_only_store_is_served(tmp_path: Path) -> None:
    store = make_live_store(tmp_path)
    for path in [store.root, *store.root.rglob("*")]:
        path.chmod(stat.S_IMODE(path.stat().st_mode) & ~0o222)
    try:
        with serve(store.root, prefix=UNPRIVILEGED) as server:
            for batch_path in (store.path, store.analysis_path):
                for rest in ("", "/events"):
                    assert server.get(batch_path(rest))[0] == 200
            for rest in ("/tasks", "/task?id=asks", "/log?task=plain", "/graph"):
                assert server.get(store.path(rest))[0] == 200
            assert server.get("/api/v1/batches")[0] == 200
            connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=PATIENCE_SECONDS)
            headers = {**server.headers(), "Content-Type": "application/json"}
            connection.request("POST", store.analysis_path("/report"), b"{}", headers)
            response = connection.getresponse()
            assert response.status == 200, response.read()
            connection.close()
    finally:
        for path in [store.root, *store.root.rglob("*")]:
            path.chmod(stat.S_IMODE(path.stat().st_mode) | 0o200)


def test_two_servers_show_one_store(live_store: LiveStore, server: ServerProcess) -> None:
    with serve(live_store.root) as other, server.connect(live_store.work) as first:
        cursor = frame_of(first)["cursor"]
        with other.connect(live_store.work) as second:
            assert frame_of(second)["cursor"] == cursor
        assert other.token != server.token
        own_token, other.token = other.token, server.token
        assert other.get("/api/v1/session")[0] == 403
        other.token = own_token


def test_socket_that_accepts_again_after_the_server_has_closed_it_prints_nothing(
    capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    problems = _ProblemPrinter()

    async def accept_again() -> None:
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(problems.handle)
        with socket.create_server(("127.0.0.1", 0)) as listening:
            pass
        loop.call_soon(loop.add_reader, listening, print)
        await asyncio.sleep(0)
        await asyncio.sleep(0)

    asyncio.run(accept_again())
    assert "Invalid file descriptor" in caplog.text, "while the server runs, it is a bug"
    caplog.clear()
    problems.is_stopping = True
    asyncio.run(accept_again())
    assert caplog.text + capsys.readouterr().err == ""
