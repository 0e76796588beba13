"""The loop that executes parts of a batch by an engine. It owns no process and no file.

Rules (SPEC.md "Engines"), in addition to those of the dispatcher:

1. A turn submits the parts that the dispatcher hands out, waits a moment for answers, and commits all that arrived.
   Answers are committed before any error is raised.
2. A call that is submitted to a dead engine may never end. So the engine is checked before each submission, and each
   second. If it stays dead, the run ends. If it has no free process, the loop waits without a limit.
3. A part that is not answered in time is given up and counts as lost. Time without slots does not count. Once a part is
   given up, its future is forgotten: a late answer is ignored, because another try may have been committed.
4. At the first stop signal nothing more is submitted. Calls that have not begun are cancelled, and the others get a few
   seconds. A second signal ends the loop at once.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Generic

import msgspec

from codebatch.coordinator.engines.foreign_objects import describe_error
from codebatch.coordinator.engines.interface import Engine, RunPart
from codebatch.coordinator.engines.part_results import (
    PartDamage,
    PartLoss,
    PartRefusal,
    classify_result,
)
from codebatch.coordinator.engines.ports import (
    EngineClock,
    EngineProgress,
    EngineWatcher,
    PartPorts,
    ReceivedAnswer,
    Records,
)
from codebatch.errors import CodebatchError, EnvironmentBroken
from codebatch.model.digest import Digest
from codebatch.model.shard import ShardId
from codebatch.model.text.quantities import count_text
from codebatch.scheduling.analysis.part_dispatcher import EnginePart, PartDispatcher

TURN_SECONDS_MAX = 0.2
CHECK_SECONDS = 1.0
"""The time after which the loop checks again whether the engine is alive, and reads the number of its slots."""

DEAD_SECONDS_MAX = 30.0
STOP_SECONDS_MAX = 10.0

ANSWER_TIME_FACTOR = 2
ANSWER_TIME_EXTRA = 60.0
"""A part is given up after its own time limit, multiplied by the factor, and these seconds.

