"""The option `--explain`: a report of which data a command has read, from counters."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from codebatch.cli.framework.common_options import common_option
from codebatch.cli.framework.groups import get_global_options
from codebatch.model.text.quantities import count_text, human_bytes

if TYPE_CHECKING:
    from codebatch.operations.queries.batch_query import BatchQuery

EXPLAIN_PARAMETER = "explain"


def _enable_read_report(ctx: click.Context, _: click.Parameter, value: bool) -> None:
    get_global_options(ctx).add_given(None, None, {EXPLAIN_PARAMETER: value})


explain_option = common_option("explain", expose_value=False, callback=_enable_read_report)
"""The option `--explain` of commands that query records: after the answer, report what the command has read.

As a decorator, it can be above or below `with_common_options`.
"""


def read_report_lines(question: BatchQuery) -> Iterator[str]:
    """Yield lines about how many shards and records a query has read. If it read no shards, yield nothing."""
    records = question.records_if_read
    if records is None or not records.reading.shards:
        return
    reading, read = records.reading, records.source.frames_read
    yield (
        f"shard files considered: {reading.shards:,}; {reading.answered_from_counts:,} answered from counts, "
        f"{reading.excluded_by_index:,} excluded by the index, {reading.shards_read:,} read"
        + (f" ({reading.shards_read_in_part:,} partially)" if reading.shards_read_in_part else "")
    )
    frames = f" in {count_text(read.frames, 'frame')}" if read.frames else ""
    yield f"records read: {human_bytes(read.record_bytes)}{frames}; {reading.matched:,} matched"
