"""Tables are at most as wide as the terminal. No word is broken or omitted."""

from __future__ import annotations

import re

from hypothesis import example, given
from hypothesis import strategies as st

from codebatch.cli.output.tables import align_rows, table_lines, wrap_text

LONG = "a/path/that/is/longer/than/what/fits.py"
ROWS = [
    ["distance", "path", "imports", "resolution"],
    ["1", "a.py", "b.py:3", "exact"],
    ["1,200", LONG, "c.py:80", "one file fits"],
]


def test_columns_of_a_table_that_fits_are_as_wide_as_their_longest_cells() -> None:
    assert align_rows(ROWS, 100) == [
        "distance  path                                     imports  resolution",
        "       1  a.py                                     b.py:3   exact",
        "   1,200  a/path/that/is/longer/than/what/fits.py  c.py:80  one file fits",
    ]


def test_row_continues_on_the_next_line_after_an_overlong_cell() -> None:
    assert align_rows(ROWS, 50)[1:] == [
        "       1  a.py              b.py:3   exact",
        f"   1,200  {LONG}",
        "                            c.py:80  one file fits",
    ]


def test_cells_are_stacked_if_no_column_fits() -> None:
    assert align_rows(ROWS, 20)[4:8] == ["1", "  a.py", "  b.py:3", "  exact"]


def test_long_cell_widens_only_its_own_line_in_a_pipe() -> None:
    long = [*ROWS, ["3", "x" * 60, "d.py:1", "exact"]]
    lines = align_rows(long, None)
    assert len(lines) == len(long)
    assert lines[1] == f"       1  {'a.py':40}  b.py:3   exact"
    assert lines[3].endswith(f"{'x' * 60}  d.py:1   exact")


CELLS = st.lists(st.text("ab c", max_size=30).map(str.strip), min_size=3, max_size=3)


@given(st.lists(CELLS, min_size=1, max_size=6), st.integers(1, 60))
@example([["", "", "aaaaaa aaaaaaaaaa"], ["aaaaaaaaaa aaaa", "aaaaaaaaaa aaaaa", ""]], 44)
def test_table_of_any_width_breaks_and_omits_no_word(rows: list[list[str]], columns: int) -> None:
    """No line is wider than the terminal, unless a word is too long for it."""
    lines = align_rows(rows, columns)
    words = sorted(word for row in rows for cell in row for word in cell.split())
    assert sorted(word for line in lines for word in line.split()) == words
    longest = max((len(word) for word in words), default=0)
    if longest <= columns - 2:
        assert max(map(len, lines)) <= columns


PATHS = st.lists(st.text("ab1", min_size=1, max_size=12), min_size=1, max_size=5).map("/".join)


@given(
    st.lists(st.tuples(PATHS, st.sampled_from(["f", "a_function"]), PATHS), min_size=1, max_size=6), st.integers(30, 90)
)
def test_paths_are_shortened_at_the_front_to_fit_the_terminal(rows: list[tuple[str, str, str]], columns: int) -> None:
    lines = align_rows([["path", "function", "place"], *map(list, rows)], columns, [0, 2])
    assert max(map(len, lines)) <= columns
    shown = " ".join(lines[1:]).split()
    for path, function, place in rows:
        assert function in shown
        for cell in (path, place):
            assert any(word == cell or (word.startswith("…/") and cell.endswith(word[1:])) for word in shown)


def test_paths_shrink_before_other_columns() -> None:
    rows = [
        ["used", "function", "place"],
        ["3", "TypeChecker.check_func_def", "packages/server/src/unstable/core.py:12"],
    ]
    assert align_rows(rows, 60, [2]) == [
        "used  function                    place",
        "   3  TypeChecker.check_func_def  …/src/unstable/core.py:12",
    ]
    assert align_rows(rows, None, [2])[1] == f"   3  TypeChecker.check_func_def  {rows[1][2]}"


def test_word_too_wide_for_its_column_moves_to_a_line_of_its_own() -> None:
    rows = [["count", "name"], ["3", "x" * 30], ["4", "y"]]
    assert align_rows(rows, 32) == ["count  name", "    3", f"  {'x' * 30}", "    4  y"]


@given(st.text("ab ", max_size=60), st.integers(1, 30))
def test_wrapped_text_has_the_same_words(text: str, columns: int) -> None:
    lines = wrap_text(text, columns, "  ")
    assert re.sub(r"\s+", " ", " ".join(lines)).strip() == re.sub(r"\s+", " ", text).strip()
    assert all(len(line) <= columns or " " not in line.strip() for line in lines)


def test_column_width_counts_escaped_characters() -> None:
    lines = table_lines([["a\tb\u202e", "x"], ["c", "y"]], ("name", "value"), columns=None)
    assert lines == ["name        value", "a\\tb\\u202e  x", "c           y"]
