"""The loop around an engine: rules by example, thousands of simulated engines, and planted bugs that they detect."""

from __future__ import annotations

import itertools
import sys
from collections import Counter
from collections.abc import Callable
from concurrent.futures import CancelledError, Executor, Future, ThreadPoolExecutor
from pathlib import Path
from types import ModuleType
from typing import Any

import msgspec
import pytest

from codebatch.coordinator.engines import loop as loop_module
from codebatch.coordinator.engines import part_results
from codebatch.coordinator.engines.loop import EngineLoop, EngineOutcome
from codebatch.coordinator.engines.part_results import PartDamage, PartLoss, PartRefusal, classify_result
from codebatch.coordinator.engines.ports import EngineProgress, PartPorts, ReceivedAnswer, SystemEngineClock
from codebatch.errors import CodebatchError, EnvironmentBroken, ToolMismatch
from codebatch.model.capsule import AnswerHeader, Refusal
from codebatch.model.shard import ShardId
from codebatch.scheduling.analysis import part_dispatcher
from codebatch.scheduling.analysis.part_dispatcher import EnginePart, OpenShard, PartDispatcher
from codebatch.system.clock import running_ns
from tests.coordinator.engine_profiles import FOREVER, TURN_SECONDS, KilledWorkerError, Profile
from tests.coordinator.engine_simulation import (
    OTHER_PLAN,
    PLAN,
    Completion,
    EngineWorld,
    SimulatedFuture,
    run_world,
)

SEEDS = 2000
GROUPS = 8


def shards(*seconds: float) -> list[OpenShard]:
    """Return shards with these estimates."""
    return [OpenShard(id=ShardId(f"{number:08x}"), seconds=cost, bytes=0) for number, cost in enumerate(seconds)]


def run(*seconds: float, **profile: object) -> tuple[EngineWorld, EngineOutcome, CodebatchError | None]:
    """Run shards with these estimates on an engine that behaves as described, without jumps of the time."""
    behaviour = msgspec.convert({"jump_seconds_max": TURN_SECONDS, **profile}, Profile)
    world = EngineWorld(1, behaviour, shards(*seconds))
    return world, *run_world(world)


@pytest.mark.parametrize("group", range(GROUPS))
def test_invariants_hold_for_simulated_engines(group: int) -> None:
    ends: Counter[str] = Counter()
    for seed in range(group, SEEDS, GROUPS):
        try:
            outcome, error = run_world(EngineWorld(seed))
        except AssertionError as violation:
            raise AssertionError(f"seed {seed}: {violation}") from violation
        ends[type(error).__name__ if error else "stopped" if outcome.is_stopped else "finished"] += 1
    assert ends.keys() == {"finished", "stopped", "EnvironmentBroken", "ToolMismatch"}


def test_same_seed_gives_the_same_run() -> None:
    first, second = EngineWorld(7), EngineWorld(7)
    assert run_world(first)[0] == run_world(second)[0]
    assert (first.commits, first.notes, first.time) == (second.commits, second.notes, second.time)