A part may wait at the engine for another part, so it needs more time than its own limit.
"""

_HINT = "results that arrived are kept; to continue, run the same command without --on"


class HostUsage(msgspec.Struct, kw_only=True):
    """The answers of a machine, with the wall time and the CPU time of their parts."""

    answers: int = 0
    seconds: float = 0.0
    cpu_seconds: float = 0.0


class EngineOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """The outcome of an engine loop.

    `left_shards` are those that this machine must execute, in plan order. `hosts` has the machines, sorted by name.
    """

    answers: int
    results: int
    left_shards: tuple[ShardId, ...]
    hosts: dict[str, HostUsage]
    is_stopped: bool


@dataclass(slots=True)
class SubmittedPart:
    """A part that the engine has, and the seconds during which the engine had slots."""

    part: EnginePart
    seconds: float = 0.0

    @property
    def is_late(self) -> bool:
        """Whether the time for an answer is over."""
        return self.seconds > self.part.seconds_max * ANSWER_TIME_FACTOR + ANSWER_TIME_EXTRA


class EngineLoop(Generic[Records]):
    """The execution of the parts of a batch by an engine."""

    def __init__(
        self,
        engine: Engine,
        dispatcher: PartDispatcher,
        ports: PartPorts[Records],
        *,
        run_part: RunPart,
        plan_digest: Digest,
        watcher: EngineWatcher,
        count_signals: Callable[[], int],
        clock: EngineClock,
    ) -> None:
        """Submit nothing yet. `count_signals` returns the number of stop signals that this process received."""
        self._engine = engine
        self._dispatcher = dispatcher
        self._ports = ports
        self._run_part = run_part
        self._plan_digest = plan_digest
        self._watcher = watcher
        self._count_signals = count_signals
        self._clock = clock
        self._submitted: dict[Future[bytes], SubmittedPart] = {}
        self._turn_began = clock.now()
        self._slots_read = -math.inf
        self._dead_since = math.inf
        self._error: CodebatchError | None = None
        self._stop_deadline: float | None = None
        self._has_noted_wait = False
        self._slots = self._answers = self._results = self._shards_done = 0
        self._seconds_done = 0.0
        self._hosts: dict[str, HostUsage] = {}

    @property
    def outcome(self) -> EngineOutcome:
        """The outcome until now. It is also valid after `run` raised an error."""
        return EngineOutcome(
            answers=self._answers,
            results=self._results,
            left_shards=self._dispatcher.left_shards,
            hosts=dict(sorted(self._hosts.items())),
            is_stopped=self._stop_deadline is not None,
        )

    def run(self) -> EngineOutcome:
        """Execute all shards of the dispatcher, except those that are left to this machine, or until a stop signal.

        Raises EnvironmentBroken if the engine stays dead or returns no results, and the error of a machine that cannot
        execute a part. Received results are committed in any case.
        """
        try:
            while not self._has_ended():
                self._run_turn()
        finally:
            for future in self._submitted:
                future.cancel()
        return self.outcome

    def _has_ended(self) -> bool:
        signals = self._count_signals()
        if signals and self._stop_deadline is None:
            self._begin_stop()
        if self._stop_deadline is None:
            return self._dispatcher.is_done
        return signals > 1 or not self._submitted or self._clock.now() >= self._stop_deadline

    def _begin_stop(self) -> None:
        """Cancel the calls that have not begun.

        Some executors can cancel all calls at any time, and do not know which have begun. At most one call per slot has
        begun, the oldest first, so these are not cancelled.
        """
        self._stop_deadline = self._clock.now() + STOP_SECONDS_MAX
        for future in [*self._submitted][self._slots :]:
            if future.cancel():
                del self._submitted[future]

    def _run_turn(self) -> None:
        self._update_slots()
        self._submit_parts()
        self._handle_results(self._clock.wait(self._submitted, TURN_SECONDS_MAX))
        self._give_up_late_parts()
        self._watcher.update_engine(
            EngineProgress(
                slots=self._slots,
                parts=len(self._submitted),
                shards_done=self._shards_done,
                shards_planned=self._dispatcher.shard_count,
                seconds_done=self._seconds_done,
                seconds_planned=self._dispatcher.total_seconds,
            )
        )
        self._raise_error()

    def _update_slots(self) -> None:
        """Count the time since the last turn for all parts if there were slots. Check the engine if a check is due."""
        now = self._clock.now()
        if self._slots:
            for submitted in self._submitted.values():
                submitted.seconds += now - self._turn_began
        self._turn_began = now
        if now - self._slots_read < CHECK_SECONDS:
            return
        self._slots_read = now
        is_alive = self._is_alive()
        self._slots = self._engine.slots() if is_alive else 0
        if is_alive and not self._slots and not self._has_noted_wait:
            self._has_noted_wait = True
            self._watcher.note(f"{self._engine.name} has no free process; waiting")

    def _is_alive(self) -> bool:
        """Return whether the engine can be reached, and remember since when it cannot."""
        is_alive = self._engine.is_alive()
        self._dead_since = math.inf if is_alive else min(self._dead_since, self._clock.now())
        return is_alive

    def _submit_parts(self) -> None:
        while not self._count_signals():
            part = self._dispatcher.next_part(self._slots)
            if part is None:
                return
            part = self._dispatcher.withdraw_shards(part.number, self._ports.take_leases(part))
            if part is None:
                continue
            capsule = self._ports.make_capsule(part)
            if self._count_signals() or not self._is_alive():
                self._dispatcher.postpone_part(part.number)
                return
            try:
                future = self._engine.executor.submit(self._run_part, capsule)
            except Exception as error:  # The executor is provided by an engine, and may raise anything.
                self._record_losses([(part, describe_error(error))])
                return
            self._submitted[future] = SubmittedPart(part)

    def _handle_results(self, done: Iterable[Future[bytes]]) -> None:
        """Commit the answers that arrived, and record failures and the error that ends the run."""
        answers: list[ReceivedAnswer[Records]] = []
        losses: list[tuple[EnginePart, str]] = []
        for future in sorted(done, key=lambda future: self._submitted[future].part.number):
            part = self._submitted.pop(future).part
            result = classify_result(
                future,
                part,
                engine=self._engine.name,
                plan_digest=self._plan_digest,
                read_answer=self._ports.read_answer,
            )
            match result:
                case ReceivedAnswer():
                    answers.append(result)
                    self._dispatcher.finish_part(part.number)
                case PartDamage(reason):
                    self._dispatcher.record_damage(part.number, reason)
                    self._note_failure(part, f"had a damaged answer: {reason}")
                case PartLoss(reason):
                    losses.append((part, reason))
                case PartRefusal(error):
                    self._error = self._error or error
        self._record_losses(losses)
        if answers:
            self._commit(answers)

    def _commit(self, answers: Sequence[ReceivedAnswer[Records]]) -> None:
        self._results += self._ports.commit(answers)
        self._answers += len(answers)
        for answer in answers:
            self._shards_done += len(answer.part.shards)
            self._seconds_done += answer.part.seconds
            usage = self._hosts.setdefault(answer.header.host, HostUsage())
            usage.answers += 1
            usage.seconds += answer.header.seconds
            usage.cpu_seconds += answer.header.cpu_seconds

    def _give_up_late_parts(self) -> None:
        late = [future for future, submitted in self._submitted.items() if submitted.is_late]
        for future in late:
            future.cancel()
        self._record_losses([(self._submitted.pop(future).part, "not answered in time") for future in late])

    def _record_losses(self, losses: Sequence[tuple[EnginePart, str]]) -> None:
        """Record parts that were lost at the same time, each with a reason."""
        if losses:
            self._dispatcher.record_losses([part.number for part, _ in losses], losses[-1][1])
        for part, reason in losses:
            self._note_failure(part, f"was lost: {reason}")

    def _note_failure(self, part: EnginePart, failure: str) -> None:
        if self._stop_deadline is not None:
            return
        then = "this machine executes it" if part.is_last_try else "trying again"
        self._watcher.note(f"a part with {count_text(len(part.shards), 'shard')} {failure}; {then}")

    def _raise_error(self) -> None:
        if self._error is not None:
            raise self._error
        if self._stop_deadline is not None:
            return
        if self._clock.now() - self._dead_since >= DEAD_SECONDS_MAX and not self._is_alive():
            raise EnvironmentBroken(
                f"{self._engine.name} has not been reachable for {DEAD_SECONDS_MAX:.0f} seconds", hint=_HINT
            )
        if self._dispatcher.broken_reason:
            raise EnvironmentBroken(f"{self._engine.name} fails: {self._dispatcher.broken_reason}", hint=_HINT)
