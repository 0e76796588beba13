"""Notifications about the end of a work batch, with real processes."""

from __future__ import annotations

import http.server
import json
import os
import re
import select
import signal
import threading
import typing
from pathlib import Path
from typing import Any

import msgspec
import pytest

from codebatch.model.documents import encode_document
from codebatch.model.work.event import AnyEvent
from codebatch.model.work.work_batch import EventName
from tests.cli.run.test_follow import journals, names, told
from tests.cli.work.test_work import count, line, make_list, start, status
from tests.support.command_line import DEADLINE_SECONDS, SCRIPT, CommandLine, wait_until, write

__all__ = ["line"]

RECORDS = 'command = "cat >>seen"\n'


def received_events(line: CommandLine) -> list[str]:
    """Return the names of the events that the `[notify]` command received."""
    text = (line.directory / "seen").read_text()
    return names([json.loads(event) for event in text.splitlines()])


def events_without_notified(line: CommandLine) -> list[dict[str, Any]]:
    return [event for event in told(line) if event["event"] != "BATCH_NOTIFIED"]


def test_notify_command_receives_the_selected_events(line: CommandLine) -> None:
    top = '[notify]\ncommand = "cat >>told"\nevents = ["BATCH_TASK_FAILED", "BATCH_PARTIAL"]\n'
    make_list(line, {"a": 'run = "true"', "b": 'run = "false"'}, top)
    line("work", "run", status=3)
    received = [json.loads(line_text) for line_text in (line.directory / "told").read_text().splitlines()]
    # The last event is delivered before events that still wait.
    assert sorted(names(received)) == ["PARTIAL", "TASK_FAILED b"]
    wanted = [event for event in told(line) if event["event"] in ("BATCH_TASK_FAILED", "BATCH_PARTIAL")]
    members = {"project", "list", "subject", "message", "failed_tasks", "waiting_tasks"}
    plain = [{key: value for key, value in event.items() if key not in members} for event in received]
    assert sorted(plain, key=str) == sorted(wanted, key=str)


def test_message_names_failed_and_waiting_tasks_the_list_and_the_project(line: CommandLine) -> None:
    command = (
        """printf '%s' "$CODEBATCH_SUBJECT" >subject; printf '%s' "$CODEBATCH_MESSAGE_JSON" >message; cat >>seen"""
    )
    write(line.directory / "paid.sh", """echo '{"total_cost_usd": 1.5}'; exit 3\n""")
    many = {f"f{number:02}": 'run = "false"' for number in range(21)}
    paid = """run = "sh paid.sh"\nresult = { cost = "/total_cost_usd" }"""
    asks = "run = 'echo which > $CODEBATCH_QUESTION'"
    tasks = {**many, "paid": paid, "ask": asks, "ok": 'run = "true"'}
    make_list(line, tasks, f"cost_unit = 'USD'\n[notify]\ncommand = '''{command}'''")
    line("work", "run", status=3)
    *_, event = [json.loads(text) for text in (line.directory / "seen").read_text().splitlines()]
    assert event["event"] == "BATCH_PARTIAL"
    assert (event["failed_tasks"], event["waiting_tasks"]) == (list(many)[:20], ["ask"])
    subject = (line.directory / "subject").read_text()
    assert sorted(subject.split(", ")) == ["1 blocked", "1 done", "22 failed", "project: PARTIAL"]
    assert json.loads((line.directory / "message").read_text()).split("\n") == [
        subject,
        f"failed: {', '.join(list(many)[:20])} and 2 more",
        "waiting for an answer: ask",
        "cost: 1.5 USD",
        f"list: work.toml in {line.directory}",
        f"project: {line.directory}",
        f"see: codebatch status --batch {event['batch_id']}",
    ]


def test_failed_notification_is_tried_again_and_shown_on_the_next_screens(line: CommandLine) -> None:
    tasks = {"a": 'run = "true"', "b": 'run = "test -e fixed"'}
    make_list(line, tasks, "notify = { command = 'cat >>seen; test $(wc -l <seen) -ge 3' }")
    line("work", "run", status=3)
    assert [event["tries"] for event in told(line) if event["event"] == "BATCH_NOTIFIED"] == [3]
    assert status(line)["notifications"] == {"failed_count": 0, "failed": [], "owed_count": 0}
    make_list(line, tasks, 'notify = { command = "exit 7" }')
    ended = line("work", "run", status=3)
    failed = "notification of BATCH_PARTIAL failed: exit status 7, 3 tries"
    assert failed in ended.notes.splitlines()
    *_, record = told(line)
    (row,) = status(line)["notifications"]["failed"]
    assert (record["event"], record["problem"], row["event"]) == ("BATCH_NOTIFIED", "exit status 7", "BATCH_PARTIAL")
    assert row["cursor"] == record["notified_cursor"]
    assert any(text.startswith("notify") and text.endswith(failed) for text in line("status").lines)
    assert line("events").lines[-1].endswith(failed)
    assert line("follow", status=3).lines[-1].endswith(failed)
    write(line.directory / "fixed", "")
    assert failed in line("resume").notes.splitlines()
    assert f": {failed.replace('PARTIAL', 'COMPLETED')}" in line("work", "run").notes


