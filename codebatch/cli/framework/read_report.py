"""The option `--explain`: a report of what a run has read, from its counters."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from codebatch.cli.framework.common_options import common_option
from codebatch.cli.framework.groups import global_options_of
from codebatch.model.text.quantities import count_of, human_bytes

if TYPE_CHECKING:
    from codebatch.operations.queries.batch_query import BatchQuery

EXPLAIN = "explain"


def _take(ctx: click.Context, _: click.Parameter, value: bool) -> None:
    global_options_of(ctx).take(None, None, {EXPLAIN: value})


explain_option = common_option("explain", expose_value=False, callback=_take)
"""The option for every command that reads. It can be added before or after `with_common_options`."""


def explained(question: BatchQuery) -> Iterator[str]:
    """Yield lines about how many shards and records a query has read. If it read no shards, yield nothing."""
    records = question.records_asked
    if records is None or not records.reading.shards:
        return
    reading, read = records.reading, records.source.frames_read
    yield (
        f"shard files considered: {reading.shards:,}; {reading.told_by_counts:,} answered from counts, "
        f"{reading.left_out_by_index:,} excluded by the index, {reading.shards_read:,} read"
        + (f" ({reading.shards_read_in_part:,} partially)" if reading.shards_read_in_part else "")
    )
    frames = f" in {count_of(read.frames, 'frame')}" if read.frames else ""
    yield f"records read: {human_bytes(read.record_bytes)}{frames}; {reading.matched:,} matched"
