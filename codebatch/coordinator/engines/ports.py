"""The ports of an engine loop: its clock, the capsules and answers, and the receiver of notes and progress."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future
from concurrent.futures import wait as wait_for_futures
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

import msgspec

from codebatch.model.capsule import AnswerHeader
from codebatch.model.shard import ShardId
from codebatch.scheduling.analysis.part_dispatcher import EnginePart
from codebatch.system.clock import running_ns

Records = TypeVar("Records")


@dataclass(frozen=True, slots=True, kw_only=True)
class ReceivedAnswer(Generic[Records]):
    """A valid answer: the part, the header, and the records in the form in which they can be committed."""

    part: EnginePart
    header: AnswerHeader
    records: Records


class EngineProgress(msgspec.Struct, frozen=True, kw_only=True):
    """The progress of an engine loop.

    `slots` is the number of free and busy slots, and `parts` the number of parts that are out. `seconds_done` of
    `seconds_planned` are the estimated CPU seconds of finished parts and of all shards.
    """

    slots: int
    parts: int
    shards_done: int
    shards_planned: int
    seconds_done: float
    seconds_planned: float


class EngineWatcher(Protocol):
    """Receiver of the notes and the progress of an engine loop."""

    def note(self, text: str) -> None:
        """Report a note for the user."""

    def update_engine(self, progress: EngineProgress) -> None:
        """Report the progress. This is called after each turn of the loop."""


class EngineClock(Protocol):
    """The clock of an engine loop. It does not advance while the machine is suspended."""

    def now(self) -> float:
        """Return the time in seconds."""

    def wait(self, futures: Collection[Future[bytes]], seconds: float) -> Iterable[Future[bytes]]:
        """Wait until a future is done, but at most `seconds`. Return all futures that are done.

        Without futures, wait `seconds`.
        """


class SystemEngineClock:
    """The clock of the machine."""

    def now(self) -> float:
        """Return the time in seconds."""
        return running_ns() / 1e9

    def wait(self, futures: Collection[Future[bytes]], seconds: float) -> Iterable[Future[bytes]]:
        """Wait until a future is done, but at most `seconds`. Return all futures that are done."""
        if not futures:
            time.sleep(seconds)
        return wait_for_futures(futures, seconds, FIRST_COMPLETED).done


@dataclass(frozen=True, slots=True, kw_only=True)
class PartPorts(Generic[Records]):
    """The operations on the store and its batch that an engine loop needs.

    - `take_leases` takes the leases of a part's shards that this process does not hold yet. It returns the shards that
      another process holds.
    - `make_capsule` returns the capsule of a part.
    - `read_answer` returns the header and the records of an answer. It raises ValueError if the bytes are not an
      answer, or if its records cannot be committed.
    - `commit` commits answers, and returns the number of results that were new.
    """

    take_leases: Callable[[EnginePart], Collection[ShardId]]
    make_capsule: Callable[[EnginePart], bytes]
    read_answer: Callable[[bytes], tuple[AnswerHeader, Records]]
    commit: Callable[[Sequence[ReceivedAnswer[Records]]], int]
