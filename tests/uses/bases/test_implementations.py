"""The types that inherit a type, and the methods that override a method, in each language with classes."""

# ruff: noqa: E501  # Each shape is one line.

from __future__ import annotations

from pathlib import Path

import pytest

from tests.uses.small_batches import batch_of

# Title, files, name, and the implementations: place, type, name, relation, base, number of steps, and certainty.
SHAPES = [
    (
        "python",
        {
            "a.py": "class Base:\n    def hook(self): ...\nclass Sub(Base):\n    def hook(self): ...\n",
            "b.py": "import a\nfrom a import Base as B\nclass X(B): ...\nclass Y(a.Sub): ...\n",
            "c.py": "class Base: ...\nclass Other(Base): ...\n",
        },
        "Base",
        ["a.py:3:7 class Sub inherits Base 1 exact", "b.py:3:7 class X inherits Base 1 exact", "b.py:4:7 class Y inherits Sub 2 exact", "c.py:2:7 class Other inherits Base 1 exact"],
    ),
    (
        "python method",
        {"a.py": "class Base:\n    def hook(self): ...\nclass Mid(Base): ...\nclass Sub(Mid):\n    def hook(self): ...\nclass Other:\n    def hook(self): ...\n"},
        "Base.hook",
        ["a.py:5:9 method Sub.hook overrides Base.hook 2 exact"],
    ),
    (
        "library",
        {"a.py": "import abc\nclass Base(abc.ABC): ...\nclass Sub(Base): ...\n"},
        "abc.ABC",
        ["a.py:2:7 class Base inherits abc.ABC 1 external", "a.py:3:7 class Sub inherits Base 2 external"],
    ),
    (
        "typescript",
        {
            "a.ts": "export interface Base { hook(): void }\nexport class Sub implements Base { hook() {} }\nexport interface Wide extends Base {}\n",
            "b.ts": "import { Sub as S } from './a';\nclass Last extends S { hook() {} }\n",
        },
        "Base",
        ["a.ts:2:14 class Sub implements Base 1 exact", "a.ts:3:18 interface Wide inherits Base 1 exact", "b.ts:2:7 class Last inherits Sub 2 exact"],
    ),
    (
        "java without a name",
        {"J.java": "interface Op<T> { T apply(T x); }\nclass U {\n  Op<String> field = new Op<>() {\n    public String apply(String x) { return x; }\n  };\n  void f() {\n    run(new Op<String>() { public String apply(String x) { return x; } });\n    run(new Op<String>() { public String apply(String x) { return x; } });\n  }\n}\n"},
        "Op",
        [
            "J.java:3:26 class U.<anonymous> implements Op 1 exact",
            "J.java:7:13 class U.f.<anonymous> implements Op 1 exact",
            "J.java:8:13 class U.f.<anonymous> implements Op 1 exact",
        ],
    ),
    (
        "java method without a name",
        {"J.java": "interface Op { void apply(); }\nclass U {\n  Op field = new Op() { public void apply() {} };\n}\nenum E implements Op {\n  A { public void apply() {} }\n}\n"},
        "Op.apply",
        ["J.java:3:37 method U.apply implements Op.apply 1 exact", "J.java:6:19 method E.apply implements Op.apply 1 exact"],
    ),
    (
        "csharp parts",
        {"a.cs": "interface IRun { void Go(); }\npartial class W : IRun { public void Go() {} }\npartial class W { }\nclass V : W { }\n"},
        "IRun",
        ["a.cs:2:15 class W implements IRun 1 exact", "a.cs:4:7 class V inherits W 2 exact"],
    ),
    (
        "csharp method in another part",
        {"a.cs": "interface IRun { void Go(); }\npartial class W : IRun { }\n", "b.cs": "partial class W { public void Go() {} }\n"},
        "IRun.Go",
        ["b.cs:1:31 method W.Go implements IRun.Go 1 inferred"],
    ),
    (
        "kotlin",
        {"k.kt": "interface Fly { fun fly() }\nclass Bird : Fly { override fun fly() {} }\nclass By(val b: Fly) : Fly by b\nclass Has {\n  val f = object : Fly { override fun fly() {} }\n}\n"},
        "Fly",
        ["k.kt:2:7 class Bird implements Fly 1 exact", "k.kt:3:7 class By implements Fly 1 exact", "k.kt:5:20 class Has.<anonymous> implements Fly 1 exact"],
    ),
    (
        "scala",
        {"s.scala": "trait Base { def hook: Int }\nclass Sub extends Base { def hook = 1 }\nobject U { def f() = new Base { def hook = 2 } }\n"},
        "Base",
        ["s.scala:2:7 class Sub implements Base 1 exact", "s.scala:3:26 class U.f.<anonymous> implements Base 1 exact"],
    ),
    (
        "swift extension",
        {"s.swift": "protocol Eat { func eat() }\nstruct Dog {}\nextension Dog: Eat { func eat() {} }\n"},
        "Eat",
        ["s.swift:2:8 struct Dog implements Eat 1 inferred"],
    ),
    (
        "php",
        {"p.php": "<?php interface Log { function put(); }\nclass File implements Log { function Put() {} }\n$o = new class implements Log { function put() {} };\n"},
        "Log",
        ["p.php:2:7 class File implements Log 1 exact", "p.php:3:27 class <anonymous> implements Log 1 exact"],
    ),
    (
        "php without case",
        {"p.php": "<?php interface Log { function put(); }\nclass File implements Log { function Put() {} }\n"},
        "Log.put",
        ["p.php:2:38 method File.Put implements Log.put 1 exact"],
    ),
    (
        "ruby reopened",
        {"a.rb": "module Greet\nend\nclass A\n  include Greet\nend\nclass A\n  def more; end\nend\nclass B < A\nend\n"},
        "Greet",
        ["a.rb:3:7 class A inherits Greet 1 inferred", "a.rb:9:7 class B inherits A 2 inferred"],
    ),
    (
        "rust",
        {"a.rs": "pub trait Draw { fn draw(&self); }\npub trait More: Draw {}\npub struct P;\nimpl Draw for P { fn draw(&self) {} }\n"},
        "Draw",
        ["a.rs:2:11 trait More inherits Draw 1 exact", "a.rs:3:12 struct P implements Draw 1 exact"],
    ),
    (
        "rust method",
        {"a.rs": "pub trait Draw { fn draw(&self); }\npub struct P;\nimpl Draw for P { fn draw(&self) {} }\nimpl P { fn other(&self) {} }\n"},
        "Draw::draw",
        ["a.rs:3:22 method P::draw implements Draw::draw 1 exact"],
    ),
    (
        "go",
        {
            "a/a.go": "package a\ntype Shape interface { Area() int; Name() string }\ntype Half struct{}\nfunc (h Half) Area() int { return 0 }\n",
            "b/b.go": "package b\ntype Sq struct{}\nfunc (s *Sq) Area() int { return 1 }\n",
            "b/c.go": "package b\nfunc (s *Sq) Name() string { return \"\" }\ntype Outer struct{ Sq }\n",
        },
        "Shape",
        ["b/b.go:2:6 struct Sq implements Shape 1 inferred", "b/c.go:3:6 struct Outer inherits Sq 2 inferred"],
    ),
    (
        "go method",
        {"a.go": "package a\ntype Shape interface { Area() int }\ntype Sq struct{}\nfunc (s Sq) Area() int { return 1 }\n"},
        "Shape.Area",
        ["a.go:4:13 method Sq.Area implements Shape.Area 1 inferred"],
    ),
    (
        "cpp method in a source file",
        {"k.h": "struct I { virtual int f() = 0; };\nstruct K : public I { int f() override; };\n", "k.cpp": '#include "k.h"\nint K::f() { return 1; }\n'},
        "I::f",
        ["k.cpp:2:8 method K::f overrides I::f 1 name", "k.h:2:27 method K::f overrides I::f 1 name"],
    ),
    (
        "type that inherits one with its name",
        {"a.py": "class Base: ...\n", "b.py": "import a\nclass Base(a.Base): ...\n", "c.py": "from b import Base\nclass Sub(Base): ...\n"},
        "Base",
        ["b.py:2:7 class Base inherits Base 1 exact", "c.py:2:7 class Sub inherits Base 1 exact"],
    ),
    (
        "bases that inherit each other",
        {"a.py": "class A(B): ...\nclass B(A): ...\nclass S(S): ...\n"},
        "A",
        ["a.py:2:7 class B inherits A 1 exact"],
    ),
    (
        "python alias",
        {"a.py": "class Base:\n    def hook(self): ...\nAlias = Base\nclass Sub(Alias): ...\n", "b.py": "import a\nQ = a.Sub\nclass Last(Q):\n    def hook(self): ...\n"},
        "Base",
        ["a.py:4:7 class Sub inherits Base 1 exact", "b.py:3:7 class Last inherits Sub 2 exact"],
    ),
    (
        "typescript alias",
        {"a.ts": "interface Base<T> { hook(): void }\ntype Al = Base<number>;\nclass Sub implements Al { hook() {} }\n"},
        "Base.hook",
        ["a.ts:3:27 method Sub.hook implements Base.hook 1 exact"],
    ),
    (
        "field",
        {"k.kt": "open class A { open val p = 1 }\nclass B : A() { override val p = 2 }\nclass C(override val p: Int) : A()\n"},
        "A.p",
        ["k.kt:2:30 field B.p overrides A.p 1 exact", "k.kt:3:22 field C.p overrides A.p 1 exact"],
    ),
    (
        "constructor",
        {"a.py": "class A:\n    def __init__(self): ...\nclass B(A):\n    def __init__(self): ...\n"},
        "A.__init__",
        ["a.py:4:9 constructor B.__init__ overrides A.__init__ 1 exact"],
    ),
    (
        "other parameters",
        {"A.java": "class A { void f(int a) {} }\nclass B extends A { void f(String s) {} void f(int a, int b) {} void f(int c) {} }\n"},
        "A.f",
        ["A.java:2:70 method B.f overrides A.f 1 exact"],
    ),
    (
        "php qualified base",
        {"p.php": "<?php namespace A; class Base {}\n", "q.php": "<?php namespace B;\nclass Sub extends \\A\\Base {}\n"},
        "Base",
        ["q.php:2:7 class Sub inherits Base 1 exact"],
    ),
    (
        "php method of a class without a name",
        {"p.php": "<?php interface Log { function put(); }\n$o = new class implements Log { function put() {} };\n"},
        "Log.put",
        ["p.php:2:42 method put implements Log.put 1 exact"],
    ),
    (
        "other separator",
        {"a.rb": "module M\n  class Base; end\nend\nclass A < M::Base; end\n"},
        "M::Base",
        ["a.rb:4:7 class A inherits M.Base 1 exact"],
    ),
    (
        "javascript expressions",
        {"a.js": "class Base {}\nclass Z { static In = class extends Base { hook() {} }; }\nfunction mk() { return class extends Base {}; }\nmodule.exports = class Foo extends Base {};\nconst X = class extends Base {};\n"},
        "Base",
        [
            "a.js:2:37 class Z.<anonymous> inherits Base 1 exact",
            "a.js:3:38 class mk.<anonymous> inherits Base 1 exact",
            "a.js:4:36 class <anonymous> inherits Base 1 exact",
            "a.js:5:7 class X inherits Base 1 exact",
        ],
    ),
    (
        "java annotated base",
        {"J.java": "interface I {}\nclass A implements @X I {}\n"},
        "I",
        ["J.java:2:7 class A implements I 1 exact"],
    ),
    (
        "kotlin method of a class without a name",
        {"k.kt": "interface I { fun go() }\nval x = object : I { override fun go() {} }\n"},
        "I.go",
        ["k.kt:2:35 function go implements I.go 1 exact"],
    ),
    (
        "go methods that do not fit",
        {
            "a/a.go": "package a\ntype Shape interface { Area(x, y int) int; name() }\ntype Sq struct{}\nfunc (s Sq) Area(x int, y int) int { return 1 }\nfunc (s Sq) name() {}\ntype No struct{}\nfunc (s No) Area() int { return 1 }\nfunc (s No) name() {}\n",
            "b/b.go": "package b\ntype Sq struct{}\nfunc (s Sq) Area(x, y int) int { return 1 }\nfunc (s Sq) name() {}\n",
        },
        "Shape",
        ["a/a.go:3:6 struct Sq implements Shape 1 inferred"],
    ),
    (
        "aliases with type parameters",
        {"a.ts": "class Base<T> {}\ntype Alias<T> = Base<T>;\nclass A extends Base<string> {}\n", "k.kt": "interface I<T>\ntypealias H<T> = I<T>\nclass K : H<String>\n"},
        "I",
        ["k.kt:3:7 class K implements I 1 exact"],
    ),
]  # fmt: skip


