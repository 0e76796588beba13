"""Uses of names in Java, resolved to definitions."""

# ruff: noqa: E501  # Each shape is one line.

from __future__ import annotations

from collections.abc import Mapping

import pytest

from tests.uses.shapes import resolve_marked

A = {
    "p/A.java": "package p;\npublic class A {\n  public int x;\n  public static A make() { return null; }\n  public void run() {}\n  public void run(int a) {}\n  public void go() {}\n  public static class N { public void in() {} }\n}\n"
}


def b(body: str, head: str = "class B", imports: str = "") -> Mapping[str, str]:
    return {**A, "p/B.java": f"package p;\n{imports}\n{head} {{\n{body}\n}}\n"}


def q(body: str, imports: str) -> Mapping[str, str]:
    return {**A, "q/B.java": f"package q;\n{imports}\nclass B {{\n{body}\n}}\n"}


GO, MAKE, RUN, X, CLASS, NESTED = (
    ["p/A.java:7 A.go"],
    ["p/A.java:4 A.make"],
    ["p/A.java:5 A.run"],
    ["p/A.java:3 A.x"],
    ["p/A.java:2 A"],
    ["p/A.java:8 A.N"],
)
SHAPES: list[tuple[str, Mapping[str, str], str, list[str]]] = [
    ("type of the package", b("«A» a;"), "exact", CLASS),
    ("imported type", q("«A» a;", "import p.A;"), "exact", CLASS),
    ("shadowed import", {**q("«A» a;", "import ext.A;"), "q/A.java": "package q;\nclass A {}\n"}, "external", []),
    ("type of a star", q("«A» a;", "import p.*;"), "exact", CLASS),
    ("full name", q("p.«A» a;", ""), "exact", CLASS),
    ("full name in an expression", q("Object a = p.«A».make();", ""), "exact", CLASS),
    ("type parameter hides the type", b("«A» a;", "class B<A>"), "name", []),
    ("nested type hides the type", b("«A» a; class A {}"), "exact", ["p/B.java:4 B.A"]),
    ("nested type of a base hides the type", {**b("«A» a;", "class B extends C"), "p/C.java": "package p;\nclass C { static class A {} }\n"}, "exact", ["p/C.java:2 C.A"]),
    ("nested type", b("A.«N» a;"), "exact", NESTED),
    ("inherited nested type", b("«N» a;", "class B extends A"), "exact", NESTED),
    ("nested type of a static star", q("«N» a;", "import static p.A.*;"), "exact", NESTED),
    ("member of a base of two bases", {**b("void f() { «h»(); }", "abstract class B implements C, D"), "p/C.java": "package p;\ninterface C extends I {}\ninterface D extends I {}\ninterface I { void h(); }\n"}, "exact", ["p/C.java:4 I.h"]),
    ("imported nested type", q("«N» a;", "import p.A.N;"), "exact", NESTED),
    ("constructor", b("Object a = new «A»();"), "exact", CLASS),
    ("static call", b("Object a = A.«make»();"), "exact", MAKE),
    ("static import", q("Object a = «make»();", "import static p.A.make;"), "exact", MAKE),
    ("static star", q("Object a = «make»();", "import static p.A.*;"), "exact", MAKE),
    ("method of the class", b("void f() { «g»(); }\nvoid g() {}"), "exact", ["p/B.java:5 B.g"]),
    ("this", b("void f() { this.«g»(); }\nvoid g() {}"), "exact", ["p/B.java:5 B.g"]),
    ("inherited method", b("void f() { «go»(); }", "class B extends A"), "exact", GO),
    ("overridden method", b("void f() { «go»(); }\npublic void go() {}", "class B extends A"), "exact", ["p/B.java:5 B.go"]),
    ("method of super", b("public void go() { super.«go»(); }", "class B extends A"), "exact", GO),
    ("private method of a base", {**b("void f() { «h»(); }", "class B extends C"), "p/C.java": "package p;\nclass C { private void h() {} }\n"}, "name", []),
    ("method named as its caller", b("void go() { a.«go»(); }\nA a;"), "inferred", GO),
    ("overload by number", b("void f(A a) { a.«run»(); }"), "inferred", RUN),
    ("overload by type", b("void f() { «g»(1); }\nvoid g(int a) {}\nvoid g(String a) {}"), "inferred", ["p/B.java:5 B.g"]),
    ("overload in a base", b("void f() { «run»(null); }\nvoid run(String a) {}", "class B extends A"), "name", ["p/A.java:6 A.run", "p/B.java:5 B.run"]),
    ("overload in a base outside", b("void f() { «g»(1); }\nvoid g(int a) {}", "class B extends Ext", "import ext.Ext;"), "inferred", ["p/B.java:5 B.g"]),
    ("overload with a variable number", b("void f() { «g»(1); }\nvoid g(int a) {}\nvoid g(int... a) {}"), "name", ["p/B.java:5 B.g", "p/B.java:6 B.g"]),
    ("overload with a type parameter", b("void f() { «g»(1); }\n<T> void g(T a) {}\nvoid g(String a) {}"), "inferred", ["p/B.java:5 B.g"]),
    ("override of a type parameter", {**b("void f() { «h»(1); }\npublic void h(Integer a) {}", "class B extends C<Integer>"), "p/C.java": "package p;\nclass C<T> { public void h(T a) {} }\n"}, "inferred", ["p/B.java:5 B.h"]),
    ("method of an enclosing class", b("void g() {}\nclass C { void f() { «g»(); } }"), "exact", ["p/B.java:4 B.g"]),
    ("method of a base before an enclosing class", b("void go() {}\nclass C extends A { void f() { «go»(); } }"), "exact", GO),
    ("base outside before an enclosing class", b("void g() {}\nclass C extends Ext { void f() { «g»(); } }", imports="import ext.Ext;"), "inferred", ["p/B.java:4 B.g"]),
    ("method of Object before an enclosing class", b("public String toString() { return null; }\nclass C { void f() { «toString»(); } }"), "external", []),
    ("method in an anonymous class", b("void go() {}\nObject f = new A() { void g() { «go»(); } };"), "exact", GO),
    ("own method of an anonymous class", b("void g() {}\nObject f = new Object() { void g() {}\n void h() { «g»(); } };"), "inferred", ["p/B.java:5 B.g"]),
    ("static method hidden by a method", q("void make(int a) {}\nvoid f() { «make»(1); }", "import static p.A.make;"), "exact", ["q/B.java:4 B.make"]),
    ("field", b("int x; int f() { return «x»; }"), "exact", ["p/B.java:4 B.x"]),
    ("inherited field", b("int f() { return «x»; }", "class B extends A"), "exact", X),
    ("local hides the field", b("int x; int f(int x) { return «x»; }"), "name", []),
    ("field after the block of a local", b("int x; int f() { { int x = 1; } return «x»; }"), "exact", ["p/B.java:4 B.x"]),
    ("field of an inner class hides the local", b("void f(int x) { new A() { int g() { return «x»; } }; }"), "exact", X),
    ("local with the name of a method", b("void g() {}\nvoid f() { int g = 1; «g»(); }"), "exact", ["p/B.java:4 B.g"]),
    ("field with the name of a method", b("int g; void f() { «g»(); }\nvoid g() {}"), "exact", ["p/B.java:5 B.g"]),
    ("method with the name of a field", b("int g; int f() { return this.«g»; }\nvoid g() {}"), "exact", ["p/B.java:4 B.g"]),
    ("variable with the name of a type", b("void f(C A) { A.«go»(); }\nclass C { void go() {} }"), "inferred", ["p/B.java:5 B.C.go"]),
    ("type as a receiver", b("void f() { «A».make(); }"), "exact", CLASS),
    ("parameter", b("void f(A a) { a.«go»(); }"), "inferred", GO),
    ("parameter of an external type", b("void f(String a) { a.«go»(); }"), "external", []),
    ("local of a constructed type", b("void f() { var a = new A(); a.«go»(); }"), "inferred", GO),
    ("field of a declared type", b("A a; void f() { this.a.«go»(); }"), "inferred", GO),
    ("result of a method", b("void f() { A.make().«go»(); }"), "inferred", GO),
    ("result of an external method", b("void f(java.util.List<A> a) { a.get(0).«go»(); }"), "name", []),
    ("element of an array", b("void f(A[] a) { a.«go»(); a.x(); }"), "name", []),
    ("cast", b("void f(Object a) { ((A) a).«go»(); }"), "inferred", GO),
    ("loop", b("void f(A[] all) { for (A a : all) a.«go»(); }"), "inferred", GO),
    ("pattern", b("void f(Object o) { if (o instanceof A a) a.«go»(); }"), "inferred", GO),
    ("parameter of a lambda", b("void f() { g(a -> a.«go»()); }\nA a;"), "name", []),
    ("type parameter as a type", b("<T extends A> void f(T a) { a.«go»(); }"), "name", []),
    ("result of the type of an argument", b("<T> T id(T a) { return a; }\nvoid f(A a) { id(a).«go»(); }"), "inferred", GO),
    ("result of the type of two arguments", b("<T> T id(T a, T b) { return a; }\nvoid f(A a) { id(a, null).«go»(); }"), "name", []),
    ("method reference", b("Object f = A::«make»;"), "exact", MAKE),
    ("constant of a switch", {**b("void f(E e) { switch (e) { case «ONE»: } }\nstatic final int ONE = 1;"), "p/E.java": "package p;\nenum E { ONE }\n"}, "inferred", ["p/E.java:2 E.ONE"]),
    ("enum constant", {**b("Object e = E.«ONE»;"), "p/E.java": "package p;\nenum E { ONE }\n"}, "exact", ["p/E.java:2 E.ONE"]),
    ("method of Enum", {**b("Object e = E.«valueOf»(null);\nstatic void valueOf(String a) {}"), "p/E.java": "package p;\nenum E { ONE }\n"}, "external", []),
    ("key of an annotation", b("@X(«go» = 1) void f() {}", "class B extends A"), "name", []),
    ("two types of the package", {**b("«A» a;"), "p/More.java": "package p;\nclass A {}\n"}, "name", []),
    ("static member of another type of this name", q("Object a = A.«make»();", "import ext.A;"), "external", []),
]  # fmt: skip


@pytest.mark.parametrize(
    ("files", "certainty", "places"), [shape[1:] for shape in SHAPES], ids=[shape[0] for shape in SHAPES]
)
def test_use_is_resolved(files: Mapping[str, str], certainty: str, places: list[str]) -> None:
    assert resolve_marked(files) == (certainty, places)
