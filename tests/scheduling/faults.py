"""The workers of simulated commands, and their faults."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Literal

from codebatch.model.digest import Digest, digest_bytes
from codebatch.scheduling.work.events import AttemptOutcome, StartCommand


@dataclass
class Worker:
    """A worker process. `at` is the phase of its current command; `behind` are the commands queued behind it.

    `held` are ended commands that it has not reported. `known` is its current command as its coordinator knows it.
    """

    holder: int
    coordinator: int
    start: StartCommand | None = None
    at: Literal["given", "leased", "running", "ended"] = "given"
    ending: Literal["result", "failed", "blocked", "cancelled", "stopped", "unbegun"] = "unbegun"
    asks: Digest | None = None
    questions: int = 0
    told_to_end: Literal["", "cancelled", "stopped"] = ""
    behind: list[StartCommand] = field(default_factory=list)
    held: list[tuple[StartCommand, AttemptOutcome]] = field(default_factory=list)
    known: StartCommand | None = None
    is_recalled: bool = False
    given: list[StartCommand] = field(default_factory=list)

    def give(self, start: StartCommand) -> None:
        """Assign a command to the worker."""
        self.start, self.at = start, "given"
        self.asks, self.questions, self.told_to_end = None, 0, ""
        self.given.append(start)


@dataclass
class Faults:
    """The probabilities of faults per step, and switches for planted bugs."""

    coordinator: float = 0.0
    worker: float = 0.0
    power: float = 0.0
    everybody: float = 0.0
    torn: float = 0.0
    kills_max: int = 12
    sweeps_late: bool = False
    has_volatile_leases: bool = False
    looks_before_exec: bool = True


def end_of(start: StartCommand, ending: str, rng: random.Random) -> AttemptOutcome:
    """Return the outcome of an attempt. If it fails, the reason is drawn."""
    type_ = "cancelled" if ending == "unbegun" else ending
    reason = rng.choice(("exit", "exit", "exit", "stall", "start", "limited")) if type_ == "failed" else None
    return AttemptOutcome(
        item=start.item,
        round=start.round,
        type=type_,  # type: ignore[arg-type] # The remaining endings are outcome types.
        reason="unbegun" if ending == "unbegun" else reason,  # type: ignore[arg-type]
        epoch=start.epoch,
        question=digest_bytes(repr(start).encode()) if type_ == "blocked" else Digest(""),
        until_ns=int(reason == "limited"),
        is_final=reason == "exit" and rng.random() < 0.2,
    )
