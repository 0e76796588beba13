"""The guard of the live page: every route with every refusal (SPEC.md "Live page")."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace

import pytest
from starlette.routing import Route, WebSocketRoute
from starlette.types import ASGIApp

from codebatch.operations.project.stores import open_store
from codebatch.serve import queries
from codebatch.serve.app import LiveApp
from codebatch.serve.guard import BODY_BYTES_MAX
from tests.serve.serving import BEARER, ORIGIN, PORT, SUBPROTOCOLS, TOKEN, Answer, LiveStore, exchange

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src data:; connect-src 'self'; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'"
)
OTHER_HOST = "the request is for another host"
OTHER_ORIGIN = "the request comes from another origin"
NO_ORIGIN = "the request has no Origin header"
NO_TOKEN = "the token is missing or no longer valid"


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A route, and a request to it that is allowed. In `path`, `{batch}` is replaced by the ID of a batch."""

    method: str
    path: str
    needs_token: bool = True
    body: str = ""

    @property
    def needs_origin(self) -> bool:
        """Whether a request without an Origin header is refused."""
        return self.method in ("POST", "WS")


API = "/api/v1/batches/{batch}"
ROWS = {
    "/": Row(method="GET", path="/", needs_token=False),
    "/favicon.ico": Row(method="GET", path="/favicon.ico", needs_token=False),
    "/static/{name}": Row(method="GET", path="/static/style.css", needs_token=False),
    "/report/{nonce}": Row(method="GET", path="/report/unknown", needs_token=False),
    "/api/v1/session": Row(method="GET", path="/api/v1/session"),
    "/api/v1/batches": Row(method="GET", path="/api/v1/batches"),
    API: Row(method="GET", path=API),
    f"{API}/tasks": Row(method="GET", path=f"{API}/tasks"),
    f"{API}/task": Row(method="GET", path=f"{API}/task?id=plain"),
    f"{API}/log": Row(method="GET", path=f"{API}/log?task=plain"),
    f"{API}/events": Row(method="GET", path=f"{API}/events"),
    f"{API}/graph": Row(method="GET", path=f"{API}/graph"),
    f"{API}/failures": Row(method="GET", path=f"{API}/failures"),
    f"{API}/regressions": Row(method="GET", path=f"{API}/regressions"),
    f"{API}/report": Row(method="POST", path=f"{API}/report", body="{}"),
    f"{API}/requests": Row(method="POST", path=f"{API}/requests", body='{"do": "nothing"}'),
    "/ws/batch/{batch}": Row(method="WS", path="/ws/batch/{batch}"),
}
"""The table, by the path of the route. A route without a row fails a test."""


@dataclass(frozen=True, slots=True)
class Ask:
    """A request. `headers` are those besides Host, in order; `host` has the values of all Host headers."""

    row: Row
    query: str = ""
    host: tuple[str, ...] = (f"127.0.0.1:{PORT}",)
    headers: tuple[tuple[str, str], ...] = ()

    def with_headers(self, **values: str | None) -> Ask:
        """Replace headers. A header with the value None is left out. `_` in a name stands for `-`."""
        names = {name.replace("_", "-").lower(): value for name, value in values.items()}
        kept = tuple((name, value) for name, value in self.headers if name.lower() not in names)
        return replace(self, headers=kept + tuple((name, value) for name, value in names.items() if value is not None))

    def with_more(self, name: str, value: str) -> Ask:
        """Add a header to those of the same name."""
        return replace(self, headers=(*self.headers, (name, value)))


def allowed(row: Row) -> Ask:
    """Return the request that the page sends."""
    ask = Ask(row)
    if row.needs_origin:
        ask = ask.with_headers(Origin=ORIGIN)
    if row.method == "WS":
        ask = ask.with_headers(Sec_WebSocket_Protocol=", ".join(SUBPROTOCOLS))
    elif row.needs_token:
        ask = ask.with_headers(**BEARER)
    return ask.with_headers(Content_Type="application/json") if row.method == "POST" else ask


@dataclass(frozen=True, slots=True)
class Refusal:
    """A change of an allowed request after which the guard refuses it with a message. `applies` selects rows."""

    message: str
    change: Callable[[Ask], Ask]
    applies: Callable[[Row], bool] = field(default=lambda row: True)


