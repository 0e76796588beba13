"""The live page in a real browser, over real batches."""

from __future__ import annotations

import http.server
import json
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.serve.server_process import ServerProcess, serve
from tests.serve.serving import HOSTILE_TITLE, LiveStore
from tests.support.browser import CHROMIUM, Page, browse
from tests.support.command_line import CommandLine, wait_until, write

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed"),
]

TASKS = {
    **{f"part-{n:02}": "run = 'echo part'" for n in range(33)},
    "hostile": f"run = 'echo hostile'\ntitle = {json.dumps(HOSTILE_TITLE)}",
    "retried": "run = 'test {try} -ge 2'\nretries = 1",
    "fails": """run = 'printf "<b>\\\\033[31mbroken\\\\033[0m</b>\\\\n"; exit 3'""",
    "asks": "run = 'echo got $(codebatch ask --wait \"Which <i>tool</i>?\")'",
    "behind": "run = 'true'\nneeds = ['asks']",
    "skipped": "run = 'true'\nneeds = ['fails']",
    "runs": "run = 'while ! test -e go; do sleep 0.05; done'\npriority = 1",
}
"""Forty tasks: one is retried, one fails, one asks, two depend on others, and one runs until the file `go` exists."""


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    """A page of a browser."""
    with browse(tmp_path_factory.mktemp("browser")) as opened:
        yield opened


