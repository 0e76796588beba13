"""Uses of names in Kotlin and Scala, resolved to definitions."""

# ruff: noqa: E501  # Each shape is one line.

from __future__ import annotations

from collections.abc import Mapping

import pytest

from tests.uses.shapes import resolve_marked

A = {
    "p/A.kt": "package p\nclass A {\n  fun go() {}\n  class N\n  companion object { fun make() = A() }\n}\nenum class E { ONE }\nfun top() {}\nopen class Root { class A }\n"
}
S = {"p/C.scala": "package p\nclass C(x: Int) { def go = 1 }\nobject C { def make = 1 }\nobject O { class N }\n"}


def kt(body: str, imports: str = "", package: str = "p") -> Mapping[str, str]:
    return {**A, f"{package}/B.kt": f"package {package}\n{imports}\n{body}\n"}


def sc(body: str, imports: str = "", package: str = "p") -> Mapping[str, str]:
    return {**S, f"{package}/B.scala": f"package {package}\n{imports}\n{body}\n"}


CLASS, GO, MAKE, TOP = ["p/A.kt:2 A"], ["p/A.kt:3 A.go"], ["p/A.kt:5 A.make"], ["p/A.kt:8 top"]
SHAPES: list[tuple[str, Mapping[str, str], str, list[str]]] = [
    ("type of the package", kt("val a: «A»? = null"), "exact", CLASS),
    ("imported type", kt("val a: «A»? = null", "import p.A", "q"), "exact", CLASS),
    ("renamed import", kt("val a: «Z»? = null", "import p.A as Z", "q"), "exact", CLASS),
    ("shadowed import", kt("val a: «A»? = null", "import ext.A"), "external", []),
    ("type of a star", kt("val a: «A»? = null", "import p.*", "q"), "exact", CLASS),
    ("full name", kt("val a: p.«A»? = null", "", "q"), "exact", CLASS),
    ("constructor", kt("val a = «A»()"), "exact", CLASS),
    ("nested type", kt("val a: A.«N»? = null"), "exact", ["p/A.kt:4 A.N"]),
    ("imported nested type", kt("val a: «N»? = null", "import p.A.N", "q"), "exact", ["p/A.kt:4 A.N"]),
    ("type parameter", kt("class B<A>(val a: «A»)"), "name", []),
    ("own nested type", kt("class B { val a: «A»? = null\n class A }"), "exact", ["p/B.kt:4 B.A"]),
    ("nested type of a base", kt("class B : Root() { val a: «A»? = null }"), "exact", ["p/A.kt:9 Root.A"]),
    ("base outside", kt("class B : Ext() { val a: «A»? = null }", "import ext.Ext"), "inferred", CLASS),
    ("enum constant", kt("val a = E.«ONE»"), "exact", ["p/A.kt:7 E.ONE"]),
    ("member of a companion", kt("val a = A.«make»()"), "inferred", MAKE),
    ("parameter", kt("fun f(a: A?) = a?.«go»()"), "inferred", GO),
    ("constructed local", kt("fun f() { val a = A()\n a.«go»() }"), "inferred", GO),
    ("local of unknown type", kt("fun f() { val a = x()\n a.«go»() }"), "name", []),
    ("property", kt("class B(val a: A) { fun f() = a.«go»() }"), "inferred", GO),
    ("this", kt("class B { fun g() {}\n fun f() { this.«g»() } }"), "inferred", ["p/B.kt:3 B.g"]),
    ("this of an extension", kt("class B { fun go() {}\n fun A.f() { this.«go»() } }"), "name", []),
    ("this in a lambda", kt("class B { fun go() {}\n fun f(a: A) { a.apply { this.«go»() } } }"), "name", []),
    ("member", kt("class B { fun g() {}\n fun f() { «g»() } }"), "inferred", ["p/B.kt:3 B.g"]),
    ("member in a lambda", kt("class B { fun go() {}\n fun f(a: A) { a.apply { «go»() } } }"), "name", []),
    ("member before the package", kt("class B { fun top() {}\n fun f() { «top»() } }"), "inferred", ["p/B.kt:3 B.top"]),
    ("overload", kt("class B { fun g() {}\n fun g(a: Int) {}\n fun f() { «g»() } }"), "inferred", ["p/B.kt:3 B.g"]),
    ("function of the package", kt("fun f() { «top»() }"), "inferred", TOP),
    ("imported function", kt("fun f() { «top»() }", "import p.top", "q"), "inferred", TOP),
    ("renamed function", kt("fun f() { «tip»() }", "import p.top as tip", "q"), "inferred", TOP),
    ("function or member of a base", kt("class B : Root() { fun f() { «top»() } }"), "name", []),
    ("local hides the function", kt("fun f(top: Int) = «top»"), "name", []),
    ("method named as its caller", kt("class B { fun go(a: A) { a.«go»() } }"), "inferred", GO),
    ("name of an argument", kt("fun f() = g(«top» = 1)"), "name", []),
    ("result of a call", kt("fun f() = g().«go»()"), "name", []),
    ("Scala type", sc("class B(a: «C»)"), "exact", ["p/C.scala:2 C"]),
    ("Scala object", sc("class B { val a = «C».make }"), "exact", ["p/C.scala:3 C"]),
    ("Scala import", sc("class B(a: «C»)", "import p.{C, O}", "q"), "exact", ["p/C.scala:2 C"]),
    ("renamed Scala import", sc("class B(a: «Z»)", "import p.{C => Z}", "q"), "exact", ["p/C.scala:2 C"]),
    ("shadowed Scala import", sc("class B(a: «C»)", "import ext.C"), "external", []),
    ("Scala nested type", sc("class B(a: O.«N»)"), "exact", ["p/C.scala:4 O.N"]),
    ("Scala parameter", sc("class B { def f(a: C) = a.«go» }"), "inferred", ["p/C.scala:2 C.go"]),
    ("Scala type parameter", sc("class B[C](a: «C»)"), "name", []),
    ("Scala this", sc("class B(a: Int) { def this() = «this»(1) }"), "name", []),
    ("Scala star", sc("class B(a: «C»)", "import ext._"), "inferred", ["p/C.scala:2 C"]),
]  # fmt: skip


@pytest.mark.parametrize(
    ("files", "certainty", "places"), [shape[1:] for shape in SHAPES], ids=[shape[0] for shape in SHAPES]
)
def test_use_is_resolved(files: Mapping[str, str], certainty: str, places: list[str]) -> None:
    assert resolve_marked(files) == (certainty, places)
