"""Definitions with equal names: a place selects one, and the arguments of a call show which it means."""

# ruff: noqa: E501  # Each shape is one line.

from __future__ import annotations

from pathlib import Path

import pytest

from codebatch import Batch
from tests.uses.small_batches import batch_of

# Title, file, source, and for two definitions of `f` the place and the callers with the certainty.
OVERLOADS = [
    ("java", "A.java", "class A {\n static int f(int x) { return x; }\n static int f(String s, int y) { return y; }\n int u() { return f(1); }\n int v() { return f(\"a\", 2); }\n}\n", "A.u exact", "A.v exact"),
    ("java literals", "A.java", "class A {\n static int f(int x) { return x; }\n static int f(String s) { return 1; }\n int u() { return f(1); }\n int v() { return f(\"a\"); }\n}\n", "A.u inferred", "A.v inferred"),
    ("java undecided", "A.java", "class A {\n static int f(int x) { return x; }\n static int f(String s) { return 1; }\n int u(B o) { return f(o.x()); }\n}\n", "A.u name", "A.u name"),
    ("kotlin", "A.kt", "class A {\n fun f(x: Int): Int = x\n fun f(s: String, y: Int): Int = y\n fun u() = f(1)\n fun v() = f(\"a\", 2)\n}\n", "A.u inferred", "A.v inferred"),
    ("kotlin default", "A.kt", "class A {\n fun f(x: Int): Int = x\n fun f(s: String, y: Int = 1): Int = y\n fun u(b: B) = f(b.x())\n fun v() = f(\"a\")\n}\n", "A.u name", "A.u name, A.v inferred"),
    ("csharp", "A.cs", "class A {\n static int f(int x) { return x; }\n static int f(string s, int y) { return y; }\n int u() { return f(1); }\n int v() { return f(\"a\", 2); }\n}\n", "A.u exact", "A.v exact"),
    ("csharp params", "A.cs", "class A {\n static int f(int x) { return x; }\n static int f(params int[] s) { return 1; }\n int u() { return f(1); }\n int v() { return f(1, 2); }\n}\n", "A.u exact", "A.v inferred"),
    ("cpp", "a.cpp", "namespace n {\nint f(int x) { return x; }\nint f(const char *s, int y) { return y; }\nint u() { return f(1); }\nint v() { return f(\"a\", 2); }\n}\n", "n::u name", "n::v name"),
    ("cpp default elsewhere", "a.cpp", "\nint A::f(int x) { return x; }\nint A::f(const char *s, int y) { return y; }\nint u(A a) { return a.f(b()); }\nint v(A a) { return a.f(1); }\n", "u name, v name", "u name"),
    ("cpp truth value", "a.cpp", "namespace n {\nint f(int x) { return x; }\nint f(X s) { return 1; }\nint u() { return f(true); }\nint v() { return f(0); }\n}\n", "n::u name, n::v name", "n::u name, n::v name"),
    ("scala", "a.scala", "object A {\n def f(x: Int): Int = x\n def f(s: String, y: Int): Int = y\n def u() = f(1)\n def v() = f(\"a\", 2)\n}\n", "A.u inferred", "A.v inferred"),
    ("swift", "a.swift", "class A {\n func f(_ x: Int) -> Int { return x }\n func f(_ s: String, _ y: Int) -> Int { return y }\n func u() -> Int { return f(1) }\n func v() -> Int { return self.f(\"a\", 2) }\n}\n", "A.u inferred", "A.v inferred"),
    ("typescript signatures", "a.ts", "\nexport function f(x: number): number;\nexport function f(s: string, y: number): number;\nexport function f(a: any, b?: any): any { return a; }\nfunction u() { return f(1); }\nfunction v() { return f('a', 2); }\nfunction w(o) { return f(...o); }\n", "u exact, w name", "v exact, w name"),
    ("ruby reopened", "a.rb", "class A\n def f(x); x; end\n def f(s, y); y; end\n def u; f(1); end\n def v; f('a', 2); end\n def w(*o); f(*o); end\nend\n", "A.u name, A.w name", "A.v name, A.w name"),
    ("javascript blocks", "a.js", "function u(c) {\n if (c) { const f = (x) => x; f(1); } else {\n  const f = (x, y) => x; } }\n", "u exact", ""),
    ("python", "a.py", "if X:\n def f(x): return x\n def f(x, y): return x\ndef u(): f(1)\n", "u name", "u name"),
]  # fmt: skip