def hosts(*values: str) -> Refusal:
    return Refusal(OTHER_HOST, lambda ask: replace(ask, host=values))


def origin(value: str) -> Refusal:
    return Refusal(OTHER_ORIGIN, lambda ask: ask.with_headers(Origin=value))


def authorization(value: str | None) -> Refusal:
    return Refusal(
        NO_TOKEN, lambda ask: ask.with_headers(Authorization=value), lambda row: row.needs_token and row.method != "WS"
    )


def subprotocols(*values: str) -> Refusal:
    text = ", ".join(values) or None
    return Refusal(NO_TOKEN, lambda ask: ask.with_headers(Sec_WebSocket_Protocol=text), lambda row: row.method == "WS")


def elsewhere(change: Callable[[Ask], Ask]) -> Refusal:
    """Send the token in another place instead of the right one."""
    return Refusal(
        NO_TOKEN,
        lambda ask: change(
            ask.with_headers(Authorization=None, Sec_WebSocket_Protocol="codebatch" if ask.row.method == "WS" else None)
        ),
        lambda row: row.needs_token,
    )


REFUSALS: Mapping[str, Refusal] = {
    "foreign host": hosts(f"attacker.example:{PORT}"),
    "host of another port": hosts(f"127.0.0.1:{PORT + 1}"),
    "host without a port": hosts("127.0.0.1"),
    "host that resolves to this machine": hosts(f"127.0.0.1.attacker.example:{PORT}"),
    "host with a user": hosts(f"user@127.0.0.1:{PORT}"),
    "no host": hosts(),
    "two hosts": hosts(f"127.0.0.1:{PORT}", f"127.0.0.1:{PORT}"),
    "two hosts, one of them foreign": hosts("attacker.example", f"127.0.0.1:{PORT}"),
    "foreign origin": origin("http://attacker.example"),
    "origin of another port": origin(f"http://127.0.0.1:{PORT + 1}"),
    "origin with another scheme": origin(f"https://127.0.0.1:{PORT}"),
    "origin that starts as ours": origin(f"{ORIGIN}.attacker.example"),
    "origin null": origin("null"),
    "empty origin": origin(""),
    "two origins": Refusal(OTHER_ORIGIN, lambda ask: ask.with_headers(Origin=ORIGIN).with_more("origin", ORIGIN)),
    "no origin": Refusal(NO_ORIGIN, lambda ask: ask.with_headers(Origin=None), lambda row: row.needs_origin),
    "no token": authorization(None),
    "wrong token": authorization("Bearer another"),
    "prefix of the token": authorization(f"Bearer {TOKEN[:-1]}"),
    "token with a suffix": authorization(f"Bearer {TOKEN}x"),
    "token with a space": authorization(f"Bearer  {TOKEN}"),
    "empty token": authorization("Bearer "),
    "scheme only": authorization("Bearer"),
    "token without a scheme": authorization(TOKEN),
    "scheme Basic": authorization(f"Basic {TOKEN}"),
    "token that is not ASCII": authorization("Bearer \u00e9"),
    "two tokens": Refusal(
        NO_TOKEN,
        lambda ask: ask.with_more("authorization", f"Bearer {TOKEN}"),
        lambda row: row.needs_token and row.method != "WS",
    ),
    "token as a query": elsewhere(lambda ask: replace(ask, query=f"token={TOKEN}&access_token={TOKEN}")),
    "token as a cookie": elsewhere(lambda ask: ask.with_headers(Cookie=f"token={TOKEN}; Authorization={TOKEN}")),
    "token as another header": elsewhere(lambda ask: ask.with_headers(X_Token=TOKEN)),
    "WebSocket with the header of requests": Refusal(
        NO_TOKEN,
        lambda ask: ask.with_headers(**BEARER, Sec_WebSocket_Protocol="codebatch"),
        lambda row: row.method == "WS",
    ),
    "request with the subprotocols of WebSockets": Refusal(
        NO_TOKEN,
        lambda ask: ask.with_headers(Authorization=None, Sec_WebSocket_Protocol=", ".join(SUBPROTOCOLS)),
        lambda row: row.needs_token and row.method != "WS",
    ),
    "no subprotocol": subprotocols(),
    "subprotocols without a token": subprotocols("codebatch"),
    "subprotocols without ours": subprotocols(f"codebatch.{TOKEN}"),
    "two tokens as subprotocols": subprotocols("codebatch", f"codebatch.{TOKEN}", f"codebatch.{TOKEN}"),
    "a right and a wrong subprotocol": subprotocols("codebatch", "codebatch.wrong", f"codebatch.{TOKEN}"),
    "wrong token as a subprotocol": subprotocols("codebatch", "codebatch.wrong"),
    "empty token as a subprotocol": subprotocols("codebatch", "codebatch."),
    "token without our prefix": subprotocols("codebatch", TOKEN),
}