@contextmanager
def run_tasks(directory: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Run the forty tasks until the question is asked, the failure happened, and the retried task is done."""
    codebatch = CommandLine(directory)
    tables = "".join(f"[tasks.{name}]\n{keys}\n" for name, keys in TASKS.items())
    top = "max_parallel = 4\non_failure = 'skip-dependents'\non_blocked = 'wait'\n[defaults]\nbackoff_seconds = 0.01\n"
    write(directory / "work.toml", top + tables)
    running = codebatch.start("work", "run", "--store", "store", "-q")
    try:
        wanted = {"retried": "DONE", "fails": "FAILED", "asks": "BLOCKED", "runs": "RUNNING", "part-32": "DONE"}

        def is_there() -> bool:
            if not any(directory.glob("store/batches/*/events/*")):
                return False
            rows = codebatch("status", "--store", "store", "--json").json["tasks"]
            return wanted.items() <= {row["id"]: row["state"] for row in rows}.items()

        wait_until(is_there, "the states of the tasks")
        yield running
    finally:
        if running.poll() is None:
            running.kill()
            running.communicate()
            subprocess.run(["touch", directory / "go"], check=True)


def url_of(server: ServerProcess, batch: str = "") -> str:
    """Return the address that a server printed."""
    return f"{server.origin}/#token={server.token}" + (f"&batch={batch}" if batch else "")


def check_quiet(page: Page, server: ServerProcess) -> None:
    """Fail if the console has a message, or if the page requested anything from another origin."""
    assert page.complaints == []
    own = (server.origin, server.origin.replace("http", "ws"))
    assert [url for url in page.requested if not url.startswith(tuple(f"{origin}/" for origin in own))] == []
    assert server.token not in "".join(page.requested)


def filters(page: Page) -> dict[str, int]:
    """Return the number of tasks in each state, as the buttons of the table show it."""
    labels = page.ask("[...document.querySelectorAll('#states button')].map((each) => each.innerText)")
    words = [label.split() for label in labels]
    return {parts[-2]: int(parts[-1].replace(",", "")) for parts in words}


def press_until(page: Page, key: str, condition: str, times: int = 40) -> None:
    """Press a key until a condition holds."""
    for _ in range(times):
        if page.ask(condition):
            return
        page.press(key)
    pytest.fail(f"{key} does not lead to {condition}: {page.ask('document.activeElement.outerHTML')}")


def test_page_shows_states_and_an_answer_unblocks_its_task(own_page: Page, tmp_path: Path) -> None:
    """All of it by keyboard."""
    page = own_page
    with run_tasks(tmp_path) as running, serve(tmp_path / "store", "--allow-control") as server:
        page.open(url_of(server))
        page.wait_until("document.querySelector('.card.question') && document.querySelector('details.card')")
        page.wait_until("document.querySelectorAll('#states button').length >= 6")
        assert page.ask("location.href") == f"{server.origin}/", "the token is not in the address"
        expected = {"all": 40, "running": 1, "question": 1, "failed": 1, "done": 35}
        found = filters(page)
        assert expected.items() <= found.items()
        assert sum(found.values()) == 2 * 40
        # A hostile title and a hostile log are text.
        page.wait_until("document.querySelector('details.card pre').innerText.includes('broken')")
        text = page.ask("document.body.innerText")
        assert "<script>alert(1)</script> \\u202e txt.exe" in text
        assert "\u202e" not in text
        assert "<b>broken</b>" in page.ask("document.querySelector('details.card pre').innerText")
        assert "Which <i>tool</i>?" in page.ask("document.querySelector('.card.question').innerText")
        assert page.ask("document.querySelectorAll('script, iframe, object, main i i, main b').length") == 1
        assert page.ask("document.title") != "codebatch"
        # A question that is answered by keyboard.
        page.press("f")
        page.wait_until("document.activeElement.id === 'attention'")
        press_until(page, "Tab", "document.activeElement.tagName === 'TEXTAREA'")
        page.type("uv")
        page.press("Enter")
        page.wait_until("!document.querySelector('.card.question')")
        page.wait_until("/done\\s+37/.test(document.querySelector('#states').innerText)")
        # The end.
        write(tmp_path / "go", "")
        page.wait_until("document.querySelector('#state').innerText.includes('partial')")
        assert filters(page) == {"all": 40, "failed": 1, "done": 38, "skipped": 1}
        assert "work retry" in page.ask("document.querySelector('#attention').innerText")
        CommandLine(tmp_path).finish(running, status=3)
        assert CommandLine(tmp_path)("work", "log", "asks", "--store", "store").text == "got uv\n"
        check_quiet(page, server)


def test_page_only_reads_without_control(own_page: Page, tmp_path: Path) -> None:
    with run_tasks(tmp_path), serve(tmp_path / "store") as server:
        own_page.open(url_of(server))
        own_page.wait_until("document.querySelector('.card.question')")
        assert own_page.ask("document.querySelectorAll('#attention textarea').length") == 0
        assert "work answer" in own_page.ask("document.querySelector('.card.question').innerText")
        check_quiet(own_page, server)


def test_every_function_has_a_key(page: Page, live_store: LiveStore) -> None:
    with serve(live_store.root) as server:
        page.open(url_of(server, live_store.work))
        page.wait_until("document.querySelectorAll('#table .row').length > 8")
        page.press("?", shift=True)
        assert "Filter tasks" in page.ask("document.querySelector('#keys[open]').innerText")
        page.press("Escape")
        page.wait_until("!document.querySelector('#keys[open]')")
        page.wait_until("!document.querySelector('#attention').hidden && !document.querySelector('#now').hidden")
        for key, focused in {"f": "attention", "w": "now", "t": "table", "/": "filter"}.items():
            page.press(key)
            page.wait_until(f"document.activeElement.id === '{focused}'")
        page.type("part/")
        shown = "[...document.querySelectorAll('#table .row:not(.head)')].filter((row) => !row.hidden).length"
        page.wait_until(f"{shown} === 2")
        page.press("Escape")
        assert page.ask("document.querySelector('#filter').value") == "part/"
        page.press("t")
        page.press("ArrowDown")
        page.press("Enter")
        page.wait_until("!document.querySelector('#panel').hidden && document.querySelector('#panel pre')")
        page.wait_until("/a b|c/.test(document.querySelector('#panel pre').innerText)")
        page.press("Escape")
        page.wait_until("document.querySelector('#panel').hidden")
        page.press("g")
        page.wait_until("document.querySelectorAll('#graph .node').length === 8")
        page.press("g")
        page.press("b")
        page.wait_until("document.querySelectorAll('#batches[open] tbody tr').length === 2")
        check_quiet(page, server)


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [320, 1600])
@pytest.mark.parametrize("kind", ["work", "analysis"])
def test_page_fits_its_window(page: Page, live_store: LiveStore, kind: str, width: int, scheme: str) -> None:
    batch = live_store.work if kind == "work" else live_store.analysis
    with serve(live_store.root) as server:
        page.open(url_of(server, batch), width=width, scheme=scheme, motion="reduce")
        page.wait_until("document.querySelectorAll('#table .row').length > 3")
        page.wait_until("document.querySelector('#connection').innerText === 'live'")
        assert page.ask("document.documentElement.scrollWidth") <= width
        clipped = page.ask(
            "[...document.querySelectorAll('header, main > section, .card')].filter((each) =>"
            " each.getBoundingClientRect().right > innerWidth + 1).map((each) => each.id || each.className)"
        )
        assert clipped == []
        color = page.ask("getComputedStyle(document.body).backgroundColor")
        channels = [int(part) for part in color.removeprefix("rgb(").removesuffix(")").split(",")]
        assert (sum(channels) < 3 * 128) == (scheme == "dark")
        assert page.ask("document.querySelectorAll('[role=row], tr').length") < 500
        assert (
            page.ask(
                "document.getAnimations().filter((each) => each.effect.getTiming().iterations === Infinity).length"
            )
            == 0
        )
        check_quiet(page, server)


@pytest.mark.parametrize("address", ["", "latest"])
def test_page_shows_a_newer_batch_when_the_current_one_has_ended(own_page: Page, tmp_path: Path, address: str) -> None:
    """An open panel is not closed. The page then states that there is a newer batch."""
    page, codebatch = own_page, CommandLine(tmp_path)
    write(tmp_path / "work.toml", "[tasks.t]\nrun = 'echo $CODEBATCH_BATCH; test -e passes'\n")

    def run(status: int) -> str:
        codebatch("work", "run", "--store", "store", status=status)
        return str(codebatch("status", "--store", "store", "--json").json["batch_id"])

    with_id = "document.querySelector('#name').innerText.includes('{}')"
    codebatch("init", "store")
    with serve(tmp_path / "store") as server:
        if address:
            first = run(3)
            page.open(url_of(server, address))
        else:
            page.open(url_of(server))
            page.wait_until("document.querySelector('#message').innerText === 'No batches'")
            first = run(3)
        page.wait_until(f"{with_id.format(first)} && document.querySelector('#connection').innerText === 'live'")
        page.wait_until("document.querySelector('#state').innerText.includes('failed')")
        write(tmp_path / "passes", "")
        second = run(0)
        page.wait_until(f"{with_id.format(second)} && document.querySelector('#connection').innerText === 'live'")
        page.wait_until("document.querySelector('#state').innerText.includes('completed')")
        assert page.ask("document.querySelectorAll('#table .row:not(.head)').length") == 1
        page.press("t")
        page.press("ArrowDown")
        page.press("Enter")
        page.wait_until("document.querySelector('#panel pre')?.innerText.includes('batch')")
        third = run(0)
        page.wait_until("document.querySelector('#connection').innerText === 'a newer batch has started'")
        assert page.ask(with_id.format(second))
        page.press("Escape")
        page.wait_until(f"{with_id.format(third)} && document.querySelector('#connection').innerText === 'live'")
        check_quiet(page, server)


def test_page_of_a_chosen_batch_stays_with_it(own_page: Page, tmp_path: Path) -> None:
    """The name of a batch is resolved once. Its requests are then for the same batch."""
    page, codebatch = own_page, CommandLine(tmp_path)
    write(tmp_path / "work.toml", "[tasks.t]\nrun = 'true'\n")
    batches = []
    for _ in range(2):
        codebatch("work", "run", "--store", "store")
        batches.append(codebatch("status", "--store", "store", "--json").json["batch_id"])
    with serve(tmp_path / "store") as server:
        page.open(url_of(server, "latest~1"))
        page.wait_until(f"document.querySelector('#name').innerText.includes('{batches[0]}')")
        page.wait_until("document.querySelector('#connection').innerText === 'live'")
        assert [url for url in page.requested if "latest" in url] == [f"{server.origin}/api/v1/batches/latest~1?"]
        check_quiet(page, server)


def test_many_tasks_are_few_rows(own_page: Page, tmp_path: Path) -> None:
    codebatch = CommandLine(tmp_path)
    values = ",".join(f"'v{n}'" for n in range(1200))
    write(tmp_path / "work.toml", f"max_parallel = 4\n[tasks.t]\nrun = 'true'\neach = {{ values = [{values}] }}\n")
    running = codebatch.start("work", "run", "--store", "store", "-q")
    try:
        wait_until(lambda: any(tmp_path.glob("store/batches/*/events/*")), "the run begins")
        with serve(tmp_path / "store") as server:
            own_page.open(url_of(server))
            own_page.wait_until("document.querySelector('#states')?.innerText.includes('1,200')")
            for _ in range(5):
                own_page.ask("document.querySelector('#table').scrollTop += 7000")
                assert own_page.ask("document.querySelectorAll('[role=row], tr, #attention *').length") < 500
            check_quiet(own_page, server)
    finally:
        running.terminate()
        running.communicate()


def test_report_opens_in_an_origin_of_its_own(own_page: Page, live_store: LiveStore) -> None:
    page = own_page
    with serve(live_store.root) as server:
        page.open(url_of(server, live_store.analysis))
        page.wait_until("document.querySelector('#result') && !document.querySelector('#result').hidden")
        assert page.ask("sessionStorage.length") > 0
        page.press("r")
        page.switch_to(f"{server.origin}/report/")
        page.wait_until("document.querySelector('.tile')")
        assert page.ask("self.origin") == "null"
        assert page.ask("window.opener") is None
        denied = "(() => { try { return sessionStorage.length; } catch (error) { return error.name; } })()"
        assert page.ask(denied) == "SecurityError"
        # The address works once.
        status, _ = server.get(page.ask("location.pathname"))
        assert status == 404


def test_page_reports_that_its_server_is_gone_and_that_its_token_is_old(own_page: Page, live_store: LiveStore) -> None:
    page = own_page
    server = ServerProcess(live_store.root)
    try:
        page.open(url_of(server, live_store.work))
        page.wait_until("document.querySelector('#connection').innerText === 'live'")
        server.kill()
        page.wait_until("document.body.classList.contains('is-stale') && !document.querySelector('#gone').hidden")
        assert "Data from" in page.ask("document.querySelector('#gone').innerText")
        assert page.ask("document.querySelectorAll('#table .row').length") > 8, "the last data stays"
        with serve(live_store.root, port=server.port) as restarted:
            page.wait_until("document.querySelector('#gone').innerText.includes('token')")
            page.open(url_of(restarted, live_store.work))
            page.wait_until("document.querySelector('#connection').innerText === 'live'")
    finally:
        server.kill()


def test_page_without_a_token_shows_no_data(own_page: Page, live_store: LiveStore) -> None:
    with serve(live_store.root) as server:
        own_page.open(f"{server.origin}/")
        own_page.wait_until("document.querySelector('#message').innerText.includes('token')")
        assert [url for url in own_page.requested if "/api/" in url] == []


# Another page in the same browser

ATTACK = """<!doctype html><meta charset="utf-8"><title>attack</title><body><script>
const SERVER = "%(server)s", BATCH = "%(batch)s";
const results = {};
const attempt = async (name, work) => {
    try { results[name] = await work(); } catch (error) { results[name] = `refused: ${error.name}`; }
};
const socket = (path, protocols) => new Promise((resolve) => {
    const opened = new WebSocket(SERVER.replace("http", "ws") + path, protocols);
    opened.onopen = () => resolve("opened");
    opened.onerror = () => resolve("refused");
});
const load = (name, attributes) => new Promise((resolve) => {
    const node = Object.assign(document.createElement(name), attributes);
    node.onload = () => resolve("loaded");
    node.onerror = () => resolve("refused");
    document.body.append(node);
});
const REQUESTS = `${SERVER}/api/v1/batches/${BATCH}/requests`;
const CANCEL = { method: "POST", body: '{"do": "cancel"}' };
const simple = { ...CANCEL, mode: "no-cors", credentials: "include", headers: { "Content-Type": "text/plain" } };
const json = { ...CANCEL, headers: { "Content-Type": "application/json" } };
const status = async (...request) => (await fetch(...request)).status;
const form = () => new Promise((resolve) => {
    const frame = Object.assign(document.createElement("iframe"), { name: "answer" });
    const about = { method: "POST", enctype: "text/plain", target: "answer", action: REQUESTS };
    const sent = Object.assign(document.createElement("form"), about);
    sent.append(Object.assign(document.createElement("input"), { name: '{"do": "cancel", "x": "', value: '"}' }));
    document.body.append(frame, sent);
    frame.onload = () => resolve("sent");
    sent.submit();
});
const read = (frame) => { try { return frame.contentDocument ? "readable" : "hidden"; } catch { return "hidden"; } };
(async () => {
    await attempt("fetch", () => status(`${SERVER}/api/v1/batches`));
    await attempt("fetch with credentials", () => status(`${SERVER}/api/v1/batches`, { credentials: "include" }));
    await attempt("fetch of the page", () => status(`${SERVER}/`));
    await attempt("opaque fetch", () => status(`${SERVER}/api/v1/batches`, { mode: "no-cors" }));
    await attempt("simple POST", () => status(REQUESTS, simple));
    await attempt("JSON POST", () => status(REQUESTS, json));
    await attempt("report", () => status(`${SERVER}/api/v1/batches/${BATCH}/report`, { method: "POST", body: "{}" }));
    for (const protocols of [[], ["codebatch"], ["codebatch", "codebatch.guess"]])
        await attempt(`WebSocket ${protocols}`, () => socket(`/ws/batch/${BATCH}`, protocols));
    await attempt("form", form);
    await attempt("script", () => load("script", { src: `${SERVER}/static/app.js` }));
    await attempt("data as a script", () => load("script", { src: `${SERVER}/api/v1/batches` }));
    await attempt("style", () => load("link", { rel: "stylesheet", href: `${SERVER}/static/style.css` }));
    await attempt("frame", async () => {
        const frame = Object.assign(document.createElement("iframe"), { src: `${SERVER}/`, id: "framed" });
        const loaded = new Promise((resolve) => { frame.onload = resolve; });
        document.body.append(frame);
        await loaded;
        return read(frame);
    });
    await attempt("window", async () => {
        const opened = window.open(`${SERVER}/`);
        await new Promise((resolve) => setTimeout(resolve, 500));
        return opened.sessionStorage.length;
    });
    document.title = "done";
})();
window.results = results;
</script></body>"""


@pytest.mark.parametrize("has_open_page", [False, True])
def test_page_of_another_origin_gets_nothing(own_page: Page, live_store: LiveStore, has_open_page: bool) -> None:
    """The other origin is another port of this machine, as it is for another user's server."""
    page = own_page
    with serve(live_store.root, "--allow-control") as server:
        content = ATTACK % {"server": server.origin, "batch": live_store.work}

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self.send_response(200)
                self.send_header("Content-Type", "text/html")
                self.end_headers()
                self.wfile.write(content.encode())

            def log_message(self, format: str, *args: object) -> None:
                """Print nothing."""

        if has_open_page:
            page.open(url_of(server))
            page.wait_until("document.querySelector('#connection').innerText === 'live'")
            page.ask(f"window.open('http://127.0.0.1:{server.port}/', '_blank') && true")
        before = server.get_json(live_store.path())["status"]
        with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as other:
            thread = threading.Thread(target=other.serve_forever)
            thread.start()
            try:
                page.open(f"http://127.0.0.1:{other.server_port}/")
                page.wait_until("document.title === 'done'", 30.0)
                results = page.ask("results")
                framed = page.ask("document.querySelector('#framed').contentDocument?.body?.innerText ?? ''")
            finally:
                other.shutdown()
                thread.join()
        assert framed == ""
        assert results == {
            "fetch": "refused: TypeError",
            "fetch with credentials": "refused: TypeError",
            "fetch of the page": "refused: TypeError",
            "opaque fetch": "refused: TypeError",
            "simple POST": "refused: TypeError",
            "JSON POST": "refused: TypeError",
            "report": "refused: TypeError",
            "WebSocket ": "refused",
            "WebSocket codebatch": "refused",
            "WebSocket codebatch,codebatch.guess": "refused",
            "form": "sent",  # It was refused: see the status of the batch.
            "script": "refused",
            "data as a script": "refused",
            "style": "refused",
            "frame": "hidden",
            "window": "refused: SecurityError",
        }
        assert server.get_json(live_store.path())["status"] == before
