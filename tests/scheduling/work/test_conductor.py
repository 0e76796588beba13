"""The conductor of commands in simulated worlds, and planted bugs, each of which violates an invariant."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable

import pytest
from msgspec.structs import replace

from codebatch.model.digest import Digest
from codebatch.model.work.command import CommandId
from codebatch.model.work.request import Answer, Open, Pause, Request, RequestHead, Set
from codebatch.model.work.work_batch import TaskPolicy, Work
from codebatch.scheduling.actions import SpawnWorker
from codebatch.scheduling.events import SessionStarted, UnitDone, WorkerId, WorkerIdle
from codebatch.scheduling.work.command_plan import SLOTS_POOL, CommandPlan, make_command_plan
from codebatch.scheduling.work.conductor import Conductor
from codebatch.scheduling.work.event_projection import EmittedEvents, EventProjector, ProjectedEvent
from codebatch.scheduling.work.events import (
    AttemptOutcome,
    CommandAction,
    CommandEvent,
    DeliverAnswer,
    OutcomesConcluded,
    QuestionAsked,
    RecallQueued,
    RequestRead,
    SetTimer,
    StartCommand,
    WaitEnded,
    WorkerDied,
)
from tests.scheduling.faults import Faults
from tests.scheduling.generous import GenerousRuns
from tests.scheduling.lived import CheckedWorld, live_out

SEEDS = int(os.environ.get("CODEBATCH_PROOF_SEEDS", "200"))
STEP = 200

KINDS = (
    Faults(),
    Faults(worker=0.02),
    Faults(coordinator=0.01),
    Faults(coordinator=0.01, worker=0.02, power=0.004),
    Faults(coordinator=0.01, worker=0.02, torn=0.1),
    Faults(coordinator=0.01, everybody=0.01),
)


@pytest.mark.parametrize("first", range(0, SEEDS, STEP))
def test_simulated_batches_keep_all_invariants(first: int) -> None:
    given_behind = stopped = 0
    for seed in range(first, first + STEP):
        world = CheckedWorld(seed, KINDS[seed % len(KINDS)])
        _run_checked_world(world, drains=seed % 7 == 0)
        given_behind += world.ahead
        stopped += world.stopped
    assert given_behind > STEP / 10, "too few commands were queued to prove anything"
    assert stopped > STEP / 20, "too few commands were stopped to prove anything"


@pytest.mark.parametrize("first", range(0, SEEDS, STEP))
def test_coordinator_deaths_interrupt_no_command(first: int) -> None:
    for seed in range(first, first + STEP):
        world = CheckedWorld(seed, Faults(coordinator=0.03))
        _run_checked_world(world)
        outcomes = [outcome for outcome in world.registers.values() if outcome is not None]
        assert all(outcome.reason != "interrupted" for outcome in outcomes), seed


def _run_checked_world(world: CheckedWorld, *, drains: bool = False) -> None:
    try:
        live_out(world, drains=drains)
    except AssertionError as error:
        raise AssertionError(f"seed {world.seed}: {error}") from error


class _StartsWithoutNeeds(Conductor):
    """A conductor that starts a queued command without checking its needs again."""

    def _is_startable(self, item: int) -> bool:
        return item not in self._worker_by_item and item not in self._adopted_items


class _LeaksTokens(Conductor):
    """A conductor that does not return the tokens of a dead worker."""

    def _handle_death(self, lost: WorkerDied) -> list[CommandAction]:
        item = self._running.get(lost.worker)
        actions = super()._handle_death(lost)
        if item is not None:
            self._queue.used[SLOTS_POOL] += 1
        return actions


class _ForgetsQueuedCommands(Conductor):
    """A conductor that forgets the commands queued at a worker that did not start them."""

    def _end_worker_run(self, worker: WorkerId, *, is_well: bool) -> int:
        self._prefetched.end_assignment(worker, is_well=is_well)
        return self._remove_running(worker)


class _CountsOutcomesTwice(Conductor):
    """A conductor that applies an outcome to dependents each time it reads the outcome."""

    def _handle_outcomes(self, concluded: OutcomesConcluded) -> list[CommandAction]:
        actions = super()._handle_outcomes(concluded)
        graph = self._states.graph
        for outcome in concluded.conclusions:
            if outcome.type == "result":
                graph._unmet_counts = [max(0, unmet) - (unmet > 1) for unmet in graph._unmet_counts]
        return actions


class _KeepsRetriesInMemory(Conductor):
    """A conductor that retries a failure once, and records this only in memory."""

    def _handle_outcomes(self, concluded: OutcomesConcluded) -> list[CommandAction]:
        for outcome in concluded.conclusions:
            if outcome.type == "failed" and outcome.round == 1:
                self._histories._ended.setdefault(outcome.item, {})[0] = outcome
                self._requests._reopened_rounds.setdefault(outcome.item, set()).add(1)
        return super()._handle_outcomes(concluded)


class _StartsCancelledCommands(Conductor):
    """A conductor whose Cancel ends running commands only."""

    def _could_start(self, item: int) -> bool:
        is_held = item in self._worker_by_item or item in self._adopted_items or item in self._settling_items
        return not is_held and self._states.graph.may_start(item)


class _StartsPausedCommands(Conductor):
    """A conductor whose Pause does not affect commands that are already queued."""

    def _is_startable(self, item: int) -> bool:
        return self._could_start(item) and not self._states.is_waiting(item)


class _RetriesWithoutBackoff(Conductor):
    """A conductor that retries without a delay."""

    def _is_startable(self, item: int) -> bool:
        return self._could_start(item) and not self._states.rule.is_paused(item)


class _ForgetsEpochsOfOutcomes(Conductor):
    """A conductor that takes epochs from leases only, although the disk may have lost leases."""

    def __init__(self, agenda: CommandPlan, **known: object) -> None:
        super().__init__(agenda, **known)  # type: ignore[arg-type] # All parameters of a conductor.
        self._histories._epochs = dict(known["epochs"])  # type: ignore[call-overload]


class _RestartsAllInterrupted(Conductor):
    """A conductor that restarts every interrupted command."""

    def _commit_if_interrupted(self, item: int) -> list[CommandAction]:
        return []


class _CountsStopsAsFailures(Conductor):
    """A conductor that treats commands stopped by the user as interrupted."""

    def __init__(self, agenda: CommandPlan, **known: object) -> None:
        super().__init__(agenda, **known)  # type: ignore[arg-type] # All parameters of a conductor.
        self._interruptions.stops_by_epoch = lambda item: {}  # type: ignore[method-assign]


class _IgnoresTheTimeLimit(Conductor):
    """A conductor whose time limit ends running commands only."""

    def _note_request(self, request: Request) -> list[int]:
        touched = super()._note_request(request)
        self._requests.is_expired = False
        return touched


class _RetriesForever(Conductor):
    """A conductor that allows one retry too many."""

    def __init__(self, agenda: CommandPlan, **known: object) -> None:
        policies = tuple(replace(policy, retries=policy.retries + 1) for policy in agenda.policies)
        super().__init__(replace(agenda, policies=policies), **known)  # type: ignore[arg-type]
        self.agenda = agenda


class _AcceptsAnswersToOldQuestions(Conductor):
    """A conductor that applies an answer to the latest question, even if it answers a question of an earlier round."""

    def _note_request(self, request: Request) -> list[int]:
        body = request.body
        if isinstance(body, Answer):
            item = self.agenda.ids.index(body.task)
            last = self.last_outcome(item)
            if last is not None and last.question:
                body = replace(body, round=last.round, question=last.question)
        return super()._note_request(Request(request.head, body))


class _AcceptsOpensOfOldRounds(Conductor):
    """A conductor that opens a command even if it has had later rounds than the request names."""

    def _note_request(self, request: Request) -> list[int]:
        body = request.body
        if isinstance(body, Open):
            over = {id_: self.last_attempt(self.agenda.ids.index(id_))[0] for id_ in body.rounds}
            body = replace(body, rounds=over)
        return super()._note_request(Request(request.head, body))


class _IgnoresSkips(Conductor):
    """A conductor whose Skip ends running commands only."""

    def _note_request(self, request: Request) -> list[int]:
        touched = super()._note_request(request)
        self._requests._skips.clear()
        return touched


class _ContinuesWithoutASlot(Conductor):
    """A conductor that continues an answered command without a free slot."""

    def handle(self, event: CommandEvent) -> list[CommandAction]:
        self._queue.has_free_slots = lambda item: True  # type: ignore[method-assign]
        return super().handle(event)


class _OverdrawsPools(Conductor):
    """A conductor that starts the first command without enough tokens in its pools."""

    def handle(self, event: CommandEvent) -> list[CommandAction]:
        fits = self._queue._has_free_tokens
        self._queue._has_free_tokens = lambda pool, amount: pool != SLOTS_POOL or fits(pool, 1)  # type: ignore[method-assign]
        actions = super().handle(event)
        self._queue._has_free_tokens = fits  # type: ignore[method-assign]
        return actions


class _IgnoresClosedPools(Conductor):
    """A conductor that does not close the pools of a command that meets a rate limit."""

    def handle(self, event: CommandEvent) -> list[CommandAction]:
        self._queue._closed_pools = dict
        return super().handle(event)


class _IgnoresTheStartInterval(Conductor):
    """A conductor that does not wait between two starts."""

    def handle(self, event: CommandEvent) -> list[CommandAction]:
        self._queue._is_start_delayed = False
        return super().handle(event)


class _JudgesOldRoundsByNewRetries(Conductor):
    """A conductor that lets changed retries open tasks that have ended."""

    def _note_request(self, request: Request) -> list[int]:
        if isinstance(request.body, Set):
            tasks = {id_: replace(settings, after_round=0) for id_, settings in request.body.tasks.items()}
            request = Request(request.head, replace(request.body, tasks=tasks))
        return super()._note_request(request)


DEADLY = Faults(coordinator=0.02, worker=0.03, power=0.01)

PLANTED: dict[str, tuple[Faults, Callable[..., Conductor], str]] = {
    "needs": (Faults(), _StartsWithoutNeeds, "starts while"),
    "pools": (Faults(), _OverdrawsPools, "than exist|not run alone"),
    "closed pools": (Faults(), _IgnoresClosedPools, "of the closed pools"),
    "paused": (Faults(), _StartsPausedCommands, "after a Pause"),
    "before its time": (Faults(), _RetriesWithoutBackoff, "before its delay"),
    "soon after another": (Faults(), _IgnoresTheStartInterval, "too soon"),
    "tries": (Faults(), _RetriesForever, "starts in round"),
    "retries of former rounds": (Faults(), _JudgesOldRoundsByNewRetries, "starts in round|to the disk"),
    "answers of former rounds": (Faults(), _AcceptsAnswersToOldQuestions, "starts in round|to the disk|does not end"),
    "opens of former rounds": (Faults(), _AcceptsOpensOfOldRounds, "starts in round|to the disk"),
    "skipped": (Faults(), _IgnoresSkips, "starts in round|to the disk"),
    "answered without room": (Faults(), _ContinuesWithoutASlot, "than exist|at once than allowed|not run alone"),
    "tokens": (DEADLY, _LeaksTokens, "tokens are left|does not end"),
    "given and not begun": (DEADLY, _ForgetsQueuedCommands, "READY|does not end|to the disk"),
    "counted twice": (Faults(), _CountsOutcomesTwice, "starts while|waits for nothing|READY"),
    "memory alone": (DEADLY, _KeepsRetriesInMemory, "to the disk|starts in round"),
    "stopped by the user": (Faults(coordinator=0.02), _CountsStopsAsFailures, "was stopped on request, but is judged"),
    "time limit": (Faults(), _IgnoresTheTimeLimit, "after the time limit|to the disk"),
    "cancelled": (Faults(), _StartsCancelledCommands, "after a Cancel|does not end"),
    "at most once": (DEADLY, _RestartsAllInterrupted, "was started"),
    "sweep after the session": (Faults(everybody=0.02, sweeps_late=True), Conductor, "at once"),
    "leases that are not durable": (Faults(power=0.02, has_volatile_leases=True), Conductor, "was started|at once"),
    "epochs of leases alone": (
        Faults(power=0.02, has_volatile_leases=True),
        _ForgetsEpochsOfOutcomes,
        "was started|a second end|at once",
    ),
    "no look before exec": (
        Faults(coordinator=0.05, looks_before_exec=False),
        Conductor,
        "after a Cancel|not emitted",
    ),
}


@pytest.mark.parametrize("name", PLANTED)
def test_planted_bug_is_detected(name: str) -> None:
    faults, make, message = PLANTED[name]
    with pytest.raises(AssertionError, match=message):
        _run_checked_worlds(400, faults, make)


def _run_checked_worlds(
    seeds: int, faults: Faults, make: Callable[..., Conductor], tell: Callable[..., EventProjector] = EventProjector
) -> None:
    for seed in range(seeds):
        live_out(CheckedWorld(seed, faults, make, tell))


class _IgnoresEmittedEvents(EventProjector):
    """A projector that ignores the events of earlier coordinators."""

    def __init__(
        self, conductor: Conductor, requests: Iterable[Request] = (), told: EmittedEvents | None = None
    ) -> None:
        super().__init__(conductor, requests)


class _OmitsMissedEnds(EventProjector):
    """A projector that omits attempts that ended while there was no coordinator."""

    def initial_events(self, concluded: OutcomesConcluded) -> list[ProjectedEvent]:
        self._emitted.ends.update((outcome.item, outcome.round) for outcome in concluded.conclusions)
        return super().initial_events(concluded)


class _EmitsEachReport(EventProjector):
    """A projector that emits the end of an attempt twice if the worker reports it and the disk has it."""

    def _project_ends(self, concluded: OutcomesConcluded) -> list[ProjectedEvent]:
        self._emitted.ends.clear()
        return super()._project_ends(concluded)


@pytest.mark.parametrize(
    ("tell", "message"),
    [
        (_IgnoresEmittedEvents, "emitted twice"),
        (_OmitsMissedEnds, "not emitted: {"),
        (_EmitsEachReport, "emitted twice"),
    ],
)
def test_attempt_end_emitted_twice_or_never_is_detected(tell: Callable[..., EventProjector], message: str) -> None:
    with pytest.raises(AssertionError, match=message):
        _run_checked_worlds(400, DEADLY, Conductor, tell)


def _order_of_starts(
    policies: dict[str, TaskPolicy], *, at_once: int, pools: dict[str, int] | None = None
) -> list[str]:
    """Return the order in which commands start. All take equally long, so the first to start ends first."""
    ids = [CommandId(id_) for id_ in policies]
    work = Work(
        source="test",
        root=b"/",
        order=tuple(ids),
        policies=dict(zip(ids, policies.values(), strict=True)),
        strategy="parallel",
        max_parallel=at_once,
        pools=pools or {},
    )
    conductor = Conductor(make_command_plan(work, ids), concluded=OutcomesConcluded(()), epochs={})
    events: list[CommandEvent] = [SessionStarted(), *(WorkerIdle(WorkerId(number)) for number in range(1, at_once + 1))]
    started: list[str] = []
    while events:
        for action in conductor.handle(events.pop(0)):
            if isinstance(action, StartCommand):
                started.append(ids[action.item])
                outcome = AttemptOutcome(item=action.item, round=action.round, type="result", epoch=action.epoch)
                events += [OutcomesConcluded([outcome]), UnitDone(action.worker)]
    return started


def test_higher_priority_starts_first_then_file_order() -> None:
    policies = {
        "a": TaskPolicy(),
        "b": TaskPolicy(),
        "c": TaskPolicy(priority=1),
        "d": TaskPolicy(priority=-1),
        "e": TaskPolicy(),
    }
    assert _order_of_starts(policies, at_once=1) == ["c", "a", "b", "e", "d"]


def test_command_that_wants_a_whole_pool_is_not_starved() -> None:
    """While `big` waits for all tokens of a pool, later commands cannot take them. Commands of other pools start."""
    little, other = TaskPolicy(pools={"db": 1}), TaskPolicy(pools={"net": 1})
    policies = {"a": little, "big": TaskPolicy(pools={"db": 2}), "b": little, "c": other, "d": little}
    order = _order_of_starts(policies, at_once=2, pools={"db": 2, "net": 2})
    assert order[:3] == ["a", "c", "big"]
    assert set(order[3:]) == {"b", "d"}


def test_exclusive_command_waits_for_all_and_lets_none_pass() -> None:
    policies = {"a": TaskPolicy(), "alone": TaskPolicy(exclusive=True), "b": TaskPolicy(), "c": TaskPolicy()}
    assert _order_of_starts(policies, at_once=2) == ["a", "alone", "b", "c"]


def test_rate_limit_closes_its_pool_and_blocks_no_other() -> None:
    """`b` waits for the closed pool. It does not keep `c` from starting with another pool, and no worker waits."""
    pools = {"a": {"agents": 1}, "b": {"agents": 1, "db": 1}, "c": {"db": 1}, "d": {"agents": 1}}
    ids = [CommandId(id_) for id_ in pools]
    work = Work(
        source="test",
        root=b"/",
        order=tuple(ids),
        policies={id_: TaskPolicy(pools=pools[id_], priority=-place) for place, id_ in enumerate(ids)},
        strategy="parallel",
        max_parallel=4,
        pools={"agents": 1, "db": 1},
    )
    agenda = make_command_plan(work, ids)
    limited = AttemptOutcome(item=0, round=1, type="failed", reason="limited", epoch=1, until_ns=5)
    conductor = Conductor(agenda, concluded=OutcomesConcluded([limited]), epochs={0: 1})
    assert conductor.closed_pools == {"agents": 5}
    assert conductor.until_ns(0) == 5
    actions = conductor.handle(SessionStarted())
    assert actions == [SetTimer(0, 2, 0.0, 5), SpawnWorker()]
    (start,) = conductor.handle(WorkerIdle(WorkerId(1)))
    assert isinstance(start, StartCommand)
    assert ids[start.item] == "c"
    assert {type(action) for action in conductor.handle(WaitEnded(0, 2))} == {SpawnWorker}
    assert conductor.closed_pools == {}
    again = Conductor(agenda, concluded=OutcomesConcluded([limited]), epochs={0: 1}, requests=[_opened("a", 1)])
    assert again.closed_pools == {}, "an Open must end the wait for the rate limit"


def test_answered_commands_continue_in_the_order_of_their_answers() -> None:
    ids = [CommandId(id_) for id_ in "abcd"]
    work = Work(source="test", root=b"/", order=tuple(ids), strategy="parallel", max_parallel=2)
    conductor = Conductor(make_command_plan(work, ids), concluded=OutcomesConcluded(()), epochs={})

    def continued(*events: CommandEvent) -> list[int]:
        actions = [action for event in events for action in conductor.handle(event)]
        return [action.worker for action in actions if isinstance(action, DeliverAnswer)]

    def asked(item: int) -> QuestionAsked:
        return QuestionAsked(item, 1, 1, 1, Digest(f"question {item}"))

    def answer(n: int, item: int) -> RequestRead:
        body = Answer(task=ids[item], round=1, question=asked(item).question, text="yes")
        return RequestRead(Request(RequestHead(n=n, at_ns=0, by="test"), body))

    def done(item: int) -> tuple[CommandEvent, ...]:
        outcome = AttemptOutcome(item=item, round=1, type="result", reason=None, epoch=1)
        return OutcomesConcluded([outcome]), UnitDone(workers[item].worker)

    workers = [WorkerIdle(WorkerId(number)) for number in (1, 2, 3, 4)]
    assert continued(SessionStarted(), *workers, asked(0), asked(1), answer(1, 1), answer(2, 0)) == []
    assert [continued(*done(2)), continued(*done(3))] == [[2], [1]]


@pytest.mark.parametrize("is_paused", [False, True])
def test_queued_commands_are_recalled_when_their_pool_closes_or_on_a_pause(is_paused: bool) -> None:
    ids = [CommandId(id_) for id_ in "abcd"]
    pools = {"agents": 1}
    policies = {id_: TaskPolicy(pools=pools) for id_ in ids} | {ids[3]: TaskPolicy(pools=pools | {"db": 1}, priority=1)}
    work = Work(
        source="test", root=b"/", order=tuple(ids), policies=policies, strategy="parallel", max_parallel=2,
        pools={"agents": 4, "db": 1},
    )  # fmt: skip
    conductor = Conductor(make_command_plan(work, ids), concluded=OutcomesConcluded(()), epochs={})
    conductor._prefetched = GenerousRuns()
    first, second = (
        action
        for event in (SessionStarted(), WorkerIdle(WorkerId(1)), WorkerIdle(WorkerId(2)))
        for action in conductor.handle(event)
        if isinstance(action, StartCommand)
    )
    assert (first.item, [queued.item for queued in second.then]) == (3, [1, 2])
    limited = AttemptOutcome(item=3, round=1, type="failed", reason="limited", epoch=1, until_ns=5)
    pause = RequestRead(Request(RequestHead(n=1, at_ns=0, by="test"), Pause()))
    assert RecallQueued(second.worker) in conductor.handle(pause if is_paused else OutcomesConcluded([limited]))


def _opened(task: str, round_: int) -> Request:
    return Request(RequestHead(n=1, at_ns=0, by="test"), Open(rounds={CommandId(task): round_}))
