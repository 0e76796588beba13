"""Definitions that code outside of the project can use: no answer about them is a firm `none`."""

# ruff: noqa: E501  # Each shape is one line.

from __future__ import annotations

from pathlib import Path

import pytest

from tests.uses.small_batches import batch_of

# Title, file, source, name, and the users, or an empty text if there are none.
SHAPES = [
    ("java anonymous class", "A.java", "import x.Visitor;\nclass A { Object get(Object o) { return o.accept(new Visitor<String>() { public String visit(Object t) { return null; } }); } }\n", "visit", "Visitor"),
    ("kotlin object", "a.kt", "import x.Visitor\nval v = object : Visitor() { override fun visit(t: Any) {} }\nclass A { val w = object : Visitor() { override fun visit(t: Any) {} } }\n", "A.visit", "Visitor"),
    ("kotlin own method beside an object", "a.kt", "import x.Visitor\nclass A { val w = object : Visitor() {}\n fun own() {} }\n", "own", ""),
    ("kotlin delegation", "a.kt", "import x.Visitor\nclass A(v: Visitor) : Visitor by v { override fun visit() {} }\n", "visit", "Visitor"),
    ("php anonymous class", "a.php", "<?php function get($o) { return $o->accept(new class extends \\X\\Visitor { function visit() {} }); }\n", "visit", "Visitor"),
    ("php own method beside an anonymous class", "a.php", "<?php class A { function get() { return new class extends \\X\\Visitor {}; } }\n", "A.get", ""),
    ("php qualified base", "a.php", "<?php class A extends \\X\\Visitor { function visit() {} }\n", "visit", "Visitor"),
    ("scala anonymous class", "a.scala", "import x.Visitor\nclass A { def get(o: Any) = o.accept(new Visitor(1) with Logged { def visit(t: Any) = 1 }) }\n", "visit", "Logged or Visitor"),
    ("php trait", "a.php", "<?php trait T { function visit() {} }\nclass A implements \\X\\Visitor { use T; }\n", "visit", "Visitor"),
    ("php trait without an outer class", "a.php", "<?php trait T { function visit() {} }\nclass A { use T; }\n", "visit", ""),
    ("ruby module", "a.rb", "module M\n  def visit; end\nend\nclass A < X::Visitor\n  include M\nend\n", "visit", "Visitor"),
    ("ruby module that is handed on", "a.rb", "module Handler\n  def visit; end\nend\nEventMachine.connect(1, Handler)\n", "visit", "code outside that includes Handler"),
    ("ruby function of a module", "a.rb", "module M\n  def self.visit; end\nend\n", "visit", ""),
    ("ruby base with the last name of a module", "a.rb", "module Y\n  module Base\n  end\nend\nclass A < X::Base\n  def visit; end\nend\n", "visit", "Base"),
    ("ruby base with the last name of a class", "a.rb", "class Base\nend\nclass A < X::Base\n  def visit; end\nend\n", "visit", "Base"),
    ("php base with the last name of an interface", "a.php", "<?php namespace N; interface Visitor {}\nclass A implements Visitor, \\X\\Visitor { function visit() {} }\n", "visit", "Visitor"),
    ("python base with the last name of a class", "a.py", "import x\nclass Base: pass\nclass A(x.Base):\n    def visit(self): pass\n", "visit", "Base"),
    ("scala trait", "a.scala", "trait T { def visit() = 1 }\nclass A extends x.Visitor with T\n", "visit", "Visitor"),
    ("python mixin", "a.py", "import x\nclass Mixin:\n    def visit(self): pass\nclass A(Mixin, x.Visitor): pass\n", "visit", "Visitor"),
    ("java base class", "A.java", "import x.Visitor;\nclass Base { public void visit() {} }\nclass Mid extends Base {}\nclass A extends Mid implements Visitor {}\n", "visit", "Visitor"),
    ("java default method", "A.java", "import x.Visitor;\ninterface Base { default void visit() { } }\nclass A implements Base, Visitor {}\n", "visit", "Visitor"),
    ("java interface", "A.java", "import x.Visitor;\ninterface Base { void visit(); }\nclass A implements Base, Visitor {}\n", "visit", ""),
    ("typescript object", "a.ts", 'import { rollup } from "rollup";\nexport function plugin() { return { visit(x) { return x; } }; }\n', "visit", "code with the object"),
    ("typescript object of a type", "a.ts", "interface N { update(c: number): void }\nexport const n: N = { update(c) {} };\nfunction run(n: N) { n.other(); }\n", "update", "code with the object"),
    ("typescript module", "a.ts", 'declare module "h3" {\n  interface Context { x: number }\n}\nexport {};\n', "Context", "the module h3"),
    ("typescript function of a module", "a.ts", 'declare module "h3" {\n  export function make(): void;\n}\nexport {};\n', "make", "the module h3"),
    ("typescript global interface", "a.ts", "declare global {\n  namespace NodeJS { interface Process { x: number } }\n}\nexport {};\n", "Process", "global code"),
    ("typescript global interface of a script", "a.d.ts", "declare interface ImportMeta { env: string }\n", "ImportMeta", "global code"),
    ("typescript interface of a module", "a.ts", "export {};\ninterface Local { env: string }\n", "Local", ""),
    ("sphinx", "conf.py", "def setup(app): pass\n", "setup", "code"),
    ("java native", "a.c", "void Java_p_A_run(void) {}\n", "Java_p_A_run", "code"),
    ("setup in another language", "a.go", "package p\nfunc setup() {}\n", "setup", ""),
]  # fmt: skip


@pytest.mark.parametrize(
    ("path", "source", "name", "users"), [shape[1:] for shape in SHAPES], ids=[shape[0] for shape in SHAPES]
)
def test_definition_with_users_outside_has_no_firm_none(
    tmp_path: Path, path: str, source: str, name: str, users: str
) -> None:
    with batch_of(tmp_path, {path: source}) as batch:
        answers = [batch.callers(name), batch.symbol_impact(name)]
        for answer in answers:
            found = answer.coverage.evidence if answer.coverage is not None else ()
            texts = [evidence.text for evidence in found if evidence.kind == "implicit"]
            assert [text.partition(" can ")[0] for text in texts] == ([users] if users else [])
            assert answer.is_complete == (not users)


def test_part_of_a_ruby_class_has_the_callers_of_the_class(tmp_path: Path) -> None:
    files = {
        "a.rb": "class A\n  def self.make; new; end\nend\n",
        "b.rb": "require_relative 'a'\nclass A\n  def go; end\nend\n",
        "c.rb": "require_relative 'a'\nclass B < A; end\n",
    }
    with batch_of(tmp_path, files) as batch:
        uses = batch.uses("A", definition=str(tmp_path / "tree" / "b.rb")).result.uses
        assert [(use.path, use.certainty) for use in uses if use.use.role == "reference"] == [(b"c.rb", "inferred")]
