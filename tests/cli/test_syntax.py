"""`ast` and `rules`: answers without a batch; stored trees."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

from .process import CommandLine

CONFIGURATION = """
[[tasks.lint.rules]]
id = "no-print"
language = "python"
query = '(call function: (identifier) @_name (#eq? @_name "print")) @report'
message = "`{_name}` in a library"
bad = ["print(1)\\n"]
good = ["x.print(1)\\n"%s]
"""


def test_ast_prints_the_tree_of_a_file_on_disk(codebatch: CommandLine) -> None:
    (codebatch.directory / "a.py").write_text("x = 1\n")
    answer = codebatch("ast", "a.py").json
    assert answer["format"] == "codebatch-tree-1"
    assert answer["nodes"][0] == {
        "type": "module",
        "named": True,
        "start": [1, 1],
        "end": [2, 1],
        "start_byte": 0,
        "end_byte": 6,
    }


def test_ast_says_what_it_cannot_parse(codebatch: CommandLine) -> None:
    (codebatch.directory / "a.dart").write_text("x")
    assert codebatch("ast", "a.dart", "--json", status=2).error["message"] == "there is no grammar for dart (a.dart)"
    assert codebatch("ast", "a.dart", "--language", "javascript").json["language"] == "javascript"
    assert codebatch("ast", "none.py", "--json", status=2).error["message"] == "none.py: No such file or directory"


def test_stored_trees_are_those_that_ast_prints(codebatch: CommandLine) -> None:
    (codebatch.directory / "a.py").write_text("x = (\n")
    (codebatch.directory / "b.md").write_text("# b\n")
    (codebatch.directory / "c.txt").write_text("c\n")
    codebatch("run", ".", "--emit-ast")
    stored = codebatch("query", "outputs", "--kind", "ast", "--json").json
    (codebatch.directory / "a.py").write_text("changed\n")
    assert [record["path"] for record in stored] == ["a.py", "b.md"]
    for record in stored:
        tree = codebatch("ast", record["path"], "--batch", "latest").stdout
        assert hashlib.sha256(tree).hexdigest() == record["object"]
        assert record["format"] == json.loads(tree)["format"]


def test_rules_are_listed_as_they_are_configured(codebatch: CommandLine) -> None:
    (codebatch.directory / "codebatch.toml").write_text(CONFIGURATION % "" + '[tasks.lint]\noff = ["F401"]\n')
    rows = {row["code"]: row for row in codebatch("rules", "list", "--json").json}
    assert rows["no-print"]["tool"] == "own"
    assert (rows["F401"]["on"], rows["F841"]["on"], rows["bidi-control"]["severity"]) == (False, True, "warning")


def test_rules_test_tries_examples_and_files(codebatch: CommandLine) -> None:
    where: Path = codebatch.directory
    (where / "codebatch.toml").write_text(CONFIGURATION % "")
    (where / "a.py").write_text("print(1)\n")
    assert codebatch("rules", "test", "a.py").lines == [
        "a.py:1:1: warning no-print `print` in a library [codebatch]",
        "no-print: 2 examples, 0 wrong",
    ]
    (where / "codebatch.toml").write_text(CONFIGURATION % ", 'print(2)'")
    assert codebatch("rules", "test", status=1).lines[-1] == "  something is found in the good example: print(2)"