def send(app: ASGIApp, ask: Ask, batch: str = "batch-of-nobody") -> Answer:
    """Send a request to an application."""
    path, _, query = ask.row.path.replace("{batch}", batch).partition("?")
    query = "&".join(filter(None, [query, ask.query]))
    headers = [*(("host", host) for host in ask.host), *ask.headers]
    return asyncio.run(exchange(app, ask.row.method, path, query=query, headers=headers, body=ask.row.body.encode()))


def make_app(store: LiveStore, *, allows_control: bool = True) -> LiveApp:
    """Return an application. It allows control by default, so that only the guard refuses requests."""
    return LiveApp(open_store(store.root), token=TOKEN, port=PORT, allows_control=allows_control)


@pytest.fixture(scope="module")
def app(live_store: LiveStore) -> Iterator[LiveApp]:
    """An application for requests that the guard answers."""
    app = make_app(live_store)
    yield app
    app.stop()


def check_headers(answer: Answer) -> None:
    """Fail if a header that every response has is missing or occurs twice, or if the token is anywhere."""
    values = {name.lower(): value for name, value in answer.headers}
    assert len(values) == len(answer.headers)
    assert values["content-security-policy"] in (POLICY, "sandbox allow-scripts")
    assert values["x-content-type-options"] == "nosniff"
    assert values["cache-control"] == "no-store"
    assert values["referrer-policy"] == "no-referrer"
    assert values["cross-origin-resource-policy"] == "same-origin"
    assert not any(name.startswith(("access-control", "set-cookie")) for name in values)
    assert TOKEN not in str(answer)


def test_every_route_has_a_row(app: LiveApp) -> None:
    found = {}
    for route in app.routes:
        assert isinstance(route, Route | WebSocketRoute)
        methods = {"WS"} if isinstance(route, WebSocketRoute) else (route.methods or set()) - {"HEAD"}
        found[route.path] = methods
    assert found == {path: {row.method} for path, row in ROWS.items()}


@pytest.mark.parametrize("path", ROWS)
def test_request_of_the_page_is_allowed(live_store: LiveStore, path: str) -> None:
    app = make_app(live_store)
    answer = send(app.asgi, allowed(ROWS[path]), live_store.work)
    app.stop()
    assert answer.status != 403
    if ROWS[path].method == "WS":
        assert answer.status == 101
    else:
        check_headers(answer)


@pytest.mark.parametrize("host", [f"localhost:{PORT}", f"[::1]:{PORT}"])
def test_other_names_of_the_loopback_address_are_allowed(app: LiveApp, host: str) -> None:
    ask = replace(allowed(ROWS["/api/v1/session"]), host=(host,))
    assert send(app.asgi, ask).status == 200
    assert send(app.asgi, ask.with_headers(Origin=f"http://{host}")).status == 200


@pytest.mark.parametrize(("port", "status"), [(80, 200), (PORT, 403)])
def test_host_and_origin_have_no_port_only_if_it_is_80(live_store: LiveStore, port: int, status: int) -> None:
    app = LiveApp(open_store(live_store.root), token=TOKEN, port=port, allows_control=True)
    ask = replace(allowed(ROWS["/api/v1/session"]), host=("localhost",)).with_headers(Origin="http://localhost")
    assert send(app.asgi, ask).status == status
    app.stop()