@pytest.mark.parametrize(
    ("files", "name", "expected"), [shape[1:] for shape in SHAPES], ids=[shape[0] for shape in SHAPES]
)
def test_implementations(tmp_path: Path, files: dict[str, str], name: str, expected: list[str]) -> None:
    with batch_of(tmp_path, files) as batch:
        rows = [implementation.row for implementation in batch.implementations(name).result]
        found = [
            "{path}:{line}:{column} {symbol_type} {qualified} {relation} {base} {distance} {resolution}".format(**row)
            for row in rows
        ]
        assert found == expected
        if batch.definitions(name).result:
            direct = [
                row for row in rows if row["distance"] == 1 and row["relation"] != "overrides" and row["base"] == name
            ]
            shown = [row for row in batch.symbol_overview(name).result.implementations if row["base"] == name]
            assert shown == [row for row in direct if "." not in name and ":" not in name]


def test_restriction_to_files_and_to_one_definition(tmp_path: Path) -> None:
    files = {"a.py": "class Base: ...\nclass A(Base): ...\n", "b.py": "class Base: ...\nclass B(Base): ...\n"}
    with batch_of(tmp_path, files) as batch:
        assert [each.qualified for each in batch.implementations("Base").result] == ["A", "B"]
        assert [each.qualified for each in batch.implementations("Base", "b.py").result] == ["B"]
        assert [each.qualified for each in batch.implementations("Base", definition="a.py:1").result] == ["A"]


