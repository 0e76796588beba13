"""Ids of batches: they sort by the instants that they say, and so in the order in which batches were made."""

from __future__ import annotations

import datetime
import os
import re
from typing import NewType

BatchId = NewType("BatchId", str)

BATCH_ID_PATTERN = re.compile(r"batch-(\d{4})(\d\d)(\d\d)-(\d\d)(\d\d)(\d\d)-(\d{6})-[0-9a-f]{6}\Z", re.ASCII)

MICROSECOND = datetime.timedelta(microseconds=1)
_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)


def id_at(at: datetime.datetime) -> BatchId:
    """A new id that says an instant."""
    return BatchId(f"batch-{at:%Y%m%d-%H%M%S}-{at.microsecond:06d}-{os.urandom(3).hex()}")


def instant_of(batch_id: str) -> datetime.datetime:
    """The instant that an id says. Raises ValueError or OverflowError: what looks like an id may be a stranger's."""
    return datetime.datetime.fromisoformat(BATCH_ID_PATTERN.sub(r"\1-\2-\3T\4:\5:\6.\7+00:00", batch_id))


def instant_after_1970(at_ns: int) -> datetime.datetime:
    """An instant, to the microsecond."""
    return _EPOCH + MICROSECOND * (at_ns // 1000)