def _callers(batch: Batch, definition: str) -> str:
    rows = [caller.row for caller in batch.callers("f", definition=definition).result]
    return ", ".join(f"{row['scope']} {row['resolution']}" for row in rows)


@pytest.mark.parametrize(("path", "text", "first", "second"), [row[1:] for row in OVERLOADS], ids=[row[0] for row in OVERLOADS])  # fmt: skip
def test_a_place_selects_one_of_equal_definitions(
    tmp_path: Path, path: str, text: str, first: str, second: str
) -> None:
    with batch_of(tmp_path, {path: text}) as batch:
        for line, expected in ((2, first), (3, second)):
            assert _callers(batch, f"{path}:{line}") == expected
            uses = batch.uses("f", definition=f"{path}:{line}").result.uses
            assert [use.use.line for use in uses if use.use.role == "definition"] == [line]


TYPESCRIPT = "function f(x: number): number;\nfunction f(s: string, y: number): number;\nfunction f(a: any, b?: any): any { return a; }\n"
PYTHON = (
    "from typing import overload\n@overload\ndef f(x: int): ...\n@overload\ndef f(x: str): ...\ndef f(x): return x\n"
)


@pytest.mark.parametrize(
    ("path", "text", "line"),
    [
        ("a.ts", f"{TYPESCRIPT}function u() {{ return f(1); }}\n", 3),
        ("a.py", f"{PYTHON}def u(): f(1)\n", 6),
        (
            "a.cs",
            "partial class f { void a() {} }\npartial class f { void b() {} }\nclass B { void u() { new f(); } }\n",
            2,
        ),
    ],
)
def test_parts_of_one_definition_stay_one(tmp_path: Path, path: str, text: str, line: int) -> None:
    with batch_of(tmp_path, {path: text}) as batch:
        assert _callers(batch, f"{path}:{line}") == _callers(batch, "") != ""


GO = (
    "package m\ntype Muter interface{ Mutes(s string) bool }\ntype Sil struct{}\n"
    'func (s *Sil) Mutes(x string) bool { return false }\nfunc P(m Muter) bool { return m.Mutes("x") }\n'
)
UNKNOWN_OWNERS = [
    ("go", "g.go", GO + 'func R() bool { return z().Mutes("x", "y") }\n', "Sil.Mutes", ["P"]),
    ("go fits", "g.go", GO + 'func R() bool { return z().Mutes("x") }\n', "Sil.Mutes", ["P", "R"]),
    ("go results", "g.go", GO + "func R() bool { return z().Mutes(two()) }\n", "Sil.Mutes", ["P", "R"]),
    ("java", "A.java", "class A { void f(int x) {}\n void u() { z().f(); }\n void v() { z().f(1); } }\n", "A.f", ["A.v"]),
    ("java repeated", "A.java", "class A { void f(int... x) {}\n void u() { z().f(); } }\n", "A.f", ["A.u"]),
    ("rust", "a.rs", "struct A;\nimpl A { fn f(&self, x: u8) {} }\nfn u() { z().f(); }\nfn v() { z().f(1); }\n", "A::f", ["v"]),
    ("rust mut self", "a.rs", "struct A;\nimpl A { fn f(mut self: Pin<&mut Self>, x: u8) {} }\nfn u() { z().f(1); }\nfn v() { z().f(1, 2); }\n", "A::f", ["u"]),
    ("rust own self", "a.rs", "struct A;\nimpl A { fn f(mut self, x: u8) {} }\nfn u() { z().f(1); }\n", "A::f", ["u"]),
    ("rust self with a lifetime", "a.rs", "struct A;\nimpl A { fn f<'a>(&'a mut self, x: u8) {} }\nfn u() { z().f(1); }\n", "A::f", ["u"]),
    ("rust self in a box", "a.rs", "struct A;\nimpl A { fn f(self: Box<Self>, x: u8) {} }\nfn u() { z().f(1); }\n", "A::f", ["u"]),
    ("rust pattern", "a.rs", "struct A;\nimpl A { fn f(&self, &(a, b): &(u8, u8)) {} }\nfn u() { z().f(p); }\nfn v() { z().f(); }\n", "A::f", ["u"]),
    ("csharp default", "a.cs", "class A { void f(int x, int y = 1, B z = default) {} }\nclass C { void u() { Z().f(1); } void v() { Z().f(1, 2, b); } void w() { Z().f(1, 2, 3, 4); } }\n", "A.f", ["C.u", "C.v"]),
    ("csharp out and ref", "a.cs", "class A { void f(ref int x, out int y, in int z) {} }\nclass C { void u() { Z().f(ref a, out var b, c); } }\n", "A.f", ["C.u"]),
    ("kotlin default", "a.kt", "class A { fun f(x: Int, y: Int = 1, g: () -> Unit = {}) {} }\nfun u() { z().f(1) }\nfun v() { z().f(1) { } }\nfun w() { z().f(1, 2, h, 4) }\n", "A.f", ["u", "v"]),
    ("java receiver", "A.java", "class A { void f(A this, int x) {} }\nclass C { void u() { z().f(1); } }\n", "A.f", ["C.u"]),
    ("java array", "A.java", "class A { void f(int[] x, final String... y) {} }\nclass C { void u() { z().f(a, b, c, d); } void v() { z().f(); } }\n", "A.f", ["C.u"]),
    ("go groups", "a.go", "package p\ntype A struct{}\nfunc (a A) f(x, y int, z ...string) {}\nfunc u() { z().f(1, 2) }\nfunc v() { z().f(1) }\nfunc w() { z().f(g()) }\n", "A.f", ["u", "w"]),
    ("go without names", "a.go", "package p\ntype A struct{}\nfunc (a A) f(int, func(a, b int) string) {}\nfunc u() { z().f(1, h) }\nfunc v() { z().f(1, 2, 3) }\n", "A.f", ["u"]),
    ("rust path", "a.rs", "struct A;\nimpl A { fn f(&self, x: u8) {} }\nfn u() { z::f(a, 1); }\n", "A::f", ["u"]),
    ("csharp", "A.cs", "class A { void f(int x) {}\n void u() { z().f(1, 2); }\n void v() { z().f(); } }\n", "A.f", ["A.v"]),
    ("csharp extension", "A.cs", "static class A { static void f(this B b, int x) {}\n static void u() { z().f(1); } }\n", "A.f", ["A.u"]),
    ("kotlin", "A.kt", "class A { override fun f(x: Int, y: Int) {} }\nfun u() { z().f(1) }\nfun v() { z().f(1, 2, 3) }\nfun w() { z().f(1, 2) { } }\n", "A.f", ["u", "w"]),
    ("javascript", "a.js", "class A { f(x) {} }\nfunction u() { z().f(1, 2); }\n", "A.f", ["u"]),
]  # fmt: skip