@pytest.mark.parametrize(
    ("files", "name"),
    [
        ({"A.java": "class A { private void f() {} }\nclass B extends A { private void f() {} }\n"}, "A.f"),
        ({"A.java": "class A { static void f() {} }\nclass B extends A { static void f() {} }\n"}, "A.f"),
        ({"A.java": "class A { int f; }\nclass B extends A { int f; }\n"}, "A.f"),
        ({"a.cs": "class A { public void F() {} }\nclass B : A { public new void F() {} }\n"}, "A.F"),
        ({"k.kt": "open class A { private fun f() {} }\nclass B : A() { fun f() {} }\n"}, "A.f"),
        ({"s.swift": "class A { static func f() {} }\nclass B: A { static func f() {} }\n"}, "A.f"),
        ({"p.php": "<?php class A { private function f() {} }\nclass B extends A { function f() {} }\n"}, "A.f"),
        ({"a.py": "class A:\n    def __f(self): ...\nclass B(A):\n    def __f(self): ...\n"}, "A.__f"),
        ({"a.js": "class A { #f() {} }\nclass B extends A { #f() {} }\n"}, "A.#f"),
        ({"a.cpp": "struct A { static void f(); };\nstruct B : A { static void f(); };\n"}, "A::f"),
    ],
    ids=["java private", "java static", "java field", "csharp", "kotlin", "swift", "php", "python", "js", "cpp"],
)
def test_a_method_that_cannot_override_is_no_implementation(tmp_path: Path, files: dict[str, str], name: str) -> None:
    with batch_of(tmp_path, files) as batch:
        answer = batch.implementations(name)
        assert answer.result == []
        assert answer.coverage is not None
        assert answer.coverage.evidence == ()