# Planted bugs: a module, a line of its code, and the line with the bug.
PLANTED: dict[str, tuple[ModuleType, str, str]] = {
    "not checked before a submission": (loop_module, "_count_signals() or not self._is_alive():", "_count_signals():"),
    "submits after a signal": (loop_module, "if self._count_signals() or not", "if not"),
    "waits too long": (loop_module, "wait(self._submitted, TURN_SECONDS_MAX)", "wait(self._submitted, 1.0)"),
    "dead engine is not checked again": (
        loop_module,
        "if now - self._slots_read < CHECK",
        "if self._dead_since < CHECK",
    ),
    "postponed part is forgotten": (loop_module, "self._dispatcher.postpone_part(", "self._dispatcher.finish_part("),
    "time without slots counts": (loop_module, "if self._slots:\n", "if True:\n"),
    "time with slots does not count": (loop_module, "submitted.seconds += now", "submitted.seconds += 0 * now"),
    "time limit of the part alone": (loop_module, "ANSWER_TIME_FACTOR = 2", "ANSWER_TIME_FACTOR = 1"),
    "never given up": (loop_module, "        self._give_up_late_parts()\n", ""),
    "late part is not cancelled": (loop_module, "for future in late:\n", "for future in []:\n"),
    "dead for a moment": (loop_module, "DEAD_SECONDS_MAX = 30.0", "DEAD_SECONDS_MAX = 3.0"),
    "dead forever": (loop_module, "DEAD_SECONDS_MAX = 30.0", "DEAD_SECONDS_MAX = 3000.0"),
    "dead since the first time": (loop_module, "math.inf if is_alive else min(", "min("),
    "calls remain at the end": (loop_module, "for future in self._submitted:", "for future in []:"),
    "second signal is ignored": (loop_module, "return signals > 1 or not", "return not"),
    "endless stop": (loop_module, "STOP_SECONDS_MAX = 10.0", "STOP_SECONDS_MAX = 1000.0"),
    "stop without commit": (loop_module, "if answers:\n", "if answers and self._stop_deadline is None:\n"),
    "error before the commit": (loop_module, "self._error = self._error or error", "raise error"),
    "error is ignored": (loop_module, "            raise self._error\n", "            pass\n"),
    "broken engine is ignored": (loop_module, "if self._dispatcher.broken_reason:\n", "if not self._dispatcher:\n"),
    "each wait is noted": (loop_module, " and not self._has_noted_wait", ""),
    "withdrawn shards travel": (loop_module, "self._ports.take_leases(part))", "[])"),
    "other plans": (part_results, "header.plan_digest != plan_digest", "not plan_digest"),
    "other parts": (part_results, "sorted(header.shards) != sorted(part.shards)", "not part.shards"),
    "fewer shards": (part_results, "sorted(header.shards) != sorted(part.shards)", "{*header.shards} - {*part.shards}"),
    "damage ends the run": (part_results, "except ValueError as damage", "except KeyError as damage"),
    "refusals are results": (part_results, "if header.refusal is not None:", "if header.refusal and header.shards:"),
    "missing codebatch is a loss": (part_results, "if _is_codebatch_missing(error):", "if not error:"),
    "wrapped errors": (part_results, "cause = None if cause is None else cause.__cause__", "cause = None"),
    "too many parts": (part_dispatcher, "PARTS_BESIDE_SLOTS = 2", "PARTS_BESIDE_SLOTS = 3"),
    "parts without slots": (part_dispatcher, "slots < 1 or", "slots < 0 or"),
    "shard in two parts": (part_dispatcher, "if shard.id not in part.shards]", "if shard.id != part.shards[0]]"),
    "lost part is forgotten": (part_dispatcher, "self._retries.append(", "repr("),
    "left shards are forgotten": (part_dispatcher, "self._left.update(part.shards)", "pass"),
    "retried forever": (part_dispatcher, "TRIES_MAX = 2", "TRIES_MAX = 2000"),
    "losses are not counted": (part_dispatcher, "self._losses_in_a_row += 1", "pass"),
    "damage is not counted": (part_dispatcher, "self._damaged_in_a_row += 1", "pass"),
    "broken by one damaged answer": (part_dispatcher, "DAMAGED_IN_A_ROW_MAX = 3", "DAMAGED_IN_A_ROW_MAX = 1"),
    "withdrawn shards are forgotten": (part_dispatcher, "self._left.update(set(part.shards) & set(shards))", "pass"),
    "done while parts are out": (part_dispatcher, "self._retries or self._out)", "self._retries)"),
}


