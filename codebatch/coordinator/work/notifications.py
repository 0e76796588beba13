"""Notifications: a command of the user is executed for each event of a batch (SPEC.md "Notifications").

A thread runs the command for one event at a time. If the command hangs, it is killed at its time limit. No event is
retried, so a failing command does no harm.

The last event, for the end of the batch or of its coordinator, is delivered before all waiting events. Its delivery is
always tried. Failures are delivered before other events, and other events are dropped first. Undelivered events are
counted by name.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import threading
import time
from collections import Counter, deque
from collections.abc import Mapping
from pathlib import Path

import msgspec

from codebatch.model.text.quantities import count_text
from codebatch.model.work import event as events
from codebatch.model.work.event import BatchDrained, BatchEnded, BatchEvent, event_name
from codebatch.model.work.work_batch import NotifySettings

WAITING_EVENTS_MAX = 1000
"""Maximum number of waiting events. If there are more, the oldest of the least urgent are dropped.

The last events of coordinators are not counted or dropped.
"""
_LAST = 0
_URGENT = (
    (events.TaskFailed, events.TaskBlocked),
    (
        events.TaskInterrupted,
        events.TaskSkipped,
        events.TaskCancelled,
        events.TaskStopped,
        events.TaskRetrying,
        events.BatchStopped,
    ),
)
"""Kinds of events that are delivered before all others, the most urgent first."""
_GRACE_SECONDS = 1.0
"""Time in seconds that is added to the time limit of the command. It suffices to reap a killed command."""


class Notifier:
    """Delivers the events of one batch to the user's command, from `begin` to `close`."""

    def __init__(self, notify: NotifySettings, *, directory: Path, environment: Mapping[str, str]) -> None:
        """Set up the delivery thread. The command runs in `directory` with `environment`."""
        self._notify_settings = notify
        self._event_names = frozenset(notify.events)
        self._directory = directory
        self._environment = environment
        self._thread = threading.Thread(target=self._deliver_all, name="notify", daemon=True)
        # The lock of this condition guards all attributes below.
        self._condition = threading.Condition()
        self._waiting: tuple[deque[BatchEvent], ...] = tuple(deque() for _ in range(len(_URGENT) + 2))
        """The waiting events by urgency."""
        self._last_untried = 0
        self._deadline: float | None = None
        self._wanted_count = 0
        self._lost: Counter[str] = Counter()
        self._failed: Counter[str] = Counter()
        self._problem: str | None = None

    @property
    def problems(self) -> list[str]:
        """Problems for people: the first failure, and the numbers of failed and of undelivered events."""
        with self._condition:
            problems = [] if self._problem is None else [self._problem]
            if self._failed:
                problems[0] += f"; failed deliveries: {_counts_text(self._failed)}"
            if self._lost:
                lost = f"{self._lost.total():,} of {count_text(self._wanted_count, 'event')} were not delivered"
                problems.append(f"notify: {lost}, because the command takes too long: {_counts_text(self._lost)}")
            return problems

    def begin(self) -> None:
        """Start the thread. If this fails, `problems` has the reason, and no events are delivered."""
        try:
            self._thread.start()
        except RuntimeError as error:
            self._record_problem(f"notifications are off: {error}")

    def add(self, event: BatchEvent) -> None:
        """Queue an event for delivery if the user wants events of its type. Never blocks."""
        if event_name(event) not in self._event_names:
            return
        with self._condition:
            self._wanted_count += 1
            urgency = event_urgency(event)
            self._waiting[urgency].append(event)
            if urgency == _LAST:
                self._last_untried += 1
            elif sum(map(len, self._waiting[_LAST + 1 :])) > WAITING_EVENTS_MAX:
                dropped = next(queue for queue in reversed(self._waiting) if queue).popleft()
                self._lost[event_name(dropped)] += 1
            self._condition.notify_all()

    def close(self) -> None:
        """Deliver waiting events for at most the time limit of one command, and drop the remaining events.

        A delivery of each last event is tried in any case.
        """
        seconds = self._notify_settings.timeout_seconds + _GRACE_SECONDS
        with self._condition:
            self._deadline = deadline = time.monotonic() + seconds
            self._condition.notify_all()
            if self._thread.is_alive():
                # The delivery of a last event must wait for the running command, and may then take as long itself.
                self._condition.wait_for(lambda: not self._last_untried, seconds * (1 + self._last_untried))
        if self._thread.is_alive():
            self._thread.join(max(0.0, deadline - time.monotonic()))
        with self._condition:
            for queue in self._waiting:
                self._lost.update(map(event_name, queue))
                queue.clear()

    def _deliver_all(self) -> None:
        while (event := self._next_event()) is not None:
            try:
                self._deliver_event(event)
            except (OSError, ValueError) as error:
                reason = (isinstance(error, OSError) and error.strerror) or error
                self._record_problem(f"notifications are off: {reason}", event)
            if isinstance(event, BatchEnded | BatchDrained):
                with self._condition:
                    self._last_untried -= 1
                    self._condition.notify_all()

    def _next_event(self) -> BatchEvent | None:
        """Wait for the next event to deliver.

        After `close`, return None as soon as all last events were tried, and all other events are delivered or their
        time is over.
        """
        with self._condition:
            self._condition.wait_for(lambda: any(self._waiting) or self._deadline is not None)
            is_late = self._deadline is not None and time.monotonic() >= self._deadline
            queues = self._waiting[: _LAST + 1] if is_late else self._waiting
            return next((queue.popleft() for queue in queues if queue), None)

    def _deliver_event(self, event: BatchEvent) -> None:
        run = self._notify_settings.command
        process = subprocess.Popen(
            ["/bin/sh", "-c", run] if isinstance(run, str) else run,
            cwd=self._directory,
            env={**self._environment, "CODEBATCH_BATCH": event.batch_id, "CODEBATCH_EVENT": event_name(event)},
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        try:
            process.communicate(msgspec.json.encode(event) + b"\n", timeout=self._notify_settings.timeout_seconds)
            if process.returncode:
                self._record_problem(f"notify ended with status {process.returncode}; it is not retried", event)
        except subprocess.TimeoutExpired:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
            problem = f"notify took longer than {self._notify_settings.timeout_seconds:g} s and was killed"
            self._record_problem(problem, event)

    def _record_problem(self, problem: str, event: BatchEvent | None = None) -> None:
        with self._condition:
            self._problem = self._problem or problem
            if event is not None:
                self._failed[event_name(event)] += 1


def _counts_text(counts: Counter[str]) -> str:
    return ", ".join(f"{count:,} {name}" for name, count in sorted(counts.items()))


def event_urgency(event: BatchEvent) -> int:
    """Return the place of an event among waiting events: 0 for last events, the highest for the least urgent."""
    if isinstance(event, BatchEnded | BatchDrained):
        return _LAST
    if isinstance(event, events.TaskCompleted) and event.unrecorded:  # Work of the task may be lost.
        return _LAST + 1
    levels = range(_LAST + 1, _LAST + 1 + len(_URGENT))
    return next((level for level, kinds in zip(levels, _URGENT, strict=True) if isinstance(event, kinds)), levels.stop)
