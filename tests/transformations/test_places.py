"""Rewrites in many places: new code is only written where code of its kind stands."""

from __future__ import annotations

import re
from typing import NamedTuple

import pytest

from codebatch_workers.syntax.language.languages import every_language
from codebatch_workers.syntax.patterns.language_patterns import LanguagePatterns
from codebatch_workers.syntax.patterns.places import (
    AROUND,
    BARE_LIST,
    DECLARATION,
    NOT_ONE,
    SEVERAL,
    STATEMENT,
)
from codebatch_workers.syntax.patterns.rewriting import compile_rewrite, rewrite_content
from codebatch_workers.syntax.patterns.selection import SYNTAX
from codebatch_workers.syntax.source import SourceFile
from tests.conformance.table import language_table, languages


def source(content: str, language: str, **contexts: str) -> SourceFile:
    values = {name: value.encode() for name, value in contexts.items()}
    return SourceFile(b"a", content.encode(), False, {"attributes": b"language=" + language.encode(), **values})


def rewritten(content: str, language: str, pattern: str, rewrite: str, **contexts: str) -> str:
    """Return the content after a rewrite. Check that each match that stays has a finding."""
    file = source(content, language, **contexts)
    result = rewrite_content(file, [compile_rewrite(pattern, rewrite, language)])
    text = result.content.decode()
    lines = {number for number, line in enumerate(content.split("\n"), 1) if "(no)" in line or "f no" in line}
    assert {match.line for match in result.left_out} == lines
    return text


STATEMENTS = {language: table for language in languages() if (table := language_table(language)).statements}


def with_two(language: str, content: str) -> str:
    """Return code in which two statements replace each call of f with `yes`."""
    lines = []
    for line in content.split("\n"):
        separator = STATEMENTS[language].separator
        indentation = line[: len(line) - len(line.lstrip())] if "\n" in separator else ""
        call, form = (r"\bf yes", "{} yes") if language == "bash" else (r"\bf\(yes\)", "{}(yes)")
        lines.append(re.sub(call, (separator + indentation).join([form.format("p"), form.format("q")]), line))
    return "\n".join(lines)


@pytest.mark.parametrize("language", STATEMENTS)
def test_several_statements_replace_only_a_statement_in_a_block(language: str) -> None:
    content = STATEMENTS[language].statements
    assert not source(content, language).has_syntax_error
    is_shell = language == "bash"
    pattern = "f $X" if is_shell else "f($X)"
    separator = STATEMENTS[language].separator
    rewrite = separator.join(["p $X", "q $X"] if is_shell else ["p($X)", "q($X)"])
    assert rewritten(content, language, pattern, rewrite) == with_two(language, content)
    # One expression may stand everywhere.
    file = source(content, language)
    single = rewrite_content(file, [compile_rewrite(pattern, "p $X" if is_shell else "p($X)", language)])
    assert single == (re.sub(r"\bf\b(?=[( ])", "p", content).encode(), [])


def test_every_language_of_patterns_with_blocks_has_a_table() -> None:
    tables = {*STATEMENTS, "tsx", "zsh", "css", "hcl", "sql", "toml", "yaml"}
    patterns = {language: LanguagePatterns.of(language) for language in every_language()}
    with_blocks = {language for language, known in patterns.items() if known.blocks}
    assert with_blocks == tables, "add `statements` to tests/conformance/NAME.toml"
    assert tables >= {language for language, known in patterns.items() if known.has_parentheses}


class Place(NamedTuple):
    """A rewrite, and code in which it is not possible because of its place, with the reason."""

    language: str
    pattern: str
    rewrite: str
    content: str
    reason: str