_INDIRECT = [
    ("python", {"a.py": "class Base: ...\nE = type('E', (Base,), {})\n"}),
    ("js", {"a.js": "class Base {}\nfunction D() {}\nutil.inherits(D, Base);\n"}),
    ("ruby", {"a.rb": "class Base; end\nC = Class.new(Base) do\nend\n"}),
    ("ruby include", {"a.rb": "module Base; end\nclass X; end\nX.send(:include, Base)\n"}),
    ("rust macro", {"a.rs": "trait Base {}\nmacro_rules! im { ($t:ty) => { impl Base for $t {} } }\nim!(u8);\n"}),
    ("rust derive", {"a.rs": "pub trait Base {}\n#[derive(Base)]\nstruct A;\n"}),
    ("cpp", {"a.cpp": "struct Base {};\ntypedef Base Td;\nstruct G : Td {};\n"}),
    ("scala", {"a.scala": "trait Base[T]\ngiven x: Base[String] with { }\n"}),
    ("php", {"a.php": "<?php class Base {}\nclass_alias('Base', 'Foo');\nclass V extends Foo {}\n"}),
    ("java", {"A.java": "interface Base { void f(); }\nclass U { Base b = () -> {}; }\n"}),
    ("kotlin", {"a.kt": "fun interface Base { fun f() }\nval b = Base { }\n"}),
    ("go", {"a.go": "package a\ntype Base interface{ F() }\ntype B2 Base\n"}),
]


