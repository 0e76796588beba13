"""Requests that control a batch, reports, and failures and regressions of an analysis, over a real store."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from codebatch.serve import reports
from tests.serve.serving import (
    Client,
    LiveStore,
    check_live_schema,
    make_live_store,
    serve_store,
    tree_of,
)
from tests.support.command_line import CommandLine, write, write_own_task

# Control


def test_control_is_refused_by_default(client: Client, live_store: LiveStore) -> None:
    before = tree_of(live_store.root)
    for body in ({"do": "pause"}, {"do": "cancel"}, {"do": "nothing"}):
        code, message = client.post(live_store.path("/requests"), body).error(403)
        assert (code, message) == ("forbidden", "this server only reads")
    assert tree_of(live_store.root) == before


def test_requests_control_the_batch(own_store: LiveStore) -> None:
    with serve_store(own_store.root, allows_control=True) as client:

        def request(**body: object) -> Any:
            document = client.post(own_store.path("/requests"), body).json()
            check_live_schema("live-batch", document)
            return document["status"]

        assert client.get("/api/v1/session").json()["allow_control"]
        assert request(do="pause")["paused"]
        assert not request(do="unpause")["paused"]
        assert request(do="set", max_parallel=3, pools={})["max_parallel"] == 3
        assert request(do="answer", task="asks", text="the second")["counts"].get("BLOCKED") is None
        assert request(do="retry", tasks=["fails"])["counts"].get("FAILED") is None
        assert request(do="skip", tasks=["fails"], as_done=True)["counts"]["DONE"] == 6
        assert request(do="cancel", grace_seconds=0)["status"] == "CANCELLED"
        # The next read is of the state after the request.
        assert client.get(own_store.path()).json()["status"]["status"] == "CANCELLED"


def test_second_answer_is_refused(own_store: LiveStore) -> None:
    with serve_store(own_store.root, allows_control=True) as client:
        answer = {"do": "answer", "task": "asks", "text": "the first"}
        assert client.post(own_store.path("/requests"), answer).status == 200
        _, message = client.post(own_store.path("/requests"), {**answer, "text": "the second"}).error(409)
        assert "answered 'the first'" in message


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"do": "answer", "task": "plain", "text": "x"}, 409),
        ({"do": "answer", "task": "asks", "text": "x", "question": "0" * 64}, 409),
        ({"do": "answer", "task": "asks", "text": " "}, 400),
        ({"do": "answer", "task": "nothing", "text": "x"}, 400),
        ({"do": "answer", "task": "asks"}, 400),
        ({"do": "retry", "tasks": ["nothing"]}, 400),
        ({"do": "retry", "tasks": "fails"}, 400),
        ({"do": "skip", "tasks": ["plain"]}, 400),
        ({"do": "set", "max_parallel": 0}, 400),
        ({"do": "set", "max_parallel": 10**30}, 400),
        ({"do": "set", "pools": {"unknown": 1}}, 400),
        ({"do": "cancel", "grace_seconds": -1}, 400),
        ({"do": "cancel", "is_forced": True}, 400),
        ({"do": "cancel", "trust": True}, 400),
        ({"do": "resume"}, 400),
        ({"do": "run"}, 400),
        ({"do": None}, 400),
        ({}, 400),
        ([], 400),
        (None, 400),
        ("\ud800", 400),
    ],
)
def test_bad_request_changes_nothing(control: tuple[Client, LiveStore], body: object, status: int) -> None:
    client, store = control
    before = tree_of(store.root)
    client.post(store.path("/requests"), body).json(status)
    assert tree_of(store.root) == before


@pytest.fixture(scope="module")
def control(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Client, LiveStore]]:
    """A client of a server that allows control, and its store, for requests that are refused."""
    store = make_live_store(tmp_path_factory.mktemp("control"))
    with serve_store(store.root, allows_control=True) as client:
        yield client, store


def test_analysis_can_only_be_cancelled(control: tuple[Client, LiveStore]) -> None:
    client, store = control
    tasks = {"tasks": ["parse"]}
    answer = {"do": "answer", "task": "parse", "text": "x"}
    for body in (
        {"do": "pause"},
        {"do": "unpause"},
        {"do": "set"},
        {"do": "retry", **tasks},
        {"do": "skip", **tasks},
        answer,
    ):
        assert client.post(store.analysis_path("/requests"), body).error(409)[0] == "wrong_kind"
    body = client.post(store.analysis_path("/requests"), {"do": "cancel"}).json()
    check_live_schema("live-analysis", body)


def test_foreign_store_is_not_controlled(live_store: LiveStore, tmp_path: Path) -> None:
    store = live_store.copy(tmp_path)
    before = tree_of(store.root)
    with serve_store(store.root, allows_control=True) as client:
        for path in (store.path, store.analysis_path):
            assert client.post(path("/requests"), {"do": "cancel"}).error(403)[0] == "store_foreign"
    assert tree_of(store.root) == before


# Reports


def test_report_is_opened_once(client: Client, live_store: LiveStore) -> None:
    body = client.post(live_store.analysis_path("/report"), {}).json()
    check_live_schema("live-report", body)
    page = client.get(body["path"])
    assert (page.status, page.header("content-security-policy")) == (200, "sandbox allow-scripts")
    assert page.header("content-type") == "text/html; charset=utf-8"
    assert b'http-equiv="content-security-policy"' in page.body[:2000].lower()
    assert client.get(body["path"]).error(404)[0] == "unknown_id"


def test_report_has_a_new_address_for_each_request(client: Client, live_store: LiveStore) -> None:
    paths = {client.post(live_store.analysis_path("/report"), {}).json()["path"] for _ in range(3)}
    assert len(paths) == 3
    assert len({client.get(path).body for path in paths}) == 1
    assert all(len(path.removeprefix("/report/")) == 43 for path in paths)


def test_address_of_a_report_expires(client: Client, live_store: LiveStore, monkeypatch: pytest.MonkeyPatch) -> None:
    def set_clock(seconds: float) -> None:
        monkeypatch.setattr(reports, "time", SimpleNamespace(monotonic=lambda: seconds))

    set_clock(1000.0)
    paths = [client.post(live_store.analysis_path("/report"), {}).json()["path"] for _ in range(2)]
    set_clock(1059.9)
    assert client.get(paths[0]).status == 200
    set_clock(1060.0)
    assert client.get(paths[1]).status == 404


def test_task_list_has_no_report(client: Client, live_store: LiveStore) -> None:
    assert client.post(live_store.path("/report"), {}).error(409)[0] == "wrong_kind"


def test_report_that_cannot_be_made_is_explained(live_store: LiveStore, tmp_path: Path) -> None:
    store = live_store.copy(tmp_path)
    plan = store.root / "batches" / store.analysis / "plan.json"
    plan.unlink()
    with serve_store(store.root) as client:
        _, message = client.post(store.analysis_path("/report"), {}).error(409)
    assert message == f"`report` failed: {plan} is missing"


# Failures and regressions of an analysis


def test_failures_are_grouped(tmp_path: Path, client: Client, live_store: LiveStore) -> None:
    for number in range(3):
        write(tmp_path / "tree" / f"m{number}.py", "x = 1\n")
    write_own_task(tmp_path, "fails", "def task(file):\n    raise RuntimeError('<b>boom')\n")
    codebatch = CommandLine(tmp_path)
    batch = json.loads(codebatch("run", "tree", "--store", "store", "--json", status=3).stdout)["batch_id"]
    with serve_store(tmp_path / "store") as own_client:
        body = own_client.get(f"/api/v1/batches/{batch}/failures").json()
    check_live_schema("live-failures", body)
    (group,) = body["groups"]
    assert (body["total"], group["count"], group["task"]) == (3, 3, "fails")
    assert group["evidence"].endswith("RuntimeError: <b>boom")
    assert client.get(live_store.path("/failures")).error(409)[0] == "wrong_kind"
    assert client.get(live_store.analysis_path("/failures")).json() == {"groups": [], "total": 0}


def test_regressions_are_those_since_the_previous_complete_analysis(own_store: LiveStore) -> None:
    first = own_store.analysis
    project = own_store.root.parent / "project"
    (project / "src" / "main.py").write_text("def run(code):\n    return eval(code), eval(code)\n")
    CommandLine(own_store.root.parent)("run", "project", "--store", "store", "--task", "parse")
    (project / "src" / "main.py").write_text("def run(code):\n    return eval(code), exec(code)\n")
    second = CommandLine(own_store.root.parent)("run", "project", "--store", "store", "--json").json["batch_id"]
    before = tree_of(own_store.root)
    with serve_store(own_store.root) as client:
        body = client.get(f"/api/v1/batches/{first}/regressions").json()
        check_live_schema("live-regressions", body)
        assert (body["base"], body["count"]) == (None, 0)
        body = client.get(f"/api/v1/batches/{second}/regressions").json()
        check_live_schema("live-regressions", body)
        assert (body["base"], body["complete"]) == (first, True)
        assert body["count"] == len(body["regressions"]) > 0
        assert client.get(own_store.path("/regressions")).error(409)[0] == "wrong_kind"
    assert tree_of(own_store.root) == before
