"""Java, Kotlin and Scala: files of a package are linked by the names that they use of each other."""

# ruff: noqa: E501  # Each project is one line.

from __future__ import annotations

from collections.abc import Mapping

import pytest

from tests.tasks.resolution.implicit_links import implicit_links

M, T, K, KT, S = "src/main/java/p", "src/test/java/p", "src/main/kotlin/p", "src/test/kotlin/p", "src/main/scala/p"
PRICE = {f"{M}/Price.java": "package p;\npublic class Price { public static class Unit {} }\n"}
MONEY = {
    f"{K}/Money.kt": "package p\nclass Money\nfun total() = 1\nval RATE = 2\nprivate fun secret() = 3\nprivate class Hidden\nfun String.asMoney() = Money()\n"
}
COIN = {f"{S}/Coin.scala": "package p\ncase class Coin(x: Int)\nobject Mint { def strike = 1 }\n"}


def java(body: str, imports: str = "", path: str = f"{M}/Cart.java", package: str = "p") -> Mapping[str, str]:
    return {path: f"package {package};\n{imports}\n{body}\n"}


def kotlin(body: str, imports: str = "", path: str = f"{K}/Cart.kt", package: str = "p") -> Mapping[str, str]:
    return {path: f"package {package}\n{imports}\n{body}\n"}


def scala(body: str, imports: str = "", path: str = f"{S}/Cart.scala", package: str = "p") -> Mapping[str, str]:
    return {path: f"package {package}\n{imports}\n{body}\n"}


