"""Addresses of schedulers, and files with such addresses, that are refused."""

from __future__ import annotations

import json
import os
import socket
import ssl
import threading
from pathlib import Path

import pytest

from codebatch.engines.addresses import (
    SchedulerAddress,
    check_connection,
    parse_address,
    resolve_loopback,
)
from codebatch.engines.opening import EngineOptions, open_engine
from tests.engines.test_opening import refused


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("tls://host:8786", ("tls", "host", 8786)),
        ("tcp://127.0.0.1:1/", ("tcp", "127.0.0.1", 1)),
        ("tls://[::1]:65535", ("tls", "::1", 65535)),
        ("tls://a-b.c_d.example:8786", ("tls", "a-b.c_d.example", 8786)),
    ],
)
def test_addresses(text: str, address: tuple[str, str, int]) -> None:
    assert parse_address(text) == address
    assert str(parse_address(text)) == text.rstrip("/")


@pytest.mark.parametrize(
    "text",
    [
        *("", "host:8786", "tls:host:8786", "http://host:8786", "ucx://host:8786", "inproc://1:2", "TLS://host:8786"),
        *("tls://host", "tls://host:", "tls://:8786", "tls://host:0", "tls://host:65536", "tls://host:99999999999"),
        *("tls://::1:8786", "tls://user@host:8786", "tls://host:8786/path", "tls://host:8786?a", "tls://ho st:8786"),
        *("tls://host:8786\n", "tls://host:٣", "tls://[x]:1"),
    ],
)
def test_texts_that_are_not_addresses(text: str) -> None:
    with refused(f"{text!r} is not the address", "tls://HOST:8786"):
        parse_address(text)


@pytest.mark.parametrize(
    ("numbers", "expected"),
    [
        (["127.0.0.1"], "127.0.0.1"),
        (["127.9.9.9", "::1"], "127.9.9.9"),
        (["::1"], "::1"),
        (["127.0.0.1", "192.0.2.1"], None),
        (["192.0.2.1", "127.0.0.1"], None),
        (["::1", "2001:db8::1"], None),
        (["0.0.0.0"], None),
        (["::"], None),
        (["fe80::1%eth0"], None),
    ],
)
def test_a_host_is_loopback_if_all_its_addresses_are(
    numbers: list[str], expected: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (number, 1)) for number in numbers]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: found)
    address = resolve_loopback(SchedulerAddress("tcp", "name", 1))
    assert address == (None if expected is None else ("tcp", expected, 1))


@pytest.mark.parametrize("host", ["192.0.2.1", "0.0.0.0", "[2001:db8::1]", "8.8.8.8"])
def test_other_machines_without_tls_are_refused(host: str, tmp_path: Path) -> None:
    pytest.importorskip("distributed", reason="DASK IS NOT TESTED: pip install 'codebatch[dask]'")
    file = tmp_path / "scheduler.json"
    file.write_text(json.dumps({"address": f"tcp://{host}:8786", "workers": {}}))
    for url in (f"dask:tcp://{host}:8786", f"dask:{file}"):
        message = f"tcp://{host}:8786 is on another machine and has no TLS"
        with refused(message, "CODEBATCH_ENGINE_INSECURE=1"):
            open_engine(url, EngineOptions())


def test_other_machines_without_tls_are_used_if_the_user_allows_it() -> None:
    """Connections to 0.0.0.0, which is not a loopback address, go to this machine."""
    pytest.importorskip("distributed", reason="DASK IS NOT TESTED: pip install 'codebatch[dask]'")
    url = f"dask:tcp://0.0.0.0:{_unused_port()}"
    with refused("Connection refused", "running"):
        open_engine(url, EngineOptions(allows_insecure=True))


def test_scheduler_files_that_cannot_be_used_are_refused(tmp_path: Path) -> None:
    pytest.importorskip("distributed", reason="DASK IS NOT TESTED: pip install 'codebatch[dask]'")
    os.mkfifo(tmp_path / "fifo.json")
    (tmp_path / "directory.json").mkdir()
    for name, content in {
        "empty": b"",
        "list": b"[]",
        "other": b'{"host": "x"}',
        "number": b'{"address": 1}',
        "half": b'{"address": "tls://h',
        "utf8": b'{"address": "\xff"}',
    }.items():
        (tmp_path / f"{name}.json").write_bytes(content)
        with refused(f"'{tmp_path / name}.json' is not a scheduler file of Dask", "--scheduler-file"):
            open_engine(f"dask:{tmp_path / name}.json", EngineOptions())
    for name, reason in (
        ("missing", "No such file"),
        ("fifo", "it is not a regular file"),
        ("directory", "it is not a regular file"),
    ):
        with refused(f"cannot read the scheduler file '{tmp_path / name}.json': {reason}", "--scheduler-file"):
            open_engine(f"dask:{tmp_path / name}.json", EngineOptions())
    (tmp_path / "bad.json").write_text('{"address": "ucx://h:1"}')
    with refused("'ucx://h:1' is not", "tls://"):
        open_engine(f"dask:{tmp_path}/bad.json", EngineOptions())


def test_servers_that_are_not_schedulers_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("codebatch.engines.addresses.CONNECT_SECONDS", 0.4)
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = SchedulerAddress("tcp", "127.0.0.1", server.getsockname()[1])
        # The kernel accepts the connection, and no program answers.
        with refused(f"{address}: it does not answer", "tcp or tls"):
            check_connection(address, None)
        context = ssl.create_default_context()
        context.check_hostname = False
        with refused("it does not answer", "tcp or tls"):
            check_connection(address, context)
        for _ in range(2):
            server.accept()[0].close()
        closer = threading.Thread(target=_close_next_connection, args=(server,))
        closer.start()
        with refused("it closed the connection", "running"):
            check_connection(address, None)
        closer.join()
    with refused("Connection refused", "running"):
        check_connection(address, None)


def test_hosts_that_cannot_be_resolved_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    for host in ("name.invalid", "a" * 64, "a..b"):
        address = SchedulerAddress("tls", host, 8786)
        with refused("cannot be resolved", "address"):
            check_connection(address, None)


def _close_next_connection(server: socket.socket) -> None:
    server.accept()[0].close()


def _unused_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])
