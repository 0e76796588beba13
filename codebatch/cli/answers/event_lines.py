"""Events of a batch as lines: time, event, task, reason. The lines are short, because terminals can be narrow."""

from __future__ import annotations

import datetime
from collections.abc import Sequence

from codebatch.cli.output.eta import eta_text
from codebatch.model.text.quantities import count_text, human_seconds
from codebatch.model.work import event as events
from codebatch.model.work.event import event_name, instant_ns
from codebatch.query.status.unrecorded_work import unrecorded_work_text
from codebatch.scheduling.lifecycle import CommandState
from codebatch.store.work.notifications import failed_notifications_text
from codebatch.work.control.status import attempt_stop_text, failure_reason_text, stop_reason_text
from codebatch.work.definition.selection import abbreviated_ids
from codebatch.work.limit_texts import wait_text

_TEXTS_BY_NEXT_ACTION = {
    "restart": "it is restarted",
    "fail": "it counts as failed",
    "ask": "a question was asked",
    "none": "it is not restarted",
}
_UNPRINTED_EVENTS = (events.TaskQueued, events.TaskStarted, events.BatchProgress)
"""Events that `follow` does not print as lines, because the progress line has their information."""


def is_printed(event: events.AnyEvent) -> bool:
    """Return whether `follow` prints an event."""
    if isinstance(event, events.BatchNotified):
        return bool(event.problem)
    return not isinstance(event, _UNPRINTED_EVENTS)


def event_line(event: events.AnyEvent) -> str:
    """Return an event as one line, with the local time."""
    at = datetime.datetime.fromisoformat(event.at.replace("Z", "+00:00")).astimezone()
    text = _task_event_text(event) if isinstance(event, events.TaskEvent) else _batch_event_text(event)
    return f"{at:%H:%M:%S} {text}".rstrip()


def counts_text(counts: dict[str, int]) -> str:
    """Return the number of tasks in each state as text: `14 done, 1 failed, 22 pending`."""
    return ", ".join(f"{count:,} {state.lower()}" for state, count in counts.items())


def current_file_text(running: Sequence[events.RunningTask]) -> str:
    """Return as text which file has been processed for the longest time, and by which task: `lint src/app.py (12s)`.

    Return an empty text if no file is known.
    """
    with_files = [task for task in running if task.path is not None]
    slowest = max(with_files, key=lambda task: task.seconds, default=None)
    return "" if slowest is None else f"{slowest.task} {slowest.path} ({human_seconds(slowest.seconds)})"


def _task_event_text(event: events.TaskEvent) -> str:
    word = event_name(event).removeprefix("BATCH_TASK_").lower()
    more = f" (attempt {event.try_} of {event.tries_max})" if event.try_ > 1 and event.tries_max > 1 else ""
    match event:
        case events.TaskCompleted(seconds=seconds, marked_done=as_done, unrecorded=unrecorded):
            if as_done:
                return f"{event.task} marked done by user"
            lost = [unrecorded_work_text(unrecorded)] if unrecorded else []
            if event.reason:
                lost.insert(0, failure_reason_text(event.reason, event.exit_status))
            return "; ".join((f"done {event.task}{more}{_duration_text(seconds)}", *lost, *event.notes))
        case events.TaskFailed() | events.TaskRetrying():
            why = failure_reason_text(event.reason, event.exit_status)
            wait = event.wait_seconds if isinstance(event, events.TaskRetrying) else None
            retry_text = f"; retry in {human_seconds(wait)}" if wait is not None else ""
            if isinstance(event, events.TaskRetrying) and event.until is not None:
                retry_text = f"; {wait_text(event.pools, instant_ns(event.until))}"
            return "; ".join(
                (f"{word} {event.task}{more}{_duration_text(event.seconds)}: {why}{retry_text}", *event.notes)
            )
        case events.TaskBlocked(question=question):
            choices = f" [{', '.join(question.choices)}]" if question.choices else ""
            return f"blocked {event.task}: {question.text}{choices}"
        case events.TaskAnswered(by=by, text=text):
            return f"answered {event.task}: {text} (by {by})"
        case events.TaskSkipped(reason=why):
            return f"skipped {event.task}: {why}"
        case events.TaskInterrupted(next_action=then):
            return f"interrupted {event.task}: {_TEXTS_BY_NEXT_ACTION[then]}"
        case events.TaskStopped(cause=cause, detail=detail):
            return f"stopped {event.task}{attempt_stop_text(cause, detail)}"
        case events.TaskCancelled(seconds=seconds):
            return f"cancelled {event.task}{_duration_text(seconds)}"
        case _:
            return f"{word} {event.task}{more}"


def _batch_event_text(event: events.BatchEvent) -> str:
    match event:
        case events.BatchStarted(source=source, task_count=count):
            return f"started: {count_text(count, 'task')} from {source}"
        case events.BatchResumed(reopened=opened, adopted=adopted):
            reopened_text = f", {len(opened):,} to rerun" if opened else ""
            running = f", {len(adopted):,} found running" if adopted else ""
            return f"resumed{reopened_text}{running}"
        case events.BatchPaused(by=by):
            return f"paused by {by}"
        case events.BatchUnpaused(by=by):
            return f"unpaused by {by}"
        case events.BatchChanged(by=by):
            if event.added:
                return f"{count_text(len(event.added), 'task')} added by {by}: {abbreviated_ids(event.added)}"
            changed = ", ".join(_setting_text(name, value) for name, value in event.set_.items())
            return f"changed by {by}: {changed}"
        case events.BatchStopped(cause=cause, detail=detail, tasks=tasks):
            return f"stopping {count_text(len(tasks), 'task')}: {stop_reason_text(cause, detail)}"
        case events.BatchProgress(eta_seconds=eta, without_estimate=unknown):
            blocked = event.counts.get(CommandState.BLOCKED.value, 0)
            remaining_text = eta_text(eta, unknown=unknown, blocked=blocked)
            parts = (counts_text(event.counts), remaining_text, current_file_text(event.running))
            return f"progress: {', '.join(filter(None, parts))}"
        case events.BatchDrained(signal=signal, error=why):
            reason = f" on {signal}" if signal else f" ({why})" if why else ""
            return f"stopped with unfinished tasks{reason}: {counts_text(event.counts)}"
        case events.BatchNotified(notified=name, problem=problem):
            return failed_notifications_text([event]) if problem else f"notification of {name} delivered"
        case events.BatchEnded(seconds=seconds, total_seconds=in_all):
            state = event_name(event).removeprefix("BATCH_")
            is_more = in_all is not None and in_all >= seconds + 1
            total = f" ({human_seconds(in_all)} in total)" if in_all is not None and is_more else ""
            return f"{state}: {counts_text(event.counts)}, in {human_seconds(seconds)}{total}"
        case _:
            return event_name(event)


def _duration_text(seconds: float | None) -> str:
    return "" if seconds is None else f" {human_seconds(seconds)}"


def _setting_text(name: str, value: object) -> str:
    """Return a changed setting as text. Nested settings are joined: `caps.pool.agents.cost_max = 7.5`."""
    if isinstance(value, dict):
        return ", ".join(_setting_text(f"{name}.{key}".rstrip("."), inner) for key, inner in value.items())
    return f"{name} = {value}"
