"""The interface of an engine, which executes parts of a batch on other machines."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor
from typing import Protocol

import msgspec

RunPart = Callable[[bytes], bytes]
"""A function that executes a capsule and returns an answer (codebatch/engines/part_run.py)."""


class EngineReply(msgspec.Struct, frozen=True, kw_only=True):
    """The reply of one process of an engine: its name, and the returned bytes or the text of an exception."""

    process: str
    answer: bytes | None = None
    error: str = ""


class Engine(Protocol):
    """An engine. All methods may be called at any time before `close`, also while the engine is unreachable.

    - `name`: the engine and its address, for messages, such as `dask tls://host:8786`.
    - `cores_per_slot`: the number of cores that a call of a function may use.
    """

    name: str
    cores_per_slot: int

    @property
    def executor(self) -> Executor:
        """The executor. If a process of the engine dies, the future of its call ends with an exception."""

    def slots(self) -> int:
        """Return the number of calls that the engine can execute at the same time now. It may be 0."""

    def is_alive(self) -> bool:
        """Return whether the engine can be reached. A call that is submitted to a dead engine may never end."""

    def call_everywhere(self, function: RunPart, argument: bytes, seconds: float) -> list[EngineReply]:
        """Call a function in each process of the engine, and return the replies, sorted by process.

        A process that does not reply within `seconds` has an error.
        """

    def close(self) -> None:
        """Disconnect. Calls that have not begun are cancelled. This method does not wait for calls that run."""
