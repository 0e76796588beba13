"""Notifications about the end of a work batch, with real processes."""

from __future__ import annotations

import json
import os
import select
import signal
from pathlib import Path

from tests.cli.run.test_follow import journals, names, told
from tests.cli.work.test_work import line, make_list, start, status
from tests.support.command_line import DEADLINE_SECONDS, CommandLine, wait_until, write

__all__ = ["line"]

RECORDS = 'command = "cat >>seen"\n'


def received_events(line: CommandLine) -> list[str]:
    """Return the names of the events that the `[notify]` command received."""
    text = (line.directory / "seen").read_text()
    return names([json.loads(event) for event in text.splitlines()])


def test_notify_command_receives_the_selected_events(line: CommandLine) -> None:
    top = '[notify]\ncommand = "cat >>told"\nevents = ["BATCH_TASK_FAILED", "BATCH_PARTIAL"]\n'
    make_list(line, {"a": 'run = "true"', "b": 'run = "false"'}, top)
    line("work", "run", status=3)
    received = [json.loads(line_text) for line_text in (line.directory / "told").read_text().splitlines()]
    # The last event is delivered before events that still wait.
    assert sorted(names(received)) == ["PARTIAL", "TASK_FAILED b"]
    wanted = [event for event in told(line) if event["event"] in ("BATCH_TASK_FAILED", "BATCH_PARTIAL")]
    assert sorted(received, key=str) == sorted(wanted, key=str)


def test_failed_notifications_do_not_affect_the_batch(line: CommandLine) -> None:
    for command, told_so in (
        ('["no-such-program"]', "notifications are off: No such file or directory"),
        ('"exit 3"', "notify ended with status 3"),
        ('"sleep 60"', "notify took longer than 0.2 s and was killed"),
    ):
        wanted = "events = ['BATCH_TASK_STARTED', 'BATCH_COMPLETED']"
        top = f"[notify]\ncommand = {command}\n{wanted}\ntimeout_seconds = 0.2\n"
        make_list(line, {"a": 'run = "true"', "b": 'run = "true"'}, top)
        assert told_so in line("work", "run").notes
        assert status(line)["counts"] == {"DONE": 2}


def test_final_event_is_delivered_if_the_notify_command_is_slow(line: CommandLine) -> None:
    slow = """command = 'cat >>seen; [ "$CODEBATCH_EVENT" = BATCH_COMPLETED ] || exec sleep 60'"""
    events = 'events = ["BATCH_TASK_COMPLETED", "BATCH_COMPLETED"]'
    tasks = dict.fromkeys("abcdefghijkl", 'run = "true"')
    make_list(line, tasks, f"max_parallel = 4\n[notify]\n{slow}\n{events}\ntimeout_seconds = 0.2")
    ended = line("work", "run", "-q")
    assert received_events(line).count("COMPLETED") == 1
    lost = 13 - len(received_events(line))
    assert f"notify: {lost} of 13 events were not delivered" in ended.notes


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
    drained = told(line)[-1]
    assert drained["event"] == "BATCH_DRAINED"
    assert "000001.json is damaged" in drained["error"]
    assert f"stopped with unfinished tasks ({drained['error']}): " in line("events").lines[-1]
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
