"""Uses of names in Swift, resolved to definitions."""

# ruff: noqa: E501  # Each shape is one line.

from __future__ import annotations

from collections.abc import Mapping

import pytest

from tests.uses.shapes import resolve_marked

A = {
    "Package.swift": "",
    "Sources/M/A.swift": "struct A {\n  static func f() {}\n  func g() {}\n  struct B {}\n}\nenum E { case one }\n",
}
USER = "Sources/M/C.swift"

SHAPES: list[tuple[str, Mapping[str, str], str, list[str]]] = [
    ("type", {**A, USER: "let a: «A»\n"}, "exact", ["Sources/M/A.swift:1 A"]),
    ("constructed type", {**A, USER: "let a = «A»()\n"}, "exact", ["Sources/M/A.swift:1 A"]),
    ("nested type", {**A, USER: "let a: A.«B»\n"}, "exact", ["Sources/M/A.swift:4 A.B"]),
    ("static member", {**A, USER: "func h() { A.«f»() }\n"}, "inferred", ["Sources/M/A.swift:2 A.f"]),
    ("case of an enum", {**A, USER: "let e = E.«one»\n"}, "exact", ["Sources/M/A.swift:6 E.one"]),
    ("typed parameter", {**A, USER: "func h(_ a: A) { a.«g»() }\n"}, "inferred", ["Sources/M/A.swift:3 A.g"]),
    ("typed local", {**A, USER: "func h() { let a: A = x()\n  a.«g»() }\n"}, "inferred", ["Sources/M/A.swift:3 A.g"]),
    ("constructed local", {**A, USER: "func h() { let a = A()\n  a.«g»() }\n"}, "inferred", ["Sources/M/A.swift:3 A.g"]),
    ("local of unknown type", {**A, USER: "func h() { let a = x()\n  a.«g»() }\n"}, "name", []),
    ("self", {"a.swift": "class A {\n  func f() {}\n  func g() { self.«f»() }\n}\n"}, "inferred", ["a.swift:2 A.f"]),
    ("member without self", {"a.swift": "class A {\n  func f() {}\n  func g() { «f»() }\n}\nfunc f() {}\n"}, "inferred", ["a.swift:2 A.f"]),
    ("parameter hides the member", {"a.swift": "class A {\n  func f() {}\n  func g(f: () -> Void) { «f»() }\n}\n"}, "name", []),
    ("closure parameter", {"a.swift": "func f() {}\nfunc g() { x { f in «f»() } }\n"}, "name", []),
    ("binding in a condition", {"a.swift": "func f() {}\nfunc g() { if let f = x { «f»() } }\n"}, "name", []),
    ("binding in a case", {"a.swift": "func f() {}\nfunc g() { switch x { case .a(let f): «f»() } }\n"}, "name", []),
    ("type of the file", {"a.swift": "struct A {}\nlet a: «A»\n"}, "exact", ["a.swift:1 A"]),
    ("nested type of the file", {"a.swift": "struct A {}\nstruct C { struct A {}\n  let a: «A» }\n"}, "exact", ["a.swift:2 C.A"]),
    ("a base can have a nested type", {"a.swift": "struct A {}\nclass C: Base { var a: «A»? }\n"}, "inferred", ["a.swift:1 A"]),
    ("type parameter", {**A, USER: "struct C<A> { let a: «A» }\n"}, "name", []),
    ("type parameter of a function", {**A, USER: "func h<A>(_ a: «A») {}\n"}, "name", []),
    ("overloads", {**A, "Sources/M/D.swift": "struct D { static func f() {}\n  static func f(_ n: Int) {} }\n", USER: "func h() { D.«f»(1) }\n"}, "inferred", ["Sources/M/D.swift:2 D.f"]),
    ("implicit member", {**A, USER: "func h() -> E { .«one» }\n"}, "name", []),
    ("argument label", {**A, USER: "func h() { k(«A»: 1) }\n"}, "name", []),
    ("declaration of a local", {"a.swift": "func f() {}\nfunc g() { let «f» = 1 }\n"}, "name", []),
    ("declaration of a parameter", {"a.swift": "func f() {}\nfunc g(«f»: Int) {}\n"}, "name", []),
    ("condition", {"a.swift": "enum Linux {}\n#if os(«Linux»)\n#endif\n"}, "name", []),
    ("type of the system", {**A, USER: "let a: «String»\n"}, "name", []),
    ("two types", {**A, "Sources/M/A2.swift": "struct A {}\n", USER: "let a: «A»\n"}, "name", []),
]  # fmt: skip


@pytest.mark.parametrize(
    ("files", "certainty", "places"), [shape[1:] for shape in SHAPES], ids=[shape[0] for shape in SHAPES]
)
def test_use_is_resolved(files: Mapping[str, str], certainty: str, places: list[str]) -> None:
    assert resolve_marked(files) == (certainty, places)
