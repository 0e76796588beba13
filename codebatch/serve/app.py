"""The routes of the live page. Each reads the store in a thread, so that the event loop never waits for a disk."""

from __future__ import annotations

import asyncio
import sys
import traceback
from collections.abc import Callable
from importlib import resources

from anyio import to_thread
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route, WebSocketRoute
from starlette.types import ASGIApp, Receive, Scope, Send
from starlette.websockets import WebSocket

from codebatch import __version__
from codebatch.errors import CodebatchError, Forbidden, InvalidInput, UnknownCursor, UnknownId
from codebatch.model.entry import display_path
from codebatch.model.work.event import EventCursor
from codebatch.serve import queries
from codebatch.serve.bodies import Body, ReportBody, SessionBody
from codebatch.serve.control import control_batch, parse_control
from codebatch.serve.guard import BODY_BYTES_MAX, SUBPROTOCOL, Guard
from codebatch.serve.regressions import RegressionReader
from codebatch.serve.reports import ReportMaker
from codebatch.serve.responses import error_response, internal_error_response, json_response
from codebatch.serve.socket_stream import TRY_AGAIN_LATER, SocketStream
from codebatch.serve.watcher import Frame, WatcherPool
from codebatch.store.batches.batch_directory import BatchDir
from codebatch.store.batches.store_directory import StoreDir
from codebatch.work.control.batch_selection import select_batch
from codebatch.work.control.follow import parse_batch_cursor
from codebatch.work.control.status import FAILURE_REASON_TEXTS

SOCKETS_MAX = 64
_MEDIA_TYPES = {".html": "text/html", ".css": "text/css", ".js": "text/javascript"}


class LiveApp:
    """The application. `asgi` is what a server runs; `stop` lets it close its WebSockets."""

    def __init__(
        self,
        store: StoreDir,
        *,
        token: str,
        port: int,
        allows_control: bool,
        on_first_use: Callable[[], None] | None = None,
    ) -> None:
        """Clients connect to `port`. `on_first_use` is called when the token is used for the first time."""
        self._store = store
        self._allows_control = allows_control
        self._watchers = WatcherPool(store)
        self._reports = ReportMaker(str(store.root))
        self._regressions = RegressionReader(str(store.root))
        self._stopping = asyncio.Event()
        self._socket_count = 0
        self._pages = _read_pages()
        api, batch = "/api/v1", "/api/v1/batches/{batch}"
        self.routes = [
            Route("/", self._page),
            Route("/favicon.ico", self._favicon),
            Route("/static/{name}", self._page),
            Route(f"{api}/session", self._session),
            Route(f"{api}/batches", self._batches),
            Route(batch, self._batch),
            Route(f"{batch}/tasks", self._tasks),
            Route(f"{batch}/task", self._task),
            Route(f"{batch}/log", self._log),
            Route(f"{batch}/events", self._events),
            Route(f"{batch}/graph", self._graph),
            Route(f"{batch}/failures", self._failures),
            Route(f"{batch}/regressions", self._list_regressions),
            Route(f"{batch}/report", self._make_report, methods=["POST"]),
            Route(f"{batch}/requests", self._control, methods=["POST"]),
            Route("/report/{nonce}", self._report),
            WebSocketRoute("/ws/batch/{batch}", self._follow),
        ]
        self.asgi: ASGIApp = Starlette(
            routes=self.routes,
            middleware=[
                Middleware(Guard, token=token, port=port, on_first_use=on_first_use),
                Middleware(_BugAnswers),
            ],
            exception_handlers={CodebatchError: _answer_error, HTTPException: _answer_http_error},
        )

    def stop(self) -> None:
        """Close all WebSockets and stop all watchers. Must be called in the event loop."""
        self._stopping.set()
        self._watchers.stop_all()

    async def _page(self, request: Request) -> Response:
        name = request.path_params.get("name", "index.html")
        if name not in self._pages:
            raise UnknownId(f"no file {name!r}")
        return Response(self._pages[name], media_type=_MEDIA_TYPES[name[name.rindex(".") :]])

    async def _favicon(self, request: Request) -> Response:
        return Response(status_code=204)

    async def _session(self, request: Request) -> Response:
        path = display_path(bytes(self._store.root))
        rights, reasons = self._allows_control, FAILURE_REASON_TEXTS
        return json_response(SessionBody(allow_control=rights, version=__version__, store=path, reasons=reasons))

    async def _batches(self, request: Request) -> Response:
        return await self._answer(lambda: queries.list_rows(self._store, request.query_params))

    async def _batch(self, request: Request) -> Response:
        batch = await self._find(request)
        with self._watchers.watch(batch) as watcher:
            return await self._answer(lambda: queries.batch_body(watcher.read_status(), batch))

    async def _tasks(self, request: Request) -> Response:
        batch = await self._find(request)
        with self._watchers.watch(batch) as watcher:
            return await self._answer(lambda: queries.select_tasks(watcher.read_status(), batch, request.query_params))

    async def _task(self, request: Request) -> Response:
        batch = await self._find(request)
        with self._watchers.watch(batch) as watcher:
            return await self._answer(lambda: queries.find_task(watcher.read_status(), batch, request.query_params))

    async def _graph(self, request: Request) -> Response:
        batch = await self._find(request)
        with self._watchers.watch(batch) as watcher:
            return await self._answer(lambda: queries.graph_body(watcher.read_status(), batch))

    async def _log(self, request: Request) -> Response:
        batch = await self._find(request)
        with self._watchers.watch(batch) as watcher:
            part = await to_thread.run_sync(
                lambda: queries.read_log(watcher.read_status(), batch, request.query_params)
            )
        headers = {"X-Next-Offset": str(part.next_offset), "X-Size": str(part.size), "X-Log": part.log}
        return Response(part.data, media_type="text/plain; charset=utf-8", headers=headers)

    async def _events(self, request: Request) -> Response:
        batch = await self._find(request)
        with self._watchers.watch(batch) as watcher:
            return await self._answer(lambda: queries.read_events(self._store, watcher, request.query_params))

    async def _failures(self, request: Request) -> Response:
        batch = await self._find(request)
        return await self._answer(lambda: queries.read_failures(self._store, batch))

    async def _list_regressions(self, request: Request) -> Response:
        batch = await self._find(request)
        base = await to_thread.run_sync(lambda: queries.find_base(self._store, batch))
        return json_response(await self._regressions.read(batch, base))

    async def _make_report(self, request: Request) -> Response:
        await _read_body(request)
        return json_response(ReportBody(path=await self._reports.make(await self._find(request))))

    async def _report(self, request: Request) -> Response:
        page = self._reports.take(request.path_params["nonce"])
        # The page has a policy of its own for its script. In a sandbox it cannot read the token of our page.
        return Response(page, media_type="text/html", headers={"Content-Security-Policy": "sandbox allow-scripts"})

    async def _control(self, request: Request) -> Response:
        data = await _read_body(request)
        if not self._allows_control:
            raise Forbidden("this server only reads", hint="start it with: codebatch serve --allow-control")
        control = parse_control(data)
        batch = await self._find(request)
        with self._watchers.watch(batch) as watcher:

            def make_body() -> Body:
                watcher.wait_until_caught_up()
                cursor = watcher.newest
                work_batch = control_batch(self._store, batch, control)
                status = watcher.read_status() if work_batch is None else watcher.put_status(cursor, work_batch)
                return queries.batch_body(status, batch)

            return await self._answer(make_body)

    async def _follow(self, socket: WebSocket) -> None:
        try:
            batch = await to_thread.run_sync(lambda: self._resolve(socket.path_params["batch"]))
            since = _client_position(socket.query_params.get("since"), batch)
        except CodebatchError as error:
            await socket.send_denial_response(error_response(error))
            return
        await socket.accept(subprotocol=SUBPROTOCOL)
        if self._socket_count >= SOCKETS_MAX:
            await socket.close(TRY_AGAIN_LATER)
            return
        self._socket_count += 1
        try:
            with self._watchers.watch(batch) as watcher:
                await SocketStream(socket, self._store, watcher, since).run(self._stopping)
        finally:
            self._socket_count -= 1

    async def _find(self, request: Request) -> BatchDir:
        """Return the batch that the path of a request names. Raises the errors of `select_batch`."""
        return await to_thread.run_sync(lambda: self._resolve(request.path_params["batch"]))

    def _resolve(self, reference: str) -> BatchDir:
        return select_batch(self._store, reference, kind="any")

    async def _answer(self, make_body: Callable[[], Body | Frame]) -> Response:
        """Return a body that is made in a thread, because it reads files."""
        return await to_thread.run_sync(lambda: json_response(make_body()))


