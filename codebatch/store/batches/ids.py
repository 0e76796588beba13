"""IDs of batches. Each contains the time of its creation, so IDs sort by creation time."""

from __future__ import annotations

import datetime
import os
import re
from typing import NewType

BatchId = NewType("BatchId", str)

BATCH_ID_PATTERN = re.compile(r"batch-(\d{4})(\d\d)(\d\d)-(\d\d)(\d\d)(\d\d)-(\d{6})-[0-9a-f]{6}\Z", re.ASCII)

ONE_MICROSECOND = datetime.timedelta(microseconds=1)
_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)


def batch_id_at(at: datetime.datetime) -> BatchId:
    """Return a new ID that contains a time."""
    return BatchId(f"batch-{at:%Y%m%d-%H%M%S}-{at.microsecond:06d}-{os.urandom(3).hex()}")


def batch_id_instant(batch_id: str) -> datetime.datetime:
    """Return the time in an ID.

    Raises ValueError or OverflowError if a name matches the pattern but is not a valid date.
    """
    return datetime.datetime.fromisoformat(BATCH_ID_PATTERN.sub(r"\1-\2-\3T\4:\5:\6.\7+00:00", batch_id))


def instant_after_1970(at_ns: int) -> datetime.datetime:
    """Convert nanoseconds since the epoch to a time with microsecond precision."""
    return _EPOCH + ONE_MICROSECOND * (at_ns // 1000)
