"""`impact` lists files that use a file without an import, in each language that allows this."""

from __future__ import annotations

import pytest

from tests.support.command_line import CommandLine, write

TREE = {
    "j/p/Price.java": "package p;\nclass Price { static int of(int n) { return n; } }\n",
    "j/p/Cart.java": "package p;\nclass Cart { int total() { return Price.of(3); } }\n",
    "j/q/Other.java": "package q;\nclass Other { int Price; }\n",
    "j/p/PriceTest.java": "package p;\nclass PriceTest { Price price; }\n",
    "cs/Price.cs": "namespace Shop.Prices;\npublic class Price { public static int Of(int n) => n; }\n",
    "cs/Cart.cs": "using Shop.Prices;\nnamespace Shop;\npublic class Cart { public int Total() => Price.Of(3); }\n",
    "cs/Stock.cs": "namespace Shop;\npublic class Stock { Shop.Prices.Price p; Pricey q; }\n",
    "go/go.mod": "module example.org/shop\n",
    "go/shop/price.go": "package shop\nfunc Price(n int) int { return n }\n",
    "go/shop/cart.go": "package shop\nfunc Total() int { return Price(3) }\n",
    "go/shop/price_test.go": 'package shop\nimport "testing"\nfunc TestPrice(t *testing.T) { Price(1) }\n',
    "go/shop/rate.go": "package shop\nvar rate = 2\n",
    "go/shop/stock.go": "package shop\nvar doubled = rate * 2\n",
    "go/other/price.go": "package other\nfunc Total() int { return Price }\n",
    "kt/Price.kt": "package shop\nfun priceOf(n: Int): Int = n\n",
    "kt/Cart.kt": "package shop\nfun total(): Int = priceOf(3)\n",
    "sw/Price.swift": "struct Price { static func of(_ n: Int) -> Int { return n } }\n",
    "sw/Cart.swift": "struct Cart { func total() -> Int { return Price.of(3) } }\n",
    "rb/price.rb": "module Shop\n  class Price\n    def self.of(n) = n\n  end\nend\n",
    "rb/cart.rb": "module Shop\n  class Cart\n    def total = Price.of(3)\n  end\nend\n",
    "rb/stock.rb": "module Shop\n  class Stock\n  end\nend\n",
    "c/price.h": "int price(int n);\n",
    "c/price.c": '#include "price.h"\nstatic int least(int a) { return a; }\nint price(int n) { return least(n); }\n',
    "c/cart.c": '#include "price.h"\nint total(void) { return price(3); }\n',
    "c/least.c": "static int least(void) { return 2; }\n",
    "php/Price.php": "<?php\nnamespace A;\nclass Price {}\n",
    "php/Cart.php": "<?php\nnamespace A;\nclass Cart { function f() { return new Price(); } }\n",
    "rs/Cargo.toml": '[package]\nname = "shop"\n',
    "rs/src/lib.rs": "pub mod cart;\npub mod price;\npub fn root() {}\n",
    "rs/src/price.rs": "pub fn of(n: i32) -> i32 { n }\n",
    "rs/src/cart.rs": "pub fn total() -> i32 { crate::price::of(3) }\n",
    "rs/tests/prices.rs": "#[test]\nfn three() { assert_eq!(shop::price::of(3), 3); }\n",
    "rs/tests/others.rs": "use other::of;\n#[test]\nfn four() { price(of(4)); }\n",
    "db/price.sql": "CREATE TABLE price (n INT);\n",
    "py/price.py": "class Price: pass\n",
    "py/cart.py": "Price = 1\n",
}


@pytest.fixture(autouse=True)
def analysed(codebatch: CommandLine) -> None:
    for path, content in TREE.items():
        write(codebatch.directory / path, content)
    codebatch("run", ".", "--quiet")


@pytest.mark.parametrize(
    ("path", "dependents", "tests"),
    [
        ("c/price.c", ["c/cart.c"], []),
        ("c/least.c", [], []),
        ("cs/Price.cs", ["cs/Cart.cs", "cs/Stock.cs"], []),
        ("cs/Stock.cs", [], []),
        ("go/shop/price.go", ["go/shop/cart.go", "go/shop/price_test.go"], ["go/shop/price_test.go"]),
        ("go/shop/rate.go", ["go/shop/stock.go"], []),
        ("go/other/price.go", [], []),
        ("j/p/Price.java", ["j/p/Cart.java", "j/p/PriceTest.java"], ["j/p/PriceTest.java"]),
        ("j/p/Cart.java", [], []),
        ("kt/Price.kt", ["kt/Cart.kt"], []),
        ("php/Price.php", ["php/Cart.php"], []),
        ("py/price.py", [], []),
        ("rb/price.rb", ["rb/cart.rb"], []),
        ("rs/src/price.rs", ["rs/src/cart.rs", "rs/src/lib.rs", "rs/tests/prices.rs"], ["rs/tests/prices.rs"]),
        ("sw/Price.swift", ["sw/Cart.swift"], []),
    ],
)
def test_files_that_use_a_file_without_an_import_depend_on_it(
    codebatch: CommandLine, path: str, dependents: list[str], tests: list[str]
) -> None:
    answer = codebatch("impact", path, "--json").json
    assert (answer["complete"], [record["path"] for record in answer["records"]]) == (True, dependents)
    assert codebatch("impact", path, "--tests", "--json").json["records"] == tests


def test_impact_is_incomplete_in_a_language_without_resolved_uses(codebatch: CommandLine) -> None:
    notes = codebatch("impact", "db/price.sql", status=3).notes
    assert "incomplete: uses of SQL files are not resolved; see: codebatch references NAME\n" in notes
    assert codebatch("inspect", "db/price.sql").lines[1].endswith("dependents unknown")
