"""Runs: the commands of one assignment, and the messages that report their results.

A worker starts the commands one after the other. It does not wait for a message between them. It commits their outcomes
together, and reports them in one message. The report follows the last command, a command that did not succeed, or the
end of RUN_SECONDS. The worker then returns the commands that have not started to the coordinator. So a long command
delays neither the commands after it nor the report of earlier results.
"""

from __future__ import annotations

import contextlib
from collections import deque
from collections.abc import Callable
from itertools import takewhile
from typing import Literal

import msgspec

from codebatch.errors import StoreUnwritable
from codebatch.model.digest import Digest
from codebatch.model.outcome import Commit, ResourceUsage
from codebatch.protocol.messages import Assign, Committed, Delayed, Finished, MessageFromWorker, Refused, Returned
from codebatch.store.batches.journal import JournalEvent, JournalWriter
from codebatch.store.results.outcomes import EncodedOutcome, OutcomeCommitter, attempt_outcome
from codebatch_workers.commands.attempt import AttemptResult
from codebatch_workers.commands.attempt_questions import AttemptQuestions
from codebatch_workers.commands.coordinator_listener import CoordinatorListener
from codebatch_workers.runtime.channel import CoordinatorChannel, CoordinatorLost

RUN_SECONDS_MAX = 0.1
COMMIT_SECONDS_MAX = 60.0
_COMMIT_INTERVAL_SECONDS = 1.0


class _FinishedAttempt(msgspec.Struct):
    assign: Assign
    result: AttemptResult
    questions: AttemptQuestions
    question: Digest = Digest("")


