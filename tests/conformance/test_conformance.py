"""Every construct of the conformance table is read as its language's specification says.

A construct with a `gap` must fail: one that begins to work is noticed, and its `gap` is deleted. To add a construct,
copy one in the file of its language: `tests/conformance/<language>.toml`, named as `codebatch files` names it.
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
    assert [each.name for each in constructs if each.gap and not each.gap[0].isupper()] == []
    assert [each.name for each in constructs if not each.since or not each.code] == []


def test_help_page_matches_the_conformance_table() -> None:
    """Run `python -m tests.conformance` after a change of the table."""
    page = PAGE.read_text(encoding="utf-8")
    assert page_with_table(page) == page
