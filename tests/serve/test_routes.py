"""The answers of the live page's server, over a real store with a batch of each kind."""

from __future__ import annotations

import json
import os
import shutil
import time
from pathlib import Path
from typing import Any

import pytest

from codebatch.serve import watcher
from codebatch.work.control.event_feed import EventFeed
from codebatch.work.control.status import failure_reason_text
from tests.serve.serving import (
    HOSTILE_TITLE,
    Answer,
    Client,
    LiveStore,
    answer_of,
    check_live_schema,
    serve_store,
    tree_of,
)
from tests.support.command_line import CommandLine

WORK_READS: list[tuple[str, dict[str, object]]] = [
    ("", {}),
    ("/tasks", {}),
    ("/task", {"id": "asks"}),
    ("/log", {"task": "plain"}),
    ("/events", {}),
    ("/graph", {}),
]


def read_everything(client: Client, store: LiveStore) -> list[Answer]:
    """Get every path with data: of a batch of each kind, and of the store."""
    answers = [
        client.get(path(rest), **query) for rest, query in WORK_READS for path in (store.path, store.analysis_path)
    ]
    return [*answers, client.get("/api/v1/batches"), client.get("/api/v1/session")]


# The shapes of answers


def test_session_describes_the_server(client: Client, live_store: LiveStore) -> None:
    session = client.get("/api/v1/session").json()
    check_live_schema("live-session", session)
    assert (session["allow_control"], session["store"]) == (False, str(live_store.root))
    assert session["reasons"]["timeout"] == failure_reason_text("timeout", None)


def test_list_of_batches_is_that_of_the_command(client: Client, live_store: LiveStore) -> None:
    page = client.get("/api/v1/batches").json()
    check_live_schema("live-batches", page)
    listed = answer_of(live_store, "batch", "list")
    assert page == {"batches": sorted(listed, key=lambda row: row["batch_id"], reverse=True), "next": None}


def test_status_of_a_task_list_is_that_of_the_command_without_tasks(client: Client, live_store: LiveStore) -> None:
    body = client.get(live_store.path()).json()
    check_live_schema("live-batch", body)
    status = answer_of(live_store, "status", "--batch", live_store.work)
    assert len(status.pop("tasks")) == 8
    assert status.pop("older_batch") is None
    assert body["status"] == {**status, "tasks": []}
    assert (body["kind"], body["resume"]) == ("work", f"codebatch resume --batch {live_store.work}")


def test_status_of_an_analysis_is_that_of_the_command(client: Client, live_store: LiveStore) -> None:
    body = client.get(live_store.analysis_path()).json()
    check_live_schema("live-analysis", body)
    status = answer_of(live_store, "status", "--batch", live_store.analysis)
    assert body["status"] == status
    assert body["kind"] == "analysis"


def test_tasks_are_those_of_the_status(client: Client, live_store: LiveStore) -> None:
    body = client.get(live_store.path("/tasks")).json()
    check_live_schema("live-tasks", body)
    status = answer_of(live_store, "status", "--batch", live_store.work)
    assert body == {"tasks": status["tasks"], "total": 8}
    assert [task["title"] for task in body["tasks"] if task["id"] == "hostile"] == [HOSTILE_TITLE]


@pytest.mark.parametrize(
    ("query", "ids", "total"),
    [
        ({"state": "FAILED"}, ["fails"], 1),
        ({"state": "failed,blocked"}, ["fails", "asks"], 2),
        ({"state": "NOTHING"}, [], 0),
        ({"filter": "<SCRIPT>"}, ["hostile"], 1),
        ({"filter": "which one"}, ["asks"], 1),
        ({"filter": "part/"}, ["part/c8687a08", "part/9604b906"], 2),
        ({"filter": "part/", "state": "done", "limit": 1}, ["part/c8687a08"], 2),
        ({"offset": 7}, ["part/9604b906"], 8),
        ({"offset": 8}, [], 8),
        ({"offset": 10**14, "round": 2}, [], 8),
        ({"offset": 1, "limit": 2}, ["hostile", "again"], 8),
        ({"limit": 500}, None, 8),
    ],
)
def test_tasks_are_selected(
    client: Client, live_store: LiveStore, query: dict[str, object], ids: list[str] | None, total: int
) -> None:
    body = client.get(live_store.path("/tasks"), **query).json()
    assert body["total"] == total
    assert ids is None or {task["id"] for task in body["tasks"]} == set(ids)


