"""Tests of notifications: order, tries, results and bounds of deliveries, and the content of messages."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace

from codebatch.coordinator.work import notifications
from codebatch.coordinator.work.notification_messages import Notification
from codebatch.coordinator.work.notifications import DeliveryResult, Notifier, event_urgency
from codebatch.model.work.event import (
    BatchCompleted,
    BatchDrained,
    BatchEvent,
    BatchNotified,
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


class RecordingNotifier(Notifier):
    """A notifier of plain events that keeps the results of deliveries."""

    def __init__(self, notify: NotifySettings, *, directory: Path, environment: dict[str, str]) -> None:
        super().__init__(notify, directory=directory, environment=environment)
        self.results: list[DeliveryResult] = []
        self.recorder = self._record

    def add_event(self, event: BatchEvent) -> None:
        """Queue an event, with no more than its own members."""
        self.add(Notification(event, msgspec.json.encode(event) + b"\n", {}))

    def _record(self, result: DeliveryResult) -> BatchNotified:
        self.results.append(result)
        return BatchNotified(
            cursor="b:1.1", seq=1, at="", batch_id="b", counts={}, notified=event_name(result.event),
            notified_cursor=result.event.cursor, tries=result.tries, problem=result.problem,
        )  # fmt: skip


class Hook:
    """A notifier whose command waits at its first event until it is released."""

    def __init__(self, directory: Path) -> None:
        self.seen = directory / "seen"
        self.gate = directory / "gate"
        os.mkfifo(self.gate)
        self._directory = directory

    def notifier(
        self, command: str | tuple[str, ...] = WAITING_COMMAND, *, timeout_seconds: float = 60.0
    ) -> RecordingNotifier:
        """Return a notifier that has begun."""
        notify = NotifySettings(command=command, events=EVENTS, timeout_seconds=timeout_seconds)  # type: ignore[arg-type]
        begun = RecordingNotifier(notify, directory=self._directory, environment={"PATH": os.environ["PATH"]})
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
def hook(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Hook:
    """A notifier that tries each event once."""
    monkeypatch.setattr(notifications, "RETRY_SECONDS", ())
    return Hook(tmp_path)


def test_last_event_is_delivered_before_waiting_events(hook: Hook) -> None:
    notifier = hook.notifier()
    notifier.add_event(task_event(1))
    with hook.holding_first_event():
        for event in (task_event(2), task_event(3), last_event()):
            notifier.add_event(event)
        hook.release()
    notifier.close()
    assert hook.delivered == ["t1", "BATCH_COMPLETED", "t2", "t3"]
    assert notifier.problems == ["notification of BATCH_TASK_COMPLETED failed: exit status 1"]


@pytest.mark.parametrize(
    "last", [last_event(), BatchDrained(cursor="b:1.99", seq=99, at="", batch_id="b", counts={}, signal="SIGTERM")]
)
def test_last_event_is_delivered_after_the_grace_period_and_others_are_counted(
    hook: Hook, monkeypatch: pytest.MonkeyPatch, last: BatchEvent
) -> None:
    monkeypatch.setattr(notifications, "_GRACE_SECONDS", 0.0)
    notifier = hook.notifier(timeout_seconds=0.1)
    notifier.add_event(task_event(1))
    with hook.holding_first_event():
        for event in (task_event(2), task_event(3), last):
            notifier.add_event(event)
        notifier.close()
    assert hook.delivered == ["t1", event_name(last)]
    problems = {result.event.cursor: (result.tries, result.problem) for result in notifier.results}
    assert problems["b:1.1"] == problems["b:1.99"] == (1, "killed after 0.1 s")
    assert problems["b:1.2"] == problems["b:1.3"] == (0, "no time was left")
    (text,) = notifier.problems
    assert text.endswith(f"; failed in all: 4 notifications (1 {event_name(last)}, 3 BATCH_TASK_COMPLETED)")


def test_oldest_waiting_events_are_dropped_but_never_the_last(hook: Hook, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(notifications, "WAITING_EVENTS_MAX", 2)
    notifier = hook.notifier()
    notifier.add_event(task_event(1))
    with hook.holding_first_event():
        for event in (last_event(), *map(task_event, range(2, 7))):
            notifier.add_event(event)
        hook.release()
    notifier.close()
    assert hook.delivered == ["t1", "BATCH_COMPLETED", "t5", "t6"]
    dropped = [result.event.cursor for result in notifier.results if result.problem == "too many notifications waited"]
    assert dropped == ["b:1.2", "b:1.3", "b:1.4"]


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
    notifier.add_event(task_event(1))
    with hook.holding_first_event():
        for event in (task_event(2), skipped_event(3), failed_event(4), task_event(5), failed_event(6)):
            notifier.add_event(event)
        hook.release()
    notifier.close()
    assert hook.delivered == ["t1", "f4", "f6", "s3", "t2", "t5"]


def test_success_is_dropped_before_a_failure(hook: Hook, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(notifications, "WAITING_EVENTS_MAX", 2)
    notifier = hook.notifier()
    notifier.add_event(task_event(1))
    with hook.holding_first_event():
        for event in (failed_event(2), task_event(3), task_event(4), skipped_event(5), failed_event(6)):
            notifier.add_event(event)
        hook.release()
    notifier.close()
    assert hook.delivered == ["t1", "f2", "f6"]
    dropped = [result.event.cursor for result in notifier.results if result.problem == "too many notifications waited"]
    assert sorted(dropped) == ["b:1.3", "b:1.4", "b:1.5"]


def test_work_that_is_not_recorded_is_as_urgent_as_a_failure() -> None:
    partial = replace(task_event(1), unrecorded=1)
    assert event_urgency(partial) == event_urgency(failed_event(1)) < event_urgency(task_event(1))


def test_invalid_notify_command_is_reported(hook: Hook) -> None:
    notifier = hook.notifier("\0")
    for event in (task_event(1), last_event()):
        notifier.add_event(event)
    notifier.close()
    assert {(result.tries, result.problem) for result in notifier.results} == {(1, "embedded null byte")}
    (text,) = notifier.problems
    assert text.endswith("failed in all: 2 notifications (1 BATCH_COMPLETED, 1 BATCH_TASK_COMPLETED)")


def test_failed_delivery_is_tried_again_and_delays_no_other(hook: Hook, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(notifications, "RETRY_SECONDS", (1.0,))
    notifier = hook.notifier("cat >>seen; grep -q f2 seen")
    for event in (failed_event(1), failed_event(2)):
        notifier.add_event(event)
    notifier.close()
    assert hook.delivered == ["f1", "f2", "f1"]
    assert [(result.event.cursor, result.tries, result.problem) for result in notifier.results] == [
        ("b:1.2", 1, ""),
        ("b:1.1", 2, ""),
    ]
    assert notifier.problems == []


def test_tries_after_the_end_are_bounded_and_announced(hook: Hook, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(notifications, "RETRY_SECONDS", (0.2, 60.0))
    notes: list[str] = []
    notifier = hook.notifier("exit 7")
    notifier.add_event(last_event())
    notifier.close(notes.append)
    assert [(result.tries, result.problem) for result in notifier.results] == [(2, "exit status 7")]
    assert notes == ["the notification failed (exit status 7); trying again for at most 30 s"]
    assert notifier.problems == ["notification of BATCH_COMPLETED failed: exit status 7, 2 tries"]


def test_command_that_does_not_exist_is_tried_once(hook: Hook, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(notifications, "RETRY_SECONDS", (60.0,))
    notifier = hook.notifier(("no-such-program",))
    notifier.add_event(last_event())
    notifier.close()
    assert [(result.tries, result.problem) for result in notifier.results] == [(1, "No such file or directory")]


def test_default_notifications_include_every_batch_end() -> None:
    end_events = {"BATCH_COMPLETED", "BATCH_PARTIAL", "BATCH_FAILED", "BATCH_CANCELLED", "BATCH_DRAINED"}
    assert {*NOTIFIED_EVENTS_DEFAULT} == {*end_events, "BATCH_TASK_BLOCKED"}