IMPOSSIBLE = [
    Place("javascript", "f($X)", "let a = $X", "if (b) f(1);\n", DECLARATION),
    Place("javascript", "f($X)", "function a() {}", "while (b) f(1);\n", AROUND),
    Place("javascript", "var $X = $Y", "let $X = $Y", "if (b) var c = 1;\n", DECLARATION),
    Place("c", "f($X)", "int a = $X", "void g() { if (b) f(1); }\n", SYNTAX),
    Place("javascript", "f($X)", "{ a($X); b($X); }", "c = () => f(1);\n", STATEMENT),
    Place("java", "f($X)", "{ a($X); b($X); }", "class C { D d = () -> f(1); }\n", STATEMENT),
    Place("csharp", "f($X)", "{ a($X); b($X); }", "class C { D d = () => f(1); }\n", STATEMENT),
    Place("javascript", "f($X)", "throw $X", "a(f(1));\n", STATEMENT),
    Place("python", "f($X)", "assert $X", "lambda: f(1)\n", STATEMENT),
    Place("python", "f($X)", "del $X", "a = f(b)\n", STATEMENT),
    Place("go", "f($X)", "return $X", "package a\nfunc g() { h(f(1)) }\n", STATEMENT),
    Place("python", "f($X)", "", "a = f(1)\n", SEVERAL),
    Place("javascript", "f($X)", "a, $X", "g(f(1));\n", NOT_ONE),
    Place("javascript", "f($X)", "a, $X", "return f(1);\n", BARE_LIST),
    Place("javascript", "f($X)", "a, $X", "b = [f(1)];\n", NOT_ONE),
    Place("javascript", "f($X)", "a, $X", "b = f(1);\n", NOT_ONE),
    Place("python", "f($X)", "a, $X", "g(f(1))\n", NOT_ONE),
    Place("python", "f($X)", "a, $X", "for b in f(1): pass\n", BARE_LIST),
    Place("python", "f($X)", "a, $X", "assert f(1)\n", NOT_ONE),
    Place("python", "f($X)", "a, $X", "def g(b=f(1)): pass\n", NOT_ONE),
    Place("python", "f($X)", "a, $X", "b[f(1)]\n", NOT_ONE),
    Place("go", "f($X)", "a, $X", "package a\nfunc g() { b := f(1) }\n", NOT_ONE),
    Place("lua", "f($X)", "a, $X", "local b = f(1)\n", NOT_ONE),
    Place("ruby", "f($X)", "a, $X", "return f(1)\n", NOT_ONE),
    Place("php", "f($X)", "a(), $X", "<?php echo f(1), 2;\n", NOT_ONE),
    Place("json", '"a": $X', '"b": $X, "c": 1', '{"a": 1}\n', SEVERAL),
    Place("html", "<br>", "<hr><hr>", "<p><br></p>\n", SEVERAL),
    Place("tsx", "<A/>", "<B/><C/>", "a = <D><A/></D>;\n", NOT_ONE),
    # Other code would be read differently.
    Place("javascript", "f($X)", "g($X) // a", "b = f(1) + c\n", AROUND),
    Place("python", "f($X)", "g($X)  # a", "b = f(1) + c\n", AROUND),
    Place("javascript", "f($X)", "(g)($X)", "a = b\nf(1)\n", AROUND),
    Place("javascript", "f($X)", "if (a) g($X)", "if (b) f(1); else c();\n", AROUND),
    Place("bash", "f $X", "a $X && b $X", "c || f 1\n", NOT_ONE),
    # The new code cannot be parsed there.
    Place("python", "f($X)", "x = $X", "a = 1 + f(1)\n", SYNTAX),
    Place("yaml", "a: $X", "b: $X", "a:\n  - 1\n", SYNTAX),
    Place("yaml", "a: $X", "b: $X\nc: 1", "- a: 1\n", SYNTAX),
    Place("yaml", "a: $X", "b:\n  c: $X", "- a: 1\n", AROUND),
    Place("yaml", "a: $X", "b: $X", "a:\n  c: 1\n", SYNTAX),
    Place("toml", "a = $X", "b = $X\nc = 1", "d = { a = 1 }\n", SYNTAX),
]


@pytest.mark.parametrize("place", IMPOSSIBLE)
def test_new_code_of_another_kind_is_not_written(place: Place) -> None:
    file = source(place.content, place.language)
    result = rewrite_content(file, [compile_rewrite(place.pattern, place.rewrite, place.language)])
    assert result.content.decode() == place.content
    assert [match.reason for match in result.left_out] == [place.reason]


