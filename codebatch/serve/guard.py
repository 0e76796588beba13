"""The guard of the server: one ASGI middleware that refuses requests from strangers (SPEC.md "Live page").

Every local user and every web page in a browser of this machine can connect to the port. A request must therefore name
this server as its host, come from its page if it comes from a page, and have the token if it asks for data. The token
is never sent by a browser on its own, as a cookie would be.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from codebatch.errors import Forbidden
from codebatch.serve.responses import error_response

BODY_BYTES_MAX = 64 * 1024
SUBPROTOCOL = "codebatch"
"""The subprotocol that the server selects. A client also offers `codebatch.TOKEN`, which is never echoed."""
_PUBLIC_PATHS = ("/", "/favicon.ico")
_PUBLIC_PREFIXES = ("/static/", "/report/")
"""Files without data, and reports. The address of a report is itself a secret that works once."""
_HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src data:; connect-src 'self'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "no-store",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
}


class Guard:
    """The middleware. `port` is the port that clients connect to, and `token` the secret of this server process."""

    def __init__(self, app: ASGIApp, *, token: str, port: int, on_first_use: Callable[[], None] | None = None) -> None:
        """`on_first_use` is called when the token is used for the first time."""
        self._on_first_use = on_first_use
        self._app = app
        self._token = token
        # Browsers leave out port 80, the default of HTTP.
        suffixes = (f":{port}", "") if port == 80 else (f":{port}",)
        self._hosts = {name + suffix for name in ("127.0.0.1", "localhost", "[::1]") for suffix in suffixes}
        self._origins = {f"http://{host}" for host in self._hosts}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        is_socket = scope["type"] == "websocket"
        refusal = self._refusal(scope, headers, is_socket=is_socket)
        # A WebSocket is refused by a response too, before it is accepted.
        app = self._app if refusal is None else error_response(refusal)
        await app(scope, receive, _with_headers(send))

    def _refusal(self, scope: Scope, headers: Headers, *, is_socket: bool) -> Forbidden | None:
        """Return the error for a request that is refused, or None if it is allowed."""
        hosts, origins = headers.getlist("host"), headers.getlist("origin")
        if len(hosts) != 1 or hosts[0] not in self._hosts:
            return Forbidden("the request is for another host")
        must_have_origin = is_socket or scope["method"] == "POST"
        if len(origins) > 1 or any(origin not in self._origins for origin in origins):
            return Forbidden("the request comes from another origin")
        if must_have_origin and not origins:
            return Forbidden("the request has no Origin header")
        path = scope["path"]
        is_public = path in _PUBLIC_PATHS or path.startswith(_PUBLIC_PREFIXES)
        if not is_public and not self._has_token(scope, headers, is_socket=is_socket):
            return Forbidden(
                "the token is missing or no longer valid", hint="open the address that `codebatch serve` printed"
            )
        return None

    def _has_token(self, scope: Scope, headers: Headers, *, is_socket: bool) -> bool:
        if is_socket:
            offered = scope["subprotocols"]
            tokens = [name.removeprefix(f"{SUBPROTOCOL}.") for name in offered if name.startswith(f"{SUBPROTOCOL}.")]
            return SUBPROTOCOL in offered and len(tokens) == 1 and self._is_token(tokens[0])
        scheme, _, token = headers.get("authorization", "").partition(" ")
        return len(headers.getlist("authorization")) == 1 and scheme == "Bearer" and self._is_token(token)

    def _is_token(self, text: str) -> bool:
        is_token = secrets.compare_digest(text.encode("utf-8", "replace"), self._token.encode())
        if is_token and self._on_first_use is not None:
            self._on_first_use()
            self._on_first_use = None
        return is_token


def _with_headers(send: Send) -> Send:
    """Add the headers that every response has. A response that has its own policy, such as a report, keeps it."""

    async def send_with_headers(message: Message) -> None:
        if message["type"] in ("http.response.start", "websocket.http.response.start"):
            headers = MutableHeaders(scope=message)
            for name, value in _HEADERS.items():
                headers.setdefault(name, value)
        await send(message)

    return send_with_headers
