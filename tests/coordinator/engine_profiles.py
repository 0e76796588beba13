"""Profiles of simulated engines: their slots, their faults, and the signals of the user."""

from __future__ import annotations

import random
from concurrent.futures import BrokenExecutor, CancelledError
from dataclasses import dataclass, field

from codebatch.model.shard import ShardId
from codebatch.scheduling.analysis.part_dispatcher import OpenShard

FOREVER = 1e9
TURN_SECONDS = 0.2
JUMP_SECONDS_MAX = 20.0

FAILURES = ("broken pool", "killed", "cancelled", "timeout", "never", "late")
DAMAGES = ("garbage", "oversized", "no bytes", "other part", "fewer shards", "other plan", "repeated")
ENDINGS = ("refusal", "unknown refusal", "no codebatch", "no function")


class KilledWorkerError(Exception):
    """An error of an engine that codebatch does not know."""


@dataclass(slots=True)
class Profile:
    """The behaviour of an engine. Each rate is a probability per call. `kinds` are the results of the first calls."""

    slots: int = 2
    failure_rate: float = 0.0
    damage_rate: float = 0.0
    ending_rate: float = 0.0
    refused_submit_rate: float = 0.0
    duration_max: float = 40.0
    is_opaque: bool = False
    starts_in_order: bool = True
    slot_changes: list[tuple[float, int]] = field(default_factory=list)
    life_changes: list[tuple[float, bool]] = field(default_factory=list)
    signals: list[float] = field(default_factory=list)
    held_rate: float = 0.0
    jump_seconds_max: float = JUMP_SECONDS_MAX
    kinds: tuple[str, ...] = ()


def random_profile(chance: random.Random) -> Profile:
    """Return a random profile. In the end, the engine has slots or is dead."""
    profile = Profile(
        slots=chance.choice([0, 1, 2, 4, 9]),
        failure_rate=chance.choice([0.0, 0.0, 0.05, 0.3, 0.95]),
        damage_rate=chance.choice([0.0, 0.0, 0.05, 0.3, 0.9]),
        ending_rate=chance.choice([0.0, 0.0, 0.0, 0.0, 0.05]),
        refused_submit_rate=chance.choice([0.0, 0.0, 0.0, 0.1]),
        duration_max=chance.choice([1.0, 40.0, 400.0]),
        is_opaque=chance.random() < 0.5,
        starts_in_order=chance.random() < 0.5,
        held_rate=chance.choice([0.0, 0.0, 0.2, 0.6]),
    )
    now = 0.0
    for _ in range(chance.choice([0, 0, 3, 8])):
        now += chance.expovariate(1 / chance.choice([5, 100, 2000]))
        profile.slot_changes.append((now, chance.choice([0, 0, 1, 3, 9])))
    profile.slot_changes.append((now + chance.choice([1, 300, 3000]), chance.randint(1, 5)))
    for _ in range(chance.choice([0, 0, 0, 1, 3])):
        death = chance.expovariate(1 / 60)
        profile.life_changes += [(death, False), (death + chance.choice([3, 20, 29, 32, 200, FOREVER]), True)]
    if chance.random() < 0.25:
        profile.signals = sorted(
            chance.expovariate(1 / chance.choice([1, 60])) for _ in range(chance.choice([1, 1, 2]))
        )
        profile.signals[1:] = [profile.signals[0] + chance.choice([0.0, 1.0, 5.0, 9.9])] * len(profile.signals[1:])
    return profile


def random_shards(chance: random.Random) -> list[OpenShard]:
    """Return shards of random sizes. A few are very large."""
    sizes = [(1.0, 1000), (30.0, 1 << 20), (3.0, 60 << 20), (400.0, 400 << 20), (0.1, 1 << 30)]
    shards = []
    for number in range(chance.choice([1, 3, 10, 25])):
        seconds, size = chance.choices(sizes, [10, 10, 5, 1, 0.3])[0]
        seconds, size = seconds * chance.random(), round(size * chance.random())
        shards.append(OpenShard(id=ShardId(f"{number:08x}"), seconds=seconds, bytes=size))
    return shards


def error_of(kind: str) -> BaseException | None:
    """Return the exception of a call that ends in this way, or None if the call has an answer."""
    match kind:
        case "broken pool":
            return BrokenExecutor("a process died")
        case "killed":
            return KilledWorkerError("the worker died")
        case "cancelled":
            return CancelledError()
        case "timeout":
            return TimeoutError()
        case "no codebatch":
            return ModuleNotFoundError("No module named 'codebatch'")
        case "no function":
            wrapper = RuntimeError("cannot deserialize")
            wrapper.__cause__ = AttributeError("Can't get attribute 'run_part' on <module>")
            return wrapper
        case _:
            return None
