"""Tests of the records of each language with an additional grammar, on small sources."""

from __future__ import annotations

from pathlib import Path

import pytest

from codebatch.model.record import Diagnostic
from codebatch_workers.symbols.outline import file_outline
from codebatch_workers.syntax.language.languages import EXTRA_GRAMMAR_TOOLS
from tests.support.source_files import created, file_metrics, source

CSHARP = """\
using System; // a
namespace N.M { class K : Base, I<int> { int f = 1; public int P { get; set; } K() {} void M(int a) {
  if (a > 0 && b) { foo.Bar(1); new Q(); } int Local() => 1; } enum En { A, B } interface J { void Z(); } } }
"""
RUBY = """\
require 'set' # a
module M
  class A < B::C
    LIMIT = 1
    def initialize(a) = @a = a
    def self.build; foo.bar(1) if x && y; end
  end
end
"""
PHP = """\
<?php // a
namespace A; use C\\D;
class X extends Y implements I { const Q = 1; public $p = 1; function m() { if ($a && $b) { foo(1); $this->bar(); } } }
interface J {} trait T {} enum En { case A; }
function fn1() {}
"""
KOTLIN = """\
package a.b // a
import c.d
class K(val x: Int) : Base(1), I {
    val p = 1
    fun m(a: Int) { if (a > 0 && b) { foo.bar(1) } }
}
enum class E { A, B }
fun top() = 1
"""
SWIFT = """\
import Foundation // a
class K: Base { let p = 1; func m(a: Int) { if a { foo.bar(1) } } }
struct S {}
enum E { case a }
protocol P { func z() }
func top() {}
"""
SCALA = """\
package a.b // a
import c.d
class K(x: Int) extends Base { val p = 1; def m(a: Int): Int = { if (a && b) foo.bar(1); 2 } }
trait I { def z(): Int }
object O { type T = Int }
"""
LUA = """\
local x = require("a.b") -- a
local function f(a) if a and b then foo.bar(1) end end
function M.g() end
y = 1
"""
SQL = """\
-- a
CREATE TABLE a.t (id INT);
CREATE VIEW v AS SELECT * FROM t;
"""


@pytest.mark.parametrize(
    ("path", "content", "symbols", "calls"),
    [
        (
            "a.cs",
            CSHARP,
            (
                "namespace N.M|class N.M.K|field N.M.K.f|property N.M.K.P|constructor N.M.K.K|method N.M.K.M|"
                "function N.M.K.M.Local|enum N.M.K.En|enum_member N.M.K.En.A|enum_member N.M.K.En.B|interface N.M.K.J|"
                "method N.M.K.J.Z"
            ),
            ["Q", "foo.Bar"],
        ),
        (
            "a.rb",
            RUBY,
            "module M|class M.A|constant M.A.LIMIT|method M.A.initialize|method M.A.build",
            ["foo", "foo.bar", "require", "x", "y"],
        ),
        (
            "a.php",
            PHP,
            (
                "namespace A|class X|constant X.Q|field X.p|method X.m|interface J|trait T|enum En|enum_member En.A|"
                "function fn1"
            ),
            ["$this->bar", "foo"],
        ),
        (
            "a.kt",
            KOTLIN,
            "module a.b|class K|field K.x|field K.p|method K.m|class E|enum_member E.A|enum_member E.B|function top",
            ["foo.bar"],
        ),
        (
            "a.swift",
            SWIFT,
            "class K|field K.p|method K.m|struct S|enum E|enum_member E.a|interface P|method P.z|function top",
            ["foo.bar"],
        ),
        ("a.scala", SCALA, "module a.b|class K|field K.p|method K.m|trait I|method I.z|class O|type O.T", ["foo.bar"]),
        ("a.lua", LUA, "variable x|function f|method M.g|variable y", ["foo.bar", "require"]),
        ("a.sql", SQL, "class t|class v", []),
        ("a.tf", 'x = 1 # a\nresource "a" "b" {}\n', "variable x", []),
        ("a.yaml", "a: 1 # a\n", "", []),
        ("a.toml", "a = 1 # a\n", "", []),
        ("a.html", "<p>x</p> <!-- a -->\n", "", []),
        ("a.css", "a { b: c } /* a */\n", "", []),
    ],
)
def test_language_yields_definitions_calls_and_comments(
    path: str, content: str, symbols: str, calls: list[str]
) -> None:
    file = source(path, content)
    assert not file.has_syntax_error
    outline = file_outline(file)
    assert "|".join(f"{symbol.symbol_type} {symbol.qualified}" for symbol in outline.symbols) == symbols
    assert sorted({edge.target.lstrip(".") for edge in outline.edges if edge.edge_type == "calls"}) == calls
    assert b" a" in b"".join(content.encode()[n.start_byte : n.end_byte] for n in file.captures["comment"])