@pytest.mark.parametrize(("path", "text", "name", "callers"), [row[1:] for row in UNKNOWN_OWNERS], ids=[row[0] for row in UNKNOWN_OWNERS])  # fmt: skip
def test_calls_that_do_not_fit_a_qualified_name_are_left_out(
    tmp_path: Path, path: str, text: str, name: str, callers: list[str]
) -> None:
    with batch_of(tmp_path, {path: text}) as batch:
        answer = batch.callers(name)
        assert [caller.row["scope"] for caller in answer.result] == callers


def test_calls_that_do_not_fit_are_counted(tmp_path: Path) -> None:
    with batch_of(tmp_path, {"A.java": "class A { void f(int x) {}\n void u() { z().f(); } }\n"}) as batch:
        coverage = batch.callers("A.f").coverage
        assert coverage is not None
        assert [each.text for each in coverage.evidence] == ["1 call of f has arguments that do not fit"]


def test_users_of_an_overload_that_calls_another_are_uncertain_dependents(tmp_path: Path) -> None:
    text = "class A {\n void f(int x) { f(x, 1); }\n void f(int x, int y) {}\n void u() { f(1); }\n}\n"
    with batch_of(tmp_path, {"A.java": text}) as batch:
        found = batch.symbol_impact("f", definition="A.java:3").result.dependents
        assert [(each.scope, each.distance, each.resolution) for each in found] == [("A.f", 1, "exact"), ("A.u", 2, "name")]  # fmt: skip


@pytest.mark.parametrize("path", ["A.java", "A.cs"])
def test_a_constructor_without_known_calls_has_no_firm_none(tmp_path: Path, path: str) -> None:
    text = "class A {\n public A(int x) {}\n static A u() { return new A(1); }\n}\n"
    with batch_of(tmp_path, {path: text}) as batch:
        coverage = batch.callers("A", definition=f"{path}:2").coverage
        assert coverage is not None
        assert [each.kind for each in coverage.evidence] == ["implicit"]
