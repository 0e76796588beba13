"""A simulator of engines for the real engine loop and dispatcher, in virtual time, with seeded random choices.

The simulator completes `Future` objects, as executors do. Its clock advances only in `wait`. If nothing happens, `wait`
takes longer and longer, as it may on a busy machine, so that long waits need few turns. An invariant that is violated
raises AssertionError.
"""

from __future__ import annotations

import heapq
import random
from collections import Counter, deque
from collections.abc import Callable, Collection, Iterable, Sequence
from concurrent.futures import BrokenExecutor, Executor, Future
from typing import Any

import msgspec

from codebatch.coordinator.engines.interface import EngineReply, RunPart
from codebatch.coordinator.engines.loop import EngineLoop, EngineOutcome
from codebatch.coordinator.engines.ports import EngineProgress, PartPorts, ReceivedAnswer
from codebatch.errors import CodebatchError, EnvironmentBroken, ToolMismatch
from codebatch.model.capsule import AnswerHeader, Refusal
from codebatch.model.digest import Digest
from codebatch.model.shard import ShardId
from codebatch.scheduling.analysis.part_dispatcher import EnginePart, OpenShard, PartDispatcher
from tests.coordinator.engine_profiles import (
    DAMAGES,
    ENDINGS,
    FAILURES,
    JUMP_SECONDS_MAX,
    TURN_SECONDS,
    Profile,
    error_of,
    random_profile,
    random_shards,
)

PLAN = Digest("a" * 64)
OTHER_PLAN = Digest("b" * 64)
SUBMISSION_SECONDS = 12.0
"""The time for submissions in one turn, with which the loop counts the time of a call too early."""

TURNS_MAX = 20_000
OVERSIZED = b"oversized"

Records = tuple[str, ...]
_ANSWERS = msgspec.msgpack.Decoder(tuple[AnswerHeader, Records])


class SimulatedFuture(Future[bytes]):
    """The future of a call. The loop gives it up by a cancellation, which fails if the call runs."""

    kind = "cancelled"

    def __init__(self, world: EngineWorld, capsule: bytes) -> None:
        super().__init__()
        self.world = world
        self.part_number, self.shards, self.seconds_max = msgspec.msgpack.decode(
            capsule, type=tuple[int, tuple[ShardId, ...], float]
        )
        self.is_cancellation_tried = False
        self._started_at = world.slot_seconds

    @property
    def overtime(self) -> float:
        """The seconds since the time limit for an answer, or a negative number."""
        return self.world.slot_seconds - self._started_at - 2 * self.seconds_max - 60

    @property
    def is_out(self) -> bool:
        """Whether the loop waits for the call."""
        return not self.done() and not (self.is_cancellation_tried and self.overtime > -SUBMISSION_SECONDS)

    def cancel(self) -> bool:
        """Cancel the call if it has not begun."""
        self.is_cancellation_tried = True
        if self.overtime > -SUBMISSION_SECONDS:
            self.world.count_failure("timeout")
        elif not self.world.signal_count:
            self.world.early_cancellations.append(self.world.turns)
        return super().cancel()


