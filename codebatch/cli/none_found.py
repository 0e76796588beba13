"""What is said where nothing was found: of how much that holds."""

from __future__ import annotations

from codebatch.application.asking import Question
from codebatch.application.looked_at import looked_at
from codebatch.cli.filtering import NOUNS, Asked
from codebatch.model.quantities import count_of
from codebatch.query.filters import RecordFilter


def none_found(question: Question, asked: Asked, wanted: RecordFilter) -> str:
    """That no record of a noun was found, of how many. Empty where it was told that no file is of the language."""
    if set(wanted.languages) - set(question.records.languages.values() if wanted.languages else ()):
        return ""
    noun = asked.noun if NOUNS[asked.noun].kinds else "records"
    there = looked_at(question, wanted.possible_kinds, asked.task)
    files = count_of(there.files, "file")
    if not there.records:
        return f"no {noun} in {files}"
    behind = f" behind the first {asked.shape.offset:,}" if asked.shape.offset else ""
    return f"no {noun} match{behind}, of {there.records:,} in {files}"


def told_of(question: Question, kind: str) -> str:
    """How many records of a kind were looked at, in how many files."""
    there = looked_at(question, (kind,))
    return f"{count_of(there.records, kind)} in {count_of(there.files, 'file')}"