class _BugAnswers:
    """Middleware that answers a request that causes a bug. It is inside of the guard, which adds headers."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await self._app(scope, receive, send)
        except Exception:
            traceback.print_exc(file=sys.stderr)
            if scope["type"] == "http":
                await internal_error_response()(scope, receive, send)


def _client_position(cursor: str | None, batch: BatchDir) -> EventCursor | None:
    """Return the position of a client in the events of a batch, or None if it has events of another batch.

    Raises InvalidInput.
    """
    try:
        return parse_batch_cursor(cursor, batch)
    except UnknownCursor:
        return None


async def _answer_error(_request: Request, error: Exception) -> Response:
    assert isinstance(error, CodebatchError)
    return error_response(error)


async def _answer_http_error(_request: Request, error: Exception) -> Response:
    """Answer a request for an unknown path, or with an unknown method."""
    assert isinstance(error, HTTPException)
    return error_response(UnknownId(f"{error.detail.lower()}"), error.status_code)


async def _read_body(request: Request) -> bytes:
    """Return the body of a POST request. Raises InvalidInput if it is not JSON, or too large."""
    media_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if media_type != "application/json":
        raise InvalidInput(f"the body has the type {media_type!r}", hint="send it as application/json")
    data = b""
    async for chunk in request.stream():
        data += chunk
        if len(data) > BODY_BYTES_MAX:
            raise InvalidInput(f"the body has more than {BODY_BYTES_MAX:,} bytes")
    return data


def _read_pages() -> dict[str, bytes]:
    """Return the files of the page by name."""
    static = resources.files("codebatch.serve") / "static"
    return {file.name: file.read_bytes() for file in static.iterdir() if file.name.endswith(tuple(_MEDIA_TYPES))}
