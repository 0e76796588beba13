"""`ast` and `rules`: answers without a batch, and stored trees."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

from tests.support.command_line import CommandLine

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


def test_ast_rejects_files_without_grammar_or_content(codebatch: CommandLine) -> None:
    (codebatch.directory / "a.dart").write_text("x")
    assert codebatch("ast", "a.dart", "--json", status=2).error["message"] == "no grammar for dart (a.dart)"
    assert codebatch("ast", "a.dart", "--language", "javascript").json["language"] == "javascript"
    assert codebatch("ast", "none.py", "--json", status=2).error["message"] == "none.py: No such file or directory"


def test_stored_trees_equal_the_output_of_ast(codebatch: CommandLine) -> None:
    (codebatch.directory / "a.py").write_text("x = (\n")
    (codebatch.directory / "b.md").write_text("# b\n")
    (codebatch.directory / "c.txt").write_text("c\n")
    codebatch("run", ".", "--emit-ast")
    stored = codebatch("query", "outputs", "--kind", "ast", "--json").records
    (codebatch.directory / "a.py").write_text("changed\n")
    assert [record["path"] for record in stored] == ["a.py", "b.md"]
    for record in stored:
        tree = codebatch("ast", record["path"], "--batch", "latest").stdout
        assert hashlib.sha256(tree).hexdigest() == record["object"]
        assert record["format"] == json.loads(tree)["format"]


def test_rules_list_reflects_the_configuration(codebatch: CommandLine) -> None:
    (codebatch.directory / "codebatch.toml").write_text(CONFIGURATION % "" + '[tasks.lint]\noff = ["F401"]\n')
    rows = {row["code"]: row for row in codebatch("rules", "list", "--json").json}
    assert rows["no-print"]["tool"] == "own"
    assert (rows["F401"]["enabled"], rows["F841"]["enabled"], rows["bidi-control"]["severity"]) == (
        False,
        True,
        "warning",
    )


def test_rules_test_tries_examples_and_files(codebatch: CommandLine) -> None:
    where: Path = codebatch.directory
    (where / "codebatch.toml").write_text(CONFIGURATION % "")
    (where / "a.py").write_text("print(1)\n")
    assert codebatch("rules", "test", "a.py").lines == [
        "a.py:1:1: warning no-print `print` in a library [codebatch]",
        "a.py: python, 1 rule tried",
        "no-print: 2 examples, 0 failed",
    ]
    (where / "codebatch.toml").write_text(CONFIGURATION % ", 'print(2)'")
    assert codebatch("rules", "test", status=1).lines[-1] == "  a match found in the `good` example: print(2)"


def test_rules_test_without_examples_tests_nothing(codebatch: CommandLine) -> None:
    where: Path = codebatch.directory
    assert codebatch("rules", "test", status=3).notes.startswith("nothing tested: no custom rules")
    (where / "codebatch.toml").write_text(
        "[[tasks.lint.rules]]\nid = 'no-print'\nlanguage = 'python'\npattern = 'print($X)'\nmessage = 'm'\n"
    )
    ended = codebatch("rules", "test", status=3)
    assert ended.lines == ["no-print: 0 examples, 0 failed"]
    assert ended.notes == "not tested: no-print; add examples to the rule (`bad`, `good`), or give a FILE\n"
    (where / "a.py").write_text("x = 1\n")
    codebatch("rules", "test", "a.py")


def test_rules_test_reports_skipped_files(codebatch: CommandLine) -> None:
    where: Path = codebatch.directory
    (where / "codebatch.toml").write_text(CONFIGURATION % "")
    (where / "vendor").mkdir()
    for name, content in {"a.js": b"f()\n", "vendor/a.py": b"print(1)\n", "b.py": b"\0", "c.py": b"x = 1\n"}.items():
        (where / name).write_bytes(content)
    tried = codebatch("rules", "test", "a.js", "vendor/a.py", "b.py", "c.py")
    assert tried.lines == [
        "a.js: skipped, no rule applies to javascript",
        "vendor/a.py: skipped, it is vendored",
        "b.py: skipped, it is binary",
        "c.py: python, 1 rule tried",
        "no-print: 2 examples, 0 failed",
    ]
    files = codebatch("rules", "test", "c.py", "a.js", "--json").json["files"]
    assert [(file["path"], file["rules"]) for file in files] == [("c.py", 1), ("a.js", 0)]


SLOW = """
file_seconds_max = 1
[[tasks.lint.rules]]
id = "slow"
language = "python"
query = '((string) @report (#match? @report "^.(.(a+)+)+.$"))'
message = "m"
bad = ["x = 'aa'", %r]
"""
SLOW_TEXT = f"x = '{'a' * 60}!-'"


def test_rules_test_reports_files_and_examples_that_time_out(codebatch: CommandLine) -> None:
    (codebatch.directory / "codebatch.toml").write_text(SLOW % SLOW_TEXT)
    (codebatch.directory / "r.py").write_text(SLOW_TEXT)
    tried = codebatch("rules", "test", "r.py", "--json", status=3)
    assert tried.notes.splitlines() == [
        "rule slow did not finish on r.py: it took longer than 1 s",
        "rule slow did not finish on its bad example: it took longer than 1 s",
    ]
    assert tried.json["failures"] == [
        {"rule": "slow", "path": "r.py", "reason": "it took longer than 1 s"},
        {"rule": "slow", "example": "bad", "text": SLOW_TEXT, "reason": "it took longer than 1 s"},
    ]
    assert tried.json["rules"] == [{"id": "slow", "examples": 2, "failed_examples": []}]


def test_rules_list_selects_by_code_and_shows_summaries(codebatch: CommandLine) -> None:
    rows = codebatch("rules", "list", "--json").json
    assert [row["code"] for row in rows if not row["summary"]] == []
    assert [row["code"] for row in codebatch("rules", "list", "E72*", "F401", "--json").json] == [
        "F401",
        "E721",
        "E722",
    ]
    alone = codebatch("rules", "list", "E721")
    assert "object type comparisons" in alone.lines[1]
    assert "codebatch rules show E721" in alone.notes
    assert "did you mean 'E721'?" in codebatch("rules", "list", "e721", status=2).notes


def test_rules_suggests_show_if_a_rule_replaces_the_subcommand(codebatch: CommandLine) -> None:
    assert "codebatch rules show E721" in codebatch("rules", "E721", status=2).notes
    assert "codebatch rules show private-key" in codebatch("rules", "private-key", status=2).notes
    assert "did you mean 'show'" in codebatch("rules", "shwo", status=2).notes
    assert "--code syntax-error" in codebatch("rules", "show", "syntax-error", status=2).notes


def test_rules_show_has_an_example_and_the_review_results(codebatch: CommandLine) -> None:
    (codebatch.directory / "codebatch.toml").write_text(
        CONFIGURATION % "" + '[tasks.lint]\nseverity = { F401 = "error" }\n'
    )
    rule = codebatch("rules", "show", "W605", "--json").json
    assert rule["summary"] == "invalid escape sequences"
    assert rule["example"].startswith("```python\n")
    assert rule["url"] == "https://docs.astral.sh/ruff/rules/invalid-escape-sequence/"
    assert rule["judgements"] == {"fix": 30}
    assert rule["severity_reason"] == "review of 30 findings in open-source projects: 30 fix"
    assert codebatch("rules", "show", "F401", "--json").json["severity_reason"] == "severity set in your configuration"
    assert codebatch("rules", "show", "no-print", "--json").json["example"] == "print(1)"
    shown = codebatch("rules", "show", "merge-conflict").lines
    assert shown[:4] == [
        "merge-conflict",
        "error, on, from codebatch",
        "detects: all three markers of a conflict",
        "why error: chosen by the kind of problem; no finding of this rule has been reviewed yet",
    ]
    assert shown[5:7] == ["example:", "  <<<<<<< HEAD"]
