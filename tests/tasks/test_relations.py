"""Tests of calls, which are read by tokens without comments and line ends, and of the ends of definitions."""

from __future__ import annotations

import pytest

from codebatch_workers.runtime.name_search import references_in
from codebatch_workers.symbols.outline import file_outline
from tests.support.source_files import source


def calls(path: str, content: str) -> list[str]:
    return [edge.target for edge in file_outline(source(path, content)).edges if edge.edge_type == "calls"]


@pytest.mark.parametrize(
    ("path", "content", "targets"),
    [
        ("a.py", "@cat.register  # why not\ndef f(): pass\n", "cat.register"),
        ("a.py", "@a  # type:ignore\n@b(1)  # noqa:F811\nclass A: pass\n", "a b"),
        ("a.py", "@(a  # one\n  .b)\ndef f(): pass\n", "a.b"),
        ("a.py", "x.\\\nreal()\nx.real()\nx \\\r\n .y()\n", "x.real x.real x.y"),
        ("a.py", "(x\n # y\n .real())\n", "x.real"),
        (
            "a.py",
            "type(x).z = 1\ntype(x)[0] = 1\nif a: type (x).z: int = 2\ntype\\\n(x).y = 1\n",
            "type type type type",
        ),
        ("a.py", "type(x).z()\ntype(x).z += 1\ntype(a, b=1).z = type(c)\n", "type .z type type type"),
        ("a.js", "a /* c */ .b()\na\n.b()\na. // x\nb()\na?. /* ( */ b()\n", "a.b a.b a.b a.b"),
        ("a.ts", "@a /* x */ . b class X {}\n", "a.b"),
        ("a.tsx", "x = <A /* c */ . B />\n", "A.B"),
        ("a.go", "package p\nfunc f() { a. /* c */\nb() }\n", "a.b"),
        ("a.rs", "fn f() { a /* c */ .b(); a:: /* x */ b(); m /* x */ !(); }", "a.b a::b m!"),
        ("a.c", "void f() { g /* c */ (); s . /* x */ h(); s.\\\nh(); }", "g s.h s.h"),
        ("a.cpp", "void f() { a:: /* c */ b(); x-> // c\n y(); std :: move <int> (x); }", "a::b x->y std::move"),
        ("a.cpp", "void f() { x.template g<int>(); }", "g"),
        ("a.java", "class A { int f() { return b(); } int g() { return a.b(); } }", "b a.b"),
        ("a.java", "class A { void f() { if (x) y(); else c(); a()\n// x\n .b(); a /* c */ . b(); } }", "y c a .b a.b"),
        ("a.java", "class A { int f() { return x ? a : b(); } int g() { return (int) a.b(); } }", "b a.b"),
        (
            "a.php",
            "<?php return $a->b(); x ? $a : $b->c(); 'a' . $b->c(); $a /* c */ -> b();",
            "$a->b $b->c $b->c $a->b",
        ),
        ("a.php", "<?php return A::b(); return $a?->b(); not $a->b();", "A::b $a->b $a->b"),
        ("a.rb", "return a.b(2)\nx ? a : b(1)\nfoo key: b(1)\n", "a a.b x a b foo b"),
        ("a.rb", "a\n  # foo\n  .b(1)\nfoo.\n  bar(1)\nputs bar.baz(1)\n", "a a.b foo foo.bar puts bar bar.baz"),
        ("a.kt", "fun f() { return a /* c */ .b() }", "a.b"),
        ("a.swift", "func f() { return a /* c */ .b() }", "a.b"),
        ("a.scala", "object A { def f() = a /* c */ .b() }", "a.b"),
        ("a.lua", "foo\n  :bar()\nreturn a --[[c]] .b()", "foo:bar a.b"),
        ("a.cs", "class A { int F() { return a /* c */ . B(); } }", "a.B"),
    ],
)
def test_callee_is_named_in_any_notation(path: str, content: str, targets: str) -> None:
    assert calls(path, content) == targets.split()


