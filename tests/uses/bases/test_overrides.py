"""Calls through a base or an interface: the method that overrides another lists the callers of the latter."""

# ruff: noqa: E501  # Each shape is one line.

from __future__ import annotations

from pathlib import Path

import pytest

from tests.uses.small_batches import batch_of

# Title, file, source and the method that overrides another. `run` calls the latter through the base.
SHAPES = [
    (
        "python",
        "b.py",
        "class Base:\n    def hook(self): ...\n    def run(self): return self.hook()\nclass Sub(Base):\n    def hook(self): return 1\n",
        "Sub.hook",
    ),
    (
        "python mid",
        "b.py",
        "class Base:\n    def hook(self): ...\n    def run(self): return self.hook()\nclass Mid(Base): pass\nclass Sub(Mid):\n    def hook(self): return 1\n",
        "Sub.hook",
    ),
    (
        "js",
        "b.js",
        "class Base { hook() {} run() { return this.hook(); } }\nclass Sub extends Base { hook() { return 1; } }\n",
        "Sub.hook",
    ),
    (
        "ts",
        "b.ts",
        "abstract class Base { abstract hook(): number; run() { return this.hook(); } }\nclass Sub extends Base { hook() { return 1; } }\n",
        "Sub.hook",
    ),
    (
        "ts interface",
        "b.ts",
        "interface Base { hook(): number }\nfunction run(b: Base) { return b.hook(); }\nclass Sub implements Base { hook() { return 1; } }\n",
        "Sub.hook",
    ),
    (
        "java",
        "B.java",
        "abstract class Base { abstract int hook(); int run() { return hook(); } }\nclass Sub extends Base { int hook() { return 1; } }\n",
        "Sub.hook",
    ),
    (
        "java interface",
        "B.java",
        "interface Base { int hook(); }\nclass U { int run(Base b) { return b.hook(); } }\nclass Sub implements Base { public int hook() { return 1; } }\n",
        "Sub.hook",
    ),
    (
        "java generic",
        "B.java",
        "interface Base<T> { int hook(); }\nclass U { int run(Base<String> b) { return b.hook(); } }\nclass Sub implements Base<String> { public int hook() { return 1; } }\n",
        "Sub.hook",
    ),
    (
        "csharp",
        "b.cs",
        "abstract class Base { public abstract int Hook(); int Run() { return Hook(); } }\nclass Sub : Base { public override int Hook() { return 1; } }\n",
        "Sub.Hook",
    ),
    (
        "csharp interface",
        "b.cs",
        "interface IBase { int Hook(); }\nclass U { int Run(IBase b) { return b.Hook(); } }\nclass Sub : IBase { public int Hook() { return 1; } }\n",
        "Sub.Hook",
    ),
    (
        "kotlin",
        "b.kt",
        "abstract class Base { abstract fun hook(): Int\n fun run() = hook() }\nclass Sub : Base() { override fun hook() = 1 }\n",
        "Sub.hook",
    ),
    (
        "kotlin interface",
        "b.kt",
        "interface Base { fun hook(): Int }\nfun run(b: Base) = b.hook()\nclass Sub : Base { override fun hook() = 1 }\n",
        "Sub.hook",
    ),
    (
        "scala",
        "b.scala",
        "trait Base { def hook(): Int; def run() = hook() }\nclass Sub extends Base { def hook() = 1 }\n",
        "Sub.hook",
    ),
    (
        "scala with",
        "b.scala",
        "trait O\ntrait Base { def hook(): Int }\nobject U { def run(b: Base) = b.hook() }\nclass Sub extends O with Base { def hook() = 1 }\n",
        "Sub.hook",
    ),
    (
        "swift",
        "b.swift",
        "class Base { func hook() -> Int { 0 }\n func run() -> Int { self.hook() } }\nclass Sub: Base { override func hook() -> Int { 1 } }\n",
        "Sub.hook",
    ),
    (
        "swift protocol",
        "b.swift",
        "protocol Base { func hook() -> Int }\nfunc run(b: Base) -> Int { b.hook() }\nstruct Sub: Base { func hook() -> Int { 1 } }\n",
        "Sub.hook",
    ),
    (
        "swift extension",
        "b.swift",
        "protocol Base { func hook() -> Int }\nfunc run(b: Base) -> Int { b.hook() }\nstruct Sub {}\nextension Sub: Base { func hook() -> Int { 1 } }\n",
        "Sub.hook",
    ),
    (
        "php",
        "b.php",
        "<?php abstract class Base { abstract function hook(); function run() { return $this->hook(); } }\nclass Sub extends Base { function hook() { return 1; } }\n",
        "Sub.hook",
    ),
    (
        "php interface",
        "b.php",
        "<?php interface Base { function hook(); }\nfunction run(Base $b) { return $b->hook(); }\nclass Sub implements Base { function hook() { return 1; } }\n",
        "Sub.hook",
    ),
    (
        "php trait",
        "b.php",
        "<?php trait Base { function hook() {} function run() { return $this->hook(); } }\nclass Sub { use Base; function hook() { return 1; } }\n",
        "Sub.hook",
    ),
    (
        "ruby",
        "b.rb",
        "class Base\n  def hook; end\n  def run; self.hook; end\nend\nclass Sub < Base\n  def hook; 1; end\nend\n",
        "Sub.hook",
    ),
    (
        "ruby module",
        "b.rb",
        "module Base\n  def hook; end\n  def run; self.hook; end\nend\nclass Sub\n  include Base\n  def hook; 1; end\nend\n",
        "Sub.hook",
    ),
    (
        "ruby bare",
        "b.rb",
        "class Base\n  def hook; end\n  def run; hook; end\nend\nclass Sub < Base\n  def hook; 1; end\nend\n",
        "Sub.hook",
    ),
    (
        "rust",
        "b.rs",
        "trait Base { fn hook(&self) -> u8; }\nfn run(b: &dyn Base) -> u8 { b.hook() }\nstruct Sub;\nimpl Base for Sub { fn hook(&self) -> u8 { 1 } }\n",
        "Sub::hook",
    ),
    (
        "rust generic",
        "b.rs",
        "trait Base { fn hook() -> u8; fn run() -> u8 { Self::hook() } }\nstruct Sub;\nimpl Base for Sub { fn hook() -> u8 { 1 } }\n",
        "Sub::hook",
    ),
    (
        "rust bound",
        "b.rs",
        "trait Base { fn hook() -> u8; }\nfn run<T: Base>() -> u8 { T::hook() }\nstruct Sub;\nimpl Base for Sub { fn hook() -> u8 { 1 } }\n",
        "Sub::hook",
    ),
    (
        "rust ufcs",
        "b.rs",
        "trait Base { fn hook(&self) -> u8; }\nfn run(x: &Sub) -> u8 { Base::hook(x) }\nstruct Sub;\nimpl Base for Sub { fn hook(&self) -> u8 { 1 } }\n",
        "Sub::hook",
    ),
    (
        "rust qualified",
        "b.rs",
        "trait Base { fn hook(&self) -> u8; }\nfn run(x: &Sub) -> u8 { <Sub as Base>::hook(x) }\nstruct Sub;\nimpl Base for Sub { fn hook(&self) -> u8 { 1 } }\n",
        "Sub::hook",
    ),
    (
        "go",
        "b.go",
        "package p\ntype Base interface{ Hook() int }\ntype Sub struct{}\nfunc (s Sub) Hook() int { return 1 }\nfunc run(b Base) int { return b.Hook() }\n",
        "Sub.Hook",
    ),
    (
        "go expr",
        "b.go",
        "package p\ntype Base interface{ Hook() int }\ntype Sub struct{}\nfunc (s Sub) Hook() int { return 1 }\nfunc run(b Base) int { return Base.Hook(b) }\n",
        "Sub.Hook",
    ),
    (
        "cpp",
        "b.cpp",
        "struct Base { virtual int hook() { return 0; } int run() { return this->hook(); } };\nstruct Sub : Base { int hook() override { return 1; } };\n",
        "Sub::hook",
    ),
    (
        "cpp bare",
        "b.cpp",
        "struct Base { virtual int hook() { return 0; } int run() { return hook(); } };\nstruct Sub : public Base { int hook() override { return 1; } };\n",
        "Sub::hook",
    ),
    (
        "java anonymous class",
        "B.java",
        "interface Base { int hook(); }\nclass U { int run(Base b) { return b.hook(); } Base sub() { return new Base() { public int hook() { return 1; } }; } }\n",
        "U.sub.hook",
    ),
    (
        "java anonymous class in a field",
        "B.java",
        "interface Base<T> { int hook(); }\nclass R { int run(Base<Integer> b) { return b.hook(); } }\nclass U { Base<Integer> b = new Base<Integer>() { public int hook() { return 1; } }; }\n",
        "U.hook",
    ),
    (
        "kotlin object",
        "b.kt",
        "interface Base { fun hook(): Int }\nfun run(b: Base) = b.hook()\nclass U { val b = object : Base { override fun hook() = 1 } }\n",
        "U.hook",
    ),
    (
        "kotlin object at the outermost level",
        "b.kt",
        "interface Base { fun hook(): Int }\nfun run(b: Base) = b.hook()\nfun sub() = object : Base { override fun hook() = 1 }\n",
        "sub.hook",
    ),
    (
        "scala anonymous class",
        "b.scala",
        "trait Base { def hook(): Int }\nclass R { def run(b: Base) = b.hook() }\nclass U { val b = new Base { def hook() = 1 } }\n",
        "U.hook",
    ),
    (
        "php anonymous class",
        "b.php",
        "<?php interface Base { function hook(); }\nfunction run(Base $b) { return $b->hook(); }\nfunction sub() { return new class implements Base { function hook() {} }; }\n",
        "sub.hook",
    ),
    (
        "php qualified base",
        "b.php",
        "<?php namespace N; abstract class Base { abstract function hook(); function run() { return $this->hook(); } }\nclass Sub extends \\N\\Base { function hook() {} }\n",
        "Sub.hook",
    ),
    (
        "go promoted method",
        "b.go",
        "package p\ntype Base interface{ Hook() int; More() }\ntype In struct{}\nfunc (s In) Hook() int { return 1 }\ntype Sub struct{ In }\nfunc (s Sub) More() {}\nfunc run(b Base) int { return b.Hook() }\n",
        "In.Hook",
    ),
    (
        "java inherited implementation",
        "B.java",
        "interface Base { int hook(); }\nclass In { public int hook() { return 1; } }\nclass Sub extends In implements Base {}\nclass U { int run(Base b) { return b.hook(); } }\n",
        "In.hook",
    ),
    (
        "csharp inherited implementation",
        "B.cs",
        "interface Base { int hook(); }\nclass In { public int hook() => 1; }\nclass Sub : In, Base {}\nclass U { int run(Base b) { return b.hook(); } }\n",
        "In.hook",
    ),
    (
        "kotlin inherited implementation",
        "b.kt",
        "interface Base { fun hook(): Int }\nopen class In { fun hook() = 1 }\nclass Sub : In(), Base\nfun run(b: Base) = b.hook()\n",
        "In.hook",
    ),
    (
        "python mixin",
        "b.py",
        "class In:\n    def hook(self): return 1\nclass Base:\n    def hook(self): ...\n    def run(self): return self.hook()\nclass Sub(In, Base): ...\n",
        "In.hook",
    ),
    (
        "python protocol",
        "b.py",
        "from typing import Protocol\nclass Base(Protocol):\n    def hook(self): ...\nclass Sub:\n    def hook(self): return 1\ndef run(b: Base): return b.hook()\n",
        "Sub.hook",
    ),
    (
        "ts structural interface",
        "b.ts",
        "interface Base { hook(): number; more(): void }\nclass In { more() {} }\nclass Sub extends In { hook() { return 1; } }\nfunction run(b: Base) { return b.hook(); }\n",
        "Sub.hook",
    ),
]


