"""Tests of the conformance table: every construct is analysed as the language's specification says.

A construct with a `gap` must fail. If it no longer fails, the test demands that its `gap` is deleted. To add a
construct, copy one in `tests/conformance/<language>.toml`. `codebatch files` shows the name of a language.
"""

from __future__ import annotations

import pytest

from tests.conformance.page import PAGE, page_with_table
from tests.conformance.table import constructs_of, faults_of, languages


@pytest.mark.parametrize("language", languages())
def test_constructs_match_their_specification(language: str) -> None:
    wrong: dict[str, list[str]] = {}
    for construct in constructs_of(language):
        faults = faults_of(language, construct)
        if construct.gap and not faults:
            wrong[construct.name] = ["no longer a gap: delete its `gap`"]
        elif faults and not construct.gap:
            wrong[construct.name] = faults
    assert wrong == {}


@pytest.mark.parametrize("language", languages())
def test_construct_names_are_unique_and_gaps_are_sentences(language: str) -> None:
    constructs = constructs_of(language)
    names = [construct.name for construct in constructs]
    assert sorted(names) == sorted(set(names))
    assert [construct.name for construct in constructs if construct.gap and not construct.gap[0].isupper()] == []
    assert [construct.name for construct in constructs if not construct.since or not construct.code] == []


def test_help_page_matches_the_conformance_table() -> None:
    """If this fails after a change of the table, run `python -m tests.conformance`."""
    page = PAGE.read_text(encoding="utf-8")
    assert page_with_table(page) == page
