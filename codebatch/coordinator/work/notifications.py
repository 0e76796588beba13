"""Notifications: a command of the user is executed for each event of a batch (SPEC.md "Notifications").

A thread runs the command for one event at a time. If the command hangs, it is killed at its time limit. A failed
delivery is tried again after a delay; meanwhile, other events are delivered. In the end, a delivery has a result: it
succeeded, or it was given up. The thread of the coordinator records the results.

The last event, for the end of the batch or of its coordinator, is delivered before all waiting events. Its delivery is
always tried. Failures are delivered before other events, and other events are given up first.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from codebatch.coordinator.work.notification_messages import Notification
from codebatch.model.work import event as events
from codebatch.model.work.event import BatchDrained, BatchEnded, BatchEvent, BatchNotified, event_name
from codebatch.model.work.work_batch import NotifySettings
from codebatch.store.work.notifications import failed_notifications_text
from codebatch.system.processes.processes import signal_name

WAITING_EVENTS_MAX = 1000
"""Maximum number of waiting events. If there are more, the oldest of the least urgent are given up.

The last events of coordinators are not counted or given up.
"""
RETRY_SECONDS = (2.0, 8.0)
"""Delays after failed tries."""
END_SECONDS_MAX = 30.0
"""Time after the end of a coordinator in which failed deliveries of last events are tried again."""
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
_POLL_SECONDS = 0.05


class DeliveryResult(NamedTuple):
    """The end of a delivery. If `problem` is not empty, the delivery was given up."""

    event: BatchEvent
    tries: int
    problem: str


@dataclass(slots=True)
class _Delivery:
    """A waiting notification. It is not tried before the time `due` of the monotonic clock."""

    notification: Notification
    tries: int = 0
    problem: str = ""
    due: float = 0.0


class Notifier:
    """Delivers the events of one batch to the user's command, from `begin` to `close`.

    `recorder` records the result of each delivery, and returns the event with which it did. It is called in the thread
    of the coordinator.
    """

    def __init__(self, notify: NotifySettings, *, directory: Path, environment: Mapping[str, str]) -> None:
        """Set up the delivery thread. The command runs in `directory` with `environment`."""
        self._notify_settings = notify
        self._event_names = frozenset(notify.events)
        self._directory = directory
        self._environment = environment
        self._thread = threading.Thread(target=self._deliver_all, name="notify", daemon=True)
        self.recorder: Callable[[DeliveryResult], BatchNotified] | None = None
        self._failed: list[BatchNotified] = []
        self._start_problem = ""
        # The lock of this condition guards all attributes below.
        self._condition = threading.Condition()
        self._waiting: tuple[deque[_Delivery], ...] = tuple(deque() for _ in range(len(_URGENT) + 2))
        """The waiting deliveries by urgency."""
        self._results: list[DeliveryResult] = []
        self._deadline = self._last_deadline = float("inf")
        """The times at which the last try begins, after `close`: of an event, and of a last event."""

    @property
    def problems(self) -> list[str]:
        """Problems for people: the reason why no event is delivered, and the failed deliveries."""
        failed = [failed_notifications_text(self._failed)] if self._failed else []
        return [*filter(None, [self._start_problem]), *failed]

    def begin(self) -> None:
        """Start the thread. If this fails, `problems` has the reason, and no events are delivered."""
        try:
            self._thread.start()
        except RuntimeError as error:
            self._start_problem = f"notifications are off: {error}"

    def is_wanted(self, event: BatchEvent) -> bool:
        """Return whether the user wants events of this type."""
        return event_name(event) in self._event_names

    def add(self, notification: Notification) -> None:
        """Queue a notification for delivery. Never blocks."""
        with self._condition:
            self._waiting[event_urgency(notification.event)].append(_Delivery(notification))
            if sum(map(len, self._waiting[_LAST + 1 :])) > WAITING_EVENTS_MAX:
                dropped = next(queue for queue in reversed(self._waiting) if queue).popleft()
                self._give_up(dropped, "too many notifications waited")
            self._condition.notify_all()

    def record_results(self) -> None:
        """Record the results so far. If there is no recorder yet, keep them."""
        if self.recorder is None:
            return
        with self._condition:
            results, self._results = self._results, []
        recorded = map(self.recorder, results)
        self._failed += [event for event in recorded if event.problem]

    def close(self, note: Callable[[str], None] = lambda _: None) -> None:
        """Deliver waiting events for at most the time limit of one command, and give up the remaining events.

        A delivery of each last event is tried in any case, and tried again for at most END_SECONDS_MAX.
        """
        now = time.monotonic()
        limit = self._notify_settings.timeout_seconds + _GRACE_SECONDS
        with self._condition:
            self._deadline = now + limit
            self._last_deadline = now + END_SECONDS_MAX
            ends = now + max(END_SECONDS_MAX, limit) + limit * (1 + len(self._waiting[_LAST]))
            self._condition.notify_all()
        is_noted = False
        while self._thread.is_alive() and time.monotonic() < ends:
            self._thread.join(_POLL_SECONDS)
            self.record_results()
            with self._condition:
                problem = next((one.problem for one in self._waiting[_LAST] if one.problem), "")
            if problem and not is_noted:
                is_noted = True
                note(f"the notification failed ({problem}); trying again for at most {END_SECONDS_MAX:g} s")
        with self._condition:
            for queue in self._waiting:
                while queue:
                    self._give_up(queue.popleft(), self._start_problem or "no time was left")
        self.record_results()

    def _give_up(self, delivery: _Delivery, why: str) -> None:
        """Add the result of a delivery that is not tried again. The caller holds the lock."""
        self._results.append(DeliveryResult(delivery.notification.event, delivery.tries, delivery.problem or why))

    def _deliver_all(self) -> None:
        while (delivery := self._next_delivery()) is not None:
            is_retryable = True
            try:
                problem = self._deliver(delivery.notification)
            except (OSError, ValueError) as error:
                problem = str((isinstance(error, OSError) and error.strerror) or error)
                is_retryable = not isinstance(error, FileNotFoundError | PermissionError | ValueError)
            with self._condition:
                self._add_result(delivery, problem, is_retryable=is_retryable)

    def _add_result(self, delivery: _Delivery, problem: str, *, is_retryable: bool) -> None:
        """Add the result of a try, or let the delivery wait for the next try. The caller holds the lock."""
        delivery.tries += 1
        delivery.problem = problem
        urgency = event_urgency(delivery.notification.event)
        if problem and is_retryable and delivery.tries <= len(RETRY_SECONDS):
            delivery.due = time.monotonic() + RETRY_SECONDS[delivery.tries - 1]
            if delivery.due < self._deadline_of(urgency):
                self._waiting[urgency].appendleft(delivery)
                return
        self._give_up(delivery, "")

    def _deadline_of(self, urgency: int) -> float:
        return self._last_deadline if urgency == _LAST else self._deadline

    def _next_delivery(self) -> _Delivery | None:
        """Wait for the next delivery.

        After `close`, return None as soon as all deliveries are done, or their time is over.
        """
        with self._condition:
            while True:
                now = time.monotonic()
                dues = []
                for urgency, queue in enumerate(self._waiting):
                    for delivery in queue if urgency == _LAST or now < self._deadline else ():
                        if delivery.due <= now:
                            queue.remove(delivery)
                            return delivery
                        dues.append(delivery.due)
                if not dues and self._deadline < float("inf"):
                    return None
                self._condition.wait(min(dues) - now if dues else None)

    def _deliver(self, notification: Notification) -> str:
        """Run the command for an event. Return the reason why it failed, or an empty text."""
        run = self._notify_settings.command
        environment: dict[str, str | bytes] = {**self._environment, **notification.environment}
        timeout = self._notify_settings.timeout_seconds
        if event_urgency(notification.event) != _LAST:
            timeout = min(timeout, self._deadline - time.monotonic())
        process = subprocess.Popen(
            ["/bin/sh", "-c", run] if isinstance(run, str) else run,
            cwd=self._directory,
            env={os.fsencode(name): os.fsencode(value) for name, value in environment.items()},
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        try:
            process.communicate(notification.data, timeout=timeout)
        except subprocess.TimeoutExpired:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
            return f"killed after {max(0.0, timeout):.3g} s"
        status = process.returncode
        return f"exit status {status}" if status > 0 else f"signal {signal_name(-status)}" if status else ""


def event_urgency(event: BatchEvent) -> int:
    """Return the place of an event among waiting events: 0 for last events, the highest for the least urgent."""
    if isinstance(event, BatchEnded | BatchDrained):
        return _LAST
    if isinstance(event, events.TaskCompleted) and event.unrecorded:  # Work of the task may be lost.
        return _LAST + 1
    levels = range(_LAST + 1, _LAST + 1 + len(_URGENT))
    return next((level for level, kinds in zip(levels, _URGENT, strict=True) if isinstance(event, kinds)), levels.stop)
