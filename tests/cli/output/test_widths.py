"""Lines fit the width of a terminal, and no word is broken."""

from __future__ import annotations

import re
from typing import cast

import pytest

from codebatch.cli.answers.headline import headline_lines
from codebatch.cli.output.widths import fit_line, fit_path, hide_repeated_directories
from codebatch.operations.queries.batch_query import BatchQuery
from codebatch.operations.queries.duplicate_blocks import DuplicateBlock, DuplicateLocation
from codebatch.operations.runs.headline import Headline
from tests.cli.terminal import on_a_terminal
from tests.support.command_line import CommandLine, write


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
def test_overlong_line_is_cut_at_a_word_boundary(line: str, width: int | None, shown: str) -> None:
    assert fit_line(line, width) == shown


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
def test_overlong_path_retains_its_last_parts(path: str, width: int | None, before: int, shown: str) -> None:
    assert fit_path(path, width, before) == shown


def test_directory_equal_to_that_of_the_previous_path_is_omitted() -> None:
    assert hide_repeated_directories(["a/b", "a/c", "d/e", "a/b", "x"]) == ["a/b", "c", "d/e", "a/b", "x"]
    assert hide_repeated_directories(["x", "y"]) == ["x", "y"]


def test_duplicate_blocks_of_the_first_screen_are_cut_only_in_their_paths() -> None:
    paths = ("first/of/several/directories/a.py", "second/of/several/directories/b.py")
    block = DuplicateBlock(
        number=1,
        group="g",
        lines=20,
        copies=2,
        locations=tuple(DuplicateLocation(path=path, line=7, end_line=30) for path in paths),
    )
    headline = Headline(duplicates=(block,), duplicates_count=1)
    for width in range(31, 100):  # The shortest paths need 31.
        _, shown = headline_lines(headline, cast("BatchQuery", None), str, width)
        assert len(shown) <= width
        assert [place.rpartition("/")[2] for place in shown.split()[2::2]] == ["a.py:7", "b.py:7"]


DEEP = "packages/server/src/unstable-core-do-not-import/http"


@pytest.fixture(scope="module")
def deep(tmp_path_factory: pytest.TempPathFactory) -> CommandLine:
    """A tree with long directory names. Tests only read it."""
    codebatch = CommandLine(tmp_path_factory.mktemp("deep"))
    body = "".join(
        f"  value{index} = computeIt({{ number: {index}, other: 'the same as before' }});\n" for index in range(12)
    )
    for number in range(4):
        write(
            codebatch.directory / "tree" / DEEP / f"adapter{number}" / "resolveResponse.js",
            f"import {{ f }} from '../adapter{(number + 1) % 4}/resolveResponse.js';\n"
            f"export function resolveResponse(x) {{\n  if (x) {{ f(); }}\n{body}}}\nexport {{ f }};\n",
        )
    codebatch("run", "tree", "--store", "store", "-q")
    return codebatch


@pytest.mark.parametrize(
    "words",
    [
        ("hotspots", "--min", "1"),
        ("hotspots", "--files"),
        ("impact", f"{DEEP}/adapter0/resolveResponse.js"),
        ("graph",),
        ("graph", "--cycles"),
        ("duplicates", "--limit", "1"),
        ("query", "metrics", "-o", "table"),
        ("query", "duplicates", "-o", "table"),
    ],
)
def test_no_path_is_broken_at_80_columns(deep: CommandLine, words: tuple[str, ...]) -> None:
    """The first directories of a path are omitted on a terminal. In a pipe, the path is complete."""
    shown, _ = on_a_terminal(deep, *words, "--store", "store", "--no-color", "-q", columns=80)
    lines = shown.splitlines()
    assert lines
    assert max(map(len, lines)) <= 80
    names = [word for line in lines for word in line.split() if "resolveResponse.js" in word]
    assert names
    assert all(re.fullmatch(r"((…|packages)/\S*)?resolveResponse\.js(:\d+)?;?", name) for name in names)
    piped = deep(*words, "--store", "store", "-q").text
    assert f"{DEEP}/adapter1/resolveResponse.js" in piped