@pytest.mark.parametrize("has_end", [True, False])
def test_notification_that_a_killed_runner_owes_is_delivered_once_by_resume(line: CommandLine, has_end: bool) -> None:
    make_list(
        line,
        {"a": 'run = "true"'},
        "notify = { command = 'cat >>seen; test -e alive || sleep 600', timeout_seconds = 600 }",
    )
    process = line.start("work", "run", "-q")
    wait_until(lambda: count(line, "seen") == 1, "the runner notifies")
    assert status(line)["notifications"]["owed_count"] == 0  # It is being delivered.
    process.kill()
    process.communicate()
    write(line.directory / "alive", "")
    if not has_end:
        (stream,) = (line.directory / ".codebatch" / "batches").glob("*/events/1.jsonl")
        lines = stream.read_text().splitlines(keepends=True)
        write(stream, "".join(text for text in lines if "BATCH_COMPLETED" not in text))
    assert status(line)["notifications"]["owed_count"] == 1
    assert "not delivered yet" in line("status").text
    (line.directory / "seen").unlink()
    for _ in range(3):
        line("resume")
        assert received_events(line) == ["COMPLETED"]
    assert status(line)["notifications"]["owed_count"] == 0


def test_batch_of_an_earlier_version_owes_no_notification(line: CommandLine) -> None:
    make_list(line, {"a": 'run = "true"'}, f"[notify]\n{RECORDS}")
    line("work", "run", "-q")
    (stream,) = (line.directory / ".codebatch" / "batches").glob("*/events/1.jsonl")
    events = [json.loads(text) for text in stream.read_text().splitlines() if "BATCH_NOTIFIED" not in text]
    for event in events:
        event.pop("notifies", None)
        del event["checksum"]
    stream.write_bytes(b"".join(encode_document(msgspec.convert(event, AnyEvent)) for event in events))
    assert status(line)["notifications"]["owed_count"] == 0
    line("resume")
    assert received_events(line) == ["COMPLETED"]


@pytest.mark.parametrize("how", ["foreground", "detached", "paused", "killed"])
def test_cancel_notifies_once_and_ends_the_batch_once(line: CommandLine, how: str) -> None:
    make_list(line, {"one": "", "two": 'run = "true"\nneeds = ["one"]'}, f"[notify]\n{RECORDS}")
    process = None if how == "detached" else start(line, began=("one",))
    if process is None:
        line("work", "run", "--detach")
        wait_until((line.directory / "one.began").exists, "the task has begun")
    if how == "paused":
        line("work", "pause")
    if how == "killed" and process is not None:
        process.kill()
        process.communicate()
    line("cancel", "--grace", "0")
    line("cancel", "--batch", "latest")
    if how in ("foreground", "paused") and process is not None:
        line.finish(process, status=3)
    wait_until((line.directory / "seen").exists, "the runner has notified")
    assert received_events(line) == ["CANCELLED"]
    told_names = names(events_without_notified(line))
    ends = [name for name in told_names if name in ("CANCELLED", "RESUMED")]
    assert ends == [*(["RESUMED"] if how == "killed" else []), "CANCELLED"]
    assert told_names[-1] == "CANCELLED"


def test_resume_that_finds_nothing_to_do_does_not_notify_again(line: CommandLine) -> None:
    make_list(line, {"ask": "run = 'echo which > $CODEBATCH_QUESTION'"}, f"[notify]\n{RECORDS}")
    line("work", "run", "-q", status=3)
    before = received_events(line)
    line("resume", "-q", status=3)
    assert received_events(line) == before


PAGE = Path(__file__).parents[3] / "codebatch" / "help" / "notify.md"


def test_wrong_event_name_is_an_error_that_lists_the_documented_names(line: CommandLine) -> None:
    make_list(line, {"a": 'run = "true"'}, '[notify]\ncommand = "true"\nevents = ["BATCH_FINISHED"]')
    notes = line("work", "run", status=2).notes
    assert "`events`" in notes
    assert all(name in notes for name in typing.get_args(EventName))
    _, _, table = PAGE.read_text().partition("| event | when |")
    assert set(re.findall(r"`(BATCH_[A-Z_]+)`", table.partition("By default")[0])) == set(typing.get_args(EventName))


FAKES = {
    "notify-send": 'printf "%s\\0" "$@" >desktop',
    "mail": '{ printf "%s\\0" "$@"; cat; } >mail',
}


class _Requests(http.server.BaseHTTPRequestHandler):
    received: typing.ClassVar[list[tuple[str, str | None, bytes]]] = []

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.received.append((self.path, self.headers["Title"], body))
        self.send_response(200)
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        """Print nothing."""


