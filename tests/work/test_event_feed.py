"""Event feeds of batches of both kinds, with real runs."""

from __future__ import annotations

import json
import shutil

import msgspec
import pytest

from codebatch import work
from codebatch.errors import BatchRemoved, InvalidInput, UnknownCursor
from codebatch.model.work.event import BatchProgress, EventCursor, RunningTask
from tests.cli.work.test_work import line, make_list, start
from tests.support.command_line import CommandLine, wait_until, write, write_own_task

__all__ = ["line"]

BLOCKING_TASK = """
import os, time
def task(file):
    while file.path == {path!r} and not os.path.exists({go!r}):
        time.sleep(0.02)
    return []
"""


def open_feed(line: CommandLine, since: str | None = None) -> work.EventFeed:
    """The feed of the only batch of a command line."""
    store = line.directory / ".codebatch"
    (batch,) = (path.name for path in (store / "batches").iterdir())
    return work.open_events(batch, since=since, store=store)


def test_feed_returns_the_events_of_the_command_line(line: CommandLine) -> None:
    make_list(line, {"one": 'run = "true"', "two": 'run = "true"\nneeds = ["one"]'})
    line("work", "run")
    printed = [json.loads(text) for text in line("events", "--json").lines]
    feed = open_feed(line)
    found = []
    while events := feed.read(limit=2):
        assert len(events) <= 2
        assert feed.since == events[-1].place
        found += events
    assert [json.loads(msgspec.json.encode(event)) for event in found] == printed
    later = open_feed(line, since=printed[3]["cursor"])
    assert later.since == EventCursor(1, 4)
    assert [event.cursor for event in later.read()] == [event["cursor"] for event in printed[4:]]
    assert later.cursor == printed[-1]["cursor"]
    with pytest.raises(InvalidInput, match="is not a cursor"):
        open_feed(line, since="yesterday")
    with pytest.raises(UnknownCursor, match="belongs to another batch"):
        open_feed(line, since="batch-1:1.4")
    with pytest.raises(UnknownCursor, match=r"has no event 1\.99"):
        open_feed(line, since=f"{later.batch.id}:1.99")


def test_feed_follows_a_running_list_and_has_its_status(line: CommandLine) -> None:
    make_list(line, {"one": "", "two": 'run = "true"\nneeds = ["one"]'})
    process = start(line, began=("one",))
    feed = open_feed(line)
    names = [type(event).__name__ for event in feed.read()]
    assert names[0] == "BatchStarted"
    status = feed.status()
    assert isinstance(status, work.WorkStatus)
    assert [(task.id, task.state, task.explanation) for task in status.tasks] == [
        ("one", "RUNNING", ""),
        ("two", "PENDING", "waits for one"),
    ]
    assert feed.progress() is None
    wait_until(lambda: any(isinstance(event, BatchProgress) and event.running for event in feed.read()), "progress")
    write(line.directory / "go", "")
    line.finish(process)
    assert type(feed.read()[-1]).__name__ == "BatchCompleted"
    assert feed.read() == []
    printed = line("status", "--json").json
    assert json.loads(msgspec.json.encode(feed.status())) == {
        name: value for name, value in printed.items() if name not in ("schema", "older_batch")
    }
    shutil.rmtree(feed.batch.root)
    for read in (feed.read, feed.status):
        with pytest.raises(BatchRemoved):
            read()


def test_progress_event_of_a_list_names_the_worker_of_a_running_task(line: CommandLine) -> None:
    make_list(line, {"one": ""})
    process = start(line, began=("one",))
    feed = open_feed(line)
    found: list[BatchProgress] = []

    def has_progress() -> bool:
        found.extend(event for event in feed.read() if isinstance(event, BatchProgress) and event.running)
        return bool(found)

    wait_until(has_progress, "progress")
    status = feed.status()
    assert isinstance(status, work.WorkStatus)
    (running,) = found[0].running
    assert (running.task, running.path, running.worker) == ("one", None, status.workers[0].holder)
    write(line.directory / "go", "")
    line.finish(process)


@pytest.mark.parametrize("restriction", [(), ("b",)])
def test_feed_of_an_analysis_has_the_current_file_of_a_worker(line: CommandLine, restriction: tuple[str, ...]) -> None:
    for number in range(20):
        write(line.directory / "ab"[number % 2] / f"m{number:02}.py", f"x = {number}\n")
    go = line.directory / "go"
    path = "b/m13.py"
    write_own_task(line.directory, "slow", BLOCKING_TASK.format(path=path.encode(), go=str(go)))
    process = line.start("run", *restriction, "-j", "1")
    batches = line.directory / ".codebatch" / "batches"
    wait_until(lambda: bool(list(batches.glob("*/journal/*.jsonl"))) or process.poll() is not None, "it begins")
    feed = open_feed(line)
    wait_until(
        lambda: (
            any((task.task, task.path) == ("slow", path) for task in running_tasks(feed)) or process.poll() is not None
        ),
        f"{path} is processed",
    )
    (running,) = running_tasks(feed)
    assert (running.task, running.output_bytes, len(running.worker or "")) == ("slow", 0, 32)
    progress = feed.progress()
    assert progress is not None
    assert sum(task.files_total for task in progress.tasks) == sum(progress.counts.values())
    assert [task.status for task in progress.tasks if task.task_id == "slow"] == ["pending"]
    status = feed.status()
    assert isinstance(status, work.StatusAnswer)
    assert status.status == "RUNNING"
    assert f", slow {path} (" in next(text for text in line("events").lines if "progress: " in text)
    write(go, "")
    line.finish(process)
    progress = feed.progress()
    assert progress is not None
    assert (progress.running, progress.counts) == ((), {"DONE": status.planned})
    finished = open_feed(line)
    names = [[type(event).__name__ for event in finished.read(limit=1)] for _ in range(3)]
    assert names == [["BatchStarted"], ["BatchCompleted"], []]
    shutil.rmtree(feed.batch.root)
    with pytest.raises(BatchRemoved):
        feed.progress()


def running_tasks(feed: work.EventFeed) -> tuple[RunningTask, ...]:
    """The running tasks of an analysis."""
    progress = feed.progress()
    assert progress is not None
    return progress.running
