"""Exponential backoff with jitter between the tries of a command."""

from __future__ import annotations

from codebatch.model.digest import digest_bytes
from codebatch.model.work.command import CommandId
from codebatch.model.work.work_batch import TaskPolicy

JITTER_SHARE_MAX = 0.25
"""Maximum jitter as a share of the waiting time.

The jitter is computed from a digest, so a replay computes the same times.
"""

RATE_LIMIT_GROWTH_SECONDS_MAX = 3600.0

_DRAWN_BITS = 48


def backoff_seconds(policy: TaskPolicy, failed_tries: int, *, batch: str, command: CommandId, round_: int) -> float:
    """Return the seconds to wait before the attempt in round `round_`, after `failed_tries` failed tries."""
    seconds = min(policy.backoff_seconds, policy.backoff_seconds_max)
    for _ in range(failed_tries - 1):
        seconds = min(seconds * policy.backoff_factor, policy.backoff_seconds_max)
    drawn = int(digest_bytes(f"{batch}\0{command}\0{round_}".encode())[: _DRAWN_BITS // 4], 16)
    return seconds * (1 + JITTER_SHARE_MAX * drawn / (1 << _DRAWN_BITS))


def rate_limit_seconds(seconds: float, waits: int) -> float:
    """Return the seconds to wait after a rate limit that the output says to last `seconds`.

    It is the number `waits` in a row. Each repetition doubles the time, up to RATE_LIMIT_GROWTH_SECONDS_MAX: a program
    that is limited again at once gave a wrong time, or its output matches by mistake.
    """
    grown = min(seconds * (1 << min(waits - 1, 30)), RATE_LIMIT_GROWTH_SECONDS_MAX)
    return max(seconds, grown)
