"""Processes that work on a batch, as rows of answers."""

from __future__ import annotations

import msgspec

from codebatch.model.text.instants import instant_text
from codebatch.store.batches.holders import HolderFile


class HolderRow(msgspec.Struct, frozen=True, kw_only=True):
    """A process that works on a batch."""

    holder: str
    role: str
    pid: int
    host: str
    since: str


def holder_row(holder: HolderFile) -> HolderRow:
    """Return a process as a row."""
    return HolderRow(
        holder=holder.holder,
        role=holder.role,
        pid=holder.pid,
        host=holder.host.name,
        since=instant_text(holder.since_ns),
    )
