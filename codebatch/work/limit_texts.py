"""Texts about limits: closed pools, caps and deadlines."""

from __future__ import annotations

import datetime
import shlex
from collections.abc import Collection, Mapping, Sequence

from codebatch.model.work.question import cap_use_text
from codebatch.scheduling.work.caps import MetCap
from codebatch.scheduling.work.command_plan import SLOTS_POOL
from codebatch.system.clock import wall_ns


def pools_closed_now(closed: Mapping[str, int]) -> dict[str, int]:
    """Return the pools that are still closed, sorted by name, with the times when they open."""
    now_ns = wall_ns()
    return {pool: until_ns for pool, until_ns in sorted(closed.items()) if until_ns > now_ns}


def closed_pool_texts(closed: Mapping[str, int], by_hours: Collection[str] = ()) -> list[str]:
    """Return a text for each pool that is still closed, with the time when it opens.

    The pools `by_hours` are closed because of the hours, and the others because of a rate limit.
    """
    return [closed_pool_text(pool, until_ns, by_hours) for pool, until_ns in pools_closed_now(closed).items()]


def closed_pool_text(pool: str, until_ns: int, by_hours: Collection[str]) -> str:
    """Return a text about a closed pool, with the time when it opens."""
    if pool == SLOTS_POOL:
        return f"starts at {clock_time(until_ns, has_zone=True)}"
    return f"{wait_text([pool], until_ns)}: {'outside its hours' if pool in by_hours else 'rate limited'}"


def silence_text(since_ns: int) -> str:
    """Return a text about a process that runs a batch and has not reported since a time."""
    return f"not responding since {clock_time(since_ns)}"


def cap_text(cap: MetCap, unit: str) -> str:
    """Return a text about a cap that is met, with its figures and the way to raise it."""
    if cap.name == "deadline":
        return f"the deadline has passed: {clock_time(round(cap.limit), has_zone=True)}"
    return cap_use_text(*cap) + (f" {unit}" if unit and cap.name == "cost_max" else "")


def wait_text(pools: Sequence[str], until_ns: int) -> str:
    """Return a text about pools that wait for the end of a rate limit, with the time `until_ns` when it ends."""
    closed = f"pool {', '.join(pools)} closed" if pools else "waiting"
    return f"{closed} until {clock_time(until_ns)}"


def clock_time(at_ns: int, *, has_zone: bool = False) -> str:
    """Return a local time as text: `14:05:30`. If it is not today, the date is added: `2026-07-01 14:05:30`.

    With `has_zone`, the name of the local zone follows.
    """
    at = datetime.datetime.fromtimestamp(at_ns / 1e9).astimezone()
    is_today = at.date() == datetime.datetime.now(at.tzinfo).date()
    text = f"{at:%H:%M:%S}" if is_today else f"{at:%Y-%m-%d %H:%M:%S}"
    return f"{text} {at:%Z}" if has_zone else text


def raise_hint(cap: MetCap, batch: str) -> str:
    """Return a hint that names the commands which raise a cap and continue the batch."""
    kind, _, name = cap.scope.partition(".")
    scope = {"": "", "pool": f"{cap.scope}.", "task": f"{shlex.quote(name)} "}[kind]
    value = "TIME" if cap.name == "deadline" else f"{max(2 * cap.limit, cap.limit + cap.used):g}"
    change = f"codebatch work set {scope}{cap.name.replace('_max', '-max')}={value} --batch {batch}"
    return f"raise it: {change}; then: codebatch resume --batch {batch}"
