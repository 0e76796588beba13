"""`impact` reports if a language allows uses without an import, and how many files may contain such uses."""

from __future__ import annotations

import pytest

from tests.support.command_line import CommandLine, write

TREE = {
    "j/p/Price.java": "package p;\nclass Price { static int of(int n) { return n; } }\n",
    "j/p/Cart.java": "package p;\nclass Cart { int total() { return Price.of(3); } }\n",
    "j/q/Other.java": "package q;\nclass Other { int Price; }\n",
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
    "sw/Price.swift": "struct Price { static func of(_ n: Int) -> Int { return n } }\n",
    "sw/Cart.swift": "struct Cart { func total() -> Int { return Price.of(3) } }\n",
    "kt/Price.kt": "package shop\nfun priceOf(n: Int): Int = n\n",
    "kt/Cart.kt": "package shop\nfun total(): Int = priceOf(3)\n",
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
    "py/price.py": "class Price: pass\n",
    "py/cart.py": "Price = 1\n",
}


@pytest.fixture(autouse=True)
def analysed(codebatch: CommandLine) -> None:
    for path, content in TREE.items():
        write(codebatch.directory / path, content)
    codebatch("run", ".", "--quiet")


def test_mentions_without_imports_make_impact_incomplete(codebatch: CommandLine) -> None:
    for path, language, files, name in (
        ("j/p/Price.java", "Java", "1 other file mentions", "Price"),
        ("cs/Price.cs", "C#", "2 other files mention", "Price"),
        ("go/shop/price.go", "Go", "2 other files mention", "Price"),
        ("go/shop/rate.go", "Go", "1 other file mentions", "rate"),
        ("sw/Price.swift", "Swift", "1 other file mentions", "Price"),
        ("kt/Price.kt", "Kotlin", "1 other file mentions", "priceOf"),
        ("rb/price.rb", "Ruby", "1 other file mentions", "Price"),
        ("c/price.c", "C", "1 other file mentions", "price"),
        ("php/Price.php", "PHP", "1 other file mentions", "Price"),
        ("rs/src/price.rs", "Rust", "2 other files mention", "of"),
    ):
        ended = codebatch("impact", path, status=3)
        assert (
            f"incomplete: in {language}, references without an import are not resolved: "
            f"{files} names that this file defines; "
            f"see: codebatch references {name}\n"
        ) in ended.notes, path
    tests = codebatch("impact", "go/shop/price.go", "--tests", status=3)
    assert "2 other files mention names that this file defines" in tests.notes
    answer = codebatch("impact", "cs/Price.cs", "--json", status=3).json
    assert (answer["complete"], answer["records"]) == (False, [])
    assert answer["mentions"] == {"language": "C#", "files": 2, "name": "Price"}
    answer = codebatch("impact", "go/shop/price.go", "--tests", "--json", status=3).json
    assert answer["mentions"] == {"language": "Go", "files": 2, "name": "Price"}
    assert codebatch("impact", "py/price.py", "--json").json["mentions"] is None


def test_dependents_count_is_a_lower_bound_if_uses_need_no_import(codebatch: CommandLine) -> None:
    """Java: a class that one file imports has at least one dependent.

    C#: dependents are unknown. Python: they are complete.
    """
    branches = " ".join(f"if (n == {number}) n++;" for number in range(16))
    shop = "package shop;\npublic class Price { public static int of(int n) { %s return n; } }\n"
    write(codebatch.directory / "src/shop/Price.java", shop % branches)
    write(codebatch.directory / "src/till/Till.java", "package till;\nimport shop.Price;\nclass Till { Price p; }\n")
    write(codebatch.directory / "cs/Price.cs", f"class Price {{ static int Of(int n) {{ {branches} return n; }} }}\n")
    write(codebatch.directory / "py/price.py", "def of(n):\n" + "    if n:\n        n += 1\n" * 16)
    shown = codebatch("run", ".").lines
    used = {line.split()[-1].partition(":")[0]: line.split()[1] for line in shown if line.split()[:1] == ["16"]}
    assert used == {"src/shop/Price.java": "1+", "cs/Price.cs": "?", "py/price.py": "-"}
    rows = {row["path"]: row for row in codebatch("hotspots", "--json").json["rows"]}
    known = {path: (row["dependents"], row.get("dependents_partial")) for path, row in rows.items()}
    assert known == {"src/shop/Price.java": (1, True), "cs/Price.cs": (None, None), "py/price.py": (0, None)}
    table = {line.split()[-1].partition(":")[0]: line.split()[2] for line in codebatch("hotspots").lines[1:]}
    assert table == {"src/shop/Price.java": "1+", "cs/Price.cs": "?", "py/price.py": "0"}
    assert "1+ dependents (1+ including indirect)" in codebatch("inspect", "src/shop/Price.java").lines[1]
    assert "dependents unknown" in codebatch("inspect", "cs/Price.cs").lines[1]
    assert "dependents" not in codebatch("inspect", "py/price.py").lines[1]


@pytest.mark.parametrize(
    "path",
    [
        "cs/Stock.cs",
        "j/p/Cart.java",
        "kt/Cart.kt",
        "rb/cart.rb",
        "c/cart.c",
        "c/least.c",
        "c/price.h",
        "py/price.py",
        "rs/src/cart.rs",
    ],
)
def test_impact_is_complete_if_every_use_needs_an_import(codebatch: CommandLine, path: str) -> None:
    assert "incomplete" not in codebatch("impact", path).notes