class PrefetchedRun:
    """The runs of one worker, one after the other."""

    def __init__(
        self,
        channel: CoordinatorChannel,
        listener: CoordinatorListener,
        committer: OutcomeCommitter,
        journal: JournalWriter,
        *,
        now_ns: Callable[[], int],
        sleep: Callable[[float], None],
    ) -> None:
        """`now_ns` is a clock that stops in suspend."""
        self._channel = channel
        self._listener = listener
        self._committer = committer
        self._journal = journal
        self._now_ns = now_ns
        self._sleep = sleep
        self._queued_assignments: deque[Assign] = deque()
        self._finished: list[_FinishedAttempt] = []
        self._due_ns: int | None = None
        self._is_begun = self._is_returned = self._is_delayed = False
        self._seconds = 0.0

    def begin_run(self, assign: Assign) -> None:
        """Start a run with the commands of an assignment."""
        self._queued_assignments = deque((assign, *assign.then))
        self._due_ns = self._now_ns() + round(RUN_SECONDS_MAX * 1e9)
        self._is_begun = self._is_returned = self._is_delayed = False
        self._seconds = 0.0

    def next_assignment(self) -> Assign | None:
        """Return the next command to start, or None if the run is over."""
        if not self._queued_assignments or (self._is_begun and not self._may_continue()):
            return None
        self._is_begun = True
        return self._queued_assignments.popleft()

    def _may_continue(self) -> bool:
        return not (self._is_returned or self._listener.is_queue_recalled or self._listener.is_alone) and bool(
            self.remaining_seconds()
        )

    def remaining_seconds(self) -> float | None:
        """Return the seconds until the report of this run is due, or None if the report was sent."""
        return None if self._due_ns is None else max(0.0, (self._due_ns - self._now_ns()) / 1e9)

    def note_event(self, event: JournalEvent) -> None:
        """Add an event to the journal in memory. The next report writes the event to disk."""
        self._journal.add(event)

    def add(self, assign: Assign, result: AttemptResult, questions: AttemptQuestions) -> None:
        """Add a finished attempt to the run. The next report commits its outcome."""
        self._finished.append(_FinishedAttempt(assign, result, questions))
        self._seconds += result.seconds

    def early_result(self) -> AttemptResult | None:
        """Return the result of an attempt that a request ends while its command does not run, or None."""
        self.do_if_due(self._now_ns())
        request = self._listener.poll_early(self._now_ns())
        return None if request is None else AttemptResult(type="cancelled" if request.why == "cancelled" else None)

    def do_if_due(self, now_ns: int) -> None:
        """If the report is due, send it although a command is running. If the commit fails, try again every second.

        The report contains the results of all earlier commands. It also returns the commands that have not started.
        """
        if self._due_ns is None or now_ns < self._due_ns:
            return
        self._due_ns = None
        messages: list[MessageFromWorker] = (
            [self._return_queued()] if self._queued_assignments or not self._is_returned else []
        )
        try:
            while self._finished:
                messages.insert(-1, self._commit_finished())
        except StoreUnwritable as error:
            self._due_ns = now_ns + round(_COMMIT_INTERVAL_SECONDS * 1e9)
            self._report_commit_delay(error)
        self._flush_journal()
        # If the coordinator has ended, the running command must not be disturbed.
        with contextlib.suppress(CoordinatorLost):
            self._channel.send(*messages)

    def end_run(self, then: Refused | Literal["is idle", "ends"]) -> None:
        """End a run: commit all finished attempts. Report them, and report `then`: what this worker does next.

        A failed commit is retried, because a command cannot be executed again just for its result. Raises
        CoordinatorLost. Raises StoreUnwritable if commits fail for COMMIT_SECONDS, or if one fails and a request to
        stop arrives.
        """
        self._due_ns = None
        messages: list[MessageFromWorker] = []
        deadline_ns = self._now_ns() + round(COMMIT_SECONDS_MAX * 1e9)
        while self._finished:
            try:
                messages.append(self._commit_finished())
                continue
            except StoreUnwritable as error:
                self._report_commit_delay(error)
                request = self._listener.poll(self._now_ns())
                if self._now_ns() > deadline_ns or (request is not None and request.why == "stopped"):
                    raise
            self._sleep(_COMMIT_INTERVAL_SECONDS)
        self._flush_journal()
        if self._queued_assignments:
            messages.append(self._return_queued())
        if then != "ends":
            messages.append(Finished(seconds=self._seconds) if then == "is idle" else then)
        if messages:
            self._channel.send(*messages)

    def _report_commit_delay(self, error: StoreUnwritable) -> None:
        """Report to the coordinator that a commit failed, so that a user can free space.

        Each run reports this only once.
        """
        if not self._is_delayed:
            self._is_delayed = True
            with contextlib.suppress(CoordinatorLost):
                self._channel.send(Delayed(message=error.message, seconds=COMMIT_SECONDS_MAX))

    def _return_queued(self) -> Returned:
        self._is_returned = True
        returned = Returned(count=len(self._queued_assignments))
        self._queued_assignments.clear()
        return returned

    def _flush_journal(self) -> None:
        # Committed outcomes are reported even if the journal cannot be written.
        with contextlib.suppress(StoreUnwritable):
            self._journal.flush()

    def _commit_finished(self) -> Committed:
        """Commit the first finished attempt, together with the attempts directly after it of the same epoch and round.

        The questions of these attempts are published first. When this returns, the outcomes are durable. Raises
        StoreUnwritable.
        """
        key = _commit_key(self._finished[0])
        shared = list(takewhile(lambda attempt: _commit_key(attempt) == key, self._finished))
        for attempt in shared:
            if attempt.result.reported_question is not None and not attempt.question:
                attempt.question = attempt.questions.publish_question(
                    attempt.result.reported_question, is_live=False
                ).digest
        commit = self._committer.commit_outcomes(list(map(_encode_outcome, shared)), epoch=key[0], round_=key[1])
        del self._finished[: len(shared)]
        return Committed(commit=commit, lost=len(shared) - len(commit.outcomes), used=_resource_usage(commit, shared))


def _commit_key(attempt: _FinishedAttempt) -> tuple[int, int]:
    return attempt.assign.epoch, attempt.assign.unit.round


def _encode_outcome(attempt: _FinishedAttempt) -> EncodedOutcome:
    result = attempt.result
    assert result.type is not None, "nothing is committed of what was stopped"
    return attempt_outcome(
        attempt.assign.unit,
        result.type,
        result.reason,
        result.exit_status,
        question=attempt.question,
        report=result.report,
        until_ns=result.until_ns,
        wait_seconds=result.wait_seconds,
        is_final=result.is_final,
        changes=result.changes,
        unrecorded=result.unrecorded,
        outputs=result.outputs,
        inputs=result.inputs,
        notes=result.notes,
    )


def _resource_usage(commit: Commit, finished: list[_FinishedAttempt]) -> tuple[ResourceUsage, ...]:
    """Return for each committed outcome the resources that its attempt used."""
    results = {(attempt.assign.unit.shard, attempt.assign.unit.start): attempt.result for attempt in finished}
    return tuple(
        ResourceUsage(
            seconds=result.seconds, cpu_seconds=result.cpu_seconds, memory_peak_bytes=result.memory_peak_bytes
        )
        for result in (results[outcome.shard, outcome.start] for outcome in commit.outcomes)
    )
