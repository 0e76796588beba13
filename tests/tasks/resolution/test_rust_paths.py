"""Paths and macros that Rust files use without `use`."""

from __future__ import annotations

import pytest

from tests.support.memory_project import MemoryProject

_FILES = {
    "Cargo.toml": "[workspace]\nmembers = ['shop', 'till']\n",
    "shop/Cargo.toml": (
        "[package]\nname = 'shop'\nversion = '0.1.0'\nedition = '2021'\n[dependencies]\ntill = { path = '../till' }\n"
    ),
    "shop/src/lib.rs": "mod cart;\nmod stock;\nmod macros;\npub mod price;\n",
    "shop/src/price.rs": "pub mod tax;\npub fn of() {}\n",
    "shop/src/price/tax.rs": "pub fn rate() {}\n",
    "shop/src/stock.rs": "pub fn count() {}\n",
    "shop/src/macros.rs": "macro_rules! total { () => {} }\n#[macro_export]\nmacro_rules! sum { () => {} }\n",
    "shop/src/cart/helper.rs": "pub fn help() {}\n",
    "shop/tests/orders.rs": "#[test]\nfn orders() {}\n",
    "till/Cargo.toml": "[package]\nname = 'till'\nversion = '0.1.0'\nedition = '2021'\n",
    "till/src/lib.rs": "pub mod drawer;\n#[macro_export]\nmacro_rules! ring { () => {} }\n",
    "till/src/drawer.rs": "pub fn open() {}\n",
}


def links(code: str, path: str = "shop/src/cart.rs") -> set[str]:
    """Return the implicit imports of a file with this code: name, file, and certainty unless it is `exact`."""
    edges = MemoryProject({**_FILES, path: code + "\n"}).links()
    return {
        f"{edge.imported} {edge.target} {edge.resolution}".removesuffix(" exact")
        for edge in edges
        if edge.implicit and edge.path == path
    }


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("fn f() { crate::price::of() }", {"crate::price::of shop/src/price.rs"}),
        ("fn f(x: crate::price::tax::Rate) {}", {"crate::price::tax::Rate shop/src/price/tax.rs"}),
        ("fn f() { super::stock::count() }", {"super::stock::count shop/src/stock.rs"}),
        ("mod helper;\nfn f() { self::helper::help() }", {"self::helper::help shop/src/cart/helper.rs"}),
        ("use crate::price;\nfn f() { price::tax::rate() }", {"price::tax::rate shop/src/price/tax.rs"}),
        ("use super::*;\nfn f() { price::of() }", {"price::of shop/src/price.rs file"}),
        ("fn f() { till::drawer::open() }", {"till::drawer::open till/src/drawer.rs"}),
        ("fn f() { assert_eq!(crate::price::of(), 1) }", {"crate::price::of shop/src/price.rs"}),
        ("fn f() { total!() }", {"total! shop/src/macros.rs file"}),
        ("fn f() { crate::sum!() }", {"crate::sum! shop/src/macros.rs"}),
        ("use till::ring;\nfn f() { ring!() }", {"ring! till/src/lib.rs"}),
        ("mod tests { fn f() { super::super::stock::count() } }", {"super::stock::count shop/src/stock.rs"}),
        ("impl crate::stock::Stock for Cart {}", {"crate::stock::Stock shop/src/stock.rs"}),
        ("#[derive(crate::price::Derive)]\nstruct A;", {"crate::price::Derive shop/src/price.rs"}),
    ],
)
def test_paths_to_other_files(code: str, expected: set[str]) -> None:
    assert links(code) == expected


@pytest.mark.parametrize(
    "code",
    [
        "use crate::price::of;\nfn f() { of() }",
        "use crate::price;\nfn f() { price::of() }",
        '// crate::price::of\nfn f() { "crate::price::of"; r#"crate::price::of"#; } /* crate::price::of */',
        "mod inner { pub fn g() {} }\nfn f() { inner::g() }",
        "mod tests { fn f() { super::g() } }",
        "mod price { pub fn of() {} }\nfn f() { price::of() }",
        "use other::thing as price;\nfn f() { price::of() }",
        'fn f() { std::mem::drop(1); str::from_utf8(b""); u8::max_value(); }',
        "fn f() { price::of() }",
        "fn f() { stock::count() }",
        "macro_rules! total { () => {} }\nfn f() { total!() }",
        "fn f() { println!(); ring!(); }",
        "fn f() { Price::of(); T::default(); Self::g(); }",
        "fn f(a: bool) { if a != crate { } x.price::<u8>() }",
        # The grammar does not parse the argument of the macro, so that the module of the path is unknown.
        "group! { mod inner { fn f() { super::stock::count() } } }",
    ],
)
def test_paths_to_no_other_file(code: str) -> None:
    assert links(code) == set()


def test_files_in_tests_are_crates() -> None:
    """A file in `tests` sees no neighbour that it does not declare, and the library only by its name."""
    path = "shop/tests/sales.rs"
    assert links("fn f() { orders::of(); total!(); shop::price::of() }", path) == {"shop::price::of shop/src/price.rs"}
