"""`impact` says when a language lets files use one another without an import, and how many may do so."""

from __future__ import annotations

import pytest

from .process import CommandLine, write

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
    "py/price.py": "class Price: pass\n",
    "py/cart.py": "Price = 1\n",
}


@pytest.fixture(autouse=True)
def analysed(codebatch: CommandLine) -> None:
    for path, content in TREE.items():
        write(codebatch.directory / path, content)
    codebatch("run", ".", "--quiet")


def test_uses_that_need_no_import_are_counted_and_make_the_answer_incomplete(codebatch: CommandLine) -> None:
    for path, language, files, name in (
        ("j/p/Price.java", "Java", "1 other file mentions", "Price"),
        ("cs/Price.cs", "C#", "2 other files mention", "Price"),
        ("go/shop/price.go", "Go", "2 other files mention", "Price"),
        ("sw/Price.swift", "Swift", "1 other file mentions", "Price"),
        ("kt/Price.kt", "Kotlin", "1 other file mentions", "priceOf"),
        ("rb/price.rb", "Ruby", "1 other file mentions", "Price"),
        ("c/price.c", "C", "1 other file mentions", "price"),
        ("php/Price.php", "PHP", "1 other file mentions", "Price"),
    ):
        told = codebatch("impact", path, status=3)
        assert (
            f"incomplete: uses without an import are not resolved in {language}: {files} names that this one defines; "
            f"see: codebatch references {name}\n"
        ) in told.notes, path
    tests = codebatch("impact", "go/shop/price.go", "--tests", status=3)
    assert "2 other files mention names that this one defines" in tests.notes
    answer = codebatch("impact", "cs/Price.cs", "--json", status=3).json
    assert (answer["complete"], answer["records"]) == (False, [])


@pytest.mark.parametrize(
    "path",
    ["cs/Stock.cs", "j/p/Cart.java", "kt/Cart.kt", "rb/cart.rb", "c/cart.c", "c/least.c", "c/price.h", "py/price.py"],
)
def test_answer_is_whole_where_nothing_mentions_a_file_or_uses_need_an_import(
    codebatch: CommandLine, path: str
) -> None:
    assert "incomplete" not in codebatch("impact", path).notes
