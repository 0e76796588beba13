"""Uses of names in Rust, resolved to definitions. The HIR of rustc confirms the paths."""

# ruff: noqa: E501  # Each shape is one line.

from __future__ import annotations

from collections.abc import Mapping

import pytest

from tests.uses.shapes import resolve_marked

_CRATE = {"Cargo.toml": "[package]\nname = 'c'\nversion = '0.1.0'\nedition = '2021'\n"}
_LIB = {
    "src/lib.rs": "mod a;\nmod b;\n",
    "src/a.rs": "pub fn f() {}\npub struct T { pub n: i32, pub next: Box<T> }\nimpl T {\n    pub fn new() -> Self { todo!() }\n    pub fn m(&self) {}\n}\npub enum K { A, B }\n",
}

SHAPES: list[tuple[str, Mapping[str, str], str, list[str]]] = [
    ("function of the file", {"src/lib.rs": "fn f() {}\nfn g() { «f»() }\n"}, "exact", ["src/lib.rs:1 f"]),
    ("imported function", {**_LIB, "src/b.rs": "use crate::a::f;\nfn g() { «f»() }\n"}, "exact", ["src/a.rs:1 f"]),
    ("second name of a line", {**_LIB, "src/b.rs": "use crate::a::{f, T};\nfn g(t: «T») {}\n"}, "exact", ["src/a.rs:2 T"]),
    ("alias", {**_LIB, "src/b.rs": "use crate::a::f as h;\nfn g() { «h»() }\n"}, "exact", ["src/a.rs:1 f"]),
    ("module", {**_LIB, "src/b.rs": "use crate::a;\nfn g() { a::«f»() }\n"}, "exact", ["src/a.rs:1 f"]),
    ("path in full", {**_LIB, "src/b.rs": "fn g() { crate::a::«f»() }\n"}, "exact", ["src/a.rs:1 f"]),
    ("path in a macro", {**_LIB, "src/b.rs": "fn g() { println!(\"{}\", crate::a::«f»()) }\n"}, "exact", ["src/a.rs:1 f"]),
    ("declared module", {**_LIB, "src/lib.rs": "mod a;\nfn g() { a::«f»() }\n"}, "exact", ["src/a.rs:1 f"]),
    ("re-export", {**_LIB, "src/lib.rs": "mod a;\nmod b;\npub use a::f;\n", "src/b.rs": "use crate::f;\nfn g() { «f»() }\n"}, "exact", ["src/a.rs:1 f"]),
    ("star import", {**_LIB, "src/b.rs": "use crate::a::*;\nfn g() { «f»() }\n"}, "inferred", ["src/a.rs:1 f"]),
    ("associated function", {**_LIB, "src/b.rs": "use crate::a::T;\nfn g() { T::«new»() }\n"}, "exact", ["src/a.rs:4 T::new"]),
    ("variant", {**_LIB, "src/b.rs": "use crate::a::K;\nfn g() { K::«A»; }\n"}, "exact", ["src/a.rs:7 K::A"]),
    ("imported variant", {**_LIB, "src/b.rs": "use crate::a::K;\nfn g() { use K::*; «A»; }\n"}, "inferred", ["src/a.rs:7 K::A"]),
    ("field of a literal", {**_LIB, "src/b.rs": "use crate::a::T;\nfn g(t: T) { T { «n»: 1, ..t }; }\n"}, "exact", ["src/a.rs:2 T::n"]),
    ("parameter", {**_LIB, "src/b.rs": "use crate::a::T;\nfn g(t: &mut T) { t.«m»() }\n"}, "inferred", ["src/a.rs:5 T::m"]),
    ("typed variable", {**_LIB, "src/b.rs": "use crate::a::T;\nfn g() { let t: T = h(); t.«m»() }\n"}, "inferred", ["src/a.rs:5 T::m"]),
    ("constructed variable", {**_LIB, "src/b.rs": "use crate::a::T;\nfn g() { let t = T::new(); t.«m»() }\n"}, "inferred", ["src/a.rs:5 T::m"]),
    ("self", {"src/lib.rs": "struct T;\nimpl T {\n    fn m(&self) {}\n    fn g(&self) { self.«m»() }\n}\n"}, "inferred", ["src/lib.rs:3 T::m"]),
    ("Self", {"src/lib.rs": "struct T;\nimpl T {\n    fn m() {}\n    fn g() { Self::«m»() }\n}\n"}, "exact", ["src/lib.rs:3 T::m"]),
    ("method named as its caller", {"src/lib.rs": "struct T;\nimpl T {\n    fn f(&self) { «f»() }\n}\nfn f() {}\n"}, "exact", ["src/lib.rs:5 f"]),
    ("local hides function", {"src/lib.rs": "fn f() {}\nfn g() { let f = h(); «f»() }\n"}, "name", []),
    ("value sees the outer name", {"src/lib.rs": "fn f() {}\nfn g() { let f = «f»(); }\n"}, "exact", ["src/lib.rs:1 f"]),
    ("parameter hides function", {"src/lib.rs": "fn f() {}\nfn g(f: fn()) { «f»() }\n"}, "name", []),
    ("closure parameter", {"src/lib.rs": "fn f() {}\nfn g() { h(|f| «f»()) }\n"}, "name", []),
    ("pattern", {"src/lib.rs": "fn f() {}\nfn g(x: X) { if let Some(f) = x { «f»() } }\n"}, "name", []),
    ("inner module does not see the file", {"src/lib.rs": "fn drop() {}\nmod a { fn g() { «drop»() } }\n"}, "name", []),
    ("inner module imports the file", {"src/lib.rs": "fn f() {}\nmod tests { use super::*; fn g() { «f»() } }\n"}, "inferred", ["src/lib.rs:1 f"]),
    ("file does not see an inner import", {**_LIB, "src/b.rs": "mod t { use crate::a::f; }\nfn g() { «f»() }\n"}, "name", []),
    ("function imports for itself", {**_LIB, "src/b.rs": "fn h() { use crate::a::f; }\nfn g() { «f»() }\n"}, "name", []),
    ("macro is no function", {"src/lib.rs": "macro_rules! f { () => {} }\nfn g() { «f»() }\n"}, "name", []),
    ("function is no macro", {"src/lib.rs": "fn f() {}\nfn g() { «f»!() }\n"}, "name", []),
    ("type parameter", {"src/lib.rs": "struct T;\nfn g<T>(x: «T») {}\n"}, "name", []),
    ("method of a trait of another type", {"src/lib.rs": "struct T;\nimpl A for T { fn f(&self) {} }\nimpl B for T { fn f(&self) {} }\nfn g(t: T) { t.«f»() }\n"}, "name", ["src/lib.rs:2 T::f", "src/lib.rs:3 T::f"]),
    ("alias of a function of the file", {"src/lib.rs": "fn f() {}\nfn g() { use f as h; «h»() }\n"}, "exact", ["src/lib.rs:1 f"]),
    ("import from an inner module", {"src/lib.rs": "mod i { pub fn f() {} }\nuse i::f;\nfn g() { «f»() }\n"}, "exact", ["src/lib.rs:1 i::f"]),
    ("external", {"src/lib.rs": "fn drop() {}\nuse std::mem;\nfn g() { mem::«drop»(1) }\n"}, "external", []),
    ("result of a call", {**_LIB, "src/b.rs": "fn m() {}\nfn g() { h().«m»() }\n"}, "name", []),
    ("star imports of each other", {"src/lib.rs": "mod a;\nmod b;\npub use a::*;\npub use b::*;\n", "src/a.rs": "use crate::*;\nfn g() { «f»() }\n", "src/b.rs": "use crate::*;\n"}, "name", []),
]  # fmt: skip


@pytest.mark.parametrize(
    ("files", "certainty", "places"), [shape[1:] for shape in SHAPES], ids=[shape[0] for shape in SHAPES]
)
def test_use_is_resolved(files: Mapping[str, str], certainty: str, places: list[str]) -> None:
    assert resolve_marked({**_CRATE, **files}) == (certainty, places)
