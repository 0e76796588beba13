"""`def`, `callers`, `refs` and `outline`, and rankings of `top` other than counts, in a small project."""

from __future__ import annotations

import pytest

from tests.cli.conftest import Ran
from tests.support.command_line import CommandLine, write


@pytest.fixture(scope="module")
def analysed(tmp_path_factory: pytest.TempPathFactory) -> CommandLine:
    """A project in which several definitions share a name. Tests only read it."""
    codebatch = CommandLine(tmp_path_factory.mktemp("named"))
    write(
        codebatch.directory / "tree" / "a.py",
        "class A:\n    def go(self, x):\n        def inner():\n            return go()\n        return inner\n\n"
        "    x = 1\n\n\ndef go():\n    A().go(1)\n    A().go(2)\n",
    )
    write(codebatch.directory / "tree" / "sub" / "\udcff.py", "from a import go\n\ngo()\nimport os, sys\n")
    codebatch("run", "tree", "-q")
    return codebatch


def test_def_lists_definitions_but_not_imports(analysed: CommandLine) -> None:
    assert analysed("def", "go").lines == ["a.py:2:9: method A.go", "a.py:10:5: function go"]
    assert analysed("def", "A.go").lines == ["a.py:2:9: method A.go"]
    assert [row["qualified"] for row in analysed("def", "go", "--json").records] == ["A.go", "go"]
    assert analysed("def", "os").notes == "none: no definition of os in 2 files (all parsed)\n"
    assert "did you mean 'go'?" in analysed("def", "g", status=2).notes


def test_callers_lists_each_calling_scope_once(analysed: CommandLine) -> None:
    assert analysed("callers", "go").lines == [
        "a.py:4: A.go.inner calls go",
        "a.py:11: go calls .go, 2 times (inferred)",
        "sub/\\xff.py:3: (file) calls go (by name, 2 candidates)",
    ]
    assert analysed("callers", "go", "--exact").lines == ["a.py:4: A.go.inner calls go"]
    assert analysed("callers", "go", "--definition", "a.py:2").lines == [
        "a.py:11: go calls .go, 2 times (inferred)",
        "sub/\\xff.py:3: (file) calls go (by name, 2 candidates)",
    ]
    assert analysed("callers", "go", "--definition", "./tree/a.py:2").lines == [
        "a.py:11: go calls .go, 2 times (inferred)",
        "sub/\\xff.py:3: (file) calls go (by name, 2 candidates)",
    ]
    refused = analysed("callers", "go", "--definition", "a.py:3", "--json", status=2).error
    assert refused["message"] == "go is not defined at a.py:3"
    *_, last = analysed("callers", "go", "--json").records
    call = {"path_b64": "c3ViL/8ucHk=", "scope": "", "line": 3, "target": "go", "calls": 1}
    assert last == call | {"resolution": "name", "candidates": 2, "through": ""}


@pytest.mark.parametrize("wrong", ["", "a b", "go*", "a."])
def test_def_and_callers_reject_invalid_names(analysed: CommandLine, wrong: str) -> None:
    for command in ("def", "callers"):
        assert analysed(command, wrong, "--json", status=2).error["message"] == f"{wrong!r} is not a name"


def test_refs_is_an_alias_of_references(analysed: CommandLine) -> None:
    assert analysed("refs", "go").stdout == analysed("references", "go").stdout


def test_outline_is_nested_like_the_definitions(analysed: CommandLine) -> None:
    assert analysed("outline", "tree/a.py").lines == [
        "     1  class A",
        "     2    method go(self, x)",
        "     3      function inner",
        "     7    field x",
        "    10  function go",
    ]
    assert [row["name"] for row in analysed("outline", "a.py", "--json").records] == ["A", "go", "inner", "x", "go"]
    assert analysed("outline", b"sub/\xff.py").notes == "no definitions in sub/\\xff.py\n"
    analysed("outline", "nowhere.py", status=2)


def test_top_is_limited_by_default_only_without_json(analysed: CommandLine) -> None:
    every = analysed("top", "--by", "metric:parameters", "--json").records
    assert len(every) == analysed("top", "--by", "metric:parameters", "--limit", "99").text.count("\n") - 1
    assert len(analysed("top", "--by", "metric:parameters", "--limit", "1", "--json").records) == 1


def test_top_ranks_directories_files_and_metric_locations(analysed: CommandLine) -> None:
    assert analysed("top", "--by", "dir", "--json").records.keys() == {"sub"}
    assert analysed("top", "--by", "file", "--json").records == analysed("top", "--by", "path", "--json").records
    assert analysed("top", "--by", "metric:lines").lines == ["value  lines", "   12  a.py", "    4  sub/\\xff.py"]
    assert analysed("top", "--by", "metric:parameters", "--limit", "1", "--json").records == {"a.py:2 A.go": 2}
    by_type = analysed("top", "--by", "symbol_type", "--json").records
    assert by_type == analysed("query", "stats", "--group-by", "symbol_type", "--json").records
    assert list(by_type.values()) == sorted(by_type.values(), reverse=True)
    assert analysed("top", "--by", "symbl", "--json", status=2).error["hint"] == "did you mean 'symbol'?"
    error = analysed("top", "--by", "metric:linez", "--json", status=2).error
    assert (error["message"], error["hint"]) == ("the batch has no metric 'linez'", "did you mean 'lines'?")


def test_top_by_code_shows_severity_and_description_of_rules(analysed: CommandLine) -> None:
    header, *rows = analysed("top", "--by", "code").lines
    assert header.split() == ["count", "rule", "severity", "detects"]
    assert rows, "the unused imports must be listed"
    assert all(row.split()[2] in ("error", "warning", "info") and len(row.split()) > 4 for row in rows)
    counts = analysed("top", "--by", "code", "--json").records
    assert {row.split()[1]: int(row.split()[0]) for row in rows} == counts


def test_symbol_queries_reject_a_batch_without_symbols(ran: Ran, codebatch: CommandLine) -> None:
    write(codebatch.directory / "a.py", "def f(): f()\n")
    codebatch("run", "a.py", "--pipeline", "parse", "-q")
    for command in ("def f", "callers f", "outline a.py", "query stats --lang python --kind symbol"):
        assert "no task of the batch produces" in codebatch(*command.split(), status=2).notes, command


def test_symbol_queries_note_partially_parsed_files(codebatch: CommandLine) -> None:
    write(codebatch.directory / "tree" / "a.py", "def lost(): pass\nlost()\n")
    write(codebatch.directory / "tree" / "b.kt", "fun ok() = lost()\nfun ? lost( {\n")
    codebatch("run", "tree", "-q")
    assert "b.kt is partially parsed: definitions may be missing\n" in codebatch("outline", "b.kt").notes
    outlined = codebatch("outline", "b.kt", "--json").json
    assert outlined["notes"] == ["b.kt is partially parsed: definitions may be missing"]
    assert "in part" not in codebatch("outline", "a.py").notes
    note = "b.kt is partially parsed: definitions of lost may be missing there"
    assert note in codebatch("def", "lost").notes
    assert codebatch("def", "lost", "--json").json["notes"] == [note]
    for command in ("callers", "references"):
        assert codebatch(command, "lost", status=3).notes == (
            "incomplete: 1 more occurrence of lost in 1 file partially parsed:\n  b.kt: partially parsed\n"
        )
    # A file that does not contain the name has no missing location of it.
    assert codebatch("callers", "lost", "--path", "a.py").notes == ""