def test_task_has_its_attempts_and_its_question(client: Client, live_store: LiveStore) -> None:
    body = client.get(live_store.path("/task"), id="again").json()
    check_live_schema("live-task", body)
    assert [(attempt["round"], attempt["ended"]) for attempt in body["attempts"]] == [(1, "failed"), (2, "result")]
    assert body["question"] is None
    body = client.get(live_store.path("/task"), id="asks").json()
    check_live_schema("live-task", body)
    assert (body["task"]["state"], body["question"]["text"]) == ("BLOCKED", "Which one?")


def test_id_of_a_task_may_contain_a_slash(client: Client, live_store: LiveStore) -> None:
    ids = [task["id"] for task in client.get(live_store.path("/tasks"), filter="part/").json()["tasks"]]
    for id_ in ids:
        assert client.get(live_store.path("/task"), id=id_).json()["task"]["id"] == id_
        assert client.get(live_store.path("/log"), task=id_).body in (b"a b\n", b"../c\n")


def test_graph_has_the_edges(client: Client, live_store: LiveStore) -> None:
    body = client.get(live_store.path("/graph")).json()
    check_live_schema("live-graph", body)
    assert body == {"edges": [{"task": "behind", "on": "asks", "kind": "needs"}]}


@pytest.mark.parametrize("kind", ["work", "analysis"])
def test_events_are_those_of_the_command(client: Client, live_store: LiveStore, kind: str) -> None:
    path = live_store.path if kind == "work" else live_store.analysis_path
    batch = live_store.work if kind == "work" else live_store.analysis
    body = client.get(path("/events")).json()
    check_live_schema("live-events", body)
    lines = CommandLine(live_store.root.parent)("events", "--store", "store", "--batch", batch, "--json").lines
    assert body["events"] == list(map(json.loads, lines))
    assert body["cursor"] == body["events"][-1]["cursor"]
    paged: list[Any] = []
    cursor = None
    while True:
        page = client.get(path("/events"), limit=2, **({"since": cursor} if cursor else {})).json()
        assert len(page["events"]) <= 2
        if not page["events"]:
            break
        paged += page["events"]
        cursor = page["cursor"]
    assert paged == body["events"]
    assert page["cursor"] == cursor == body["cursor"]


