"""The server process: its sockets, its signals, and its end."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import resource
import signal
import socket
import sys
from collections.abc import Callable, Iterator
from typing import Any

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from codebatch.errors import InvalidInput
from codebatch.serve.app import LiveApp
from codebatch.serve.guard import BODY_BYTES_MAX

CONNECTIONS_MAX = 256
REQUEST_SECONDS_MAX = 10.0
"""Time in which a client must send the headers of its first request."""
_SHUTDOWN_SECONDS = 0.5
"""After a signal, time for clients to take part in closing their connections."""


def open_sockets(port: int) -> list[socket.socket]:
    """Listen on the loopback addresses of this machine: on 127.0.0.1, and on ::1 if there is one.

    With port 0, the system chooses a free port, the same for both. Raises InvalidInput if the port is in use.
    """
    sockets = [_listen(socket.AF_INET, "127.0.0.1", port)]
    # Without IPv6, or if another program has the same port on ::1, 127.0.0.1 suffices.
    with contextlib.suppress(InvalidInput, OSError):
        sockets.append(_listen(socket.AF_INET6, "::1", sockets[0].getsockname()[1]))
    return sockets


def _listen(family: socket.AddressFamily, address: str, port: int) -> socket.socket:
    listening = socket.socket(family, socket.SOCK_STREAM)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((address, port))
        listening.listen(128)
    except OSError as error:
        listening.close()
        if error.errno == errno.EADDRINUSE:
            raise InvalidInput(
                f"port {port} is in use", hint="choose another port, or leave out --port to use a free one"
            ) from None
        if error.errno == errno.EACCES:
            raise InvalidInput(f"port {port} needs more rights", hint="choose a port above 1023") from None
        raise
    return listening


def connections_max() -> int:
    """Return the maximum number of connections. At most half of the open files that the system allows are connections.

    Each request that reads a batch needs files, too.
    """
    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return CONNECTIONS_MAX if limit == resource.RLIM_INFINITY else min(CONNECTIONS_MAX, limit // 2)


class _Connection(H11Protocol):
    """A connection that is closed if its client sends no request.

    If there are too many connections, the oldest one without a request makes room for a new one. Thus a client that
    only opens connections does not shut out others.
    """

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as in its base
        waiting = [each for each in self.connections if isinstance(each, _Connection) and each.is_waiting]
        is_full = len(self.connections) >= connections_max()
        super().connection_made(transport)
        self.made_at = self.loop.time()
        if is_full:
            min(waiting, key=lambda each: each.made_at, default=self).abort()
        self.loop.call_later(REQUEST_SECONDS_MAX, self._abort_without_request)

    @property
    def is_waiting(self) -> bool:
        """Whether the client has sent no request, or has received the response to its last one."""
        return self.cycle is None or self.cycle.response_complete

    def abort(self) -> None:
        """Close the connection at once."""
        self.connections.discard(self)
        self.transport.abort()

    def _abort_without_request(self) -> None:
        if self in self.connections and self.cycle is None:
            self.abort()


class _Server(uvicorn.Server):
    """A uvicorn server that leaves signals to `serve_until_signal`."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


class _ProblemPrinter:
    """Prints the first problem of the system with connections in one line. Bugs are printed with their traceback.

    After a lack of open files, asyncio waits a second and accepts connections again, also if the server has closed its
    socket by then: it raises a ValueError (`BaseSelectorEventLoop._accept_connection`). If `is_stopping` is set, this
    error is ignored.
    """

    def __init__(self) -> None:
        self.is_stopping = False
        self._has_printed = False

    def handle(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """Handle a problem of the event loop."""
        error = context.get("exception")
        if self.is_stopping and isinstance(error, ValueError):
            return
        if not isinstance(error, OSError):
            loop.default_exception_handler(context)
        elif not self._has_printed:
            self._has_printed = True
            sys.stderr.write(f"a connection failed: {error.strerror or error}\n")


def serve_until_signal(app: LiveApp, sockets: list[socket.socket], announce: Callable[[], None]) -> int:
    """Serve until SIGINT, SIGTERM or SIGHUP arrives, and return its number. All connections are closed on return.

    `announce` is called when signals are handled, and before the first request is.
    """
    config = uvicorn.Config(
        app.asgi,
        log_config=None,
        log_level="critical",
        access_log=False,
        lifespan="off",
        http=_Connection,
        proxy_headers=False,
        server_header=False,
        ws="websockets-sansio",
        ws_max_size=BODY_BYTES_MAX,
        ws_per_message_deflate=False,
        ws_ping_interval=20.0,
        ws_ping_timeout=20.0,
        timeout_keep_alive=15,
        timeout_graceful_shutdown=1,
    )
    return asyncio.run(_serve(_Server(config), sockets, app, announce))


async def _serve(server: _Server, sockets: list[socket.socket], app: LiveApp, announce: Callable[[], None]) -> int:
    received: list[int] = []
    loop = asyncio.get_running_loop()

    def stop(number: int) -> None:
        if received:
            end()
            return
        received.append(number)
        problems.is_stopping = True
        app.stop()
        loop.call_later(_SHUTDOWN_SECONDS / 2, setattr, server, "should_exit", True)
        loop.call_later(_SHUTDOWN_SECONDS, end)

    def end() -> None:
        server.should_exit = server.force_exit = True
        for connection in list(server.server_state.connections):
            connection.transport.abort()

    problems = _ProblemPrinter()
    loop.set_exception_handler(problems.handle)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        loop.add_signal_handler(number, stop, number)
    announce()
    await server.serve(sockets=sockets)
    return received[0] if received else 0
