"""Reports about finished attempts: the commit of the outcome, the journal, and the messages to the coordinator."""

from __future__ import annotations

import contextlib
from collections.abc import Callable

from codebatch.errors import StoreUnwritable
from codebatch.model.digest import Digest
from codebatch.model.outcome import Used
from codebatch.protocol.messages import Assign, Committed, Delayed, Finished
from codebatch.store.batches.journal import Journal
from codebatch.store.results.outcomes import Committer, attempt_outcome
from codebatch_workers.commands.attempt import AttemptResult
from codebatch_workers.commands.attempt_questions import AttemptQuestions
from codebatch_workers.commands.coordinator_listener import CoordinatorListener
from codebatch_workers.runtime.channel import Channel, CoordinatorGone

COMMIT_SECONDS = 60.0
_COMMIT_EVERY_SECONDS = 1.0


class AttemptReporter:
    """The reporter of the attempts of one worker."""

    def __init__(
        self,
        channel: Channel,
        listener: CoordinatorListener,
        committer: Committer,
        journal: Journal,
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

    def report(self, assign: Assign, result: AttemptResult, questions: AttemptQuestions) -> None:
        """Commit an attempt and report it, and that this worker is idle.

        Raises CoordinatorGone, and StoreUnwritable as `_commit_with_retries`.
        """
        committed = self._commit_with_retries(assign, result, questions)
        self.flush_journal()
        self._channel.send(committed, Finished(seconds=result.seconds))

    def _commit_with_retries(self, assign: Assign, result: AttemptResult, questions: AttemptQuestions) -> Committed:
        """Commit an attempt. Its question is published first.

        A failed commit is retried, because the result of a command cannot be obtained again. Raises StoreUnwritable
        after COMMIT_SECONDS, or when the coordinator requests the end.
        """
        deadline_ns = self._now_ns() + round(COMMIT_SECONDS * 1e9)
        question = Digest("")
        is_delayed = False
        while True:
            try:
                if result.asked is not None and not question:
                    question = questions.ask(result.asked, is_live=False).digest
                return self._commit(assign, result, question)
            except StoreUnwritable as error:
                if not is_delayed:
                    is_delayed = True
                    self._report_delay(error)
                request = self._listener.poll(self._now_ns())
                if self._now_ns() > deadline_ns or (request is not None and request.why == "stopped"):
                    raise
            self._sleep(_COMMIT_EVERY_SECONDS)

    def flush_journal(self) -> None:
        """Write the journal. Committed outcomes are reported even if the journal cannot be written."""
        with contextlib.suppress(StoreUnwritable):
            self._journal.flush()

    def _report_delay(self, error: StoreUnwritable) -> None:
        """Report that the disk refuses a commit, so that a user can free space."""
        with contextlib.suppress(CoordinatorGone):
            self._channel.send(Delayed(message=error.message, seconds=COMMIT_SECONDS))

    def _commit(self, assign: Assign, result: AttemptResult, question: Digest) -> Committed:
        """Commit an outcome. On return it is durable. Raises StoreUnwritable."""
        assert result.type is not None, "nothing is committed for a stopped attempt"
        outcome = attempt_outcome(
            assign.unit,
            result.type,
            result.reason,
            result.exit_status,
            question=question,
            said=result.said,
            until_ns=result.until_ns,
            is_final=result.is_final,
        )
        commit = self._committer.commit([outcome], epoch=assign.epoch, round_=assign.unit.round)
        used = Used(seconds=result.seconds, cpu_seconds=result.cpu_seconds, memory_peak_bytes=result.memory_peak_bytes)
        return Committed(commit=commit, lost=1 - len(commit.outcomes), used=(used,) * len(commit.outcomes))
