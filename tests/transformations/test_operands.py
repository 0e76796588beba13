"""Rewrites to code that grammars accept, but that languages refuse or read differently."""

from __future__ import annotations

import pytest

from codebatch_workers.syntax.patterns.places import AROUND, NOT_ALONE, NOT_ONE
from codebatch_workers.syntax.patterns.rewriting import compile_rewrite, rewrite_content
from codebatch_workers.syntax.patterns.selection import MISREAD, UNGROUPED
from codebatch_workers.syntax.source import SourceFile


def rewrite(language: str, new: str, content: str, pattern: str = "") -> tuple[str, list[str]]:
    """Replace each call of f. Return the new content, and the reasons of matches that are left out."""
    pattern = pattern or ("f $X" if language == "bash" else "f($X)")
    file = SourceFile(b"a", content.encode(), False, {"attributes": b"language=" + language.encode()})
    result = rewrite_content(file, [compile_rewrite(pattern, new, language)])
    return result.content.decode(), [match.reason for match in result.left_out]


GO = "package a\n\nfunc g() {{\n\t{}\n}}\n"


@pytest.mark.parametrize(
    ("language", "new", "before", "after"),
    [
        ("javascript", "$X", "x = f(-a) ** b;\n", "x = (-a) ** b;\n"),
        ("javascript", "-$X", "x = f(a) ** b;\n", "x = (-a) ** b;\n"),
        ("javascript", "$X", "x = f(a || b) ?? c;\n", "x = (a || b) ?? c;\n"),
        ("javascript", "$X", "x = f(a * b) + f(c || d) || f(!e);\n", "x = a * b + (c || d) || !e;\n"),
        ("javascript", "$X", "x = f(a < b) ? c : d;\n", "x = a < b ? c : d;\n"),
        ("javascript", "$X", "x = [f(a + b), f(c = d)];\n", "x = [a + b, c = d];\n"),
        ("javascript", "$X", "x = y[f(a = b)];\n", "x = y[a = b];\n"),
        ("javascript", "$X", "x = typeof f(a = b);\n", "x = typeof (a = b);\n"),
        ("javascript", "$X", "class A extends f(b || c) {}\n", "class A extends (b || c) {}\n"),
        ("javascript", "$X", "f(a++).b = 1;\n", "(a++).b = 1;\n"),
        ("javascript", "$X", "x = f(a?.b).c();\n", "x = (a?.b).c();\n"),
        ("javascript", "$X?.y", "x = f(a)`b`;\n", "x = (a?.y)`b`;\n"),
        ("javascript", "$X?.y", "x = f(a);\n", "x = a?.y;\n"),
        ("javascript", "new $X", "x = f(a());\n", "x = new (a());\n"),
        ("javascript", "$X", "f({a: 1}).b();\n", "({a: 1}).b();\n"),
        ("javascript", "$X", "f(function() {});\n", "(function() {});\n"),
        ("javascript", "$X", "a(f(function() {}));\n", "a(function() {});\n"),
        ("javascript", "$X + 1", "x = () => f({a: 1});\n", "x = () => ({a: 1} + 1);\n"),
        ("javascript", "() => $X", "x = f({a: 1});\n", "x = () => ({a: 1});\n"),
        ("ruby", "$X", "g f({a: 1}), b\n", "g ({a: 1}), b\n"),
        ("ruby", "$X", "g(f({a: 1}))\n", "g({a: 1})\n"),
        ("ruby", "$X", "g b, f(a c)\n", "g b, (a c)\n"),
        ("ruby", "$X", "g f(a c)\n", "g a c\n"),
        ("ruby", "$X", "x = !f(a b)\n", "x = !(a b)\n"),
        ("ruby", "not $X", "x += f(a)\nf(b)\n", "x += (not a)\nnot b\n"),
        ("ruby", "$X if q", "while f(a) do b end\n", "while (a if q) do b end\n"),
        ("ruby", "$X", "x = y == f(a == b)\n", "x = y == (a == b)\n"),
        ("php", "$X", "<?php $x = f(new A())->b; g(f(new B()));\n", "<?php $x = (new A())->b; g(new B());\n"),
        ("php", "$X", "<?php $x = f($a?->b)->c;\n", "<?php $x = ($a?->b)->c;\n"),
        ("php", "$X", "<?php $x = f($a == $b) == $c;\n", "<?php $x = ($a == $b) == $c;\n"),
        ("rust", "$X", "fn g() { let x = f(a as u8) < b; }\n", "fn g() { let x = (a as u8) < b; }\n"),
        ("rust", "$X", "fn g() { let x = f(a == b) == c; }\n", "fn g() { let x = (a == b) == c; }\n"),
        ("rust", "$X", "fn g() { let x = f(a..b)..c; }\n", "fn g() { let x = (a..b)..c; }\n"),
        ("rust", "$X", "fn g() { f(match a {}) + b; }\n", "fn g() { (match a {}) + b; }\n"),
        ("rust", "$X", "fn g() { f(match a {}); }\n", "fn g() { match a {}; }\n"),
        ("rust", "$X", "fn g() { let Some(a) = f(B { c }) else { d }; }\n",
         "fn g() { let Some(a) = (B { c }) else { d }; }\n"),
        ("rust", "$X", "fn g() { if let a = f(b = c) { d } }\n", "fn g() { if let a = (b = c) { d } }\n"),
        ("go", "$X", GO.format("if a := f(T{}); a {}"), GO.format("if a := (T{}); a {}")),
        ("go", "&T{$X}", GO.format("if a := f(b); g(f(b)) {}"), GO.format("if a := (&T{b}); g(&T{b}) {}")),
        ("go", "T{$X}", GO.format("if a := []T{f(b)}; a {}"), GO.format("if a := []T{T{b}}; a {}")),
        ("go", "$X", GO.format("if a { b = f(T{}) }"), GO.format("if a { b = T{} }")),
        ("go", "$X", GO.format("a := &f(&b)"), GO.format("a := &(&b)")),
        ("csharp", "$X", "var x = (T) f(-a);\n", "var x = (T) (-a);\n"),
        ("csharp", "$X", "var x = f(a as B) < c;\n", "var x = (a as B) < c;\n"),
        ("c", "$X", "int x = a /f(*b);\n", "int x = a /(*b);\n"),
    ],
)  # fmt: skip
def test_code_that_becomes_an_operand_gets_parentheses(language: str, new: str, before: str, after: str) -> None:
    assert rewrite(language, new, before) == (after, [])


