"""How long is waited before a command is tried again: longer each time, and not by all at the same moment."""

from __future__ import annotations

from codebatch.model.digest import digest_bytes
from codebatch.model.work.command import CommandId
from codebatch.model.work.work_batch import Policy

JITTER = 0.25
"""The share that is added at most. It is drawn from a digest: who plays a run again waits as long."""

_DRAWN_BITS = 48


def backoff_seconds(policy: Policy, tried: int, *, batch: str, command: CommandId, round_: int) -> float:
    """The seconds to wait before the attempt of a round, after so many tries that failed."""
    seconds = min(policy.backoff_seconds, policy.backoff_seconds_max)
    for _ in range(tried - 1):
        seconds = min(seconds * policy.backoff_factor, policy.backoff_seconds_max)
    drawn = int(digest_bytes(f"{batch}\0{command}\0{round_}".encode())[: _DRAWN_BITS // 4], 16)
    return seconds * (1 + JITTER * drawn / (1 << _DRAWN_BITS))
