"""Names of languages that include variants."""

from __future__ import annotations

import pytest

from codebatch.model.analysis.language_groups import unknown_languages, with_variants


def test_variants_follow_their_language_once() -> None:
    assert with_variants(["typescript", "go", "tsx", "bash"]) == ("typescript", "tsx", "go", "bash", "zsh")


@pytest.mark.parametrize(
    ("named", "known", "unknown"),
    [
        (["typescript"], ["tsx"], []),
        (["typescript", "tsx"], ["typescript"], []),
        (["tsx"], ["typescript"], ["tsx"]),
        (["typescript", "tsx", "go"], ["python"], ["typescript", "go"]),
    ],
)
def test_language_with_a_known_variant_is_known(named: list[str], known: list[str], unknown: list[str]) -> None:
    assert list(unknown_languages(named, known)) == unknown
