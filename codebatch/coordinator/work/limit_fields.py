"""Fields of events about limits and waits: closed pools, costs, met caps and delays before retries."""

from __future__ import annotations

from codebatch.model.work import event as events
from codebatch.scheduling.lifecycle import CommandState
from codebatch.scheduling.work.conductor import Conductor
from codebatch.scheduling.work.events import AttemptOutcome


def closed_pool_fields(conductor: Conductor) -> tuple[events.ClosedPool, ...]:
    """Return the closed pools, sorted by name."""
    limited = conductor.rate_limited_pools
    return tuple(
        events.ClosedPool(
            pool=pool, until=events.instant_ms(until_ns), reason="limited" if pool in limited else "hours"
        )
        for pool, until_ns in sorted(conductor.closed_pools.items())
    )


def cost_fields(conductor: Conductor) -> dict[str, object]:
    """Return the cost of the batch so far, its unit, and the caps that are met."""
    caps = tuple(
        events.CapReached(scope=cap.scope, cap=cap.name, limit=cap.limit, used=cap.used) for cap in conductor.met_caps()
    )
    return {"cost": conductor.cost, "cost_unit": conductor.agenda.limits.cost_unit, "caps": caps}


def wait_fields(conductor: Conductor, conclusion: AttemptOutcome) -> dict[str, object]:
    """Return the event fields with the time that a failed command waits before its next try."""
    item = conclusion.item
    if conductor.last_outcome(item) is not conclusion or conductor.state(item) is not CommandState.WAITING:
        return {}
    if until_ns := conductor.until_ns(item):
        return {"until": events.instant_ms(until_ns), "pools": tuple(conductor.agenda.policies[item].pools)}
    return {"wait_seconds": round(conductor.wait_seconds(item), 3)}


def pool_delays(conductor: Conductor, now_ns: int) -> dict[int, float]:
    """Map items to the seconds until their pools open and their own rate limits end. Other items are left out."""
    if not conductor.has_timers:
        return {}
    closed = conductor.closed_pools
    waits = {
        item: max(conductor.until_ns(item), *(closed.get(pool, 0) for pool, _ in demand), 0) - now_ns
        for item, demand in enumerate(conductor.agenda.demands)
    }
    return {item: wait_ns / 1e9 for item, wait_ns in waits.items() if wait_ns > 0}
