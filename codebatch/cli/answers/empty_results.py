"""Notes for empty results, with the number of records and files that were searched."""

from __future__ import annotations

from typing import TYPE_CHECKING

from codebatch.model.text.quantities import count_text
from codebatch.operations.api.batch import Batch
from codebatch.query.filters.record_options import make_filter

if TYPE_CHECKING:
    from codebatch.cli.framework.record_types import RecordQuery
    from codebatch.operations.queries.search_volume import SearchVolume


def no_records_note(batch: Batch, query: RecordQuery) -> str:
    """Return a note that no record matched, with the number of records that were searched.

    The note is empty if another note reports an unknown language.
    """
    from codebatch.cli.framework.record_types import RECORD_TYPES_BY_NOUN
    from codebatch.operations.queries.unmatched_filters import unmatched_filters

    filter_ = make_filter(query.filters)
    if set(filter_.languages) - set(batch.question.records.languages.values() if filter_.languages else ()):
        return ""
    if unmatched := [*unmatched_filters((batch.question,), filter_)]:
        return "; ".join(unmatched)
    noun = query.noun if RECORD_TYPES_BY_NOUN[query.noun].kinds else "records"
    volume = batch.count_searched(filter_.possible_kinds, query.filters.get("task"))
    if not volume.records:
        return f"no {noun}{_file_count_text(volume)}"
    behind = f" after the first {query.offset:,}" if query.offset else ""
    return f"no matching {noun}{behind} (searched {volume.records:,}{_file_count_text(volume)})"


def _file_count_text(volume: SearchVolume) -> str:
    return "" if volume.files is None else f" in {count_text(volume.files, 'file')}"