@pytest.mark.parametrize(
    ("path", "source", "name"), [shape[1:] for shape in SHAPES], ids=[shape[0] for shape in SHAPES]
)
def test_override_lists_the_callers_of_the_method_that_it_overrides(
    tmp_path: Path, path: str, source: str, name: str
) -> None:
    with batch_of(tmp_path, {path: source}) as batch:
        callers = [caller.row for caller in batch.callers(name).result]
        assert [str(row["scope"]).lower().rpartition(".")[2].rpartition(":")[2] for row in callers] == ["run"]
        impact = batch.symbol_impact(name).result.dependents
        assert [(dependent.scope, dependent.through) for dependent in impact] == [
            (row["scope"], row["through"]) for row in callers
        ]
        assert batch.symbol_overview(name).result.callers == callers


BOUND = [
    ("super", "b.py", "class Base:\n    def hook(self): ...\nclass Sub(Base):\n    def hook(self): return super().hook()\n", "Sub.hook"),
    ("base by name", "b.py", "class Base:\n    def hook(self): ...\nclass Sub(Base):\n    def hook(self): return Base.hook(self)\n", "Sub.hook"),
    ("parent", "b.php", "<?php class Base { function hook() {} }\nclass Sub extends Base { function hook() { parent::hook(); } }\n", "Sub.hook"),
    ("other family", "b.py", "class Base:\n    def hook(self): ...\n    def run(self): self.hook()\nclass Other:\n    def hook(self): ...\n", "Other.hook"),
    ("constructor", "b.py", "class Base:\n    def __init__(self): ...\nclass Sub(Base):\n    def __init__(self): super().__init__()\n", "Sub.__init__"),
    ("override of a subclass", "B.java", "class Base { void hook() {} }\nclass Mid extends Base { void hook() {} }\nclass A extends Mid {}\nclass U { void u(Mid m) { m.hook(); } }\n", "Base.hook"),
    ("static method of a sibling", "B.java", "class Base { static void hook() {} }\nclass Sub extends Base { static void hook() {} }\nclass Other extends Base {}\nclass U { void u() { Other.hook(); } }\n", "Sub.hook"),
    ("ts interface with more methods", "b.ts", "interface Base { hook(): number; more(): void }\nclass Sub { hook() { return 1; } }\nfunction run(b: Base) { return b.hook(); }\n", "Sub.hook"),
    ("python class that is no protocol", "b.py", "class Base:\n    def hook(self): ...\nclass Sub:\n    def hook(self): return 1\ndef run(b: Base): return b.hook()\n", "Sub.hook"),
    ("interface with more methods", "b.go", "package p\ntype Base interface{ Hook() int; More() }\ntype Sub struct{}\nfunc (s Sub) Hook() int { return 1 }\nfunc run(b Base) int { return b.Hook() }\n", "Sub.Hook"),
]  # fmt: skip