@pytest.mark.parametrize(
    ("path", "content", "expected"),
    [
        ("a.cs", CSHARP, (4, 3, 1, 6)),
        ("a.rb", RUBY, (2, 1, 1, 4)),
        ("a.php", PHP, (2, 4, 1, 4)),
        ("a.kt", KOTLIN, (2, 2, 1, 4)),
        ("a.swift", SWIFT, (2, 4, 1, 3)),
        ("a.scala", SCALA, (1, 3, 1, 3)),
        ("a.lua", LUA, (2, 0, 1, 4)),
    ],
)
def test_structure_is_counted(path: str, content: str, expected: tuple[int, ...]) -> None:
    metrics = file_metrics(source(path, content))
    assert tuple(metrics[name] for name in ("functions", "classes", "imports", "complexity")) == expected


@pytest.mark.parametrize(
    ("path", "content", "targets"),
    [
        (
            "a.rb",
            (
                "require 'set'\nrequire_relative 'a/b'\nrequire_relative '../c'\nautoload :X, 'q/x'\nload('x.rb')\n"
                "require File.join('a')\nrequire \"a#{b}\"\nx.require 'y'\n"
            ),
            "set ./a/b ../c q/x x.rb",
        ),
        (
            "a.php",
            (
                "<?php\nuse A\\B; use A\\{B as Q, C\\D}; use function A\\f; use \\X\\Y, Z\\W as V;\nrequire 'x.php';\n"
                'require_once __DIR__ . \'/y.php\'; include(dirname(__FILE__) . "/z.php"); require $x; require "a$b";\n'
            ),
            "A\\B A\\B A\\C\\D A\\f X\\Y Z\\W x.php ./y.php ./z.php",
        ),
        ("a.kt", "import c.d\nimport c.e.*\nimport c.f as g\n", "c.d c.e.* c.f"),
        (
            "a.scala",
            "import a.b.C\nimport a.b.{C, D => E, _}\nimport a.c, d._\nimport x.y as z\nimport q.{A as B, given}\n",
            "a.b.C a.b.C a.b.D a.b.* a.c d.* x.y q.A q.*",
        ),
        ("a.lua", "local x = require('a.b')\nrequire 'c'\nrequire [[d]]\nrequire(x .. 'a')\n", "a.b c d"),
    ],
)
def test_imports_are_returned(path: str, content: str, targets: str) -> None:
    assert [
        edge.target for edge in file_outline(source(path, content)).edges if edge.edge_type == "imports"
    ] == targets.split()


@pytest.mark.parametrize(
    ("path", "content", "code"),
    [
        ("a.rb", "def f(\nend\n", "syntax-error"),
        ("a.php", "<?php function f( {}\n", "syntax-error"),
        ("a.lua", "local = 1\n", "syntax-error"),
        ("a.yaml", "a: [1\nb: 2\n", "syntax-error"),
        ("a.toml", "a = = 1\n", "syntax-error"),
        ("a.tf", "a = {\n", "syntax-error"),
        ("a.sql", "SELEC * FRM t;\n", None),
        ("a.cs", "class { }\n", None),
        ("a.sh", "if x; then\n", None),
        ("a.js", "/**\n * @flow strict\n */\nfunction f(x: ?string): void {}\n", None),
        ("a.js", "function f(x: string): void {}\n", "syntax-error"),
        ("a.md", "# <<< ((( \n", None),
    ],
)
def test_syntax_error_is_reported_if_the_grammar_detects_it(path: str, content: str, code: str | None) -> None:
    diagnostics = [
        diagnostic
        for diagnostic in created("parse", Path()).run_file(source(path, content))
        if isinstance(diagnostic, Diagnostic)
    ]
    assert {diagnostic.code for diagnostic in diagnostics} == ({code} if code else set())


def test_every_additional_grammar_is_declared_with_its_language() -> None:
    assert EXTRA_GRAMMAR_TOOLS["tree-sitter-c-sharp"] == "csharp"
