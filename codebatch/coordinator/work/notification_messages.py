"""The content of notifications: an event, and texts for people (SPEC.md "Notifications").

The texts reach shells, mail headers and JSON. So they have no control characters, and a bounded length.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

import msgspec

from codebatch.model.entry import display_path
from codebatch.model.work import event as events
from codebatch.model.work.event import event_name
from codebatch.model.work.work_batch import Work
from codebatch.scheduling.lifecycle import CommandState
from codebatch.scheduling.work.conductor import Conductor
from codebatch.store.batches.batch_directory import BatchDir

NAMES_MAX = 20
_LINE_CHARACTERS_MAX = 3000
_SUBJECT_CHARACTERS_MAX = 200


class Notification(msgspec.Struct, frozen=True):
    """A notification of an event. `data` is the standard input of the command, `environment` its variables."""

    event: events.BatchEvent
    data: bytes
    environment: Mapping[str, bytes]


def make_notification(event: events.BatchEvent, batch: BatchDir, work: Work, conductor: Conductor) -> Notification:
    """Return the notification of an event. If the event is a last one, it names the failed and the waiting tasks."""
    failed, waiting = [], []
    if isinstance(event, events.BatchEnded | events.BatchDrained):
        states = list(zip(conductor.agenda.ids, conductor.states(), strict=True))
        failed = [id_ for id_, state in states if state is CommandState.FAILED]
        waiting = [id_ for id_, state in states if state is CommandState.BLOCKED]
    project = display_path(batch.about.project_root)
    subject = f"{os.path.basename(project) or project}: {_event_text(event)}"
    subject = _printable(subject, _SUBJECT_CHARACTERS_MAX)
    lines = [
        _names_line("failed", failed),
        _names_line("waiting for an answer", waiting),
        *_event_lines(event),
        f"list: {work.source} in {display_path(work.root)}",
        f"project: {project}",
        f"see: codebatch status --batch {batch.id}",
    ]
    message = "\n".join(_printable(line, _LINE_CHARACTERS_MAX) for line in lines if line)
    members = {
        "project": project,
        "list": work.source,
        "failed_tasks": failed[:NAMES_MAX],
        "waiting_tasks": waiting[:NAMES_MAX],
        "subject": subject,
        "message": message,
    }
    variables = {
        "CODEBATCH_BATCH": batch.id.encode(),
        "CODEBATCH_EVENT": event_name(event).encode(),
        "CODEBATCH_SUBJECT": subject.encode(),
        "CODEBATCH_MESSAGE": message.encode(),
        "CODEBATCH_MESSAGE_JSON": msgspec.json.encode(f"{subject}\n{message}"),
    }
    return Notification(event, msgspec.json.encode({**msgspec.to_builtins(event), **members}) + b"\n", variables)


def _event_text(event: events.BatchEvent) -> str:
    """Return an event as a short text: `PARTIAL, 12 done, 2 failed` or `failed build`."""
    word = event_name(event).removeprefix("BATCH_").removeprefix("TASK_")
    if isinstance(event, events.TaskEvent):
        return f"{word.lower()} {event.task}"
    return ", ".join([word, *(f"{count:,} {state.lower()}" for state, count in event.counts.items())])


def _event_lines(event: events.BatchEvent) -> list[str]:
    match event:
        case (
            events.TaskFailed(reason=reason, exit_status=status)
            | events.TaskRetrying(reason=reason, exit_status=status)
        ):
            return [f"reason: {reason}" if reason != "exit" else f"exit status: {status}"]
        case events.TaskBlocked(task=task, question=question):
            choices = f" [{', '.join(question.choices)}]" if question.choices else ""
            answer = f"answer: codebatch work answer {task} TEXT --batch {event.batch_id}"
            return [f"question: {question.text}{choices}", answer]
        case events.BatchDrained(signal=signal, error=error):
            return [f"reason: {signal or error}"] if signal or error else []
        case events.BatchEnded(cost=cost, cost_unit=unit, caps=caps):
            costs = [] if cost is None else [f"cost: {cost:g} {unit}".rstrip()]
            reached = [".".join(filter(None, (cap.scope, cap.cap))) for cap in caps]
            return [*costs, *([f"limits reached: {', '.join(reached[:NAMES_MAX])}"] if reached else [])]
        case _:
            return []


def _names_line(title: str, names: Sequence[str]) -> str:
    """Return a line that names the first NAMES_MAX tasks, or an empty text if there are none."""
    more = f" and {len(names) - NAMES_MAX:,} more" if len(names) > NAMES_MAX else ""
    return f"{title}: {', '.join(names[:NAMES_MAX])}{more}" if names else ""


def _printable(text: str, characters_max: int) -> str:
    """Return a text as one line without control characters, cut to a number of characters."""
    text = "".join(char if char.isprintable() else " " for char in text)
    return text if len(text) <= characters_max else f"{text[:characters_max]}…"