@pytest.mark.parametrize(
    ("path", "name"),
    [(path, name) for path, row in ROWS.items() for name, refusal in REFUSALS.items() if refusal.applies(row)],
)
def test_refusal(app: LiveApp, live_store: LiveStore, path: str, name: str) -> None:
    refusal = REFUSALS[name]
    answer = send(app.asgi, refusal.change(allowed(ROWS[path])), live_store.work)
    assert answer.error(403) == ("forbidden", refusal.message)
    check_headers(answer)


def test_refusal_applies_to_a_route() -> None:
    assert [name for name, refusal in REFUSALS.items() if not any(map(refusal.applies, ROWS.values()))] == []


@pytest.mark.parametrize("method", ["HEAD", "PUT", "DELETE", "OPTIONS", "PATCH", "TRACE", "CONNECT", "get"])
@pytest.mark.parametrize("path", [f"{API}/requests", API, "/", "/nowhere"])
def test_other_method_needs_the_token_and_changes_nothing(
    app: LiveApp, live_store: LiveStore, method: str, path: str
) -> None:
    row = Row(method=method, path=path, body='{"do": "cancel"}')
    answer = send(app.asgi, allowed(row), live_store.work)
    assert answer.status in ((200, 404) if method == "HEAD" and not path.endswith("requests") else (404, 405))
    check_headers(answer)
    if path != "/":
        assert send(app.asgi, allowed(replace(row, needs_token=False)), live_store.work).status == 403


@pytest.mark.parametrize(
    "media_type", [None, "", "text/plain", "application/x-www-form-urlencoded", "application/jsonx"]
)
@pytest.mark.parametrize("path", [path for path, row in ROWS.items() if row.method == "POST"])
def test_body_of_another_type_is_refused(
    app: LiveApp, live_store: LiveStore, path: str, media_type: str | None
) -> None:
    ask = allowed(replace(ROWS[path], body='{"do": "cancel"}')).with_headers(Content_Type=media_type)
    answer = send(app.asgi, ask, live_store.work)
    assert answer.json(400)["error"]["hint"] == "send it as application/json"
    check_headers(answer)


@pytest.mark.parametrize("path", [path for path, row in ROWS.items() if row.method == "POST"])
def test_body_is_limited(app: LiveApp, live_store: LiveStore, path: str) -> None:
    ask = allowed(replace(ROWS[path], body=" " * (BODY_BYTES_MAX + 1)))
    answer = send(app.asgi, ask, live_store.work)
    assert answer.error(400) == ("invalid_input", "the body has more than 65,536 bytes")
    check_headers(answer)
    largest = '{"do": "nothing"}'.rjust(BODY_BYTES_MAX)
    assert "more than" not in str(send(app.asgi, allowed(replace(ROWS[path], body=largest)), live_store.work).body)


def test_bug_is_answered_without_details(
    live_store: LiveStore, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def fail(*_: object) -> None:
        raise ZeroDivisionError("secret detail")

    monkeypatch.setattr(queries, "list_rows", fail)
    answer = send(make_app(live_store).asgi, allowed(ROWS["/api/v1/batches"]))
    assert answer.error(500) == ("internal", "internal error")
    assert b"secret detail" not in answer.body
    check_headers(answer)
    written = capfd.readouterr().err
    assert "ZeroDivisionError: secret detail" in written
    assert TOKEN not in written


def test_socket_with_a_bad_cursor_is_refused_with_the_headers(app: LiveApp, live_store: LiveStore) -> None:
    answer = send(app.asgi, replace(allowed(ROWS["/ws/batch/{batch}"]), query="since=yesterday"), live_store.work)
    assert answer.error(400) == ("invalid_input", "'yesterday' is not a cursor")
    check_headers(answer)


def test_socket_selects_the_subprotocol_without_the_token(app: LiveApp, live_store: LiveStore) -> None:
    ask = allowed(ROWS["/ws/batch/{batch}"])
    for offered in (SUBPROTOCOLS, SUBPROTOCOLS[::-1]):
        answer = send(app.asgi, ask.with_headers(Sec_WebSocket_Protocol=", ".join(offered)), live_store.work)
        assert answer.subprotocol == "codebatch"
