"""`inspect FILE` shows a file's metrics, most complex functions and findings on one screen, or similar paths."""

from __future__ import annotations

import pytest

from tests.support.command_line import CommandLine, Ended, write

CODE = """\
import os


def easy(x):
    return x


def hard(x):
    if x:
        if os:
            return easy(x)
    return 0


\tassert x, "\x1b[31m"  # no code
"""


@pytest.fixture(scope="module")
def analysed(tmp_path_factory: pytest.TempPathFactory) -> CommandLine:
    """A tree and its batch. Tests only read it."""
    codebatch = CommandLine(tmp_path_factory.mktemp("looked"))
    tree = codebatch.directory / "tree"
    write(tree / "app/core.py", "def f(a, b=[]):\n    if a:\n        return eval(b)\n    return c\n")
    write(tree / "app/user.py", "import app.core\n")
    write(tree / "app/__init__.py", "")
    write(tree / "app/harder.py", CODE.partition("\t")[0])
    write(tree / "lib/core.py", "import app.user\n")
    write(tree / "steered.py", "\tx = '\x1b[31m' + eval(y)\n".replace("\t", "if 1:\n\t"))
    write(tree / "wide.py", "x = '" + "ü" * 300 + "'; y = eval(x)\n")
    write(tree / "<b>&\x1b[2J.txt", "x\n")
    codebatch("run", "tree", "--store", "store", "-q")
    return codebatch


def inspect(codebatch: CommandLine, *arguments: str, status: int = 0) -> Ended:
    return codebatch("inspect", "--store", "store", *arguments, status=status)


def test_inspect_shows_a_file_on_one_screen(analysed: CommandLine) -> None:
    lines = inspect(analysed, "app/core.py").lines
    assert lines[:4] == [
        "app/core.py  python  4 code lines  1 function",
        "  complexity 1 (2nd of python), 2 dependents, 1 direct",
        "  hardest   1 f:1",
        "  findings  1 error, 1 hint",
    ]
    assert "    3:16 hint S307 Use of possibly insecure function; consider using `ast.literal_eval`" in lines
    at = lines.index("      | return eval(b)")
    assert lines[at + 1] == "      |        ^^^^^^^"
    assert lines[-1].startswith("  show more with --all, or with --kinds and one of: file (1), ")


def test_inspect_shows_the_marked_part_of_a_long_line(analysed: CommandLine) -> None:
    lines = inspect(analysed, "wide.py").lines
    source, marks = lines[[line.endswith("^") for line in lines].index(True) - 1 :][:2]
    assert source[marks.index("^") :] == "eval(x)"
    assert len(source) < 110


def test_marks_are_aligned_with_source_that_has_escaped_characters(analysed: CommandLine) -> None:
    lines = inspect(analysed, "steered.py").lines
    source, marks = lines[lines.index("      | x = '\\x1b[31m' + eval(y)") :][:2]
    assert source[marks.index("^") :].startswith(("eval(y)", "y)", "\\x1b"))


def test_all_and_kinds_list_records(analysed: CommandLine) -> None:
    assert inspect(analysed, "app/core.py", "--all").lines[0] == "app/core.py: python, 4 lines, text, parse ok"
    assert inspect(analysed, "app/core.py", "--kinds", "symbol").lines == ["app/core.py:1:5: function f"]


def test_inspect_escapes_control_characters_in_a_path(analysed: CommandLine) -> None:
    assert inspect(analysed, "<b>&\x1b[2J.txt").lines[0] == "<b>&\\x1b[2J.txt  text  1 code line"


@pytest.mark.parametrize(
    ("given", "hint"),
    [
        ("core.py", "2 files match: app/core.py, lib/core.py; see: "),
        ("lib/user.py", "did you mean 'app/user.py'? see: "),
        ("lib/coer.py", "2 files match: lib/core.py, app/core.py; see: "),
        ("nothing.at.all", "see: "),
    ],
)
def test_inspect_suggests_similar_paths_for_an_unknown_file(analysed: CommandLine, given: str, hint: str) -> None:
    assert inspect(analysed, given, "--json", status=2).error["hint"].startswith(f"{hint}codebatch files")


def test_inspect_omits_ranks_in_a_batch_of_a_subdirectory(codebatch: CommandLine) -> None:
    write(codebatch.directory / "a/core.py", "def f(a):\n    if a:\n        return 1\n")
    write(codebatch.directory / "b.py", "import a.core\n")
    (codebatch.directory / ".git").mkdir()
    codebatch("run", "a", "-q", "--pipeline", "analyze")
    lines = codebatch("inspect", "a/core.py").lines
    assert lines[1] == "  complexity 1"