TO_PRICE, TO_PRICE_MAYBE = (
    [f"{M}/Cart.java -> {M}/Price.java exact Price"],
    [f"{M}/Cart.java -> {M}/Price.java file Price"],
)
PROJECTS: list[tuple[str, Mapping[str, str], list[str]]] = [
    ("field", {**PRICE, **java("class Cart { Price a; }")}, TO_PRICE),
    ("local", {**PRICE, **java("class Cart { void f() { Price a = null; } }")}, TO_PRICE),
    ("parameter", {**PRICE, **java("class Cart { void f(Price... a) {} }")}, TO_PRICE),
    ("result", {**PRICE, **java("class Cart { Price[] f() { return null; } }")}, TO_PRICE),
    ("type argument", {**PRICE, **java("class Cart { java.util.List<? extends Price> a; }")}, TO_PRICE),
    ("bound", {**PRICE, **java("class Cart<T extends Price> {}")}, TO_PRICE),
    ("cast", {**PRICE, **java("class Cart { Object f(Object o) { return (Price) o; } }")}, TO_PRICE),
    ("instanceof", {**PRICE, **java("class Cart { boolean f(Object o) { return o instanceof Price p; } }")}, TO_PRICE),
    ("constructor", {**PRICE, **java("class Cart { Object a = new Price(); }")}, TO_PRICE),
    ("array", {**PRICE, **java("class Cart { Object a = new Price[1]; }")}, TO_PRICE),
    ("static call", {**PRICE, **java("class Cart { Object a = Price.of(1); }")}, TO_PRICE),
    ("static field", {**PRICE, **java("class Cart { Object a = Price.ZERO.x; }")}, TO_PRICE),
    ("method reference", {**PRICE, **java("class Cart { Object a = Price::new; }")}, TO_PRICE),
    ("class literal", {**PRICE, **java("class Cart { Object a = Price.class; }")}, TO_PRICE),
    ("base", {**PRICE, **java("class Cart extends Price {}")}, TO_PRICE),
    ("thrown", {**PRICE, **java("class Cart { void f() throws Price {} }")}, TO_PRICE),
    ("caught", {**PRICE, **java("class Cart { void f() { try {} catch (Price | Error e) {} } }")}, TO_PRICE),
    ("annotation", {**PRICE, **java("@Price(1) class Cart {}")}, TO_PRICE),
    ("nested type", {**PRICE, **java("class Cart { Price.Unit a; }")}, TO_PRICE),
    ("full name", {**PRICE, **java("class Cart { p.Price a; }", path="src/main/java/q/Cart.java", package="q")}, [f"src/main/java/q/Cart.java -> {M}/Price.java exact p.Price"]),
    ("full name in a call", {**PRICE, **java("class Cart { Object a = p.Price.of(); }", path="src/main/java/q/Cart.java", package="q")}, [f"src/main/java/q/Cart.java -> {M}/Price.java exact p.Price"]),
    ("test", {**PRICE, **java("class PriceTest { Price a; }", path=f"{T}/PriceTest.java")}, [f"{T}/PriceTest.java -> {M}/Price.java exact Price"]),
    ("test is no target", {**java("class Price {}", path=f"{T}/Price.java"), **PRICE, **java("class Cart { Price a; }")}, TO_PRICE),
    ("only a test defines it", {**java("class Price {}", path=f"{T}/Price.java"), **java("class Cart { Price a; }")}, [f"{M}/Cart.java -> {T}/Price.java file Price"]),
    ("star", {**PRICE, **java("class Cart { Price a; }", "import p.*;", "src/main/java/q/Cart.java", "q")}, [f"src/main/java/q/Cart.java -> {M}/Price.java exact Price"]),
    ("package before star", {**PRICE, **java("class Cart { Price a; }", "import q.*;"), "src/main/java/q/Price.java": "package q;\npublic class Price {}\n"}, TO_PRICE),
    ("star of an internal type", {f"{M}/Price.java": "package p;\nclass Price {}\n", **java("class Cart { Price a; }", "import p.*;", "src/main/java/q/Cart.java", "q")}, []),
    ("two stars", {**PRICE, "src/main/java/r/Price.java": "package r;\npublic class Price {}\n", **java("class Cart { Price a; }", "import p.*;\nimport r.*;", "src/main/java/q/Cart.java", "q")}, [f"src/main/java/q/Cart.java -> {M}/Price.java name Price", "src/main/java/q/Cart.java -> src/main/java/r/Price.java name Price"]),
    ("imported name", {**PRICE, **java("class Cart { Price a; }", "import ext.Price;")}, []),
    ("own type", {**PRICE, **java("class Cart { Price a; }\nclass Price {}")}, []),
    ("own nested type", {**PRICE, **java("class Cart { Price a; static class Price {} }")}, []),
    ("nested type of a base", {**PRICE, **java("class Base { static class Price {} }", path=f"{M}/Base.java"), **java("class Cart extends Base { Price a; }")}, [f"{M}/Cart.java -> {M}/Base.java exact Base"]),
    ("nested type of the base of a base", {**PRICE, **java("public class Root { public static class Price {} }", path="src/main/java/r/Root.java", package="r"), **java("class Base extends Root {}", "import r.Root;", f"{M}/Base.java"), **java("class Cart extends Base { Price a; }")}, [f"{M}/Cart.java -> {M}/Base.java exact Base"]),
    ("nested type that an anonymous class can inherit", {**PRICE, "src/main/java/r/Root.java": "package r;\npublic class Root { public static class Price {} }\n", **java("class Cart { Object a = new Root() { Price b; }; }", "import r.Root;")}, TO_PRICE_MAYBE),
    ("private nested type elsewhere", {**PRICE, "src/main/java/r/Root.java": "package r;\npublic class Root { private static class Price {} }\n", **java("class Cart { Price b; }")}, TO_PRICE),
    ("cycle of bases", {**PRICE, **java("class Base extends Cart {}", path=f"{M}/Base.java"), **java("class Cart extends Base { Price a; }")}, [f"{M}/Base.java -> {M}/Cart.java exact Cart", f"{M}/Cart.java -> {M}/Base.java exact Base", *TO_PRICE]),
    ("base outside the tree", {**PRICE, **java("class Cart extends Ext { Price a; }", "import ext.Ext;")}, TO_PRICE_MAYBE),
    ("base of a star outside the tree", {**PRICE, **java("class Cart extends Ext { Price a; }", "import ext.*;")}, TO_PRICE_MAYBE),
    ("base of the platform", {**PRICE, **java("class Cart extends AbstractMap { Price a; }", "import java.util.AbstractMap;")}, TO_PRICE),
    ("nested type of a base of the platform", {f"{M}/Entry.java": "package p;\nclass Entry {}\n", **java("class Cart extends AbstractMap { Entry a; }", "import java.util.AbstractMap;")}, [f"{M}/Cart.java -> {M}/Entry.java file Entry"]),
    ("type parameter", {**PRICE, **java("class Cart<Price> { Price a; }")}, []),
    ("local variable", {**PRICE, **java("class Cart { int f(String Price) { return Price.length(); } }")}, []),
    ("name after a dot", {**PRICE, **java("class Cart { Map.Price a; Map.@A Price b; int c = x.Price; }", "import ext.Map;")}, []),
    ("comments and strings", {**PRICE, **java('/** {@link Price} */ class Cart { String a = "Price"; }')}, []),
    ("two files of the package", {**PRICE, f"{M}/More.java": "package p;\nclass Price {}\n", **java("class Cart { Price a; }")}, [f"{M}/Cart.java -> {M}/More.java name Price", f"{M}/Cart.java -> {M}/Price.java name Price"]),
    ("package of another module", {"a/src/main/java/p/Price.java": PRICE[f"{M}/Price.java"], **java("class Cart { Price a; }", path="b/src/main/java/p/Cart.java")}, ["b/src/main/java/p/Cart.java -> a/src/main/java/p/Price.java file Price"]),
    ("own module first", {"a/src/main/java/p/Price.java": PRICE[f"{M}/Price.java"], "b/src/main/java/p/Price.java": PRICE[f"{M}/Price.java"], **java("class Cart { Price a; }", path="b/src/test/java/p/Cart.java")}, ["b/src/test/java/p/Cart.java -> b/src/main/java/p/Price.java exact Price"]),
    ("default packages of two directories", {"a/Price.java": "class Price {}", "b/Cart.java": "class Cart { Price a; }"}, []),
    ("default package", {"a/Price.java": "class Price {}", "a/Cart.java": "class Cart { Price a; }"}, ["a/Cart.java -> a/Price.java exact Price"]),
    ("Kotlin class in Java", {**MONEY, **java("class Cart { Money a; }")}, [f"{M}/Cart.java -> {K}/Money.kt exact Money"]),
    ("Kotlin function in Java", {**MONEY, **java("class Cart { int a = total(); }")}, []),
    ("Java class in Kotlin", {**PRICE, **kotlin("val a: Price? = null")}, [f"{K}/Cart.kt -> {M}/Price.java exact Price"]),
    ("Kotlin types", {**MONEY, **kotlin("fun f(a: List<Money?>) {}")}, [f"{K}/Cart.kt -> {K}/Money.kt exact Money"]),
    ("Kotlin constructor", {**MONEY, **kotlin("fun f() = Money()", path=f"{KT}/CartTest.kt")}, [f"{KT}/CartTest.kt -> {K}/Money.kt exact Money"]),
    ("Kotlin function", {**MONEY, **kotlin("fun f() = total()")}, [f"{K}/Cart.kt -> {K}/Money.kt file total"]),
    ("Kotlin function in a method of its name", {**MONEY, **kotlin("class Cart { fun total() { total() } }")}, [f"{K}/Cart.kt -> {K}/Money.kt file total"]),
    ("Kotlin value", {**MONEY, **kotlin("fun f() = g(RATE)")}, [f"{K}/Cart.kt -> {K}/Money.kt file RATE"]),
    ("Kotlin local value", {**MONEY, **kotlin("fun f(RATE: Int) = g(RATE)")}, []),
    ("Kotlin function and local of its name", {**MONEY, **kotlin("fun f() { val total = total() }")}, [f"{K}/Cart.kt -> {K}/Money.kt file total"]),
    ("Kotlin private names", {**MONEY, **kotlin("fun f(a: Hidden) = secret()")}, []),
    ("Kotlin extension", {**MONEY, **kotlin("fun f(a: String) = a.asMoney()")}, [f"{K}/Cart.kt -> {K}/Money.kt name asMoney"]),
    ("imported Kotlin extension", {**MONEY, **kotlin("fun f(a: String) = a.asMoney()", "import q.asMoney")}, []),
    ("imported Kotlin name", {**MONEY, **kotlin("val a: Money? = null", "import ext.Money")}, []),
    ("Kotlin name of an import", {**MONEY, **kotlin("val a: Money? = null", "import ext.Dollar as Money // x")}, []),
    ("renamed Kotlin import", {**MONEY, **kotlin("val a: Money? = null", "import ext.Money as Dollar")}, [f"{K}/Cart.kt -> {K}/Money.kt exact Money"]),
    ("Kotlin base of an import", {**MONEY, **kotlin("class Cart : Base() { val a: Money? = null }", "import ext.Root as Base")}, [f"{K}/Cart.kt -> {K}/Money.kt file Money"]),
    ("Kotlin full name", {**MONEY, **kotlin("val a: p.Money? = null", path="src/main/kotlin/q/Cart.kt", package="q")}, [f"src/main/kotlin/q/Cart.kt -> {K}/Money.kt exact p.Money"]),
    ("Kotlin type parameter", {**MONEY, **kotlin("class Cart<Money>(val a: Money)")}, []),
    ("Kotlin overloads in two files", {**MONEY, f"{K}/More.kt": "package p\nfun total(a: Int) = a\n", **kotlin("fun f() = total()")}, [f"{K}/Cart.kt -> {K}/Money.kt name total", f"{K}/Cart.kt -> {K}/More.kt name total"]),
    ("Kotlin factory with the name of a class", {**MONEY, **kotlin("fun Money(a: Int): Money = Money()")}, [f"{K}/Cart.kt -> {K}/Money.kt file Money"]),
    ("Kotlin script", {"build.gradle.kts": "val total = 1", "settings.gradle.kts": "include(total)"}, []),
    ("Scala type", {**COIN, **scala("class Cart(a: List[Coin])")}, [f"{S}/Cart.scala -> {S}/Coin.scala exact Coin"]),
    ("Scala object", {**COIN, **scala("class Cart { val a = Mint.strike }")}, [f"{S}/Cart.scala -> {S}/Coin.scala exact Mint"]),
    ("Scala pattern", {**COIN, **scala("class Cart { def f(a: Any) = a match { case Coin(x) => x } }")}, [f"{S}/Cart.scala -> {S}/Coin.scala exact Coin"]),
    ("imported Scala names", {**COIN, **scala("class Cart(a: Coin) { val b = Mint }", "import ext.{Coin, Silver => Mint}, ext.X")}, []),
    ("renamed Scala import", {**COIN, **scala("class Cart(a: Coin)", "import ext.{Coin => Silver}")}, [f"{S}/Cart.scala -> {S}/Coin.scala exact Coin"]),
    ("Scala star hides the package", {**COIN, **scala("class Cart(a: Coin)", "import ext._")}, [f"{S}/Cart.scala -> {S}/Coin.scala file Coin"]),
    ("Scala star of the tree", {**COIN, "src/main/scala/q/Coin.scala": "package q\nclass Coin\n", **scala("class Cart(a: Coin)", "import q._")}, [f"{S}/Cart.scala -> src/main/scala/q/Coin.scala file Coin"]),
    ("Scala enclosing package", {**COIN, **scala("class Cart(a: Coin)", "package q")}, [f"{S}/Cart.scala -> {S}/Coin.scala exact Coin"]),
    ("Scala package object is no type", {"src/main/scala/p/package.scala": "package object p { def cent = 1 }\n", **scala("class Cart { val a = p.x }", "import p._")}, []),
    ("Scala type of a package object", {"src/main/scala/p/package.scala": "package object p { type Cent = Int }\n", **scala("class Cart(a: Cent)")}, [f"{S}/Cart.scala -> {S}/package.scala exact Cent"]),
    ("Scala package object", {"src/main/scala/p/package.scala": "package object p { def cent = 1 }\n", **scala("class Cart { val a = cent(1) }")}, [f"{S}/Cart.scala -> {S}/package.scala file cent"]),
]  # fmt: skip


@pytest.mark.parametrize(("files", "links"), [project[1:] for project in PROJECTS], ids=[each[0] for each in PROJECTS])
def test_names_are_linked(files: Mapping[str, str], links: list[str]) -> None:
    assert implicit_links(files) == links