@pytest.mark.parametrize(("path", "source", "name"), [shape[1:] for shape in BOUND], ids=[shape[0] for shape in BOUND])
def test_calls_that_are_bound_to_another_method_are_left_out(tmp_path: Path, path: str, source: str, name: str) -> None:
    with batch_of(tmp_path, {path: source}) as batch:
        assert batch.callers(name).result == []


KEPT = [
    ("property named as a type", "b.cs", "class Base { public virtual void Hook() {} }\nclass Sub : Base { public override void Hook() {} }\nclass Other {}\nclass U { Base Other; void u() { Other.Hook(); } }\n", "Sub.Hook"),
    ("word in an annotation", "B.java", "class Base { @A(\"private static\") void hook() {} void run() { hook(); } }\nclass Sub extends Base { void hook() {} }\n", "Sub.hook"),
]  # fmt: skip


@pytest.mark.parametrize(("path", "source", "name"), [shape[1:] for shape in KEPT], ids=[shape[0] for shape in KEPT])
def test_calls_that_only_look_bound_are_listed(tmp_path: Path, path: str, source: str, name: str) -> None:
    with batch_of(tmp_path, {path: source}) as batch:
        assert [caller.row["through"] for caller in batch.callers(name).result] in (["Base.Hook"], ["Base.hook"])