@pytest.mark.parametrize(
    ("path", "before", "after"),
    [("a.py", "@", "\ndef f(): pass\n"), ("a.rs", "fn f() { ", "!(); }"), ("a.tsx", "x = <A.", " />")],
)
def test_overlong_callee_is_truncated(path: str, before: str, after: str) -> None:
    assert [target.rstrip("!") for target in calls(path, before + "a" * 600 + after)] == ["a" * 512]


def test_called_type_is_a_name_and_not_an_alias() -> None:
    content = "type(x).z = 1\ntype X[T] = type(y)\ntype\\\n Y \\\n [T] = int\n"
    assert [item.name for item in file_outline(source("a.py", content)).symbols] == ["X", "Y"]
    references = references_in("type", b"a.py", content.encode(), {})
    assert [(item["line"], item["column"], item["role"]) for item in references] == [(1, 1, "call"), (2, 13, "call")]


def test_self_field_is_found_in_any_notation() -> None:
    content = "class A:\n  def m(self):\n    self . x = 1\n    self.\\\n  y = 2\n    selfish.z = 1\n"
    symbols = [
        (symbol.qualified, symbol.line, symbol.column) for symbol in file_outline(source("a.py", content)).symbols
    ]
    assert symbols == [("A", 1, 7), ("A.m", 2, 7), ("A.x", 3, 12), ("A.y", 5, 3)]


@pytest.mark.parametrize(
    ("content", "ends"),
    [
        ("def f():\n    return 1  # inline\n    # after\n\n# far\nx = 1\n", {"f": (2, 13)}),
        ("def f(): return 1;  # c\n", {"f": (1, 18)}),
        ("def f(): return 1;\n", {"f": (1, 18)}),
        ("class A:\n  def m(self):\n    if x:\n      y\n      # a\n    # b\n  # c\n", {"A": (4, 8), "A.m": (4, 8)}),
        ("def f():\n    '#'\n", {"f": (2, 8)}),
        ("def f():\n    x\n    # a \\\n    #  ;\n    # b;\n", {"f": (2, 6)}),
        ("def f(): pass\n    # é\n", {"f": (1, 14)}),
    ],
)
def test_python_definition_ends_with_its_last_statement(content: str, ends: dict[str, tuple[int, int]]) -> None:
    symbols = file_outline(source("a.py", content)).symbols
    assert {symbol.qualified: (symbol.end_line, symbol.end_column) for symbol in symbols if symbol.name != "x"} == ends


def test_macro_calls_the_functions_in_its_body() -> None:
    code = (
        '#define WRAP(f, x) used(x) + f(x) + a.b->c (1) + "no(1)" /* no(2) */ \\\n  + std::second(sizeof(x), 3no(1))\n'
        "#define DO(x) do { if (x) go(); } while (0)\n#define PLAIN defined(X)\n"
        "int g(void) { return WRAP(h, 1); }\n"
    )
    edges = [(edge.source, edge.target, edge.line) for edge in file_outline(source("a.cc", code)).edges]
    assert edges == [
        ("WRAP", "used", 1),
        ("WRAP", "a.b->c", 1),
        ("WRAP", "std::second", 2),
        ("DO", "go", 3),
        ("g", "WRAP", 5),
    ]


@pytest.mark.parametrize(
    ("path", "code", "targets"),
    [
        ("a.kt", "fun f() { `is`(); a.`in`(); `a b`.c(); x.`a test`() }\n", ["is", ".in", ".c", ".a test"]),
        ("a.scala", "object A { def f = `type`(1) }\n", ["type"]),
        ("a.swift", "func f() { `in`() }\n", ["in"]),
    ],
)
def test_callee_in_backticks_is_named_without_them(path: str, code: str, targets: list[str]) -> None:
    assert [edge.target for edge in file_outline(source(path, code)).edges] == targets