@pytest.mark.parametrize(
    ("language", "new", "content", "reason"),
    [
        ("python", '"$X"', 'x = f(" + a + ")\n', UNGROUPED),
        ("python", "if b:\n    if c:\n        $$$A", "if a:\n    x()\n    y()\n", UNGROUPED),
        ("tsx", "$$$A", "x = <a>b</a>;\n", MISREAD),
        ("go", "$X", GO.format("defer f(a)"), NOT_ONE),
        ("go", "$X", GO.format("f(a)"), NOT_ALONE),
        ("go", "$X + 1", GO.format("for ; ; f(a) {}"), NOT_ALONE),
        ("java", "$X", "class A { void g() { if (b) f(a); } }\n", NOT_ALONE),
        ("java", "-$X", "class A { void g() { for (f(a);;) {} } }\n", NOT_ALONE),
        ("bash", "g $X && h", "f 1 > a\n", NOT_ONE),
        ("bash", "cat <<A\n$X\nA", "f 1; b\n", AROUND),
    ],
)
def test_code_that_would_be_read_differently_is_not_written(language: str, new: str, content: str, reason: str) -> None:
    pattern = {"if": "if a:\n    $$$A", "x ": "<a>$$$A</a>" if language == "tsx" else ""}.get(content[:2], "")
    assert rewrite(language, new, content, pattern) == (content, [reason])


@pytest.mark.parametrize(
    ("language", "new", "before", "after"),
    [
        ("go", "<-$X", GO.format("f(a)"), GO.format("<-a")),
        ("java", "a = $X", "class A { void g() { f(b); for (;;f(c)) {} } }\n",
         "class A { void g() { a = b; for (;;a = c) {} } }\n"),
        ("csharp", "await $X", "class A { void G() { f(a); } }\n", "class A { void G() { await a; } }\n"),
    ],
)  # fmt: skip
def test_some_expressions_are_statements(language: str, new: str, before: str, after: str) -> None:
    assert rewrite(language, new, before) == (after, [])


@pytest.mark.parametrize(
    ("language", "new", "before", "after"),
    [
        ("python", 'x = """a\nb""" + g(\n  $X)', "if c:\n    f(1)\n", 'if c:\n    x = """a\nb""" + g(\n      1)\n'),
        ("python", 'g("a"\n  "b")', "if c:\n    f(1)\n", 'if c:\n    g("a"\n      "b")\n'),
        ("javascript", "`a\n${\n$X\n}b\n`", "{\n  x = f(1);\n}\n", "{\n  x = `a\n${\n  1\n  }b\n`;\n}\n"),
        ("ruby", "x = <<~A\n  b\nA\ny", "if c\n  f(1)\nend\n", "if c\n  x = <<~A\n  b\nA\n  y\nend\n"),
        ("bash", "cat <<A\n$X\nA", "if c; then\n  f 1\nfi\n", "if c; then\n  cat <<A\n1\nA\nfi\n"),
        ("go", "x := `a\nb`", GO.format("f(1)"), GO.format("x := `a\nb`")),
        ("php", '$x = "a\nb";', "<?php\n  f(1);\n", '<?php\n  $x = "a\nb";\n'),
        ("sql", "select 'a\nb', $X", "  select f, 1;\n", "  select 'a\nb', 1;\n"),
    ],
)  # fmt: skip
def test_lines_that_begin_in_literals_are_not_indented(language: str, new: str, before: str, after: str) -> None:
    pattern = {"php": "f($X);", "sql": "select f, $X"}.get(language, "")
    assert rewrite(language, new, before, pattern) == (after, [])
