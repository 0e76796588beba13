"""What works on simulated commands, and what goes wrong with it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from codebatch.engine.command_events import Start
from codebatch.model.digest import Digest


@dataclass
class Worker:
    """A worker process. `at` is how far it is with what it was given."""

    holder: int
    coordinator: int
    start: Start | None = None
    at: Literal["given", "leased", "running", "ended"] = "given"
    ending: Literal["result", "failed", "blocked", "cancelled", "unbegun"] = "unbegun"
    asks: Digest | None = None
    questions: int = 0
    is_told_to_end: bool = False


@dataclass
class Faults:
    """What goes wrong, as probabilities a step; and what a careless program would do otherwise."""

    coordinator: float = 0.0
    worker: float = 0.0
    power: float = 0.0
    everybody: float = 0.0
    torn: float = 0.0
    kills_max: int = 12
    sweeps_late: bool = False
    has_volatile_leases: bool = False
    looks_before_exec: bool = True