@pytest.mark.parametrize(
    ("language", "pattern", "rewrite", "before", "after"),
    [
        ("python", "f($X)", "a($X); b($X)", "if c: f(1)\n", "if c: a(1); b(1)\n"),
        ("python", "f($X)", "a($X); b($X)", "class C: f(1)\n", "class C: a(1); b(1)\n"),
        ("python", "f($X)", "g($X)  # a", "def h():\n    f(1)\n\nb = 1\n", "def h():\n    g(1)  # a\n\nb = 1\n"),
        ("python", "f($X)", "# a\ng($X)", "if h:\n    f(1)\n", "if h:\n    # a\n    g(1)\n"),
        ("python", "f($X)", "*$X", "g(f(a))\n", "g(*a)\n"),
        ("python", "$X.f()", "$X", "not a.f()\nb = -c.f()\n", "not a\nb = -c\n"),
        ("javascript", "f($X);", "g($X); // a", "if (b) f(1);\n", "if (b) g(1); // a\n"),
        ("javascript", "f($X)", "throw $X", "if (a) f(1);\nelse f(2)\n", "if (a) throw 1;\nelse throw 2\n"),
        ("javascript", "f($X);", "{ a($X); b($X); }", "if (c) f(1);\nelse f(2);\n",
         "if (c) { a(1); b(1); }\nelse { a(2); b(2); }\n"),
        ("javascript", "f($X)", "a(), $X", "f(1);\n", "a(), 1;\n"),
        ("javascript", "f($X)", "if (a) g($X)", "if (b) f(1);\n", "if (b) if (a) g(1);\n"),
        ("javascript", "f($X)", "", "f(1);\nif (a) { f(2) }\n", ";\nif (a) {  }\n"),
        ("javascript", "f($X)", "{ a: $X }", "b(f(1));\nc(() => f(2));\n", "b({ a: 1 });\nc(() => ({ a: 2 }));\n"),
        ("go", "f($X)", "if err := g($X); err != nil { h(err) }", "package a\nfunc b() { f(1) }\n",
         "package a\nfunc b() { if err := g(1); err != nil { h(err) } }\n"),
        ("rust", "f($X)", "{ a($X); b($X) }", "fn g() { let c = f(1); }\n", "fn g() { let c = { a(1); b(1) }; }\n"),
        ("java", "int $X = $Y;", "int $X;\n$X = $Y;", "class C { void f() { int a = 1; } }\n",
         "class C { void f() { int a;\na = 1; } }\n"),
        ("bash", "f $X", "a $X && b $X", "f 1\nif f 2; then c; fi\n", "a 1 && b 1\nif a 2 && b 2; then c; fi\n"),
        ("bash", "f $X", "a $X | b", "f 1 | c\n", "a 1 | b | c\n"),
        ("bash", "f $X", "{ a $X; b $X; }", "c && f 1 | d\n", "c && { a 1; b 1; } | d\n"),
        ("yaml", "a: $X", "b: $X\nc: 1", "x:\n  a: 2\n", "x:\n  b: 2\n  c: 1\n"),
        ("yaml", "a: $X", "b:\n  c: $X", "a: 1\nx:\n  a: [2]\n", "b:\n  c: 1\nx:\n  b:\n    c: [2]\n"),
        ("toml", "a = $X", "b = $X\nc = 1", "[t]\na = 1\n", "[t]\nb = 1\nc = 1\n"),
        ("hcl", "a = $X", "b = $X\nc = 1", "d {\n  a = 1\n}\n", "d {\n  b = 1\n  c = 1\n}\n"),
        ("css", "color: $X", "a: $X; b: 1", "c { color: red; d: e }\n", "c { a: red; b: 1; d: e }\n"),
        ("hcl", "a = f($X, $Y)", "a = $X && $Y", "a = f(b || c, d)\n", "a = (b || c) && d\n"),
        ("sql", "select f($X)", "select $X * 2", "select f(a + b);\n", "select (a + b) * 2;\n"),
        ("json", '"a": $X', '"b": $X', '{"a": 1, "c": {"a": 2}}\n', '{"b": 1, "c": {"b": 2}}\n'),
    ],
)  # fmt: skip
def test_new_code_of_the_same_kind_is_written(
    language: str, pattern: str, rewrite: str, before: str, after: str
) -> None:
    assert rewritten(before, language, pattern, rewrite) == after
