"""`find` lists code that matches a pattern or a query in the files of a batch."""

from __future__ import annotations

import csv
import io

import pytest

from tests.support.command_line import CommandLine, write


@pytest.fixture
def tree(codebatch: CommandLine) -> CommandLine:
    write(codebatch.directory / "a.py", "def go():\n    print(1)\n    print(2, 3)\n")
    write(codebatch.directory / "lib" / "b.py", "print('é', end='')\nx = [print(é), print(0)]\n")
    write(codebatch.directory / "\udcff.py", "print(\n  4)\n")
    write(codebatch.directory / "c.js", "print(5)\n")
    write(codebatch.directory / "script", "#!/usr/bin/env python\nprint(6)\n")
    write(codebatch.directory / "broken.py", "print(7)\ndef (:\n")
    codebatch("run", ".", "--pipeline", "parse", "--quiet")
    return codebatch


PATTERN = ("find", "-l", "python", "--pattern", "print($X)")


def test_find_lists_matches_in_the_snapshot_with_source_lines(tree: CommandLine) -> None:
    write(tree.directory / "a.py", "")  # The batch is searched, not the tree. A note reports the difference.
    ended = tree(*PATTERN)
    assert ended.lines == [
        "a.py:2:5: print(1)",
        "broken.py:1:1: print(7)",
        "lib/b.py:2:6: x = [print(é), print(0)]",
        "lib/b.py:2:16: x = [print(é), print(0)]",
        "script:2:1: print(6)",
        "\\xff.py:1:1: print(",
    ]
    assert "syntax errors in 1 file" in ended.notes
    assert "results are out of date (a.py changed)" in ended.notes


def test_language_includes_its_variants(codebatch: CommandLine) -> None:
    for name, content in {"a.ts": "f(<A>1);\n", "b.tsx": "f(<b/>);\n", "c.jsx": "f(<b/>);\n"}.items():
        write(codebatch.directory / name, content)
    codebatch("run", ".", "--quiet")
    find = ("find", "-l", "typescript", "--pattern")
    assert codebatch(*find, "f($X)").lines == ["a.ts:1:1: f(<A>1);", "b.tsx:1:1: f(<b/>);"]
    assert codebatch(*find, "f($X)", "--count").lines == ["2"]
    assert codebatch("find", "-l", "tsx", "--pattern", "f($X)").lines == ["b.tsx:1:1: f(<b/>);"]
    ended = codebatch(*find, "f(<A>$X)")
    assert ended.lines == ["a.ts:1:1: f(<A>1);"]
    assert ended.notes == "1 tsx file is not searched: the pattern is not valid in tsx\n"
    assert codebatch("query", "files", "--lang", "typescript", "-o", "csv", "--fields", "path").lines == [
        "path",
        "a.ts",
        "b.tsx",
    ]


def test_headers_in_the_other_language_are_noted(codebatch: CommandLine) -> None:
    for name in ("a/a.cpp", "a/a.h", "b/b.c", "b/b.h"):
        write(codebatch.directory / name, "int x = f(1);\n")
    codebatch("run", ".", "--quiet")
    ended = codebatch("find", "-l", "c", "--pattern", "f($X)")
    assert ended.lines == ["b/b.c:1:9: int x = f(1);", "b/b.h:1:9: int x = f(1);"]
    assert ended.notes == "1 header is not searched, because files near them are in cpp: search with -l cpp\n"


def test_find_returns_matches_as_json_counts_and_csv(tree: CommandLine) -> None:
    first, *_, last = tree(*PATTERN, "--json").records
    assert first == {
        "path": "a.py", "line": 2, "column": 5, "end_line": 2, "end_column": 13, "source": "    print(1)",
        "captures": {"X": "1"},
    }  # fmt: skip
    assert (last["path_b64"], last["end_line"]) == ("/y5weQ==", 2)
    assert tree(*PATTERN, "--count", "--json").records == {"count": 6}
    assert tree(*PATTERN, "--count").lines == ["6"]
    assert tree(*PATTERN, "--files").lines == ["a.py", "broken.py", "lib/b.py", "script", "\\xff.py"]
    assert {"path": "lib/b.py", "places": 2} in tree(*PATTERN, "--files", "--json").records
    rows = list(csv.DictReader(io.StringIO(tree(*PATTERN, "-o", "csv", "--path", "lib").text)))
    assert [(row["path"], row["column"]) for row in rows] == [("lib/b.py", "6"), ("lib/b.py", "16")]


def test_find_honors_limit_path_and_captures(tree: CommandLine) -> None:
    ended = tree(*PATTERN, "--limit", "2")
    assert ended.lines == ["a.py:2:5: print(1)", "broken.py:1:1: print(7)"]
    assert "stopped after 2 matches" in ended.notes
    assert (
        tree(*PATTERN, "--path", "*.js").notes.splitlines()[0]
        == "no python files in the batch whose path contains '*.js'"
    )
    assert (
        tree("find", "-l", "python", "--pattern", "nowhere").notes.splitlines()[0] == "no matches in 5 files of python"
    )
    query = "(call arguments: (argument_list (integer) @n . (integer)))"
    assert tree("find", "-l", "py", "--query", query).lines == ["a.py:3:11: print(2, 3)"]


def test_find_rejects_invalid_queries_and_shows_the_position(tree: CommandLine) -> None:
    ended = tree("find", "-l", "python", "--query", "(call\n functon: (_))", status=2)
    assert ended.notes.splitlines()[:2] == ["   functon: (_))", "   ^"]
    assert "did you mean 'function'?" in ended.notes
    for arguments, problem in (
        (("-l", "python", "--pattern", "a b"), "the pattern is not valid python by itself"),
        (("-l", "pyhton", "--pattern", "a"), "no grammar for 'pyhton'"),
        (("-l", "python"), "give either a query or a pattern"),
        (("-l", "python", "--pattern", "a", "--query", "(call)"), "give either a query or a pattern"),
        (("-l", "python", "--pattern", "a", "--count", "--files"), "--files cannot be used with --count"),
    ):
        assert problem in tree("find", *arguments, "--json", status=2).error["message"]


def test_find_suggests_the_option_for_a_positional_pattern(tree: CommandLine) -> None:
    error = tree("find", "-l", "python", "print($X)", "--json", status=2).error
    assert error["message"] == "one of --pattern and --query is required"
    assert tree.shell(error["hint"].partition(": ")[2]).text


def test_find_returns_the_same_with_one_and_several_processes(codebatch: CommandLine) -> None:
    for number in range(200):
        write(codebatch.directory / f"{number:03}.py", f"print({number})\n" * (number % 3))
    codebatch("run", ".", "--pipeline", "parse", "--quiet")
    one, three = (codebatch(*PATTERN, "-j", jobs).lines for jobs in ("1", "3"))
    assert one == three
    assert len(one) == 199
    assert codebatch(*PATTERN, "-j", "3", "--limit", "5").lines == one[:5]


@pytest.mark.parametrize("predicate", ["match", "not-match"])
def test_find_skips_a_file_whose_regular_expression_times_out(tree: CommandLine, predicate: str) -> None:
    write(tree.directory / "slow.py", f"x = '{'a' * 60}!-'\n")
    tree("run", ".", "--pipeline", "parse", "--quiet")
    query = f'((string) @match (#{predicate}? @match "^.(.(a+)+)+.$"))'
    ended = tree("find", "-l", "python", "--query", query, "--file-seconds", "1", status=3)
    assert "slow.py skipped: it took longer than 1 s" in ended.notes
    assert ("lib/b.py:1:7: print('é', end='')" in ended.lines) == (predicate == "not-match")