@pytest.mark.parametrize("name", PLANTED)
def test_planted_bug_is_detected(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    module, line, bug = PLANTED[name]
    assert is_bug_detected(module, line, bug, SEEDS, monkeypatch)


@pytest.mark.parametrize("module", [loop_module, part_results, part_dispatcher])
def test_nothing_is_detected_without_a_bug(module: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    line = "from __future__ import annotations"
    assert not is_bug_detected(module, line, line, 100, monkeypatch)


def is_bug_detected(module: ModuleType, line: str, bug: str, seeds: int, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Return whether the simulation detects a bug that replaces a line of a module."""
    assert module.__file__ is not None
    source = Path(module.__file__).read_text(encoding="utf-8")
    assert source.count(line) == 1, "the line of the code has changed"
    mutant = ModuleType("mutant")
    monkeypatch.setitem(sys.modules, "mutant", mutant)
    exec(compile(source.replace(line, bug), "mutant", "exec"), mutant.__dict__)
    if module is part_results:
        for name in ("classify_result", "PartDamage", "PartLoss", "PartRefusal"):
            monkeypatch.setattr(loop_module, name, mutant.__dict__[name])
    make_loop = mutant.__dict__["EngineLoop"] if module is loop_module else EngineLoop
    make_dispatcher = mutant.__dict__["PartDispatcher"] if module is part_dispatcher else PartDispatcher
    return any(is_violated(seed, make_loop, make_dispatcher) for seed in range(seeds))


def is_violated(seed: int, make_loop: type[EngineLoop[Any]], make_dispatcher: type[PartDispatcher]) -> bool:
    """Return whether an invariant is violated, or an exception that no loop raises."""
    try:
        run_world(EngineWorld(seed), make_loop, make_dispatcher)
    except Exception:
        return True
    return False


def test_all_parts_are_executed_and_hosts_are_counted() -> None:
    world, outcome, error = run(20, 20, 20, 20, slots=2)
    assert error is None
    assert outcome.left_shards == ()
    assert (outcome.answers, outcome.results, outcome.is_stopped) == (4, 4, False)
    assert [*outcome.hosts] == sorted(outcome.hosts) == ["north", "south"]
    assert outcome.hosts["north"].cpu_seconds == 2 * outcome.hosts["north"].answers
    assert world.progress[-1].seconds_done == world.progress[-1].seconds_planned == 80
    assert world.progress[0].slots == 2


def test_answers_of_one_turn_are_committed_together() -> None:
    world, _, _ = run(20, 20, 20, slots=4, duration_max=0.0)
    assert world.commits == [[1, 2, 3]]


def test_lost_part_is_tried_again_and_then_left_to_this_machine() -> None:
    world, outcome, error = run(20, 30, slots=1, kinds=("killed", "valid", "killed"))
    assert error is None
    assert outcome.left_shards == ("00000001",)
    assert world.notes == [
        "a part with 1 shard was lost: KilledWorkerError: the worker died; trying again",
        "a part with 1 shard was lost: KilledWorkerError: the worker died; this machine executes it",
    ]


def test_end_of_a_whole_pool_is_one_loss() -> None:
    _, outcome, error = run(*[20] * 9, slots=6, duration_max=0.0, kinds=("broken pool",))
    assert error is None
    assert outcome.results == 9


def test_damaged_answers_end_the_run_with_the_hint_to_continue_here() -> None:
    world, outcome, error = run(*[20] * 9, slots=9, duration_max=0.0, kinds=("valid", *["garbage"] * 3, "valid"))
    assert isinstance(error, EnvironmentBroken)
    assert error.message.startswith("simulated engine fails: 3 answers in a row were damaged: ")
    assert error.hint is not None
    assert "without --on" in error.hint
    assert error.exit_status == 3
    assert outcome.answers == len(world.commits[0]) > 1, "answers of the same turn are committed first"
    assert len(world.notes) == 3
    assert all(note.startswith("a part with 1 shard had a damaged answer: ") for note in world.notes)


@pytest.mark.parametrize("silence", [29.0, 31.0, FOREVER])
def test_run_ends_if_the_engine_is_dead_for_30_seconds(silence: float) -> None:
    world, outcome, error = run(
        20,
        20,
        slots=2,
        duration_max=0.0,
        kinds=("valid", "never"),
        life_changes=[(5.0, False), (5.0 + silence, True)],
    )
    if silence < 30:
        assert error is None
        assert outcome.answers == 2
    else:
        assert outcome.answers == 1
        assert isinstance(error, EnvironmentBroken)
        assert error.message == "simulated engine has not been reachable for 30 seconds"
        assert 35 <= world.time <= 36.5


def test_engine_that_is_dead_from_the_start_ends_the_run() -> None:
    world, outcome, error = run(20, life_changes=[(0.0, False)])
    assert isinstance(error, EnvironmentBroken)
    assert (outcome.answers, outcome.left_shards) == (0, ())
    assert 30 <= world.time <= 31
    assert world.tries == {}


def test_idle_engine_is_checked_once_a_second() -> None:
    world, _, _ = run(20, slots=1, kinds=("never",), signals=[100.0, 100.0])
    assert 82 <= world.checks <= 102


def test_loop_waits_for_slots_without_limit_and_notes_it_once() -> None:
    world, outcome, error = run(20, slots=0, duration_max=0.0, slot_changes=[(5000.0, 1)], jump_seconds_max=20.0)
    assert error is None
    assert outcome.results == 1
    assert world.notes == ["simulated engine has no free process; waiting"]
    assert world.time >= 5000


def test_part_without_answer_is_given_up_after_its_time_and_its_late_answer_is_ignored() -> None:
    world, outcome, error = run(20, slots=2, duration_max=0.0, kinds=("late", "valid"))
    assert error is None
    assert outcome.answers == 1
    assert 1260 <= world.time <= 1262
    assert world.notes == ["a part with 1 shard was lost: not answered in time; trying again"]


class SlowWorld(EngineWorld):
    """An engine whose calls all take `duration` seconds."""

    def __init__(self, duration: float, profile: Profile, open_shards: list[OpenShard]) -> None:
        self.duration = duration
        super().__init__(1, profile, open_shards)

    def schedule(self, at: float, action: Callable[[], None]) -> None:
        """Schedule an event, and the end of a call later."""
        super().schedule(at + self.duration if isinstance(action, Completion) else at, action)


@pytest.mark.parametrize(
    ("is_opaque", "duration", "results"), [(True, 8.0, 1), (False, 8.0, 1), (True, 12.0, 0), (False, 12.0, 0)]
)
def test_first_signal_cancels_waiting_parts_and_gives_others_ten_seconds(
    is_opaque: bool, duration: float, results: int
) -> None:
    profile = Profile(slots=1, duration_max=0.0, signals=[1.0], is_opaque=is_opaque, jump_seconds_max=TURN_SECONDS)
    world = SlowWorld(duration, profile, shards(20, 20, 20))
    outcome, error = run_world(world)
    assert error is None
    assert (outcome.results, outcome.is_stopped, outcome.left_shards) == (results, True, ())
    assert world.time == pytest.approx(duration if results else 11.0, abs=TURN_SECONDS)
    assert world.progress[-1].parts == 1 - results, "the waiting parts are cancelled, the running part is not"


def test_losses_after_a_signal_are_not_noted() -> None:
    profile = Profile(slots=1, duration_max=0.0, signals=[1.0], kinds=("killed",), jump_seconds_max=TURN_SECONDS)
    world = SlowWorld(5.0, profile, shards(20))
    assert run_world(world)[0].is_stopped
    assert world.notes == []
    assert world.time == pytest.approx(5.0, abs=TURN_SECONDS)


def test_dead_engine_is_no_error_after_a_signal() -> None:
    profile = Profile(
        slots=1, duration_max=0.0, signals=[25.0], life_changes=[(1.0, False)], jump_seconds_max=TURN_SECONDS
    )
    world = SlowWorld(100.0, profile, shards(20))
    outcome, error = run_world(world)
    assert error is None
    assert outcome.is_stopped
    assert world.time == pytest.approx(35.0, abs=TURN_SECONDS)


def test_second_signal_ends_the_loop_at_once() -> None:
    world, outcome, error = run(20, 20, slots=1, kinds=("never",), signals=[1.0, 2.0])
    assert error is None
    assert outcome.is_stopped
    assert world.time == pytest.approx(2.0, abs=TURN_SECONDS)


def test_refusal_ends_the_run_and_names_the_host() -> None:
    world, outcome, error = run(20, 20, 20, slots=4, duration_max=0.0, kinds=("valid", "refusal", "valid"))
    assert isinstance(error, ToolMismatch)
    assert error.message in {f"{host} cannot execute a part: another version" for host in ("north", "south")}
    assert error.hint == "install the same version"
    assert world.commits == [[1, 3]]
    assert outcome.answers == 2


def test_first_of_several_errors_is_raised() -> None:
    _, _, error = run(20, 20, slots=4, duration_max=0.0, kinds=("no codebatch", "unknown refusal"))
    assert isinstance(error, ToolMismatch)
    _, _, error = run(20, 20, slots=4, duration_max=0.0, kinds=("unknown refusal", "no codebatch"))
    assert isinstance(error, EnvironmentBroken)


def test_submission_that_fails_is_a_loss() -> None:
    world, outcome, error = run(20, slots=1, refused_submit_rate=1.0)
    assert error is None
    assert outcome.left_shards == ("00000000",)
    assert world.notes[0] == "a part with 1 shard was lost: BrokenExecutor: the pool is broken; trying again"
    world, _, error = run(*[20] * 9, slots=1, refused_submit_rate=1.0)
    assert isinstance(error, EnvironmentBroken)
    assert world.turns == 6, "each turn submits one part, so that a pool has time to recover"


class ThreadEngine(EngineWorld):
    """An engine of real threads, in real time. The first call fails."""

    def __init__(self, pool: ThreadPoolExecutor) -> None:
        super().__init__(1, Profile(), shards(20, 20, 20))
        self._pool = pool
        self._fails = itertools.chain([True], itertools.repeat(False))

    @property
    def executor(self) -> Executor:
        """The pool of threads."""
        return self._pool

    def run_part(self, capsule: bytes) -> bytes:
        """Execute a capsule."""
        call = SimulatedFuture(self, capsule)
        self.tries[call.part_number] += 1
        if next(self._fails):
            raise KilledWorkerError("gone")
        return self._answer_of(call, "valid")

    def update_engine(self, progress: EngineProgress) -> None:
        """Ignore the progress."""


def test_loop_works_with_real_futures_and_real_time() -> None:
    with ThreadPoolExecutor(2) as pool:
        engine = ThreadEngine(pool)
        loop = EngineLoop(
            engine,
            PartDispatcher(engine.shards),
            PartPorts(
                take_leases=engine.take_leases,
                make_capsule=engine.make_capsule,
                read_answer=engine.read_answer,
                commit=engine.commit,
            ),
            run_part=engine.run_part,
            plan_digest=PLAN,
            watcher=engine,
            count_signals=engine.count_signals,
            clock=SystemEngineClock(),
        )
        outcome = loop.run()
    assert (outcome.results, outcome.left_shards) == (3, ())
    assert len(engine.notes) == 1


PART = EnginePart(number=1, shards=(ShardId("a" * 8), ShardId("b" * 8)), seconds=1.0, compressed_bytes=1, try_number=1)
HEADER = AnswerHeader(
    plan_digest=PLAN, shards=PART.shards, host="north", codebatch="1", python="3", seconds=1.0, cpu_seconds=1.0
)


def classified(result: object) -> object:
    """Classify a call that ended with an exception, or with the header of an answer."""
    future: Future[bytes] = Future()
    if isinstance(result, BaseException):
        future.set_exception(result)
    else:
        future.set_result(b"x" if isinstance(result, AnswerHeader) else result)  # type: ignore[arg-type]

    def read_answer(answer: bytes) -> tuple[AnswerHeader, str]:
        if isinstance(result, AnswerHeader):
            return result, "records"
        raise ValueError("no  answer\n" * 100)

    return classify_result(future, PART, engine="engine", plan_digest=PLAN, read_answer=read_answer)


def wrapped(cause: BaseException) -> BaseException:
    """Return an error with a cause."""
    error = RuntimeError("cannot deserialize")
    error.__cause__ = cause
    return error


@pytest.mark.parametrize(
    ("result", "expected"),
    [
        (HEADER, ReceivedAnswer(part=PART, header=HEADER, records="records")),
        (msgspec.structs.replace(HEADER, shards=PART.shards[::-1]), ReceivedAnswer),
        (msgspec.structs.replace(HEADER, shards=PART.shards[:1]), PartDamage("north answered for another part")),
        (msgspec.structs.replace(HEADER, shards=PART.shards * 2), PartDamage("north answered for another part")),
        (msgspec.structs.replace(HEADER, plan_digest=OTHER_PLAN), PartDamage("north answered for another plan")),
        (b"garbage", PartDamage(("ValueError: " + "no answer " * 100)[:200])),
        (None, PartDamage("a value of the type NoneType")),
        (KilledWorkerError("gone"), PartLoss("KilledWorkerError: gone")),
        (CancelledError(), PartLoss("CancelledError")),
        (TimeoutError(), PartLoss("TimeoutError")),
        (KeyboardInterrupt(), PartLoss("KeyboardInterrupt")),
        (AttributeError("'NoneType' object has no attribute 'x'"), PartLoss),
        (wrapped(ValueError()), PartLoss("RuntimeError: cannot deserialize")),
        (RuntimeError("Can't get attribute"), PartLoss),
        (ModuleNotFoundError("No module named 'codebatch'"), PartRefusal),
        (ImportError("cannot import name 'run_part'"), PartRefusal),
        (AttributeError("Can't get attribute 'run_part' on <module 'x'>"), PartRefusal),
        (wrapped(wrapped(ModuleNotFoundError("codebatch"))), PartRefusal),
    ],
)
def test_ended_calls_are_classified(result: object, expected: object) -> None:
    actual = classified(result)
    assert type(actual) is expected if isinstance(expected, type) else actual == expected


def test_cancelled_call_is_a_loss() -> None:
    future: Future[bytes] = Future()
    future.cancel()
    read_answer = Future[tuple[AnswerHeader, str]]().set_result
    loss = classify_result(future, PART, engine="engine", plan_digest=PLAN, read_answer=read_answer)  # type: ignore[arg-type, var-annotated]
    assert loss == PartLoss("it was cancelled")


def test_refusal_of_a_machine_that_cannot_read_the_capsule_is_an_error_of_its_class() -> None:
    refusal = Refusal(code="store_unwritable", message="no space left", hint=None)
    header = msgspec.structs.replace(HEADER, plan_digest=OTHER_PLAN, shards=(), refusal=refusal)
    refused = classified(header)
    assert isinstance(refused, PartRefusal)
    assert (refused.error.code, refused.error.message) == (
        "store_unwritable",
        "north cannot execute a part: no space left",
    )
    assert "codebatch engine check --on URL" in (refused.error.hint or "")


def test_missing_codebatch_is_explained() -> None:
    refused = classified(ModuleNotFoundError("No module named 'codebatch'"))
    assert isinstance(refused, PartRefusal)
    assert isinstance(refused.error, ToolMismatch)
    assert refused.error.message.startswith("a worker of engine cannot import codebatch ")
    assert "codebatch engine check --on URL" in (refused.error.hint or "")


def test_clock_of_the_machine_waits_for_futures_or_for_the_time() -> None:
    clock = SystemEngineClock()
    began, began_ns = clock.now(), running_ns()
    assert clock.wait([], 0.02) == set()
    assert clock.now() - began >= 0.02
    assert began <= began_ns / 1e9 <= clock.now()
    with ThreadPoolExecutor(1) as pool:
        future = pool.submit(bytes, 1)
        assert clock.wait([future, Future()], 60) == {future}
