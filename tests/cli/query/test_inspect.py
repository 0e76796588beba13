"""`inspect FILE:LINE`: the line as in the batch, its enclosing definitions, and its records."""

from __future__ import annotations

import os
import shutil

import pytest

from tests.cli.conftest import Ran
from tests.support.command_line import CommandLine, Ended, write


@pytest.fixture(scope="module")
def analysed(tmp_path_factory: pytest.TempPathFactory) -> CommandLine:
    """Files with unusual lines. Tests only read them."""
    codebatch = CommandLine(tmp_path_factory.mktemp("lined"))
    tree = codebatch.directory / "tree"
    write(tree / "a.py", "import os\n\n\nclass A:\n\tdef f(self):\n\t\treturn eval(g())\n\n\ndef g():\n    pass\n")
    write(tree / "b.py:2", "x = 1\n")
    write(tree / "wide.py", "\ufeffx = 'ü'\r\ny = 2".encode("utf-16-le"))
    write(tree / "strange.txt", f"a\x1b[31mb\u202e\rc\n{'x' * 500}\n")
    write(tree / "logo.bin", bytes(range(256)))
    codebatch("run", "tree", "-q")
    return codebatch


def inspect(codebatch: CommandLine, place: str, *arguments: str, status: int = 0) -> Ended:
    return codebatch("inspect", place, *arguments, status=status)


def test_inspect_shows_a_line_with_its_context_and_enclosing_symbols(analysed: CommandLine) -> None:
    assert inspect(analysed, "a.py:6").lines == [
        "       3",
        "       4  class A:",
        "       5      def f(self):",
        ">      6          return eval(g())",
        "       7",
        "       8",
        "       9  def g():",
        "a.py:4:7: class A, ends at line 6",
        "a.py:5:6: method A.f, ends at line 6",
        "a.py:6:10: hint S307 Use of possibly insecure function; consider using `ast.literal_eval` [ruff]",
        "a.py:6: A.f calls eval",
        "a.py:6: A.f calls g",
        "a.py:5: A.f complexity = 1",
        "a.py:5: A.f parameters = 1",
    ]
    for place in ("tree/a.py:6", "a.py:6:10", "a.py:6:10:"):
        assert inspect(analysed, place).stdout == inspect(analysed, "a.py:6").stdout
    assert inspect(analysed, "a.py:6", "--kinds", "diagnostic").lines[7:] == inspect(analysed, "a.py:6").lines[9:10]


def test_inspect_returns_the_line_and_records_as_json(analysed: CommandLine) -> None:
    answer = inspect(analysed, "a.py:5", "--json").json
    assert (answer["path"], answer["line"], answer["complete"]) == ("a.py", 5, True)
    assert answer["source"][3] == {"line": 5, "text": "\tdef f(self):", "is_cut": False}
    assert [row["line"] for row in answer["source"]] == [2, 3, 4, 5, 6, 7, 8]
    assert [row.get("qualified") for row in answer["records"]][:2] == ["A", "A.f"]


def test_inspect_prefers_a_file_whose_name_ends_like_a_line_number(analysed: CommandLine) -> None:
    assert inspect(analysed, "b.py:2", "--json").records[0]["path"] == "b.py:2"
    assert inspect(analysed, "b.py:2:1").lines == [">      1  x = 1"]


def test_inspect_decodes_lines_and_escapes_control_characters(analysed: CommandLine) -> None:
    assert [line["text"] for line in inspect(analysed, "wide.py:1", "--json").json["source"]] == ["x = 'ü'\r", "y = 2"]
    assert inspect(analysed, "wide.py:2").lines[1] == ">      2  y = 2"
    ended = inspect(analysed, "strange.txt:1")
    assert ended.lines[0] == ">      1  a\\x1b[31mb\\u202e\\rc"
    assert ended.lines[1] == f"       2  {'x' * 400}…"
    assert inspect(analysed, "strange.txt:1", "--json").json["source"][1]["is_cut"] is True


@pytest.mark.parametrize(
    ("place", "hint"),
    [
        ("a.py:0", "lines are numbered from 1"),
        ("a.py:11", "the file has 10 lines"),
        ("wide.py:3", "has 2 lines"),
    ],
)
def test_inspect_rejects_a_line_out_of_range(analysed: CommandLine, place: str, hint: str) -> None:
    assert hint in inspect(analysed, place, "--json", status=2).error["hint"]


def test_inspect_notes_binary_files_and_lines_without_records(analysed: CommandLine) -> None:
    ended = inspect(analysed, "logo.bin:1")
    assert (ended.text, ended.notes.splitlines()[0]) == ("", "logo.bin is a binary file without lines")
    assert inspect(analysed, "a.py:8").notes == "no records at line 8 of file a.py\n"
    assert inspect(analysed, "nowhere.py:8", "--json", status=2).error["message"].endswith("no file 'nowhere.py'")


def test_inspect_suggests_the_path_with_the_same_end(ran: Ran) -> None:
    ended = ran.codebatch("inspect", "main.py:6", "--store", "store", status=2)
    assert "hint: did you mean 'src/main.py'? see: codebatch files" in ended.notes


def test_inspect_is_incomplete_if_the_content_is_missing(ran: Ran, codebatch: CommandLine) -> None:
    store = codebatch.directory / "store"
    shutil.copytree(ran.store, store, symlinks=True)
    shutil.rmtree(store / "objects")
    (store / "objects").mkdir()
    answer = ran.codebatch("inspect", "src/main.py:6", "--store", store, "--json", status=3)
    assert (answer.json["complete"], answer.json["source"]) == (False, [])
    assert answer.json["records"]
    assert "source of src/main.py not shown" in answer.notes


def test_commands_accept_paths_as_printed(codebatch: CommandLine) -> None:
    tree = codebatch.directory / "tree"
    tree.mkdir()
    for name in (b"caf\xe9.py", b"a\tb\x1b.py"):
        (tree / os.fsdecode(name)).write_text("def f(): pass\n")
    codebatch("run", "tree", "--pipeline", "full")
    printed = [line.split("  ")[0] for line in codebatch("files", "-q").lines]
    assert printed == [r"a\tb\x1b.py", r"caf\xe9.py"]
    for path in printed:
        assert codebatch("outline", path, "-q").lines == ["     1  function f"]
        assert codebatch("inspect", f"tree/{path}:1", "-q").stdout
        assert codebatch("ast", f"tree/{path}").json["language"] == "python"
    (tree / r"caf\xe9.py").write_text("x = 1\n")
    codebatch("run", "tree", "--pipeline", "full")
    assert codebatch("outline", r"caf\xe9.py", "-q").lines == ["     1  variable x"], (
        "the exact file name must take precedence"
    )
