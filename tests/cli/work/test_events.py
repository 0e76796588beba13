"""The events of a batch: those that are missing, and those after another process took it over."""

from __future__ import annotations

import json
import shutil
from typing import Any

from codebatch.model.work.event import instant_ns
from tests.cli.run.test_follow import events_directory
from tests.cli.work.test_work import line, make_list, start
from tests.support.command_line import CommandLine, wait_until, write

__all__ = ["line"]


def test_follow_reports_the_status_if_events_are_missing(line: CommandLine) -> None:
    make_list(line, {"one": 'run = "true"'})
    line("work", "run")
    shutil.rmtree(events_directory(line))
    ended = line("follow")
    assert (ended.text, ended.notes) == ("", "events are missing; the batch has ended: 1 done\n")
    assert "or its events were removed" in line("events", status=3).notes


def test_missing_events_are_counted(line: CommandLine) -> None:
    make_list(line, {"one": 'run = "true"', "two": 'run = "test -e fixed"'})
    line("work", "run", status=3)
    first = events_directory(line) / "1.jsonl"
    lines = first.read_bytes().splitlines(keepends=True)
    first.write_bytes(b"".join(lines[:2] + lines[4:]))
    missing = "2 events are missing: not written (is the disk full?), damaged or removed\n"
    assert missing in line("follow", status=3).notes
    assert line("events", status=3).notes == missing
    assert line("events", "--since", json.loads(lines[1])["cursor"], status=3).notes == missing
    assert line("events", "--since", json.loads(lines[4])["cursor"]).notes == ""
    write(line.directory / "fixed", "")
    line("resume")
    assert line("events").notes == ""


def test_running_time_of_an_adopted_task_counts_from_its_start(line: CommandLine) -> None:
    make_list(line, {"one": ""})
    process = start(line, began=("one",))
    wait_until(lambda: b"BATCH_TASK_STARTED" in line("events", "--json").stdout, "the start is on disk")
    process.kill()
    process.communicate()
    process = line.start("resume")

    def progress() -> list[dict[str, Any]]:
        """Return the progress that the second process reports."""
        events = [json.loads(text) for text in line("events", "--json").lines]
        return [event for event in events if event["event"] == "BATCH_PROGRESS" and ":2." in event["cursor"]]

    wait_until(lambda: bool(progress()), "progress is reported")
    write(line.directory / "go", "")
    line.finish(process)
    (running,) = progress()[0]["running"]
    adopted = next(json.loads(text) for text in line("events", "--json").lines if "BATCH_TASK_ADOPTED" in text)
    assert running["seconds"] > (instant_ns(progress()[0]["at"]) - instant_ns(adopted["since"])) / 1e9 - 0.1
