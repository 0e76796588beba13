"""A run: the commands that a worker was given at once, and what it has to tell of them.

One behind the other is begun without a word of the coordinator's. How they ended is made durable together, in one
commit, and told in one message: once nothing is left to begin, or something else than success came of one, or so much
time has passed; what is not begun by then is returned. So a command that takes long keeps nobody waiting, and what had
ended before it is known while it runs.
"""

from __future__ import annotations

import contextlib
from collections import deque
from collections.abc import Callable
from itertools import takewhile
from typing import Literal

from codebatch.errors import StoreUnwritable
from codebatch.model.digest import Digest
from codebatch.model.outcome import Commit, Used
from codebatch.protocol.messages import Assign, Committed, Delayed, Finished, FromWorker, Refused, Returned
from codebatch.store.batches.journal import Journal, JournalEvent
from codebatch.store.results.outcomes import Committer, EncodedOutcome, attempt_outcome
from codebatch_workers.commands.attempt import AttemptResult
from codebatch_workers.commands.coordinator_listener import CoordinatorListener
from codebatch_workers.commands.live_questions import LiveQuestions
from codebatch_workers.runtime.channel import Channel, CoordinatorGone

RUN_SECONDS = 0.1
COMMIT_SECONDS = 60.0
_COMMIT_EVERY_SECONDS = 1.0


class _Ended:
    __slots__ = ("assign", "question", "questions", "result")

    def __init__(self, assign: Assign, result: AttemptResult, questions: LiveQuestions) -> None:
        self.assign = assign
        self.result = result
        self.questions = questions
        self.question = Digest("")


class PrefetchedRun:
    """The runs of one worker, one after the other."""

    def __init__(
        self,
        channel: Channel,
        ears: CoordinatorListener,
        committer: Committer,
        journal: Journal,
        *,
        now_ns: Callable[[], int],
        sleep: Callable[[float], None],
    ) -> None:
        """`now_ns` is a clock that stops in suspend."""
        self._channel = channel
        self._ears = ears
        self._committer = committer
        self._journal = journal
        self._now_ns = now_ns
        self._sleep = sleep
        self._rest: deque[Assign] = deque()
        self._ended: list[_Ended] = []
        self._due_ns: int | None = None
        self._is_begun = self._is_told = self._is_delayed = False
        self._seconds = 0.0

    def begin(self, assign: Assign) -> None:
        """Something was assigned."""
        self._rest = deque((assign, *assign.then))
        self._due_ns = self._now_ns() + round(RUN_SECONDS * 1e9)
        self._is_begun = self._is_told = self._is_delayed = False
        self._seconds = 0.0

    def next(self) -> Assign | None:
        """What is to be begun now; None where the run is over."""
        if not self._rest or (self._is_begun and not self._goes_on()):
            return None
        self._is_begun = True
        return self._rest.popleft()

    def _goes_on(self) -> bool:
        return not (self._is_told or self._ears.is_recalled or self._ears.is_alone) and bool(self.seconds_left())

    def seconds_left(self) -> float | None:
        """In how many seconds it is to be told of what runs; None where it was."""
        return None if self._due_ns is None else max(0.0, (self._due_ns - self._now_ns()) / 1e9)

    def note(self, event: JournalEvent) -> None:
        """Have something in the journal, once it is told of the rest."""
        self._journal.add(event)

    def add(self, assign: Assign, result: AttemptResult, questions: LiveQuestions) -> None:
        """An attempt is over, and this is to be committed of it."""
        self._ended.append(_Ended(assign, result, questions))
        self._seconds += result.seconds

    def look(self, now_ns: int) -> None:
        """A command runs: where it takes long, say so, and what had ended before; later what the disk refuses."""
        if self._due_ns is None or now_ns < self._due_ns:
            return
        self._due_ns = None
        messages: list[FromWorker] = [self._return()] if self._rest or not self._is_told else []
        try:
            while self._ended:
                messages.insert(-1, self._commit())
        except StoreUnwritable as error:
            self._due_ns = now_ns + round(_COMMIT_EVERY_SECONDS * 1e9)
            self._tell_delay(error)
        self._flush_journal()
        with contextlib.suppress(CoordinatorGone):  # What runs is not to suffer where nobody is left to hear it.
            self._channel.send(*messages)

    def end(self, then: Refused | Literal["is idle", "ends"]) -> None:
        """Nothing runs: make durable how all ended, and tell of it, and what this worker does then.

        While the disk refuses it, it is tried again: how a command ended nobody can ask twice. Raises StoreUnwritable
        after COMMIT_SECONDS, or once the coordinator wants an end; CoordinatorGone.
        """
        self._due_ns = None
        messages: list[FromWorker] = []
        deadline_ns = self._now_ns() + round(COMMIT_SECONDS * 1e9)
        while self._ended:
            try:
                messages.append(self._commit())
                continue
            except StoreUnwritable as error:
                self._tell_delay(error)
                wish = self._ears.hear(self._now_ns())
                if self._now_ns() > deadline_ns or (wish is not None and wish.why == "stopped"):
                    raise
            self._sleep(_COMMIT_EVERY_SECONDS)
        self._flush_journal()
        if self._rest:
            messages.append(self._return())
        if then != "ends":
            messages.append(Finished(seconds=self._seconds) if then == "is idle" else then)
        if messages:
            self._channel.send(*messages)

    def _tell_delay(self, error: StoreUnwritable) -> None:
        """Once of a run: whoever waits may be the one who can free some space."""
        if not self._is_delayed:
            self._is_delayed = True
            with contextlib.suppress(CoordinatorGone):
                self._channel.send(Delayed(message=error.message, seconds=COMMIT_SECONDS))

    def _return(self) -> Returned:
        self._is_told = True
        returned = Returned(count=len(self._rest))
        self._rest.clear()
        return returned

    def _flush_journal(self) -> None:
        with contextlib.suppress(StoreUnwritable):  # What is committed is told of, be it not in the journal.
            self._journal.flush()

    def _commit(self) -> Committed:
        """Make durable how the first of what ended did, and those with it that may share its commit; before that what
        they ask. Raises StoreUnwritable.
        """
        key = _key(self._ended[0])
        together = list(takewhile(lambda one: _key(one) == key, self._ended))
        for one in together:
            if one.result.asked is not None and not one.question:
                one.question = one.questions.ask(one.result.asked, is_live=False).digest
        commit = self._committer.commit(list(map(_encoded, together)), epoch=key[0], round_=key[1])
        del self._ended[: len(together)]
        return Committed(commit=commit, lost=len(together) - len(commit.outcomes), used=_used(commit, together))


def _key(one: _Ended) -> tuple[int, int]:
    return one.assign.epoch, one.assign.unit.round


def _encoded(one: _Ended) -> EncodedOutcome:
    result = one.result
    assert result.type is not None, "nothing is committed of what was stopped"
    return attempt_outcome(
        one.assign.unit,
        result.type,
        result.reason,
        result.exit_status,
        question=one.question,
        said=result.said,
        until_ns=result.until_ns,
        is_final=result.is_final,
    )


def _used(commit: Commit, ended: list[_Ended]) -> tuple[Used, ...]:
    """What the attempt of each outcome used."""
    results = {(one.assign.unit.shard, one.assign.unit.start): one.result for one in ended}
    return tuple(
        Used(seconds=result.seconds, cpu_seconds=result.cpu_seconds, memory_peak_bytes=result.memory_peak_bytes)
        for result in (results[each.shard, each.start] for each in commit.outcomes)
    )
