"""Projection of a conductor's events to events for people.

Each end of an attempt, and each change of a command's state, is reported exactly once. The projector observes the
conductor and has no effect on scheduling. Events that an earlier coordinator emitted are not repeated. Events that the
earlier coordinator could not emit, for example because it died, are emitted first.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import msgspec

from codebatch.model.work import event as published
from codebatch.model.work.command import CommandId
from codebatch.model.work.event import BatchEvent, TaskEvent
from codebatch.model.work.request import Add, Answer, Open, Pause, Request, Set, Stop, Unpause
from codebatch.scheduling.events import LeaseRefused, UnitDone, WorkerId
from codebatch.scheduling.lifecycle import CommandState
from codebatch.scheduling.work import events
from codebatch.scheduling.work.conductor import Conductor
from codebatch.scheduling.work.events import (
    ANY_ITEM,
    BATCH_TIME_LIMIT_ITEM,
    AttemptOutcome,
    CommandEvent,
    CommandReleased,
    NextStarted,
    OutcomesConcluded,
    RequestRead,
    StartCommand,
    WaitEnded,
    WorkerDied,
)


class ProjectedEvent(NamedTuple):
    """An event without the fields that its publisher reads from files and clocks.

    - `item`: the task of the event, or None for an event of the batch.
    - `outcome`: the outcome of the attempt whose end the event reports, or None.
    - `question`: the digest of the question that a running command asks, or that a met cap asks. Otherwise None.
    """

    type: type[BatchEvent]
    fields: dict[str, object]
    item: int | None = None
    outcome: AttemptOutcome | None = None
    question: str | None = None


class EmittedEvents(msgspec.Struct, kw_only=True):
    """The events emitted so far, so that none is emitted twice.

    - `ends`: reported ends of attempts, as (item, round). `counted`: reported ends by a request, `queued`: reported
      entries into the queue, in the same form.
    - `interrupted`: interrupted and stopped attempts, as (item, epoch).
    - `skipped`: the items last reported as skipped.
    - `blocked`: the ends of attempts with a question, as (item, round).
    - `questioned`: the digests of reported questions of running commands.
    - `requests`: the number of reported requests.
    """

    ends: set[tuple[int, int]] = msgspec.field(default_factory=set)
    counted: set[tuple[int, int]] = msgspec.field(default_factory=set)
    queued: set[tuple[int, int]] = msgspec.field(default_factory=set)
    interrupted: set[tuple[int, int]] = msgspec.field(default_factory=set)
    skipped: set[int] = msgspec.field(default_factory=set)
    blocked: set[tuple[int, int]] = msgspec.field(default_factory=set)
    questioned: set[str] = msgspec.field(default_factory=set)
    requests: int = 0


_END_TYPES: dict[str, type[TaskEvent]] = {
    "result": published.TaskCompleted,
    "failed": published.TaskFailed,
    "blocked": published.TaskBlocked,
    "cancelled": published.TaskCancelled,
}
_CLOSED_STATES = ("DONE", "FAILED", "BLOCKED", "SKIPPED", "CANCELLED")
_OPEN_STATES = tuple(state for state in CommandState if state.value not in _CLOSED_STATES)
"""The states of a command that has not ended.

