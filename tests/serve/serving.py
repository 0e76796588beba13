"""A store with batches of both kinds, and clients of an application that serves the store."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

import jsonschema  # type: ignore[import-untyped]  # it has no types
from anyio.from_thread import BlockingPortal, start_blocking_portal
from starlette.types import ASGIApp, Message, Scope

from codebatch.operations.project.stores import open_store
from codebatch.serve.app import LiveApp
from tests.support.command_line import SCHEMAS, CommandLine, make_project, write

PORT = 8000
HOST = f"127.0.0.1:{PORT}"
ORIGIN = f"http://{HOST}"
TOKEN = "the-token-of-this-server"
BEARER = {"Authorization": f"Bearer {TOKEN}"}
_HEADERS = [("host", HOST), *BEARER.items()]
_CHUNK_BYTES = 10_000
SUBPROTOCOLS = ["codebatch", f"codebatch.{TOKEN}"]
HOSTILE_TITLE = "<script>alert(1)</script> \u202e txt.exe"

WORK_FILE = f"""
on_failure = "continue"
[defaults]
backoff_seconds = 0.01
[tasks.plain]
run = "echo plain"
[tasks.hostile]
title = {json.dumps(HOSTILE_TITLE)}
run = 'printf "\\033[31mred\\033[0m \\000\\377\\n"'
[tasks.again]
run = "echo try {{try}}; test {{try}} -ge 2"
retries = 1
[tasks.fails]
run = "echo broken; exit 3"
[tasks.asks]
run = 'echo "Which one?" >$CODEBATCH_QUESTION; exit 1'
[tasks.behind]
run = "true"
needs = ["asks"]
[tasks.part]
run = "echo {{value}}"
each = {{ values = ["a b", "../c"] }}
"""
"""A task list with a retry, a failure, an open question, a task that waits for it, and IDs that contain `/`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveStore:
    """A store with a batch of a task list and an analysis, both of which have stopped."""

    root: Path
    work: str
    analysis: str

    def copy(self, directory: Path) -> LiveStore:
        """Return a copy in another directory. A store that was copied is foreign."""
        shutil.copytree(self.root, directory / "store", symlinks=True)
        return LiveStore(root=directory / "store", work=self.work, analysis=self.analysis)

    def path(self, rest: str = "") -> str:
        """Return a path of the API below the batch of the task list."""
        return f"/api/v1/batches/{self.work}{rest}"

    def analysis_path(self, rest: str = "") -> str:
        """Return a path of the API below the analysis."""
        return f"/api/v1/batches/{self.analysis}{rest}"

    def batch_root(self) -> Path:
        """Return the directory of the batch of the task list."""
        return self.root / "batches" / self.work


def make_live_store(directory: Path) -> LiveStore:
    """Run a task list and an analysis."""
    codebatch = CommandLine(directory)
    write(directory / "work.toml", WORK_FILE)
    codebatch("work", "run", "--store", "store", status=3)
    work = codebatch("status", "--store", "store", "--json").json["batch_id"]
    answer = codebatch("run", make_project(directory / "project"), "--store", "store", "--json").json
    return LiveStore(root=directory / "store", work=work, analysis=answer["batch_id"])


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """A response. For a WebSocket that is accepted, the status is 101."""

    status: int
    headers: list[tuple[str, str]]
    body: bytes
    subprotocol: str | None = None

    def header(self, name: str) -> str | None:
        """Return the value of a header, or None."""
        return dict(self.headers).get(name.lower())

    def json(self, status: int = 200) -> Any:
        """Return the document of the body. Fail if the status is another one."""
        assert self.status == status, (self.status, self.body[:2000])
        document = json.loads(self.body)
        if status >= 400:
            check_live_schema("live-error", document)
        return document

    def error(self, status: int) -> tuple[str, str]:
        """Return the code and the message of an error. Fail if the status is another one."""
        error = self.json(status)["error"]
        return error["code"], error["message"]