def test_first_answer_has_the_cursor_of_the_present(live_store: LiveStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """Even if a watcher needs time to read the events."""
    read_events = watcher.BatchWatcher._read_events

    def read_slowly(self: watcher.BatchWatcher, feed: EventFeed) -> bool:
        time.sleep(0.1)
        return read_events(self, feed)

    monkeypatch.setattr(watcher.BatchWatcher, "_read_events", read_slowly)
    for path in (live_store.path, live_store.analysis_path):
        with serve_store(live_store.root) as client:
            cursor = client.get(path()).json()["cursor"]
            assert cursor == client.get(path("/events")).json()["cursor"]
        with serve_store(live_store.root) as client:
            assert client.get(path("/events")).json()["cursor"] == cursor


# Logs


@pytest.mark.parametrize(
    ("query", "data", "next_offset"),
    [
        ({}, b"try 2\n", 6),
        ({"round": 1}, b"try 1\n", 6),
        ({"round": 2}, b"try 2\n", 6),
        ({"offset": 2, "round": 2}, b"y 2\n", 6),
        ({"offset": 2, "limit": 3, "round": 2}, b"y 2", 5),
        ({"offset": -3}, b" 2\n", 6),
        ({"offset": -3, "limit": 1}, b" ", 4),
        ({"offset": -100}, b"try 2\n", 6),
        ({"offset": 6, "round": 2}, b"", 6),
        ({"limit": 1 << 20}, b"try 2\n", 6),
    ],
)
def test_log_is_read_in_parts(
    client: Client, live_store: LiveStore, query: dict[str, object], data: bytes, next_offset: int
) -> None:
    answer = client.get(live_store.path("/log"), task="again", **query)
    assert (answer.status, answer.body) == (200, data)
    assert answer.header("content-type") == "text/plain; charset=utf-8"
    assert (answer.header("x-next-offset"), answer.header("x-size")) == (str(next_offset), "6")
    again = client.get(live_store.path("/log"), task="again", log=answer.header("x-log"), offset=next_offset)
    assert again.body == (b"try 1\n" if query.get("round") == 1 else b"try 2\n")[next_offset:]


def test_binary_log_is_sent_as_it_is(client: Client, live_store: LiveStore) -> None:
    assert client.get(live_store.path("/log"), task="hostile").body == b"\x1b[31mred\x1b[0m \x00\xff\n"


def test_huge_log_is_read_in_part(own_store: LiveStore) -> None:
    (log,) = (path for path in own_store.batch_root().glob("logs/*") if path.read_bytes() == b"plain\n")
    os.chmod(log, 0o600)
    with open(log, "r+b") as file:
        file.truncate(2 << 30)  # A sparse file.
        file.seek(-4, os.SEEK_END)
        file.write(b"end\n")
    with serve_store(own_store.root) as client:
        answer = client.get(own_store.path("/log"), task="plain", offset=-(1 << 18))
        assert (len(answer.body), answer.body[-4:], answer.header("x-next-offset")) == (1 << 18, b"end\n", str(2 << 30))
        assert len(client.get(own_store.path("/log"), task="plain").body) == 1 << 20
        os.truncate(log, 3)
        assert client.get(own_store.path("/log"), task="plain", round=1, offset=3).body == b""
        log.unlink()
        for query in ({}, {"round": 1, "offset": 3}, {"log": log.name, "offset": 1}):
            code, message = client.get(own_store.path("/log"), task="plain", **query).error(409)
            assert (code, message) == ("nothing_to_do", f"the log {log.name} of task plain does not exist")


# Bad input


@pytest.mark.parametrize(
    ("rest", "query", "status"),
    [
        ("/task", {}, 400),
        ("/task", {"id": "nothing"}, 404),
        ("/task", {"id": "part/../plain"}, 404),
        ("/task", {"id": "\0"}, 404),
        ("/task", {"id": "x" * 1_000_000}, 404),
        ("/task", {"id": "../plain"}, 404),
        ("/log", {}, 400),
        ("/log", {"task": "nothing"}, 404),
        ("/log", {"task": "../../batch.json"}, 404),
        ("/log", {"task": "behind"}, 409),
        ("/log", {"task": "again", "round": 9}, 400),
        ("/log", {"task": "again", "round": 10**14}, 400),
        ("/log", {"task": "again", "round": 0}, 400),
        ("/log", {"task": "again", "round": "\u0661"}, 400),
        ("/log", {"task": "again", "offset": 1}, 400),
        ("/log", {"task": "again", "offset": 7}, 416),
        ("/log", {"task": "again", "offset": 10**14, "round": 2}, 416),
        ("/log", {"task": "again", "offset": 1, "log": "../x"}, 400),
        ("/log", {"task": "again", "offset": "1e3"}, 400),
        ("/log", {"task": "again", "offset": "--1"}, 400),
        ("/log", {"task": "again", "offset": "9" * 400}, 400),
        ("/log", {"task": "again", "limit": 0}, 400),
        ("/log", {"task": "again", "limit": (1 << 20) + 1}, 400),
        ("/tasks", {"limit": 501}, 400),
        ("/tasks", {"limit": 0}, 400),
        ("/tasks", {"offset": -1}, 400),
        ("/tasks", {"limit": ""}, 400),
        ("/events", {"limit": 1001}, 400),
        ("/events", {"since": "yesterday"}, 400),
        ("/events", {"since": "1.1"}, 400),
        ("/events", {"since": "b:1.\u0661"}, 400),
        ("/events", {"since": "b:1." + "9" * 100}, 400),
        ("/events", {"since": "b:1.1"}, 410),
        ("/events", {"since": ""}, 400),
        ("/nothing", {}, 404),
    ],
)
def test_bad_parameter_is_refused(
    client: Client, live_store: LiveStore, rest: str, query: dict[str, object], status: int
) -> None:
    client.get(live_store.path(rest), **query).json(status)


@pytest.mark.parametrize(
    ("batch", "status"),
    [
        ("batch-20000101-000000-000000-000000", 404),
        ("@unknown", 404),
        ("..", 400),
        ("%2e%2e", 400),
        ("\0", 400),
        ("\u202e", 400),
        ("batch-", 400),
        ("b" * 1_000_000, 400),
        ("latest~" + "9" * 5000, 400),
        ("../../../etc/passwd", 404),
        ("a/../b", 404),
        ("", 404),
    ],
)
@pytest.mark.parametrize("rest", [rest for rest, _ in WORK_READS])
def test_bad_id_of_a_batch_is_refused(client: Client, batch: str, status: int, rest: str) -> None:
    answer = client.get(f"/api/v1/batches/{batch}{rest}")
    assert answer.status == (307 if not batch and not rest else status)  # The list of batches is without the slash.


@pytest.mark.parametrize("name", ["..", "../app.py", "app.py", "__init__.py", "", "\0", "x" * 100_000, "%2e%2e/app.py"])
def test_only_files_of_the_page_are_served(client: Client, name: str) -> None:
    assert client.get(f"/static/{name}").status == 404


@pytest.mark.parametrize("query", [{"limit": 0}, {"limit": 51}, {"limit": "many"}])
def test_bad_parameter_of_the_list_is_refused(client: Client, query: dict[str, object]) -> None:
    client.get("/api/v1/batches", **query).json(400)


def test_list_is_paged_and_selected(client: Client, live_store: LiveStore) -> None:
    first = client.get("/api/v1/batches", limit=1).json()
    assert ([row["batch_id"] for row in first["batches"]], first["next"]) == (
        [live_store.analysis],
        live_store.analysis,
    )
    second = client.get("/api/v1/batches", limit=1, before=first["next"]).json()
    assert ([row["batch_id"] for row in second["batches"]], second["next"]) == ([live_store.work], None)
    assert client.get("/api/v1/batches", limit=1, state="COMPLETED").json()["next"] is None
    selections: list[tuple[dict[str, object], list[str]]] = [
        ({"pipeline": "work"}, [live_store.work]),
        ({"state": "COMPLETED"}, [live_store.analysis]),
        ({"state": "active"}, [live_store.work]),  # Its question is open.
        ({"state": "DAMAGED"}, []),
        ({"before": ""}, []),
        ({"before": "zzz", "limit": 50}, [live_store.analysis, live_store.work]),
    ]
    for query, ids in selections:
        assert [row["batch_id"] for row in client.get("/api/v1/batches", **query).json()["batches"]] == ids, query


@pytest.mark.parametrize("rest", ["/tasks", "/task?id=x", "/log?task=x", "/graph"])
def test_analysis_has_no_tasks(client: Client, live_store: LiveStore, rest: str) -> None:
    path, _, query = rest.partition("?")
    parameters = dict([query.split("=")]) if query else {}
    assert client.get(live_store.analysis_path(path), **parameters).error(409)[0] == "wrong_kind"


# The store


def test_reading_leaves_the_store_as_it_is(own_store: LiveStore) -> None:
    before = tree_of(own_store.root)
    with serve_store(own_store.root) as client:
        read_everything(client, own_store)
        path = client.post(own_store.analysis_path("/report"), {}).json()["path"]
        assert client.get(path).status == 200
    assert tree_of(own_store.root) == before


@pytest.mark.parametrize("name", ["plan.json", "work.json", "batch.json"])
@pytest.mark.parametrize("damage", ["removed", "garbage", "empty"])
def test_damaged_batch_is_an_error_that_names_the_file(
    live_store: LiveStore, tmp_path: Path, name: str, damage: str
) -> None:
    store = live_store.copy(tmp_path)
    file = store.batch_root() / name
    file.unlink()
    if damage != "removed":
        file.write_bytes(b"\xff\0garbage\n" if damage == "garbage" else b"")
    with serve_store(store.root) as client:
        for rest, query in WORK_READS:
            if rest != "/events" or name == "batch.json":  # Events need no other file.
                code, message = client.get(store.path(rest), **query).error(500)
                assert code == "store_corrupt"
                assert str(file) in message
        rows = client.get("/api/v1/batches").json()["batches"]
        states = {row["batch_id"]: row["status"] for row in rows}
        assert (states[store.work], states[store.analysis]) == ("DAMAGED", "COMPLETED")
        assert client.get(store.analysis_path()).status == 200


@pytest.mark.parametrize("directory", ["events", "journal", "leases", "outcomes", "logs", "holders", "requests"])
@pytest.mark.parametrize("damage", ["removed", "garbage"])
def test_other_damage_is_no_internal_error(live_store: LiveStore, tmp_path: Path, directory: str, damage: str) -> None:
    store = live_store.copy(tmp_path)
    for path in [*store.root.glob(f"batches/*/{directory}/**/*")]:
        if path.is_file() and damage == "garbage":
            path.unlink()
            path.write_bytes(b"\xff\0garbage\n" * 9)
        elif path.is_file():
            path.unlink()
    with serve_store(store.root) as client:
        answers = read_everything(client, store)
    assert all(answer.status in (200, 404, 409) or answer.error(500)[0] == "store_corrupt" for answer in answers)
    assert answers[0].status == 200


def test_batch_that_is_collected_while_it_is_shown_is_unknown(own_store: LiveStore) -> None:
    with serve_store(own_store.root) as client:
        read_everything(client, own_store)
        shutil.rmtree(own_store.batch_root())
        for rest, query in WORK_READS:
            assert client.get(own_store.path(rest), **query).error(404)[0] == "unknown_id"
        assert client.get(own_store.analysis_path()).status == 200


def test_removed_store_is_reported(own_store: LiveStore) -> None:
    with serve_store(own_store.root) as client:
        read_everything(client, own_store)
        shutil.rmtree(own_store.root)
        assert client.get("/api/v1/batches").error(500)[0] == "store_not_found"
        for rest, query in WORK_READS:
            assert client.get(own_store.path(rest), **query).status == 404
        assert client.get("/").status == 200