A change from one to another does not affect the commands that need this command.
"""
_NAME_BY_STATE = {state: state.value for state in CommandState}
"""The name of each state, in a table because reading the attribute of an enum member is slow."""


class EventProjector:
    """A projector of the events of one conductor."""

    def __init__(
        self,
        conductor: Conductor,
        requests: Iterable[Request] = (),
        emitted: EmittedEvents | None = None,
        titles: dict[CommandId, str] | None = None,
    ) -> None:
        """Start with the state of a conductor. `requests` are those with which the conductor started.

        `titles` maps the IDs of tasks to their titles. The titles of added tasks are added to it.
        """
        self._conductor = conductor
        self._emitted = emitted or EmittedEvents()
        self._titles = {} if titles is None else titles
        self._dependents: list[list[int]] = []
        self._items: dict[CommandId, int] = {}
        self._initial_requests = list(requests)
        self._states: list[CommandState] = []
        self.counts: dict[str, int] = {}
        self._add_new_items()
        self._start_by_worker: dict[WorkerId, StartCommand] = {}
        self._noted_starts: list[StartCommand] = []
        self._foreign: frozenset[int] = frozenset()

    def _add_new_items(self) -> None:
        """Add the items that the plan of the conductor has in addition."""
        agenda, first = self._conductor.agenda, len(self._states)
        new = range(first, len(agenda.ids))
        self._dependents += ([] for _ in new)
        for item in new:
            for need in agenda.needs[item]:
                self._dependents[need.item].append(item)
            self._items[agenda.ids[item]] = item
        if new:
            self._states += [CommandState.PENDING] * len(new)
            self._add_to_count(_NAME_BY_STATE[CommandState.PENDING], len(new))

    @property
    def waiting_items(self) -> list[int]:
        """The items that have not ended and do not run."""
        return [
            item
            for item, state in enumerate(self._states)
            if state in _OPEN_STATES and state is not CommandState.RUNNING
        ]

    @property
    def opened_before(self) -> list[int]:
        """The items opened by requests that were made before the conductor started and are not reported yet."""
        new = [request for request in self._initial_requests if request.n > self._emitted.requests]
        ids = {id_ for request in new if isinstance(request.body, Open) for id_ in request.body.rounds}
        return sorted(self._items[id_] for id_ in ids if id_ in self._items)

    def initial_events(self, concluded: OutcomesConcluded) -> list[ProjectedEvent]:
        """Return events for the past that were not reported before, and events for the present states.

        `concluded` are all outcomes.
        """
        projected: list[ProjectedEvent] = self._project_ends(concluded)
        for request in self._initial_requests:
            projected += self._project_request(request) if request.n > self._emitted.requests else []
        for item in range(len(self._states)):
            if self._unended_lease_count(item) and item not in self._conductor.running_items:
                projected += self._project_interruption(item)
        # The ends of commands are reported first, then the commands that may start because of these ends.
        return projected + sorted(
            self._state_changes(range(len(self._states))), key=lambda one: one.type is published.TaskQueued
        )

    def note_start(self, start: StartCommand) -> None:
        """Record that the conductor starts a command.

        The start is reported after the other effects of the same event.
        """
        self._noted_starts.append(start)

    def effects_of_event(self, event: CommandEvent) -> list[ProjectedEvent]:
        """Return the events for people that result from an event of the conductor.

        Call this after the actions for the event were executed.
        """
        projected: list[ProjectedEvent] = []
        looked_at: set[int] = set()
        match event:
            case OutcomesConcluded(conclusions):
                projected += self._project_ends(event)
                looked_at.update(one.item for one in conclusions)
                if self._conductor.agenda.on_failure == "stop":
                    looked_at.update(range(len(self._states)))
            case UnitDone(worker) | LeaseRefused(worker) | NextStarted(worker) | WorkerDied(worker):
                if (start := self._start_by_worker.pop(worker, None)) is not None:
                    looked_at.add(start.item)
                    is_begun = (
                        event.leased_by == "it"
                        if isinstance(event, WorkerDied)
                        else not isinstance(event, LeaseRefused)
                    )
                    projected += self._project_interruption(start.item, start.epoch) if is_begun else []
            case CommandReleased(item, epoch):
                looked_at.add(item)
                if item in self._foreign and item not in self._conductor.adopted_items:
                    projected += self._project_interruption(item, epoch)
            case WaitEnded(item) | events.QuestionAsked(item) if item not in (ANY_ITEM, BATCH_TIME_LIMIT_ITEM):
                looked_at.add(item)
            case RequestRead(request):
                self._add_new_items()
                projected += self._project_request(request)
                looked_at.update(range(len(self._states)))
            case _:
                pass
        if self._conductor.agenda.limits.on_cap == "ask":  # Each start and each end may meet a cap of other items.
            looked_at.update(range(len(self._states)))
        starts, self._noted_starts = self._noted_starts, []
        looked_at.update(start.item for start in starts)
        projected += self._state_changes(sorted(looked_at))
        for start in starts:
            self._start_by_worker[start.worker] = start
            projected += self._project_queueing(start.item, start.round)
            projected.append(self._task_event(published.TaskStarted, start.item, start.round))
        return projected

    def remaining_changes(self) -> list[ProjectedEvent]:
        """Return the changes of states that are not reported yet. Call this at the end of the session."""
        return self._state_changes(range(len(self._states)))

    def _project_ends(self, concluded: OutcomesConcluded) -> list[ProjectedEvent]:
        projected: list[ProjectedEvent] = []
        for conclusion in sorted(concluded.conclusions, key=lambda conclusion: (conclusion.round, conclusion.item)):
            if conclusion.reason == "unbegun" or (conclusion.item, conclusion.round) in self._emitted.ends:
                continue
            self._emitted.ends.add((conclusion.item, conclusion.round))
            is_last = self._conductor.last_outcome(conclusion.item) is conclusion
            state = self._conductor.state(conclusion.item) if is_last else None
            asks = conclusion.type == "blocked" or (conclusion.type == "failed" and state is CommandState.BLOCKED)
            if asks:
                self._emitted.blocked.add((conclusion.item, conclusion.round))
            goes_on = conclusion.type == "failed" and (not is_last or state in _OPEN_STATES)
            type_ = _END_TYPES[conclusion.type]
            type_ = published.TaskBlocked if asks else published.TaskRetrying if goes_on else type_
            projected.append(self._task_event(type_, conclusion.item, conclusion.round)._replace(outcome=conclusion))
        return projected

    def _project_request(self, request: Request) -> list[ProjectedEvent]:
        by, n = request.head.by, request.n
        match request.body:
            case Answer(task=task, round=round_, text=text) if (item := self._items.get(CommandId(task))) is not None:
                return [self._task_event(published.TaskAnswered, item, round_, by=by, text=text, request=n)]
            case Pause():
                return [ProjectedEvent(published.BatchPaused, {"by": by, "request": n})]
            case Unpause():
                return [ProjectedEvent(published.BatchUnpaused, {"by": by, "request": n})]
            case Set() as body:
                changed = msgspec.to_builtins(body)
                del changed["request"]
                return [ProjectedEvent(published.BatchChanged, {"by": by, "request": n, "set_": changed})]
            case Add(commands=commands):
                self._titles.update((command.id, command.title) for command in commands)
                added = tuple(command.id for command in commands)
                return [ProjectedEvent(published.BatchChanged, {"by": by, "request": n, "added": added})]
            case Stop(cause=cause, detail=detail, attempts=attempts, terminates=True):
                fields = {"request": n, "tasks": tuple(attempts), "cause": cause, "detail": detail}
                return [ProjectedEvent(published.BatchStopped, fields)]
            case _:
                return []

    def _task_event(self, type_: type[TaskEvent], item: int, round_: int, **fields: object) -> ProjectedEvent:
        id_ = self._conductor.agenda.ids[item]
        fields |= {
            "task": id_,
            "title": self._titles.get(id_, ""),
            "round": round_,
            "try_": self._try_number(item, round_),
            "tries_max": 1 + self._conductor.retries(item, round_),
        }
        return ProjectedEvent(type_, fields, item)

    def _try_number(self, item: int, round_: int) -> int:
        """Return the try number of a round: 1, plus the number of failed attempts before it.

        Only attempts since a request last reset the command are counted.
        """
        last, failed_tries = self._conductor.last_outcome(item), self._conductor.state_rule.failed_try_count(item)
        if last is None or last.round < round_:
            return failed_tries + 1
        counts = last.type == "failed" and not self._conductor.state_rule.is_limited(item)
        return max(1, (failed_tries if counts else failed_tries + 1) - (last.round - round_))

    def _state_changes(self, items: Iterable[int]) -> list[ProjectedEvent]:
        """Return events for the changed states of the given items, and of all commands that need them."""
        projected: list[ProjectedEvent] = []
        foreign = self._conductor.adopted_items
        if foreign != self._foreign:
            projected += [
                self._task_event(published.TaskAdopted, item, self._conductor.last_attempt(item)[0])
                for item in sorted(foreign - self._foreign)
            ]
            self._foreign = foreign
        pending = list(reversed(list(items)))
        while pending:
            item = pending.pop()
            before, state = self._states[item], self._conductor.state(item)
            if before is state:
                # A blocked task can have a new question: its command asks again, or a raised cap is met again.
                projected += self._project_state_change(item, state) if state is CommandState.BLOCKED else []
                continue
            self._states[item] = state
            self._add_to_count(_NAME_BY_STATE[before], -1)
            self._add_to_count(_NAME_BY_STATE[state], 1)
            projected += self._project_state_change(item, state)
            if before not in _OPEN_STATES or state not in _OPEN_STATES:
                pending += self._dependents[item]
        return projected

    def _add_to_count(self, state: str, change: int) -> None:
        count = self.counts.get(state, 0) + change
        if count:
            self.counts[state] = count
        else:
            del self.counts[state]

    def _project_state_change(self, item: int, state: CommandState) -> list[ProjectedEvent]:
        if state is not CommandState.SKIPPED:
            self._emitted.skipped.discard(item)
        last = self._conductor.last_outcome(item)
        place = (item, last.round if last else 0)
        match state:
            case CommandState.READY:
                return self._project_queueing(item, place[1] + 1)
            case CommandState.BLOCKED if self._conductor.asked_cap(item) is not None:
                return self._project_live_question(item, place[1] + 1)
            case CommandState.BLOCKED if item in self._conductor.running_items and self._unended_lease_count(item) > 0:
                return self._project_live_question(item, self._conductor.last_attempt(item)[0])
            case CommandState.SKIPPED if item not in self._emitted.skipped:
                self._emitted.skipped.add(item)
                return [self._project_skip(item, place[1])]
            case CommandState.DONE if (last is None or last.type != "result") and place not in self._emitted.counted:
                self._emitted.counted.add(place)
                return [self._task_event(published.TaskCompleted, *place, marked_done=True)]
            case CommandState.FAILED if place in self._emitted.blocked and place not in self._emitted.counted:
                self._emitted.counted.add(place)
                return [self._task_event(published.TaskFailed, *place, reason="answer")]
            case _:
                return []

    def _project_skip(self, item: int, round_: int) -> ProjectedEvent:
        cause = self._conductor.skip_cause(item)
        if cause is None or cause == item:
            return self._task_event(published.TaskSkipped, item, round_, cause="request", reason="skipped by user")
        id_ = self._conductor.agenda.ids[cause]
        reason = f"it needs {id_}, which is not done"
        return self._task_event(published.TaskSkipped, item, round_, cause=id_, reason=reason)

    def _project_live_question(self, item: int, round_: int) -> list[ProjectedEvent]:
        question = self._conductor.question(item)
        if question is None or question in self._emitted.questioned:
            return []
        self._emitted.questioned.add(question)
        return [self._task_event(published.TaskBlocked, item, round_, is_live=True)._replace(question=question)]

    def _project_queueing(self, item: int, round_: int) -> list[ProjectedEvent]:
        if (item, round_) in self._emitted.queued:
            return []
        self._emitted.queued.add((item, round_))
        position = max(1, self.counts.get(_NAME_BY_STATE[CommandState.READY], 0))
        return [self._task_event(published.TaskQueued, item, round_, position=position)]

    def _unended_lease_count(self, item: int) -> int:
        last = self._conductor.last_outcome(item)
        return self._conductor.last_epoch(item) - (last.epoch if last else 0)

    def _project_interruption(self, item: int, epoch: int | None = None) -> list[ProjectedEvent]:
        epoch = self._conductor.last_epoch(item) if epoch is None else epoch
        last = self._conductor.last_outcome(item)
        if (last is not None and last.epoch >= epoch) or (item, epoch) in self._emitted.interrupted:
            return []
        self._emitted.interrupted.add((item, epoch))
        round_ = self._conductor.last_attempt(item)[0]
        if (stopped := self._conductor.find_stop(item, epoch)) is not None:
            cause, detail, _ = stopped
            return [self._task_event(published.TaskStopped, item, round_, epoch=epoch, cause=cause, detail=detail)]
        may_run = self._conductor.state(item) not in (CommandState.CANCELLED, CommandState.SKIPPED)
        then = self._conductor.after_interruption(item, epoch) if may_run else "none"
        return [self._task_event(published.TaskInterrupted, item, round_, epoch=epoch, next_action=then)]