class EngineWorld(Executor):
    """An engine, its clock, and the ports of the loop. The shards and the behaviour follow from the seed."""

    name = "simulated engine"
    cores_per_slot = 1

    def __init__(self, seed: int, profile: Profile | None = None, shards: Sequence[OpenShard] | None = None) -> None:
        self.chance = random.Random(seed)
        self.profile = profile or random_profile(self.chance)
        self.shards = random_shards(self.chance) if shards is None else shards
        self.time = self.slot_seconds = 0.0
        self.slot_count = self._slots_seen = self.profile.slots
        self.is_up = True
        self.dead_since: float | None = None
        self.held = {shard.id for shard in self.shards if self.chance.random() < self.profile.held_rate}
        self.committed: dict[str, str] = {}
        self.commits: list[list[int]] = []
        self.owed: set[str] = set()
        self.violations: list[str] = []
        self.notes: list[str] = []
        self.progress: list[EngineProgress] = []
        self.early_cancellations: list[int] = []
        self._open: list[SimulatedFuture] = []
        self.endings = self.checks = self.turns = self.jumps = 0
        self.loss_turns = self.damages = 0
        self.tries: Counter[int] = Counter()
        self.was_without_slots = self._is_checked = self._is_woken = self.has_committed = False
        self.failures: Counter[bool] = Counter()
        self.turn_failures: Counter[bool] = Counter()
        self._queue: deque[SimulatedFuture] = deque()
        self._running: set[SimulatedFuture] = set()
        self._answers: list[bytes] = []
        self._kinds = deque(self.profile.kinds)
        self._events: list[tuple[float, int, Callable[[], None]]] = []
        self._event_count = 0
        for at, slots in self.profile.slot_changes:
            self.schedule(at, lambda slots=slots: self._set_slots(slots))  # type: ignore[misc]
        for at, lives in self.profile.life_changes:
            self.schedule(at, lambda lives=lives: self._set_life(lives))  # type: ignore[misc]
        for at in self.profile.signals:
            self.schedule(at, lambda: None)
        self._pass_time(0.0)

    # Engine

    @property
    def executor(self) -> Executor:
        """The executor of the engine."""
        return self

    def slots(self) -> int:
        """Return the number of slots."""
        self.was_without_slots |= self.slot_count == 0
        self._slots_seen = self.slot_count
        return self.slot_count

    def is_alive(self) -> bool:
        """Return whether the engine is alive."""
        self._is_checked = True
        self.checks += 1
        return self.is_up

    def call_everywhere(self, function: RunPart, argument: bytes, seconds: float) -> list[EngineReply]:
        """Return no replies."""
        return []

    def close(self) -> None:
        """Do nothing."""

    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Queue a call, unless the submission fails. Violations are raised later, because the loop handles errors."""
        for is_right, violation in (
            (self._is_checked, "submitted without is_alive"),
            (self.is_up, "submitted to a dead engine"),
            (not self.signal_count, "submitted after a signal"),
            (not self.endings, "submitted after an error that ends the run"),
            (len(self._open_calls()) < self._slots_seen + 2, "too many parts are out"),
        ):
            self.violations += [] if is_right else [violation]
        self._is_checked = False
        (capsule,) = args
        future = SimulatedFuture(self, capsule)
        self.tries[future.part_number] += 1
        if self.chance.random() < self.profile.refused_submit_rate:
            self.count_failure("broken pool")
            raise BrokenExecutor("the pool is broken")
        self._open.append(future)
        self._queue.append(future)
        self._start_calls()
        if self.chance.random() < 0.3:
            self._pass_time(self.chance.random())
        return future

    # Clock

    def now(self) -> float:
        """Return the virtual time."""
        return self.time

    def wait(self, futures: Collection[Future[bytes]], seconds: float) -> Iterable[Future[bytes]]:
        """Advance the time to the next event, or by `seconds`. If nothing happens, the time advances further."""
        assert seconds <= TURN_SECONDS, "the wait is too long"
        self.turns += 1
        assert self.turns < TURNS_MAX, "the loop does not end"
        assert all(call.overtime <= JUMP_SECONDS_MAX + 1 for call in self._open_calls()), "not given up"
        if self.has_committed:
            self.failures, self.has_committed = self.turn_failures, False
        self.turn_failures = Counter()
        assert self.signal_count or self.loss_turns < 6, "too many losses in a row"
        assert self.signal_count or self.damages < 3, "too many damaged answers in a row"
        self.jumps += 1
        jump = (
            seconds if self.signal_count else min(self.profile.jump_seconds_max, seconds * 1.5 ** min(self.jumps, 20))
        )
        end = self.time + jump
        while self._events and self._events[0][0] <= (self.time if self._must_return(futures) else end):
            at, _, action = heapq.heappop(self._events)
            self._advance(max(at, self.time))
            action()
            self.jumps = 0
            self._is_woken |= not isinstance(action, Completion)
        if not self._must_return(futures):
            self._advance(end)
        self._is_woken = False
        done = [future for future in futures if future.done()]
        self.chance.shuffle(done)
        kinds = {self._note_result(future) for future in done}
        self.loss_turns += bool(kinds & {*FAILURES})
        return done

    def _pass_time(self, seconds: float) -> None:
        """Advance the time while the loop is busy."""
        end = self.time + seconds
        while self._events and self._events[0][0] <= end:
            at, _, action = heapq.heappop(self._events)
            self._advance(max(at, self.time))
            action()
        self._advance(end)
        self._is_checked = False

    def _must_return(self, futures: Collection[Future[bytes]]) -> bool:
        """Return whether a future is done, or the state of the engine changed."""
        return self._is_woken or any(future.done() for future in futures)

    def _note_result(self, future: Future[bytes]) -> str:
        """Remember what the loop owes after it received a result. Return the kind of the result."""
        assert isinstance(future, SimulatedFuture)
        if future.kind in ENDINGS:
            self.endings += 1
        elif future.kind == "valid":
            self.owed |= set(future.shards)
        else:
            self.count_failure(future.kind)
            self.damages += future.kind in DAMAGES and future.kind != "repeated"
        return future.kind

    def count_failure(self, kind: str) -> None:
        """Count a failure that may be the reason for which the engine counts as broken."""
        self.turn_failures[kind in DAMAGES] += 1
        self.failures[kind in DAMAGES] += 1

    def _advance(self, to: float) -> None:
        if self.is_up and self.slot_count:
            self.slot_seconds += to - self.time
        self.time = to

    # Ports

    def take_leases(self, part: EnginePart) -> Collection[ShardId]:
        """Return the shards that another process holds."""
        return self.held & set(part.shards)

    def make_capsule(self, part: EnginePart) -> bytes:
        """Return the capsule of a part."""
        assert part.shards, "a part without shards"
        assert not self.held & set(part.shards), "a shard of another process"
        if self.chance.random() < 0.1:
            self._pass_time(self.chance.random())
        assert part.try_number == self.tries[part.number] + 1 <= 2, "tried too often"
        return msgspec.msgpack.encode((part.number, part.shards, part.seconds_max))

    def read_answer(self, answer: bytes) -> tuple[AnswerHeader, Records]:
        """Return the parts of an answer. Raises ValueError if it is damaged."""
        if answer == OVERSIZED:
            raise ValueError("an answer of 65 MB")
        try:
            return _ANSWERS.decode(answer)
        except msgspec.DecodeError as error:
            raise ValueError(str(error)) from error

    def commit(self, answers: Sequence[ReceivedAnswer[Records]]) -> int:
        """Commit answers. Each must be complete, and no shard may be committed twice."""
        assert answers, "a commit of nothing"
        for answer in answers:
            assert answer.header.plan_digest == PLAN, "results of another plan"
            assert answer.header.refusal is None, "a refusal was committed"
            assert sorted(answer.part.shards) == sorted(answer.header.shards), "results of another part"
            assert sorted(answer.records) == sorted(answer.header.shards), "incomplete results"
            for shard in answer.header.shards:
                assert shard not in self.committed, "committed twice"
                self.committed[shard] = answer.header.host
        self.commits.append([answer.part.number for answer in answers])
        self.loss_turns = self.damages = 0
        self.has_committed = True
        return sum(len(answer.records) for answer in answers)

    @property
    def signal_count(self) -> int:
        """The number of stop signals until now."""
        return sum(at <= self.time for at in self.profile.signals)

    def count_signals(self) -> int:
        """Return the number of stop signals."""
        return self.signal_count

    def note(self, text: str) -> None:
        """Remember a note."""
        self.notes.append(text)

    def update_engine(self, progress: EngineProgress) -> None:
        """Check the progress."""
        assert progress.parts == len(self._open_calls()), "a wrong number of parts"
        assert progress.shards_done == len(self.committed), "a wrong number of shards"
        self.progress.append(progress)

    # Behaviour

    def schedule(self, at: float, action: Callable[[], None]) -> None:
        """Schedule an event."""
        self._event_count += 1
        heapq.heappush(self._events, (at, self._event_count, action))

    def _set_slots(self, slots: int) -> None:
        self.slot_count = slots
        self._start_calls()

    def _set_life(self, lives: bool) -> None:
        self.is_up = lives
        self.dead_since = None if lives else self.dead_since if self.dead_since is not None else self.time
        if not lives and self.chance.random() < 0.5:
            for call in [*self._queue, *self._running]:
                self._end_call(call, "cancelled")
        self._start_calls()

    def _start_calls(self) -> None:
        while self.is_up and self._queue and len(self._running) < self.slot_count:
            if not self.profile.starts_in_order:
                self._queue.rotate(-self.chance.randrange(len(self._queue)))
            call = self._queue.popleft()
            if call.done() or (not self.profile.is_opaque and not call.set_running_or_notify_cancel()):
                continue
            self._running.add(call)
            kind = self._choose_kind()
            seconds = self.profile.duration_max * self.chance.choice([0.0, 0.01, 0.1, self.chance.random()])
            if kind == "never":
                continue
            if kind == "late":
                seconds += 2 * call.seconds_max + 65
            self.schedule(self.time + seconds, Completion(self, call, kind))

    def _choose_kind(self) -> str:
        if self._kinds:
            return self._kinds.popleft()
        roll, profile = self.chance.random(), self.profile
        for rate, kinds in (
            (profile.ending_rate, ENDINGS),
            (profile.failure_rate, FAILURES),
            (profile.damage_rate, DAMAGES),
        ):
            if roll < rate:
                return self.chance.choice(kinds)
            roll = self.chance.random()
        return "valid"

    def complete(self, call: SimulatedFuture, kind: str) -> None:
        """End a call that runs."""
        if kind == "broken pool":
            for other in [*self._queue, *self._running]:
                self._end_call(other, kind)
        else:
            self._end_call(call, kind)
        self._start_calls()

    def _end_call(self, call: SimulatedFuture, kind: str) -> None:
        self._running.discard(call)
        if call in self._queue:
            self._queue.remove(call)
        if call.done():
            return
        call.kind = kind
        error = error_of(kind)
        if error is not None:
            call.set_exception(error)
            return
        answer = self._answer_of(call, kind)
        self._answers.append(answer)
        call.set_result(answer)

    def _answer_of(self, call: SimulatedFuture, kind: str) -> bytes:
        shards = call.shards
        if kind == "repeated" and self._answers:
            return self._answers[-1]
        match kind:
            case "garbage" | "repeated":
                return self.chance.randbytes(50)
            case "oversized":
                return OVERSIZED
            case "no bytes":
                return None  # type: ignore[return-value]
            case "other part":
                shards = (ShardId("ffffffff"),)
            case "fewer shards":
                shards = shards[1:]
            case _:
                pass
        refusal = None
        if kind in ENDINGS:
            code = "tool_mismatch" if kind == "refusal" else "environment_broken"
            refusal = Refusal(code=code, message="another version", hint="install the same version")
        header = AnswerHeader(
            plan_digest=OTHER_PLAN if kind == "other plan" else PLAN,
            shards=() if refusal else shards,
            host=self.chance.choice(["north", "south"]),
            codebatch="1",
            python="3.12",
            seconds=1.0,
            cpu_seconds=2.0,
            refusal=refusal,
        )
        return msgspec.msgpack.encode((header, shards))

    # Checks

    def _open_calls(self) -> list[SimulatedFuture]:
        """Return the calls for which the loop waits."""
        self._open = [call for call in self._open if call.is_out]
        return self._open

    def check_end(self, outcome: EngineOutcome, error: CodebatchError | None) -> None:
        """Check the outcome of a loop that ended, and its error."""
        assert self.violations == []
        assert self.owed <= self.committed.keys(), "a received answer was not committed"
        assert all(call.is_cancellation_tried for call in self._open_calls()), "a call was not cancelled"
        assert set(self.early_cancellations) <= {self.turns}, "given up too early"
        self._check_outcome(outcome)
        assert sum("no free process" in note for note in self.notes) == self.was_without_slots, "notes about slots"
        if isinstance(error, ToolMismatch):
            assert self.endings, "a mismatch without reason"
            assert "north" in error.message or "south" in error.message or self.name in error.message
        elif error is not None:
            assert isinstance(error, EnvironmentBroken)
            is_dead = self.dead_since is not None and self.time - self.dead_since >= 30
            assert is_dead or self.failures[True] >= 3 or self.failures[False] >= 6 or self.endings, (
                "broken without reason"
            )
        else:
            assert not self.endings, "an error that ends the run was ignored"
            assert outcome.is_stopped == bool(self.signal_count), "a wrong is_stopped"
        if self.signal_count:
            limits = [self.profile.signals[0] + 10, *self.profile.signals[1 : self.signal_count]]
            assert self.time <= min(limits) + 2 * TURN_SECONDS + 1, "stopped too late"
        if self.dead_since is not None:
            assert self.time - self.dead_since <= 30 + 2 * JUMP_SECONDS_MAX, "waited for a dead engine"

    def _check_outcome(self, outcome: EngineOutcome) -> None:
        left, done = set(outcome.left_shards), self.committed.keys()
        assert not left & done, "committed and left"
        assert outcome.answers == sum(map(len, self.commits))
        assert outcome.results == len(done)
        assert sum(host.answers for host in outcome.hosts.values()) == outcome.answers
        assert sum(host.seconds for host in outcome.hosts.values()) == outcome.answers
        assert sum(host.cpu_seconds for host in outcome.hosts.values()) == 2 * outcome.answers
        assert set(outcome.hosts) == set(self.committed.values())


def run_world(
    world: EngineWorld,
    make_loop: type[EngineLoop[Any]] = EngineLoop,
    make_dispatcher: type[PartDispatcher] = PartDispatcher,
) -> tuple[EngineOutcome, CodebatchError | None]:
    """Run a loop in a world, and check all invariants. Return its outcome and the error that it raised, or None."""
    ports = PartPorts(
        take_leases=world.take_leases,
        make_capsule=world.make_capsule,
        read_answer=world.read_answer,
        commit=world.commit,
    )
    loop: EngineLoop[Records] = make_loop(
        world,
        make_dispatcher(world.shards),
        ports,
        run_part=bytes,
        plan_digest=PLAN,
        watcher=world,
        count_signals=world.count_signals,
        clock=world,
    )
    error: CodebatchError | None = None
    try:
        loop.run()
    except (ToolMismatch, EnvironmentBroken) as raised:
        error = raised
    world.check_end(loop.outcome, error)
    if error is None and not world.signal_count:
        shards = {*loop.outcome.left_shards, *world.committed}
        assert shards == {shard.id for shard in world.shards}, "a shard was forgotten"
    return loop.outcome, error


class Completion:
    """The end of a call, as an event."""

    def __init__(self, world: EngineWorld, call: SimulatedFuture, kind: str) -> None:
        self._world, self._call, self._kind = world, call, kind

    def __call__(self) -> None:
        self._world.complete(self._call, self._kind)
