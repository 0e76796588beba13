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
        assert batch.symbol_overview(name).result.implementations == rows if name != "abc.ABC" else True


def test_restriction_to_files_and_to_one_definition(tmp_path: Path) -> None:
    files = {"a.py": "class Base: ...\nclass A(Base): ...\n", "b.py": "class Base: ...\nclass B(Base): ...\n"}
    with batch_of(tmp_path, files) as batch:
        assert [each.qualified for each in batch.implementations("Base").result] == ["A", "B"]
        assert [each.qualified for each in batch.implementations("Base", "b.py").result] == ["B"]
        assert [each.qualified for each in batch.implementations("Base", definition="a.py:1").result] == ["A"]


@pytest.mark.parametrize(
    ("files", "evidence"),
    [
        ({"a.py": "class Base: ...\n"}, []),
        ({"a.py": "import six\nclass Base: ...\nclass Sub(six.with_metaclass(type, Base)): ...\n"}, ["reference"]),
    ],
    ids=["firm", "base in an expression"],
)
def test_none_is_firm_only_without_evidence(tmp_path: Path, files: dict[str, str], evidence: list[str]) -> None:
    with batch_of(tmp_path, files) as batch:
        answer = batch.implementations("Base")
        assert answer.result == []
        assert answer.coverage is not None
        assert [each.kind for each in answer.coverage.evidence] == evidence
