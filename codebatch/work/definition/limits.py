"""Conversion of the limits of a task list and the policies of its tasks (SPEC.md "Limits")."""

from __future__ import annotations

import datetime
import zoneinfo
from collections.abc import Mapping, Sequence
from typing import TypeVar

from msgspec import UNSET, UnsetType

from codebatch.model.text.instants import parse_instant
from codebatch.model.work.limits import NO_LIMITS, Caps, WorkLimits, find_hours_problem, local_time
from codebatch.model.work.work_batch import DEFAULT_POLICY, RETRY_REASONS, WAITS_MAX, TaskPolicy
from codebatch.system.clock import wall_ns
from codebatch.work.definition.problems import DefinitionProblems
from codebatch.work.definition.tables import PoolSettings, SettingsTable, TaskTable

_Number = TypeVar("_Number", int, float)


def make_limits(
    tables: Sequence[SettingsTable], start_at_ns: int, place: object, problems: DefinitionProblems
) -> WorkLimits:
    """Return the limits of a list. Those of the first file apply, and the pools of all files.

    A time of day in `deadline` is the first one after the start of the batch. Errors are added to `problems`.
    """
    first = tables[0]
    pools: dict[str, PoolSettings] = {}
    for table in reversed(tables):
        pools |= {name: pool for name, pool in table.pools.items() if isinstance(pool, PoolSettings)}
    texts = {"hours": first.hours, **{f"hours` of pool `{name}": pool.hours for name, pool in pools.items()}}
    for key, text in texts.items():
        if text and (problem := find_hours_problem(text)):
            problems.add(f"{place} sets `{key}` to {text!r}: {problem}")
    zone = first.zone
    if zone and not _is_zone(zone):
        problems.add(f"{place} sets `zone` to {zone!r}, which is not a known time zone", "for example: Europe/Berlin")
        zone = ""
    deadline_ns = next_instant_ns(first.deadline, zone, start_at_ns or wall_ns()) if first.deadline else 0
    if deadline_ns is None:
        hint = 'for example: deadline = "08:00", or "2026-07-01T08:00:00+02:00"'
        problems.add(f"{place} sets `deadline` to {first.deadline!r}, which is not a time", hint)
    caps = {
        name: Caps(cost_max=_given(pool.cost_max), attempts_max=_given(pool.attempts_max))
        for name, pool in pools.items()
    }
    limits = WorkLimits(
        cost_max=_given(first.cost_max),
        attempts_max=_given(first.attempts_max),
        pools={name: each for name, each in caps.items() if each != Caps()},
        on_cap=first.on_cap,
        cost_unit=first.cost_unit,
        deadline_ns=deadline_ns or 0,
        start_at_ns=start_at_ns,
        hours=first.hours,
        pool_hours={name: pool.hours for name, pool in pools.items() if pool.hours},
        zone=zone,
    )
    return NO_LIMITS if limits == NO_LIMITS else limits


def next_instant_ns(text: str, zone: str, now_ns: int) -> int | None:
    """Return the time that a text denotes, in ns, or None. A time of day is the next one after `now_ns`."""
    now = local_time(now_ns, zone)
    at = parse_instant(text, now)
    if at is None:
        return None
    if at.tzinfo is now.tzinfo and "-" not in text and not text.strip().isdecimal():
        days = datetime.timedelta(days=1 if at <= now else 0)
        # The offset from UTC is determined for the new day, because it can differ from that of today.
        naive = at.replace(tzinfo=None) + days
        at = naive.replace(tzinfo=zoneinfo.ZoneInfo(zone)) if zone else naive.astimezone()
    return round(at.timestamp()) * 1_000_000_000


def task_has_cost(task: TaskTable) -> bool:
    """Return whether a task reports a cost, so that caps on cost apply to it."""
    return task.result is not UNSET and bool(task.result.cost)


def check_task_limits(task: TaskTable, place: object, problems: DefinitionProblems) -> None:
    """Report limits of a task that can have no effect."""
    if task.cost_max is not UNSET and (task.result is UNSET or not task.result.cost):
        problems.add(
            f"{place} sets `cost_max` without `result.cost`", 'for example: result = {cost = "/total_cost_usd"}'
        )
    if (task.waits_max != WAITS_MAX or task.wait_seconds_max is not UNSET) and not task.wait_if:
        problems.add(f"{place} limits the waits for rate limits, but has no `wait_if`", "set `wait_if`")


def check_list_limits(
    limits: WorkLimits, has_costs: Sequence[bool], place: object, problems: DefinitionProblems
) -> None:
    """Report a cap on cost if no task that it applies to reports a cost."""
    if any(caps.cost_max is not None for caps in (Caps(cost_max=limits.cost_max), *limits.pools.values())) and not any(
        has_costs
    ):
        problems.add(
            f"{place} sets `cost_max`, but no task reports its cost",
            'for example: [defaults] result = {cost = "/cost"}',
        )


def pool_sizes(pools: Mapping[str, int | PoolSettings]) -> dict[str, int]:
    """Return the size of each pool."""
    return {name: pool.size if isinstance(pool, PoolSettings) else pool for name, pool in pools.items()}


def _given(value: _Number | UnsetType) -> _Number | None:
    return None if value is UNSET else value


def _is_zone(name: str) -> bool:
    try:
        zoneinfo.ZoneInfo(name)
        return True
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        return False


def make_policy(task: TaskTable, retries: int, *, has_cost: bool) -> TaskPolicy:
    """Return the policy of a task. `retries` is the maximum number of its retries."""
    policy = TaskPolicy(
        priority=task.priority,
        pools=task.pools,
        exclusive=task.exclusive,
        if_interrupted=task.if_interrupted,
        restarts_max=task.restarts_max,
        expected_seconds=None if task.expected_seconds is UNSET else task.expected_seconds,
        retries=retries,
        backoff_seconds=task.backoff_seconds,
        backoff_factor=task.backoff_factor,
        backoff_seconds_max=task.backoff_seconds_max,
        retry_reasons=RETRY_REASONS if task.retry_reasons == RETRY_REASONS else task.retry_reasons,
        on_exhausted=task.on_exhausted,
        on_stall=task.on_stall,
        cost_max=None if task.cost_max is UNSET else task.cost_max,
        attempts_max=None if task.attempts_max is UNSET else task.attempts_max,
        waits_max=task.waits_max,
        wait_seconds_max=None if task.wait_seconds_max is UNSET else task.wait_seconds_max,
        has_cost=has_cost,
    )
    return DEFAULT_POLICY if policy == DEFAULT_POLICY else policy