def test_recipes_deliver_texts_of_tasks_unchanged_and_execute_none_of_them(tmp_path: Path) -> None:
    """The project has a hostile name, and the question of a task is hostile text."""
    project = tmp_path / """-a '"$(touch owned)`touch owned`@\\n"""
    blocks = re.findall(r"^```toml\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    commands = [re.search(r"'''(.*)'''|'(.*)'", block, re.DOTALL) for block in blocks]
    for name, script in FAKES.items():
        write(tmp_path / "bin" / name, f"#!/bin/sh\n{script}\n")
        (tmp_path / "bin" / name).chmod(0o755)
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Requests)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{server.server_port}"
    path = f"{tmp_path / 'bin'}:{SCRIPT.parent}:/usr/bin:/bin"
    line = CommandLine(project, {"PATH": path, "NTFY_URL": f"{url}/ntfy", "WEBHOOK_URL": f"{url}/chat"})
    question = """@/etc/passwd "quoted" 'single' $(touch owned) `touch owned` \\n <b>&amp; %s ~!touch owned"""
    write(project / "question.txt", question)
    scripts = [command[1] or command[2] for command in commands if command is not None]
    assert len(scripts) == 4
    write(project / "all.sh", "\n".join(f"({script}) </dev/null || touch failed" for script in scripts))
    notify = "[notify]\ncommand = 'sh all.sh'\nevents = ['BATCH_TASK_BLOCKED']"
    make_list(line, {"ask": "run = 'cat question.txt > $CODEBATCH_QUESTION'"}, notify)
    line("work", "run", "-q", status=3)
    server.shutdown()
    server.server_close()
    assert [found.name for found in tmp_path.rglob("*") if found.name in ("failed", "owned")] == []
    subject = f"{project.name}: blocked ask"
    (ntfy, title, data), (chat, _, chat_data) = _Requests.received
    message = data.decode()
    assert message.splitlines()[0] == f"question: {question}"
    assert (ntfy, title) == ("/ntfy", subject)
    assert (chat, json.loads(chat_data)) == ("/chat", {"text": f"{subject}\n{message}"})
    assert (project / "desktop").read_text().split("\0")[3:] == [subject, message, ""]
    assert (project / "mail").read_text() == f"-s\0{subject}\0ada@example.com\0{message}\n"


def test_final_event_is_delivered_if_the_notify_command_is_slow(line: CommandLine) -> None:
    slow = """command = 'cat >>seen; [ "$CODEBATCH_EVENT" = BATCH_COMPLETED ] || exec sleep 60'"""
    events = 'events = ["BATCH_TASK_COMPLETED", "BATCH_COMPLETED"]'
    tasks = dict.fromkeys("abcdefghijkl", 'run = "true"')
    make_list(line, tasks, f"max_parallel = 4\n[notify]\n{slow}\n{events}\ntimeout_seconds = 0.2")
    ended = line("work", "run", "-q")
    assert received_events(line).count("COMPLETED") == 1
    assert "failed in all: " in ended.notes
    problems = [event["problem"] for event in told(line) if event["event"] == "BATCH_NOTIFIED" and event["problem"]]
    assert len(problems) == 12
    assert problems.count("no time was left") == 13 - len({*(line.directory / "seen").read_text().splitlines()})


def test_drained_event_is_delivered_by_default(line: CommandLine) -> None:
    make_list(line, {"one": ""}, f"[notify]\n{RECORDS}")
    process = start(line, began=("one",))
    process.send_signal(signal.SIGTERM)
    wait_until(lambda: b'"drained"' in b"".join(map(Path.read_bytes, journals(line))), "the signal is recorded")
    process.send_signal(signal.SIGTERM)
    line.finish(process, status=143)
    assert received_events(line) == ["DRAINED"]


def test_drained_event_names_the_error_that_stopped_the_runner(line: CommandLine) -> None:
    make_list(line, {"one": "", "two": 'run = "true"\nneeds = ["one"]'}, f"[notify]\n{RECORDS}")
    process = start(line, began=("one",))
    (batch,) = (line.directory / ".codebatch" / "batches").iterdir()
    write(batch / "requests" / "000001.json", "{")
    assert process.stderr is not None
    assert any(b"000001.json is damaged" in text for text in process.stderr)
    write(line.directory / "go", "")
    line.finish(process, status=4)
    assert received_events(line) == ["DRAINED"]
    (batch / "requests" / "000001.json").unlink()
    drained = events_without_notified(line)[-1]
    assert drained["event"] == "BATCH_DRAINED"
    assert "000001.json is damaged" in drained["error"]
    assert f"stopped with unfinished tasks ({drained['error']}): " in line("events").text
    assert status(line)["counts"] == {"DONE": 1, "READY": 1}


def test_process_that_a_notify_command_leaves_behind_is_killed(line: CommandLine) -> None:
    """The end of the FIFO shows that no process has it open any more."""
    os.mkfifo(line.directory / "held")
    reader = os.open(line.directory / "held", os.O_RDONLY | os.O_NONBLOCK)
    command = 'command = "echo x >held; setsid sleep 600 >held 2>&1 &"\ntimeout_seconds = 2'
    make_list(line, {"one": 'run = "true"'}, f"[notify]\n{command}")
    line("work", "run", "-q")
    os.set_blocking(reader, True)
    for data in (b"x\n", b""):  # A process that was killed may need some time to end.
        assert select.select([reader], [], [], DEADLINE_SECONDS)[0]
        assert os.read(reader, 9) == data
    os.close(reader)
