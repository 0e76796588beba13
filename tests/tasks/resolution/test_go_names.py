"""Names that Go files use from other files of their package. go/types confirms the cases."""

from __future__ import annotations

import pytest

from tests.support.memory_project import MemoryProject

_PRICE = """package shop

import "errors"

const Limit, rate = 3, 2

var Default, errLow = Price{}, errors.New("low")

type Price struct{ cents int }

type Seller interface{ Sell(p Price) error }

type ID = string

func Of(n int) Price { return Price{n} }

func (p Price) Double() Price { return p }
"""


def links(files: dict[str, str]) -> set[str]:
    """Return the implicit imports of the file `shop/use.go`: name, file and certainty."""
    edges = MemoryProject({"go.mod": "module example.org/m\n", **files}).links()
    return {
        f"{edge.imported} {edge.target} {edge.resolution}"
        for edge in edges
        if edge.implicit and edge.path == "shop/use.go"
    }


def names(code: str, package: str = "shop", price: str = _PRICE) -> set[str]:
    """Return the names that a file uses from price.go of its package. `code` is the file without its first line."""
    found = links({"shop/price.go": price, "shop/use.go": f"package {package}\n{code}\n"})
    assert all(link.endswith(" shop/price.go exact") for link in found)
    return {link.split()[0] for link in found}


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("func f() int { return Of(1).cents }", "Of"),
        ("var x = rate * 2", "rate"),
        ("var x Price", "Price"),
        ("type Box struct{ Price }", "Price"),
        ("type Box struct{ price *Price }", "Price"),
        ("type Both interface{ Seller }", "Seller"),
        ("func (p Price) Half() Price { return p }", "Price"),
        ("func f(prices ...Price) {}", "Price"),
        ("func f(sell func(p Price)) {}", "Price"),
        ("func f() map[ID][]Price { return nil }", "ID Price"),
        ("func f() { run(Of) }", "Of"),
        ("func f() { g := Of; _ = g }", "Of"),
        ("func f(x int) { switch x { case 1, Limit: } }", "Limit"),
        ("func f(x any) { switch x.(type) { case Price: } }", "Price"),
        ("func f(x []int) { _ = x[rate:Limit] }", "Limit"),
        ("func f(e error) bool { return e == errLow }", "errLow"),
        ("func f() { _ = struct{ a int }{a: Limit} }", "Limit"),
        ("func f() { Default.\n\t\tDouble() }", "Default"),
        ("func f[T Price](t T) {}", "Price"),
        ("const (\n\tA = Limit\n\tB\n)", "Limit"),
        # One function binds the name, and another one uses the name of the package.
        ("func f(rate int) int { return rate }\nfunc g() int { return rate }", "rate"),
    ],
)
def test_names_of_the_package(code: str, expected: str) -> None:
    assert names(code) == set(expected.split())


@pytest.mark.parametrize(
    "code",
    [
        "func f(Of func() int) int { return Of() }",
        "func f() { Of := 1; _ = Of }",
        "func f() { var Of = 1; _ = Of }",
        "func f() { const rate = 1; _ = rate }",
        "func f() { for rate := range []int{} { _ = rate } }",
        "func f(c chan int) { select { case rate, Limit := <-c: _, _ = rate, Limit } }",
        "func f(x any) { switch rate := x.(type) { case int: _ = rate } }",
        "func f() { type Price struct{}; _ = Price{} }",
        "func f() (rate int) { return }",
        "func f() { run(func(rate int) int { return rate }) }",
        "func (rate Other) f() { _ = rate }",
        "func f[Price any](p Price) {}",
        "type Box[Price any] struct{ p Price }",
        "type Box struct{ rate int }",
        "type Box interface{ Of() int }",
        "func (b Box) Of() int { return 1 }",
        "func f() { x.Of() }",
        "func f() { x.\n\t\tOf() }",
        "func f() { _ = other.Price{} }",
        "func f(p other.Price) {}",
        "func f() { _ = Box{rate: 1} }",
        "func f() {\nrate:\n\tfor { break rate }\n}",
        "// Of\nfunc f() { g(`Of`, \"Of\", 'O') } /* Of */",
        'import Of "example.org/of"\nfunc f() { Of.Do() }',
        'import "example.org/rate/v2"\nfunc f() { rate.Do() }',
        "func f() string { return string(nil) }",
    ],
)
def test_other_names(code: str) -> None:
    assert names(code) == set()


def test_name_of_the_file_hides_no_other_file() -> None:
    assert names("func Of() {}\nfunc f() { Of() }") == set()


def test_test_package_does_not_see_names_of_the_package() -> None:
    assert names("func f() { Of(1) }", package="shop_test") == set()


def test_names_of_several_files_for_different_systems() -> None:
    files = {
        "shop/open_linux.go": "package shop\nfunc open() {}\n",
        "shop/open_windows.go": "package shop\nfunc open() {}\n",
        "shop/sub/open.go": "package shop\nfunc open() {}\n",
        "shop/use.go": "package shop\nfunc f() { open() }\n",
    }
    assert links(files) == {"open shop/open_linux.go name", "open shop/open_windows.go name"}


def test_package_may_define_a_predeclared_name() -> None:
    assert names("func f() int { return max(1, 2) }", price="package shop\nfunc max(a, b int) int { return a }") == {
        "max"
    }


def test_line_is_that_of_the_first_use() -> None:
    code = "package shop\n// rate\ntype Box struct{ rate int }\nfunc f() { _ = x.rate }\n\nvar y = rate\nvar z = rate\n"
    project = MemoryProject({"shop/price.go": _PRICE, "shop/use.go": code})
    assert [edge.line for edge in project.links() if edge.implicit] == [6]
