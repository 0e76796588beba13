"""What is said where nothing was found: of how much that holds."""

from __future__ import annotations

from typing import TYPE_CHECKING

from codebatch.model.text.quantities import count_of

if TYPE_CHECKING:
    from codebatch.cli.framework.record_types import RecordQuery
    from codebatch.operations.api.batch import Batch
    from codebatch.operations.queries.search_volume import SearchedVolume


def none_found(batch: Batch, asked: RecordQuery) -> str:
    """That no record of a noun was found, of how many. Empty where it was told that no file is of the language."""
    from codebatch.cli.framework.record_types import NOUNS
    from codebatch.query.filters.record_options import filter_of

    wanted = filter_of(asked.filters)
    if set(wanted.languages) - set(batch.question.records.languages.values() if wanted.languages else ()):
        return ""
    noun = asked.noun if NOUNS[asked.noun].kinds else "records"
    there = batch.looked_at(wanted.possible_kinds, asked.filters.get("task"))
    if not there.records:
        return f"no {noun}{_in_files(there)}"
    behind = f" after the first {asked.offset:,}" if asked.offset else ""
    return f"no matching {noun}{behind} (searched {there.records:,}{_in_files(there)})"


def told_of(batch: Batch, kind: str) -> str:
    """How many records of a kind were looked at, in how many files."""
    there = batch.looked_at((kind,))
    return f"{count_of(there.records, kind)}{_in_files(there)}"


def _in_files(there: SearchedVolume) -> str:
    return "" if there.files is None else f" in {count_of(there.files, 'file')}"