async def exchange(
    app: ASGIApp,
    method: str,
    path: str,
    *,
    query: str = "",
    headers: Sequence[tuple[str, str]] = (),
    body: bytes = b"",
) -> Answer:
    """Send a request to an application as a server does. `path` is decoded, and `headers` have lower-case names.

    With the method `WS`, connect a WebSocket, and disconnect when it is accepted.
    """
    is_socket = method == "WS"
    offered = [name.strip() for key, value in headers if key == "sec-websocket-protocol" for name in value.split(",")]
    scope: Scope = {
        "type": "websocket" if is_socket else "http",
        "http_version": "1.1",
        "scheme": "ws" if is_socket else "http",
        "path": path,
        "raw_path": quote(path).encode(),
        "root_path": "",
        "query_string": query.encode(),
        "headers": [(name.lower().encode(), value.encode("latin-1")) for name, value in headers],
        "client": ("127.0.0.1", 5),
        "server": ("127.0.0.1", PORT),
        "state": {},
        **(
            {"subprotocols": offered, "extensions": {"websocket.http.response": {}}}
            if is_socket
            else {"method": method}
        ),
    }
    chunks = [body[start : start + _CHUNK_BYTES] for start in range(0, len(body), _CHUNK_BYTES)]
    received: list[Message] = [{"type": "http.request", "body": chunk, "more_body": True} for chunk in chunks]
    received.append({"type": "http.request"})
    if is_socket:
        received = [{"type": "websocket.connect"}, {"type": "websocket.disconnect", "code": 1000}]
    sent: list[Message] = []

    async def receive() -> Message:
        return received.pop(0) if received else {"type": "http.disconnect"}

    async def keep(message: Message) -> None:
        sent.append(message)

    await app(scope, receive, keep)
    start = sent[0]
    assert start["type"] != "websocket.close", "the WebSocket was refused without a response"
    return Answer(
        status=101 if start["type"] == "websocket.accept" else start["status"],
        headers=[(name.decode(), value.decode()) for name, value in start.get("headers", [])],
        body=b"".join(message.get("body", b"") for message in sent),
        subprotocol=start.get("subprotocol"),
    )


class Client:
    """A client of an application, which sends what the page sends. All its requests run in one event loop."""

    def __init__(self, app: ASGIApp, portal: BlockingPortal) -> None:
        self._app = app
        self._portal = portal

    def get(self, path: str, **parameters: object) -> Answer:
        """Get a path. The parameters of the query are `parameters`."""
        query = urlencode(parameters)
        return self._portal.call(partial(exchange, self._app, "GET", path, query=query, headers=_HEADERS))

    def post(self, path: str, document: object) -> Answer:
        """Post a document."""
        headers = [*_HEADERS, ("origin", ORIGIN), ("content-type", "application/json")]
        body = json.dumps(document).encode()
        return self._portal.call(partial(exchange, self._app, "POST", path, headers=headers, body=body))


@contextmanager
def serve_store(root: Path, *, allows_control: bool = False) -> Iterator[Client]:
    """Serve a store in this process."""
    with start_blocking_portal() as portal:
        app = LiveApp(open_store(root), token=TOKEN, port=PORT, allows_control=allows_control)
        try:
            yield Client(app.asgi, portal)
        finally:
            portal.call(app.stop)


def check_live_schema(name: str, document: object) -> None:
    """Fail if a document differs from its schema, or has a member that its schema does not describe."""
    _validator(name).validate(document)


@cache
def _validator(name: str) -> jsonschema.Draft202012Validator:
    schema = json.loads((SCHEMAS / f"{name}.json").read_bytes())
    for described in schema.get("$defs", {}).values():
        if "properties" in described:
            described.setdefault("additionalProperties", False)
    return jsonschema.Draft202012Validator(schema)


def answer_of(store: LiveStore, *arguments: str) -> Any:
    """Return the answer of a command about the store."""
    answer = CommandLine(store.root.parent)(*arguments, "--store", "store", "--json").json
    return {name: value for name, value in answer.items() if name != "schema"} if isinstance(answer, dict) else answer


def tree_of(root: Path) -> dict[str, tuple[int, int, bytes]]:
    """Return the mode, the time of the last change, and the bytes of everything below a directory."""
    return {
        str(path.relative_to(root)): (
            path.lstat().st_mode,
            path.lstat().st_mtime_ns,
            path.read_bytes() if path.is_file() else b"",
        )
        for path in [root, *root.rglob("*")]
    }