@pytest.mark.parametrize("files", [each[1] for each in _INDIRECT], ids=[each[0] for each in _INDIRECT])
def test_code_that_can_derive_a_type_is_evidence(tmp_path: Path, files: dict[str, str]) -> None:
    with batch_of(tmp_path, files) as batch:
        answer = batch.implementations("Base")
        assert answer.result == []
        assert answer.coverage is not None
        assert [each.text for each in answer.coverage.evidence] == ["1 use can derive a type indirectly"]


def test_a_name_with_a_package_has_evidence(tmp_path: Path) -> None:
    with batch_of(tmp_path, {"p/Base.java": "package p;\nclass Base {}\nclass A extends Base {}\n"}) as batch:
        coverage = batch.implementations("p.Base").coverage
        assert coverage is not None
        assert [each.text for each in coverage.evidence] == ["1 definition of Base may be meant"]


@pytest.mark.parametrize(
    ("files", "evidence"),
    [
        ({"a.py": "class Base: ...\ndef f(x: Base): return isinstance(x, Base), Base()\n"}, []),
        ({"a.rs": "pub trait Draw {}\npub struct Base;\nimpl Draw for Base {}\n"}, []),
        ({"a.py": "import six\nclass Base: ...\nclass Sub(six.with_metaclass(type, Base)): ...\n"}, ["reference"]),
    ],
    ids=["firm", "type with a base", "base in an expression"],
)
def test_none_is_firm_only_without_evidence(tmp_path: Path, files: dict[str, str], evidence: list[str]) -> None:
    with batch_of(tmp_path, files) as batch:
        answer = batch.implementations("Base")
        assert answer.result == []
        assert answer.coverage is not None
        assert [each.kind for each in answer.coverage.evidence] == evidence


def test_file_with_syntax_errors_can_have_a_base(tmp_path: Path) -> None:
    files = {"a.py": "class Base: ...\n", "b.py": "from a import Base\nclass Sub(Base:\n  x = (\n"}
    with batch_of(tmp_path, files) as batch:
        answer = batch.implementations("Base")
        assert answer.result == []
        assert [file.path for file in answer.not_searched] == ["b.py"]
        assert not answer.is_complete
