"""Suppression comments apply to the findings of all tools, and findings have the name of their tool."""

from __future__ import annotations

import pytest

from tests.support.command_line import CommandLine, set_apart, write

SETTINGS = """
[tasks.words]
python = "tools/words.py:task"
[tasks.whole]
python = "tools/whole.py:task"
[tasks.lint]
on = ["trailing-whitespace"]
[[tasks.lint.rules]]
id = "no-print"
language = "python"
query = '(call function: (identifier) @_name (#eq? @_name "print")) @report'
message = "print"
"""
WORDS = """
import re
from codebatch_workers.api import diagnostic
def task(file):
    for match in re.finditer(b"foo", file.utf8):
        yield diagnostic(file, match.start(), match.end(), code="foo", message="m")
        yield diagnostic(file, match.start(), match.end(), code="bar", message="m", tool="barcheck")
"""
WHOLE = """
from codebatch_workers.api import diagnostic
def task(project):
    for file in project.files:
        source = project.source(file)
        for at, line in zip(source.line_starts, source.utf8.split(b"\\n")):
            if line.startswith(b"bad"):
                yield diagnostic(source, at, at + 3, code="bad", message="m")
"""


def test_suppression_comments_apply_to_findings_of_every_tool(codebatch: CommandLine) -> None:
    """The tools: ruff's parser, a grammar, ruff's rules, built-in rules, a query, and custom tasks of both scopes."""
    write(codebatch.directory / "codebatch.toml", SETTINGS)
    write(codebatch.directory / "tools" / "words.py", WORDS)
    write(codebatch.directory / "tools" / "whole.py", WHOLE)
    lines = {
        "a.py": ["def = 1  {}"],
        "b.js": ["let x = = 1; {}"],
        "c.py": ["import os  {}"],
        "d.py": ["foo = 1  {}", "print(foo[2])  {}", "bad = 1  {}", "x = 1  {}  "],
        "e.js": ["foo(); {}", "bad(); {}", "f(); {}  "],
    }
    for path, texts in lines.items():
        sign = "#" if path.endswith(".py") else "//"
        for name, note in (("told", f"{sign} codebatch: ignored"), ("hushed", f"{sign} codebatch: ignore")):
            text = "".join(line.format(note) + "\n" for line in texts)
            write(codebatch.directory / "src" / name / path, text)
    set_apart(codebatch, "src")
    codebatch("run", "src", "-j", "2")
    findings = codebatch("query", "diagnostics", "--json").records
    assert {(record["path"], record["line"], record["code"], record["tool"]) for record in findings} == {
        ("told/a.py", 1, "syntax-error", "ruff"),
        ("told/b.js", 1, "syntax-error", "codebatch"),
        ("told/c.py", 1, "F401", "ruff"),
        ("told/d.py", 1, "foo", "words"),
        ("told/d.py", 1, "bar", "barcheck"),
        ("told/d.py", 2, "no-print", "codebatch"),
        ("told/d.py", 2, "foo", "words"),
        ("told/d.py", 2, "bar", "barcheck"),
        ("told/d.py", 3, "bad", "whole"),
        ("told/d.py", 4, "trailing-whitespace", "codebatch"),
        ("told/e.js", 1, "foo", "words"),
        ("told/e.js", 1, "bar", "barcheck"),
        ("told/e.js", 2, "bad", "whole"),
        ("told/e.js", 3, "trailing-whitespace", "codebatch"),
    }
    states = {
        record["path"]: record["parse"] for record in codebatch("query", "outputs", "--kind", "file", "--json").records
    }
    assert states["hushed/a.py"] == states["hushed/b.js"] == "errors"
    assert all("[words]" in line for line in codebatch("query", "diagnostics", "--tool", "words").lines)


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        ("findings --code F4O1", "did you mean 'F841'?"),
        ("query diagnostics --code ZZ*", "see: codebatch rules list"),
        ("query stats --group-by code --code f401x", "did you mean 'F401'?"),
        ("export sarif -o x.sarif --code F4O1", "did you mean 'F841'?"),
        ("findings --tool rufff", "did you mean 'ruff'?"),
    ],
)
def test_unknown_rule_or_tool_is_an_error(codebatch: CommandLine, arguments: str, hint: str) -> None:
    write(codebatch.directory / "a.py", "import json\n")
    codebatch("run")
    error = codebatch(*arguments.split(), "--json", status=2).error
    assert (error["code"], error["hint"]) == ("invalid_input", hint)


def test_known_rule_without_a_finding_is_no_error(codebatch: CommandLine) -> None:
    write(codebatch.directory / "a.py", "import json\n")
    codebatch("run")
    for code in ("F402", "PL*", "syntax-error", "partial-parse", "todo-comment"):
        assert "no findings" in codebatch("findings", "--code", code).notes


def test_unknown_rule_of_a_linter_is_a_note_about_a_similar_rule(codebatch: CommandLine) -> None:
    write(codebatch.directory / "a.py", "import json\n")
    table = '[tasks.own]\ncommand = ["true", "{file}"]\nmatch = ["*.none"]\nrecords = "gcc"\nversion = false\n'
    write(codebatch.directory / "codebatch.toml", table)
    codebatch("run")
    assert "no finding has the rule 'F4011'; did you mean 'F401'?" in codebatch("findings", "--code", "F4011").notes
    assert "rule" not in codebatch("findings", "--code", "SC2086").notes
    assert codebatch("findings", "--lang", "pyhton").notes.count("no pyhton files in the batch") == 1


@pytest.mark.parametrize(("language", "status"), [("pyhton", 2), ("py", 0), ("Python", 0), ("gleam", 0)])
def test_typo_in_the_language_of_a_linter_is_an_error(codebatch: CommandLine, language: str, status: int) -> None:
    write(codebatch.directory / "a.py", "import json\n")
    table = '[tasks.own]\ncommand = ["true", "{file}"]\nmatch = ["lang:%s"]\nrecords = "gcc"\nversion = false\n'
    write(codebatch.directory / "codebatch.toml", table % language)
    codebatch("run", status=status)
    assert ("unknown language 'pyhton': did you mean 'python'?" in codebatch("run", status=status).notes) == (
        status == 2
    )
