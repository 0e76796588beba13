"""Uses of names in PHP, resolved to definitions."""

# ruff: noqa: E501  # Each shape is one line.

from __future__ import annotations

from collections.abc import Mapping

import pytest

from tests.uses.shapes import resolve_marked

A = "<?php\nnamespace A;\nclass Base { public function m(): Base {} public $p; const C = 1; public static function s() {} }\nclass Child extends Base { public Base $b; public function n() {} }\nfunction m() {}\ntrait T { public function t() {} }\nenum E { case X; public function e() {} }\n"


def use(code: str, namespace: str = "A") -> Mapping[str, str]:
    return {"a.php": A, "u.php": f"<?php\nnamespace {namespace};\n{code}\n"}


SHAPES: list[tuple[str, Mapping[str, str], str, list[str]]] = [
    ("class of the namespace", use("new «Base»;"), "exact", ["a.php:3 Base"]),
    ("imported class", use("use A\\Base;\nnew «Base»;", "X"), "exact", ["a.php:3 Base"]),
    ("import", use("use A\\«Base»;", "X"), "exact", ["a.php:3 Base"]),
    ("alias", use("use A\\Base as Z;\nnew «Z»;", "X"), "exact", ["a.php:3 Base"]),
    ("full name", use("new \\A\\«Base»;", "X"), "exact", ["a.php:3 Base"]),
    ("external import of the same name", use("use Y\\Base;\nnew «Base»;"), "external", []),
    ("other namespace", use("new «Base»;", "X"), "name", []),
    ("static method", use("Base::«s»();"), "exact", ["a.php:3 Base.s"]),
    ("inherited static method", use("Child::«s»();"), "exact", ["a.php:3 Base.s"]),
    ("constant", use("Base::«C»;"), "exact", ["a.php:3 Base.C"]),
    ("method of an external base", use("class D extends \\Y\\Z { function f() { parent::«m»(); } }"), "name", []),
    ("method named as a function", use("class D { function m() { «m»(); } }"), "exact", ["a.php:5 m"]),
    ("function named as a method", use("$x->«m»();"), "name", []),
    ("property named as a method", use("class D { public $q; function q() {} function f() { $this->«q»; } }"), "inferred", ["u.php:3 D.q"]),
    ("this", use("class D extends Base { function f() { $this->«m»(); } }"), "inferred", ["a.php:3 Base.m"]),
    ("self", use("class D extends Base { function f() { self::«s»(); } }"), "exact", ["a.php:3 Base.s"]),
    ("static", use("class D extends Base { function f() { static::«s»(); } }"), "inferred", ["a.php:3 Base.s"]),
    ("parent", use("class D extends Base { function m(): Base { parent::«m»(); } }"), "exact", ["a.php:3 Base.m"]),
    ("overridden method", use("class D extends Base { function m(): Base {} function f() { self::«m»(); } }"), "exact", ["u.php:3 D.m"]),
    ("trait", use("class D { use T; function f() { $this->«t»(); } }"), "inferred", ["a.php:6 T.t"]),
    ("anonymous class", use("class D { function m() {} function f() { new class { function g() { $this->«m»(); } }; } }"), "name", []),
    ("enum case", use("E::«X»;"), "exact", ["a.php:7 E.X"]),
    ("parameter", use("function f(Child $c) { $c->«n»(); }"), "inferred", ["a.php:4 Child.n"]),
    ("parameter that can be null", use("function f(?Child $c) { $c->«n»(); }"), "inferred", ["a.php:4 Child.n"]),
    ("parameter of two types", use("function f(Child|E $c) { $c->«n»(); }"), "name", []),
    ("parameter of another function", use("function f(Child $c) {} function g($c) { $c->«n»(); }"), "name", []),
    ("constructed variable", use("function f() { $c = new Child; $c->«n»(); }"), "inferred", ["a.php:4 Child.n"]),
    ("variable with two values", use("function f() { $c = new Child; $c = g(); $c->«n»(); }"), "name", []),
    ("property with a type", use("function f(Child $c) { $c->b->«m»(); }"), "inferred", ["a.php:3 Base.m"]),
    ("promoted property", use("class D { function __construct(private Child $c) {} function f() { $this->c->«n»(); } }"), "inferred", ["a.php:4 Child.n"]),
    ("type of a result", use("function f(Child $c) { $c->m()->«m»(); }"), "inferred", ["a.php:3 Base.m"]),
    ("captured variable", use("function f(Child $c) { return function () use ($c) { $c->«n»(); }; }"), "inferred", ["a.php:4 Child.n"]),
    ("arrow function", use("function f(Child $c) { return fn() => $c->«n»(); }"), "inferred", ["a.php:4 Child.n"]),
    ("named argument", use("f(«m»: 1);"), "name", []),
]  # fmt: skip


@pytest.mark.parametrize(("files", "certainty", "places"), [pytest.param(*shape, id=name) for name, *shape in SHAPES])
def test_use_is_resolved(files: Mapping[str, str], certainty: str, places: list[str]) -> None:
    assert resolve_marked(files) == (certainty, places)
