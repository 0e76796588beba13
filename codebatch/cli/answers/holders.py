"""Processes that work on a batch, as rows of answers."""

from __future__ import annotations

import datetime

import msgspec

from codebatch.store.batches.holders import HolderFile


class HolderRow(msgspec.Struct, frozen=True, kw_only=True):
    """A process that works on a batch."""

    holder: str
    role: str
    pid: int
    host: str
    since: str


def instant_text(at_ns: int) -> str:
    """Return a time in UTC as text, to the second."""
    return datetime.datetime.fromtimestamp(at_ns / 1e9, tz=datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


def holder_row(holder: HolderFile) -> HolderRow:
    """Return a process as a row."""
    return HolderRow(
        holder=holder.holder,
        role=holder.role,
        pid=holder.pid,
        host=holder.host.name,
        since=instant_text(holder.since_ns),
    )
