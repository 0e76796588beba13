"""The conductor of commands against simulated worlds; and each invariant has a bug that only it finds."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from codebatch.engine.command_events import CommandAction, Concluded, Lost
from codebatch.engine.conductor import Conductor
from tests.engine.commands import Faults, World, live_out

SEEDS = 2000
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
def test_whatever_is_killed_and_asked_every_rule_holds(first: int) -> None:
    for seed in range(first, first + STEP):
        _live(World(seed, KINDS[seed % len(KINDS)]), drains=seed % 7 == 0)


def test_the_death_of_coordinators_interrupts_nothing() -> None:
    for seed in range(400):
        world = World(seed, Faults(coordinator=0.03))
        _live(world)
        assert all(one is None or one.reason != "interrupted" for one in world.registers.values()), seed


def _live(world: World, *, drains: bool = False) -> None:
    try:
        live_out(world, drains=drains)
    except AssertionError as error:
        raise AssertionError(f"seed {world.seed}: {error}") from error


class _StartsWithoutNeeds(Conductor):
    """A head of a heap is started as it was when it came there."""

    def _is_startable(self, item: int) -> bool:
        return item not in self._at and item not in self._foreign


class _KeepsTokens(Conductor):
    """What a dead worker had taken stays taken."""

    def _bury(self, lost: Lost) -> list[CommandAction]:
        item = self._running.get(lost.worker)
        actions = super()._bury(lost)
        if item is not None:
            self._use(item, 1)
        return actions


class _CountsTwice(Conductor):
    """What an outcome does to its users is done at each look at it."""

    def _conclude(self, concluded: Concluded) -> list[CommandAction]:
        actions = super()._conclude(concluded)
        for one in concluded.conclusions:
            if one.type == "result":
                self._graph._unmet = [max(0, unmet) - (unmet > 1) for unmet in self._graph._unmet]
        return actions


class _Remembers(Conductor):
    """A failure is tried again because this process remembers it, which nobody else can know."""

    def _own(self, item: int) -> str:  # type: ignore[override]
        link = self._links.get(item)
        is_first = link is not None and link.type == "failed" and item in getattr(self, "_seen_failing", set())
        return "open" if is_first else super()._own(item)

    def _conclude(self, concluded: Concluded) -> list[CommandAction]:
        self._seen_failing = {one.item for one in concluded.conclusions if one.type == "failed" and one.round == 1}
        return super()._conclude(concluded)


class _StartsCancelled(Conductor):
    """A Cancel ends what runs, and no more."""

    def _is_startable(self, item: int) -> bool:
        return (
            self._graph.may_start(item)
            and item not in self._at
            and item not in self._foreign
            and item not in self._settling
        )


class _ForgetsEpochsOfOutcomes(Conductor):
    """Epochs come from leases alone, which the disk may have lost."""

    def _note(self, concluded: Concluded) -> list[int]:
        before = dict(self._epochs)
        news = super()._note(concluded)
        for one in concluded.conclusions:
            self._epochs[one.item] = before.get(one.item, 0)
        return news


class _RestartsAll(Conductor):
    """Whatever was interrupted is started again."""

    def _look_at_interrupted(self, item: int) -> list[CommandAction]:
        return []


DEADLY = Faults(coordinator=0.02, worker=0.03, power=0.01)

PLANTED: dict[str, tuple[Faults, Callable[..., Conductor], str]] = {
    "needs": (Faults(), _StartsWithoutNeeds, "starts while"),
    "tokens": (DEADLY, _KeepsTokens, "tokens are left|no end"),
    "counted twice": (Faults(), _CountsTwice, "starts while|waits for nothing|READY"),
    "memory alone": (DEADLY, _Remembers, "by the disk|a second end|starts while"),
    "cancelled": (Faults(), _StartsCancelled, "after a Cancel|no end"),
    "at most once": (DEADLY, _RestartsAll, "was begun"),
    "sweep after the session": (Faults(everybody=0.02, sweeps_late=True), Conductor, "at once"),
    "leases that are not durable": (Faults(power=0.02, has_volatile_leases=True), Conductor, "was begun|at once"),
    "epochs of leases alone": (
        Faults(power=0.02, has_volatile_leases=True),
        _ForgetsEpochsOfOutcomes,
        "was begun|a second end|at once",
    ),
    "no look before exec": (
        Faults(coordinator=0.05, looks_before_exec=False),
        Conductor,
        "after a Cancel",
    ),
}


@pytest.mark.parametrize("name", PLANTED)
def test_a_planted_bug_is_found(name: str) -> None:
    faults, make, said = PLANTED[name]
    with pytest.raises(AssertionError, match=said):
        _live_all(400, faults, make)


def _live_all(seeds: int, faults: Faults, make: Callable[..., Conductor]) -> None:
    for seed in range(seeds):
        live_out(World(seed, faults, make))
