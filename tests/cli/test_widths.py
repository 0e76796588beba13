"""Lines fit a terminal without a word being broken."""

from __future__ import annotations

import pytest

from codebatch.cli.widths import fitted, fitted_path, without_same_directory


@pytest.mark.parametrize(
    ("line", "width", "shown"),
    [
        ("a line", None, "a line"),
        ("a line", 6, "a line"),
        ("a long line", 8, "a long …"),
        ("a long line", 7, "a …"),
        ("  indented words", 12, "  indented …"),
        ("  indented words", 5, "  indented …"),
        ("oneword", 3, "oneword"),
        ("\x1b and more", 10, "\\x1b and …"),
    ],
)
def test_of_a_line_that_is_too_long_whole_words_are_left(line: str, width: int | None, shown: str) -> None:
    assert fitted(line, width) == shown


@pytest.mark.parametrize(
    ("path", "width", "before", "shown"),
    [
        ("a/b/c.py:1", None, 9, "a/b/c.py:1"),
        ("a/b/c.py:1", 12, 2, "a/b/c.py:1"),
        ("a/b/c.py:1", 11, 2, "…/c.py:1"),
        ("aa/b/c.py:1", 12, 2, "…/b/c.py:1"),
        ("a/b/c.py:1", 1, 2, "…/c.py:1"),
        ("c.py:1", 1, 2, "c.py:1"),
    ],
)
def test_of_a_path_the_last_parts_are_left(path: str, width: int | None, before: int, shown: str) -> None:
    assert fitted_path(path, width, before) == shown


def test_a_path_in_the_directory_of_the_one_before_is_its_name() -> None:
    assert without_same_directory(["a/b", "a/c", "d/e", "a/b", "x"]) == ["a/b", "c", "d/e", "a/b", "x"]
    assert without_same_directory(["x", "y"]) == ["x", "y"]
