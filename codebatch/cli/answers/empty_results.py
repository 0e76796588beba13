"""Notes for empty results. They say how much was searched."""

from __future__ import annotations

from typing import TYPE_CHECKING

from codebatch.model.text.quantities import count_of
from codebatch.operations.api.batch import Batch
from codebatch.query.filters.record_options import filter_of

if TYPE_CHECKING:
    from codebatch.cli.framework.record_types import RecordQuery
    from codebatch.operations.queries.search_volume import SearchedVolume


def none_found(batch: Batch, asked: RecordQuery) -> str:
    """Return a note that no record matched, with the number of records that were searched.

    The note is empty if another note reports an unknown language.
    """
    from codebatch.cli.framework.record_types import NOUNS

    filter_ = filter_of(asked.filters)
    if set(filter_.languages) - set(batch.question.records.languages.values() if filter_.languages else ()):
        return ""
    noun = asked.noun if NOUNS[asked.noun].kinds else "records"
    volume = batch.looked_at(filter_.possible_kinds, asked.filters.get("task"))
    if not volume.records:
        return f"no {noun}{_in_files(volume)}"
    behind = f" after the first {asked.offset:,}" if asked.offset else ""
    return f"no matching {noun}{behind} (searched {volume.records:,}{_in_files(volume)})"


def searched_text(batch: Batch, kind: str) -> str:
    """Return a text with the number of records of a kind, and the number of files, that were searched."""
    volume = batch.looked_at((kind,))
    return f"{count_of(volume.records, kind)}{_in_files(volume)}"


def _in_files(volume: SearchedVolume) -> str:
    return "" if volume.files is None else f" in {count_of(volume.files, 'file')}"