OUTER = [
    ("go", "b.go", 'package p\nimport "x.org/flag"\ntype V string\nfunc (v V) Hook() int { return 1 }\nfunc run(f *flag.Flag) int { return f.Value.Hook() }\n', "V.Hook", 1),
    ("kotlin", "b.kt", "import x.Base\nclass V : Base { override fun hook() {} }\nfun run(b: Base) { b.hook() }\n", "V.hook", 1),
    ("java", "B.java", "import x.Base;\nclass V implements Base { public void hook() {} }\nclass U { void run(Base b) { b.hook(); } }\n", "V.hook", 1),
    ("java without a base", "B.java", "import x.Base;\nclass V { public void hook() {} }\nclass U { void run(Base b) { b.hook(); } }\n", "V.hook", 0),
    ("function of a package", "b.go", 'package p\nimport "fmt"\ntype V string\nfunc (v V) Println() {}\nfunc run() { fmt.Println(1) }\n', "V.Println", 0),
    ("function of a package from elsewhere", "b.go", 'package p\nimport "x.org/render"\ntype V string\nfunc (v V) Render() {}\nfunc run(v V) { render.Render(v) }\n', "V.Render", 1),
    ("function", "b.py", "import os\ndef hook(): ...\nos.environ.hook()\n", "hook", 0),
]  # fmt: skip


@pytest.mark.parametrize(
    ("path", "source", "name", "calls"), [shape[1:] for shape in OUTER], ids=[shape[0] for shape in OUTER]
)
def test_call_of_a_value_from_outside_may_call_a_method(
    tmp_path: Path, path: str, source: str, name: str, calls: int
) -> None:
    """So the method has no firm `none`, unless nothing outside can have it: its class declares no such base."""
    with batch_of(tmp_path, {path: source}) as batch:
        answers = [batch.callers(name), batch.symbol_impact(name)]
        for answer in answers:
            found = answer.coverage.evidence if answer.coverage is not None else ()
            unresolved = [evidence.count for evidence in found if evidence.kind == "unresolved"]
            assert unresolved == [calls] * bool(calls), (answer.result, found)


def test_overload_lists_only_calls_with_fitting_arguments(tmp_path: Path) -> None:
    text = """interface Base { int hook(int a); int hook(int a, int b); }
class Sub implements Base {
  public int hook(int a) { return a; }
  public int hook(int a, int b) { return b; }
}
class U {
  int one(Base b) { return b.hook(1); }
  int two(Base b) { return b.hook(1, 2); }
}
"""
    with batch_of(tmp_path, {"B.java": text}) as batch:
        for line, scope in ((3, "U.one"), (4, "U.two")):
            callers = [caller.row for caller in batch.callers("Sub.hook", definition=f"B.java:{line}").result]
            assert [(row["scope"], row["resolution"], row["through"]) for row in callers] == [
                (scope, "inferred", "Base.hook")
            ]
