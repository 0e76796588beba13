"""The error for work that processes on other hosts have leased. This host cannot check whether they are alive."""

from __future__ import annotations

import datetime
from collections.abc import Mapping

from codebatch.errors import BatchIncomplete
from codebatch.model.text.quantities import count_text
from codebatch.scheduling.events import UnitKey
from codebatch.store.batches.holders import HolderFile

_HOLDERS_SHOWN_MAX = 3


def blocked_by_remote_holders(batch_id: str, holders_by_unit: Mapping[UnitKey, HolderFile]) -> BatchIncomplete:
    """Return the error of a run that waited in vain for processes on other hosts to finish their units.

    It lists these processes, each with its host, start time and number of units.
    """
    holders = {holder.holder: holder for holder in holders_by_unit.values()}
    counts = {name: sum(holder.holder == name for holder in holders_by_unit.values()) for name in holders}
    leased = [_describe_holder(holder, counts[name]) for name, holder in list(holders.items())[:_HOLDERS_SHOWN_MAX]]
    more = f", and {len(holders) - _HOLDERS_SHOWN_MAX} more" if len(holders) > _HOLDERS_SHOWN_MAX else ""
    return BatchIncomplete(
        f"processes on other hosts hold leases on the remaining work, but make no progress: {'; '.join(leased)}{more}",
        hint=f"if these processes are dead, take over their work: codebatch run --batch {batch_id} "
        "--take-over; if a process is still alive, some work is done twice, but nothing is lost",
    )


def _describe_holder(holder: HolderFile, units: int) -> str:
    since = datetime.datetime.fromtimestamp(holder.since_ns / 1e9, tz=datetime.timezone.utc)
    process = f"pid {holder.pid} on {holder.host.name!r}"
    return f"{count_text(units, 'unit')} leased by {process} since {since:%Y-%m-%dT%H:%M:%SZ} ({holder.holder})"
