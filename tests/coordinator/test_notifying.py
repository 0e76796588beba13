"""Tests of notifications: the last event of a batch is delivered before waiting events; dropped events are counted."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from codebatch.coordinator.work import notifications
from codebatch.coordinator.work.notifications import Notifier, event_urgency
from codebatch.model.work.event import (
    BatchCompleted,
    BatchDrained,
    BatchEvent,
    TaskCompleted,
    TaskFailed,
    TaskSkipped,
    event_name,
)
from codebatch.model.work.work_batch import NOTIFIED_EVENTS_DEFAULT, NotifySettings

EVENTS = ("BATCH_TASK_COMPLETED", "BATCH_TASK_FAILED", "BATCH_TASK_SKIPPED", "BATCH_COMPLETED", "BATCH_DRAINED")
WAITING_COMMAND = "cat >>seen; test -e open || read word <gate"
"""A command that records an event, then waits on the pipe `gate` until the file `open` exists."""


def task_event(number: int) -> TaskCompleted:
    """Return an event that is not the last one of a batch."""
    return TaskCompleted(
        cursor=f"b:1.{number}", seq=number, at="", batch_id="b", counts={}, task=f"t{number}", title="", round=1,
        try_=1, tries_max=1,
    )  # fmt: skip


def last_event(seq: int = 99) -> BatchCompleted:
    """Return the last event of a batch."""
    return BatchCompleted(cursor=f"b:1.{seq}", seq=seq, at="", batch_id="b", counts={}, seconds=0.0, task_count=1)


class Hook:
    """A notifier whose command waits at its first event until it is released."""

    def __init__(self, directory: Path) -> None:
        self.seen = directory / "seen"
        self.gate = directory / "gate"
        os.mkfifo(self.gate)
        self._directory = directory

    def notifier(self, command: str = WAITING_COMMAND, *, timeout_seconds: float = 60.0) -> Notifier:
        """Return a notifier that has begun."""
        notify = NotifySettings(command=command, events=EVENTS, timeout_seconds=timeout_seconds)  # type: ignore[arg-type]
        begun = Notifier(notify, directory=self._directory, environment={"PATH": os.environ["PATH"]})
        begun.begin()
        return begun

    @contextlib.contextmanager
    def holding_first_event(self) -> Iterator[None]:
        """Wait until the command waits at the first event, and keep it waiting at least until the end of the block."""
        with self.gate.open("w"):  # opening the pipe waits for its reader
            yield

    def release(self) -> None:
        """Let the command end for this event and all later events."""
        (self._directory / "open").touch()

    @property
    def delivered(self) -> list[str]:
        """The task or name of each event that the command received, in order."""
        events = map(json.loads, self.seen.read_text().splitlines())
        return [event.get("task", event["event"]) for event in events]


@pytest.fixture
def hook(tmp_path: Path) -> Hook:
    return Hook(tmp_path)


def test_last_event_is_delivered_before_waiting_events(hook: Hook) -> None:
    notifier = hook.notifier()
    notifier.add(task_event(1))
    with hook.holding_first_event():
        for event in (task_event(2), task_event(3), last_event()):
            notifier.add(event)
        hook.release()
    notifier.close()
    assert hook.delivered == ["t1", "BATCH_COMPLETED", "t2", "t3"]
    failed = "failed deliveries: 1 BATCH_TASK_COMPLETED"
    assert notifier.problems == [f"notify ended with status 1; it is not retried; {failed}"]


@pytest.mark.parametrize(
    "last", [last_event(), BatchDrained(cursor="b:1.99", seq=99, at="", batch_id="b", counts={}, signal="SIGTERM")]
)
def test_last_event_is_delivered_after_the_grace_period_and_others_are_counted(
    hook: Hook, monkeypatch: pytest.MonkeyPatch, last: BatchEvent
) -> None:
    monkeypatch.setattr(notifications, "_GRACE_SECONDS", 0.0)
    notifier = hook.notifier(timeout_seconds=0.1)
    notifier.add(task_event(1))
    with hook.holding_first_event():
        for event in (task_event(2), task_event(3), last):
            notifier.add(event)
        notifier.close()
    assert hook.delivered == ["t1", event_name(last)]
    failed, dropped = notifier.problems
    assert failed.startswith("notify took longer than 0.1 s and was killed; failed deliveries: ")
    assert dropped == (
        "notify: 2 of 4 events were not delivered, because the command takes too long: 2 BATCH_TASK_COMPLETED"
    )


def test_oldest_waiting_events_are_dropped_but_never_the_last(hook: Hook, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(notifications, "WAITING_EVENTS_MAX", 2)
    notifier = hook.notifier()
    notifier.add(task_event(1))
    with hook.holding_first_event():
        for event in (last_event(), *map(task_event, range(2, 7))):
            notifier.add(event)
        hook.release()
    notifier.close()
    assert hook.delivered == ["t1", "BATCH_COMPLETED", "t5", "t6"]
    lost = "3 of 7 events were not delivered, because the command takes too long: 3 BATCH_TASK_COMPLETED"
    assert notifier.problems[1:] == [f"notify: {lost}"]


def failed_event(number: int) -> TaskFailed:
    """Return an event of a task that failed."""
    return TaskFailed(
        cursor=f"b:1.{number}", seq=number, at="", batch_id="b", counts={}, task=f"f{number}", title="", round=1,
        try_=1, tries_max=1,
    )  # fmt: skip


def skipped_event(number: int) -> TaskSkipped:
    """Return an event of a task that was skipped."""
    return TaskSkipped(
        cursor=f"b:1.{number}", seq=number, at="", batch_id="b", counts={}, task=f"s{number}", title="", round=1,
        try_=1, tries_max=1, reason="it needs x", cause="x",
    )  # fmt: skip


def test_failure_goes_before_waiting_successes(hook: Hook) -> None:
    notifier = hook.notifier()
    notifier.add(task_event(1))
    with hook.holding_first_event():
        for event in (task_event(2), skipped_event(3), failed_event(4), task_event(5), failed_event(6)):
            notifier.add(event)
        hook.release()
    notifier.close()
    assert hook.delivered == ["t1", "f4", "f6", "s3", "t2", "t5"]


def test_success_is_dropped_before_a_failure(hook: Hook, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(notifications, "WAITING_EVENTS_MAX", 2)
    notifier = hook.notifier()
    notifier.add(task_event(1))
    with hook.holding_first_event():
        for event in (failed_event(2), task_event(3), task_event(4), skipped_event(5), failed_event(6)):
            notifier.add(event)
        hook.release()
    notifier.close()
    assert hook.delivered == ["t1", "f2", "f6"]
    assert "3 of 6 events were not delivered" in notifier.problems[1]
    assert notifier.problems[1].endswith(": 2 BATCH_TASK_COMPLETED, 1 BATCH_TASK_SKIPPED")


def test_work_that_is_not_recorded_is_as_urgent_as_a_failure() -> None:
    partial = replace(task_event(1), unrecorded=1)
    assert event_urgency(partial) == event_urgency(failed_event(1)) < event_urgency(task_event(1))


def test_invalid_notify_command_is_reported(hook: Hook) -> None:
    notifier = hook.notifier("\0")
    for event in (task_event(1), last_event()):
        notifier.add(event)
    notifier.close()
    failed = "failed deliveries: 1 BATCH_COMPLETED, 1 BATCH_TASK_COMPLETED"
    assert notifier.problems == [f"notifications are off: embedded null byte; {failed}"]


def test_default_notifications_include_every_batch_end() -> None:
    end_events = {"BATCH_COMPLETED", "BATCH_PARTIAL", "BATCH_FAILED", "BATCH_CANCELLED", "BATCH_DRAINED"}
    assert {*NOTIFIED_EVENTS_DEFAULT} == {*end_events, "BATCH_TASK_BLOCKED"}
