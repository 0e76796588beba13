"""Tests of the task symbols: the definitions and relations of each language, on small sources."""

from __future__ import annotations

import pytest

from codebatch_workers.symbols.outline import file_outline
from tests.support.source_files import source

PYTHON = """\
import os, a.b as c
from ..pkg import (x as y, z)
from m import *
@deco
class A(B, Gen[int], n.C, metaclass=M):
    attr = 1
    typed: int
    def __init__(self, p):
        self.x = p; self.x = 2
        local = 3
        def inner(): foo.bar(1).baz(2)
    @property
    def p(self): return self.x()
    @p.setter
    def p(self, v): pass
if True:
    def cond(): from . import sib
    a, (b, *c2) = 1, (2, 3)
MAX = MAX = 3
for i, _ in r: pass
with o() as fh: pass
type T[K] = list[K]
"""
PYTHON_SYMBOLS = """
1 import os|1 import c|2 import y|2 import z
5 class A|6 field A.attr|7 field A.typed|8 constructor A.__init__|9 field A.x|11 function A.__init__.inner
13 property A.p|15 property A.p
17 function cond|17 import cond.sib|18 variable a|18 variable b|18 variable c2|19 constant MAX
20 variable i|21 variable fh|22 type T
"""
PYTHON_EDGES = """
1 imports  os|1 imports  a.b|2 imports  ..pkg.x|2 imports  ..pkg.z|3 imports  m.*
4 calls  deco|5 inherits A B|5 inherits A Gen|5 inherits A n.C
11 calls A.__init__.inner foo.bar|11 calls A.__init__.inner .baz
12 calls A property|13 calls A.p self.x|14 calls A p.setter
17 imports cond .sib|21 calls  o
"""

TYPESCRIPT = """\
import D, { Foo, Bar as Q } from "./x";
import * as ns from 'y'; import eq = require("z"); export * from "./re";
export const handler = async (e) => { const local = 1; await foo.bar(e)?.baz(); };
export default class { m() { this.n() } constructor() {} }
abstract class K extends ns.Base<T> implements I, J { abstract q(): void; f = 1; static s: string; }
interface I2 extends I, J<K> { prop: string; meth(a): void }
enum E { A, B = 2 } type U = string | number;
const { d1, d2: { r2 }, ...rest } = obj; let [h, i = 3] = arr;
function* gen() { new Foo.Bar(); }
namespace N.M { export function inside() {} }
declare function decl(a): void;
exports.foo = function () {}; var v2 = import("dyn");
@dec class Z extends Mixin(Base) {}
"""
TYPESCRIPT_SYMBOLS = """
1 import D|1 import Foo|1 import Q|2 import ns|2 import eq
3 function handler|4 class default|4 method default.m|4 constructor default.constructor
5 class K|5 method K.q|5 field K.f|5 field K.s|6 interface I2|6 field I2.prop|6 method I2.meth
7 enum E|7 enum_member E.A|7 enum_member E.B|7 type U
8 constant d1|8 constant r2|8 constant rest|8 variable h|8 variable i|9 function gen
10 namespace N.M|10 function N.M.inside|11 function decl|12 function foo|12 variable v2|13 class Z
"""
TYPESCRIPT_EDGES = """
1 imports  ./x|2 imports  y|2 imports  z|2 imports  ./re
3 calls handler foo.bar|3 calls handler .baz|4 calls default.m this.n
5 inherits K ns.Base|5 inherits K I|5 inherits K J|6 inherits I2 I|6 inherits I2 J
9 calls gen Foo.Bar|12 imports  dyn|13 calls Z dec|13 inherits Z Mixin|13 calls Z Mixin
"""

JAVASCRIPT = """\
const fs = require("fs"), { join } = require('path');
class A extends ns.B { #p = 1; static q() {} get r() { return this.#p.s() } }
export default function () { return () => inner(); }
export { a } from "./a";
(function () { var hidden = 1; })();
const view = <Menu a={f()}><div /></Menu>;
"""
JAVASCRIPT_SYMBOLS = """
1 constant fs|1 constant join|2 class A|2 field A.#p|2 method A.q|2 method A.r|3 function default|6 constant view
"""
JAVASCRIPT_EDGES = """
1 calls  require|1 imports  fs|1 calls  require|1 imports  path
2 inherits A ns.B|2 calls A.r this.#p.s|3 calls default inner|4 imports  ./a|6 calls  Menu|6 calls  f
"""

C = """\
#include <stdio.h>
#include "a.h"
#define M 1
#define F(x) x
typedef struct { int f; } S; struct T { int g, *h[3]; int (*cb)(int); } t;
enum E { A1, B1 }; enum { AA }; typedef int (*cbt)(void); union U { int a; };
int *proto(void); static int *gv = 0, other;
int *fn(int a) { int local; p->ops->open(x); (*fp)(1); g(h(2)); return 0; }
"""
C_SYMBOLS = """
3 macro M|4 macro F|5 field S.f|5 struct S|5 struct T|5 field T.g|5 field T.h|5 field T.cb|5 variable t
6 enum E|6 enum_member E.A1|6 enum_member E.B1|6 enum_member AA|6 type cbt|6 union U|6 field U.a
7 variable gv|7 variable other|8 function fn
"""
C_EDGES = "1 imports  stdio.h|2 imports  a.h|8 calls fn p->ops->open|8 calls fn fp|8 calls fn g|8 calls fn h"

CPP = """\
namespace a::b { class C : public D<int>, std::E { int x; void m(); C(); ~C(); static int s_; enum Q { R }; }; }
template<class T> void a::b::C<T>::m() { x->y.z(); std::make_unique<Foo>(1); new G(); auto l = []() { int k; h(); }; }
a::b::C::C() {}
using X = int;
"""
CPP_SYMBOLS = """
1 namespace a::b|1 class a::b::C|1 field a::b::C::x|1 method a::b::C::m|1 constructor a::b::C::C
1 method a::b::C::~C|1 field a::b::C::s_|1 enum a::b::C::Q|1 enum_member a::b::C::Q::R
2 method a::b::C::m|3 constructor a::b::C::C|4 type X
"""
CPP_EDGES = """
1 inherits a::b::C D|1 inherits a::b::C std::E
2 calls a::b::C::m x->y.z|2 calls a::b::C::m std::make_unique|2 calls a::b::C::m G|2 calls a::b::C::m h
"""

GO = """\
package foo
import ( "fmt"; m "x/y" )
type S struct { a, b int; Embedded; *pkg.E2 }
type I interface { Do(x int) error; io.Reader }
type A = S
const ( C1 = iota; _ )
var v, w = 1, 2
func (s *S) Do(x int) error { var local int; f := func() { g(1) }; s.a.b().c(); return fmt.Errorf("a") }
"""
GO_SYMBOLS = """
1 module foo|2 import m|3 struct S|3 field S.a|3 field S.b|4 interface I|4 method I.Do|5 type A
6 constant C1|7 variable v|7 variable w|8 method S.Do
"""
GO_EDGES = """
2 imports  fmt|2 imports  x/y|3 inherits S Embedded|3 inherits S pkg.E2|4 inherits I io.Reader
8 calls S.Do g|8 calls S.Do s.a.b|8 calls S.Do .c|8 calls S.Do fmt.Errorf
"""

RUST = """\
use std::{io::{self, Read}, fmt::Debug as D, collections::*}; extern crate foo;
mod m { pub fn f() -> R { a.b()?.c::<T>(); Vec::<u8>::new(); println!("x"); } }
pub struct S<T> { x: u8 } enum E { A, B(u8) } union Un { a: u8 }
trait T: Debug + Sized { type X; const K: u8; fn r(&self); }
impl<T> fmt::Display for S<T> { fn fmt(&self) {} const Z: u8 = 1; }
static G: u8 = 1; const CC: u8 = 2; type Al = u8; macro_rules! mm { () => {} }
"""
RUST_SYMBOLS = """
1 import Read|1 import D|1 import foo|2 module m|2 function m::f|3 struct S|3 field S::x|3 enum E|3 enum_member E::A
3 enum_member E::B|3 union Un|3 field Un::a|4 trait T|4 type T::X|4 constant T::K|4 method T::r
5 method S::fmt|5 constant S::Z|6 variable G|6 constant CC|6 type Al|6 macro mm
"""
RUST_EDGES = """
1 imports  std::io|1 imports  std::io::Read|1 imports  std::fmt::Debug|1 imports  std::collections::*|1 imports  foo
2 calls m::f a.b|2 calls m::f .c|2 calls m::f Vec::new|2 calls m::f println!
4 inherits T Debug|4 inherits T Sized|5 inherits S fmt::Display
"""

JAVA = """\
package a.b; import java.util.List; import java.util.*; import static a.B.c;
class K<T> extends Base<T> implements I, x.J<T> { int f, g; K() { this.m(1).n(2); } void m() { int l; new Foo<>(1); }
 enum E { A } interface I2 extends I3 { int Q = 1; void z(); } record R(int x) {} @interface An { int value(); } }
"""
JAVA_SYMBOLS = """
1 module a.b|1 import List|1 import c|2 class K|2 field K.f|2 field K.g|2 constructor K.K|2 method K.m
3 enum K.E|3 enum_member K.E.A|3 interface K.I2|3 constant K.I2.Q|3 method K.I2.z
3 class K.R|3 field K.R.x|3 interface K.An|3 method K.An.value
"""
JAVA_EDGES = """
1 imports  java.util.List|1 imports  java.util.*|1 imports  a.B.c|2 inherits K Base|2 inherits K I|2 inherits K x.J
2 calls K.K this.m|2 calls K.K .n|2 calls K.m Foo|3 inherits K.I2 I3
"""

BASH = """\
. ./lib.sh; source "$X/y.sh"
readonly Z=3; low=4
f() { local a=1; grep x | sort; "$cmd" y; echo "$(date)"; }
function g { f; }
"""
BASH_SYMBOLS = "2 constant Z|2 variable low|3 function f|4 function g"
BASH_EDGES = """
1 imports  ./lib.sh|1 imports  $X/y.sh|3 calls f grep|3 calls f sort|3 calls f echo|3 calls f date|4 calls g f
"""


@pytest.mark.parametrize(
    ("path", "content", "symbols", "edges"),
    [
        ("a.py", PYTHON, PYTHON_SYMBOLS, PYTHON_EDGES),
        ("a.ts", TYPESCRIPT, TYPESCRIPT_SYMBOLS, TYPESCRIPT_EDGES),
        ("a.jsx", JAVASCRIPT, JAVASCRIPT_SYMBOLS, JAVASCRIPT_EDGES),
        ("a.tsx", "const a = <B.C d={e()} />;", "1 constant a", "1 calls  B.C|1 calls  e"),
        ("a.c", C, C_SYMBOLS, C_EDGES),
        ("a.cpp", CPP, CPP_SYMBOLS, CPP_EDGES),
        ("a.go", GO, GO_SYMBOLS, GO_EDGES),
        ("a.rs", RUST, RUST_SYMBOLS, RUST_EDGES),
        ("a.java", JAVA, JAVA_SYMBOLS, JAVA_EDGES),
        ("a.sh", BASH, BASH_SYMBOLS, BASH_EDGES),
        ("a.json", '{"a": 1}', "", ""),
        ("a.md", "# def f(): pass", "", ""),
    ],
)
def test_language_yields_its_definitions_and_relations(path: str, content: str, symbols: str, edges: str) -> None:
    outline = file_outline(source(path, content))
    definitions = [f"{symbol.line} {symbol.symbol_type} {symbol.qualified}" for symbol in outline.symbols]
    assert definitions == [part for line in symbols.split("\n") if line for part in line.split("|")]
    related = [f"{edge.line} {edge.edge_type} {edge.source} {edge.target}" for edge in outline.edges]
    assert sorted(related) == sorted(part for line in edges.split("\n") if line for part in line.split("|"))
    assert [edge.line for edge in outline.edges] == sorted(edge.line for edge in outline.edges)


def test_symbol_spans_from_its_name_to_the_end_of_its_definition() -> None:
    (outer, inner) = file_outline(source("a.py", "@d\nclass É:\n    async def 𐐀f(self):\n        pass\n")).symbols
    assert (outer.line, outer.column, outer.end_line) == (2, 7, 4)
    assert (inner.line, inner.column, inner.end_line, inner.end_column) == (3, 15, 4, 13)
    assert (inner.name, inner.qualified, inner.scope) == ("𐐀f", "É.𐐀f", "É")


def test_enum_member_spans_to_the_end_of_its_value() -> None:
    symbols = file_outline(source("a.ts", "enum E { A = 1 << 2, 'b' = f(\n), 'c', d }\n")).symbols
    members = [(symbol.name, symbol.line, symbol.column, symbol.end_line, symbol.end_column) for symbol in symbols[1:]]
    assert members == [("A", 1, 10, 1, 20), ("b", 1, 23, 2, 2), ("c", 2, 5, 2, 6), ("d", 2, 9, 2, 10)]


def test_methods_of_the_same_name_are_distinguished() -> None:
    outline = file_outline(source("a.py", "class A:\n  def m(self): x()\nclass B:\n  def m(self): y()\n"))
    assert [edge.source for edge in outline.edges] == ["A.m", "B.m"]


def test_file_with_an_error_yields_its_intact_definitions() -> None:
    outline = file_outline(source("a.py", "def f(): pass\nx = = 1\ndef g(): pass\n"))
    assert [symbol.name for symbol in outline.symbols] == ["f", "x", "g"]


@pytest.mark.parametrize(
    ("path", "content", "symbols"),
    [
        # To the grammar, a comment in the body of a macro ends the directive, and the next line is code.
        (
            "a.h",
            "#define LIST(t) \\\n struct t { /* head */ \\\n  int first; }\nint after;\n/*\n#define NOT_THIS 1\n*/\n",
            "1 macro LIST|4 variable after",
        ),
        ("a.h", "extern int declared;\nextern int defined = 1;\nint also;\n", "2 variable defined|3 variable also"),
        ("a.py", "class A:\n  def m(self):\n    self.a, (self.b, x) = 1, (2, 3)\n    for self.c in x: self.d += 1\n",
         "1 class A|2 method A.m|3 field A.a|3 field A.b|4 field A.c|4 field A.d"),
        ("a.ts", "class A { constructor(private a: T, readonly b = 1, c: number) {} }\ntype T = { m(): void };\n",
         "1 class A|1 constructor A.constructor|1 field A.a|1 field A.b|2 type T"),
        ("a.cpp", "const int A::x = 1;\n", "1 field A::x"),
        ("a.go", "package a\nvar x = []struct{ f int }{}\n", "1 module a|2 variable x"),
    ],
)  # fmt: skip
def test_definitions_match_former_oracle_differences(path: str, content: str, symbols: str) -> None:
    outline = file_outline(source(path, content))
    assert [f"{symbol.line} {symbol.symbol_type} {symbol.qualified}" for symbol in outline.symbols] == symbols.split(
        "|"
    )


def test_inline_rust_modules_resolve_relative_to_their_file() -> None:
    outline = file_outline(
        source(
            "a.rs",
            "mod a { mod b; use super::*; use super::super::q; use self::{t, self};\n"
            "  mod c { fn f() { use super::x; } use crate::y; use super::super::super::z; } }\n"
            '#[cfg(test)]\n#[path = "x/y.rs"]\nmod w;\nuse super::{self as s, b}; use selfish::x;\n',
        )
    )
    targets = [edge.target for edge in outline.edges if edge.edge_type == "imports"]
    assert " ".join(targets) == (
        "self::a::b self::* super::q self::a::t self::a self::a::x crate::y super::z self::w super super::b selfish::x"
    )


def test_callee_is_read_without_comments() -> None:
    outline = file_outline(source("a.py", "(\n    a  # one's first\n    .b()  # second\n    .c()\n)\n"))
    assert [edge.target for edge in outline.edges] == ["a.b", ".c"]


@pytest.mark.parametrize(
    ("path", "content", "expected"),
    [
        (
            "a.py",
            ("@a.b(1)\n@c\nclass A:\n  @property\n  def _m(self, x: int = 1, *a, k=2, **kw): pass\n  __y = 1\n"
            "  def __init__(self):\n    @d\n    def g(): pass\n"),
            "A() @a.b @c|A._m(self x *a k **kw) @property private|A.__y() private|A.__init__(self)|A.__init__.g() @d",
        ),
        (
            "a.ts",
            ("@C({x: 1}) class A { private x = 1; @I() protected readonly y; #p;\n"
            "constructor(@J() private z: T, {a}, ...r) {} pub(a?: number) {} }"),
            "A() @C|A.x() private|A.y() @I protected|A.#p() private|A.constructor(z { ...r)|A.z() private|A.pub(a)",
        ),
        (
            "a.java",
            "class A { @Override public int f(@N final T x, int... y) { return 1; } protected int g; int h; }",
            "A() internal|A.f(x y) @Override|A.g() protected|A.h() internal",
        ),
        (
            "a.rs",
            "pub struct S { pub a: u8, b: u8 } pub(crate) fn f(&mut self, (a, b): T, mut x: u8) {} trait T { fn m(); }",
            "S()|S::a()|S::b() private|f(self (a, b): T x) internal|T() private|T::m()",
        ),
        (
            "a.cpp",
            ("#define M(a, b) a\nclass A { int x; public: int y; protected: int z; };\n"
            "static int g(int *p[3], const T &q, int (*cb)(int), char) { }"),
            "M(a b)|A()|A::x() private|A::y()|A::z() protected|g(p q cb char) private",
        ),
        ("a.c", "int f(void) { return 0; }\nstatic int x;\n", "f()|x() private"),
        ("a.c", "int (*h(int k))(int l) { return 0; }\nextern int e, *p;\nextern int y = 3;\n", "h(k)|y()"),
        (
            "a.go",
            "package a\nfunc (t *T) Do(a, b int, c ...string) {}\nfunc low(int) {}",
            "a()|T.Do(a b c)|low(int) private",
        ),
    ],
)  # fmt: skip
def test_symbol_has_parameters_decorators_and_visibility(path: str, content: str, expected: str) -> None:
    rendered = []
    for symbol in file_outline(source(path, content)).symbols:
        decorators = [f"@{name}" for name in symbol.decorators]
        visibility = [symbol.visibility] if symbol.visibility != "public" else []
        rendered.append(" ".join([f"{symbol.qualified}({' '.join(symbol.parameters)})", *decorators, *visibility]))
    assert "|".join(rendered) == expected


def test_callee_truncated_within_a_letter_is_still_a_call() -> None:
    name = "é" * 300 + "a"
    (edge,) = file_outline(source("a.py", f"{name}()\n")).edges
    # The last 512 bytes remain. The first of them is the second half of a letter.
    assert edge.target == "\ufffd" + name[-256:]


def test_callee_retains_its_last_names() -> None:
    code = "f(x)(y); f(x) /* ) */ .g(); f<(x)>(1); a[(1)]?.b!.c(); h(')').i(); h(')').i();"
    targets = sorted(edge.target for edge in file_outline(source("a.ts", code)).edges)
    assert targets == [".b.c", ".g", ".i", ".i", "f", "f", "f", "h", "h"]


def test_macros_of_a_huge_header_are_all_found() -> None:
    line = b"#define NAME_%06d(a, b) " + b"x" * 90 + b" \\\n  y\n"
    header = b"".join(line % number for number in range(80_000))
    outline = file_outline(source("a.h", header, {"language": b"c"}))
    assert (len(header) > 8 * 1024 * 1024, len(outline.symbols), outline.edges) == (True, 80_000, [])
    last = outline.symbols[-1]
    assert (last.name, last.symbol_type, last.line, last.column, last.end_line) == (
        "NAME_079999",
        "macro",
        159_999,
        9,
        160_000,
    )
    assert last.parameters == ("a", "b")
    assert file_outline(source("a.h", header * 4, {"language": b"c"})).symbols == []
    assert file_outline(source("a.rs", header, {})).symbols == []


@pytest.mark.parametrize(
    ("path", "code", "symbols"),
    [
        ("a.sql", 'CREATE TABLE "orders" (id int);\nCREATE VIEW `v w` AS SELECT 1;\n', ["1:15 orders", "2:14 v w"]),
        ("a.sql", "CREATE MATERIALIZED VIEW mv AS SELECT 1;\n", ["1:26 mv"]),
        ("a.kt", "class A { fun `a test`() {} }\n", ["1:7 A", "1:16 A.a test"]),
        ("a.scala", "object A { val `type` = 1 }\n", ["1:8 A", "1:17 A.type"]),
        ("a.swift", "enum A { case `in` }\n", ["1:6 A", "1:16 A.in"]),
        ("A.cs", "class @class { int @new; }\n", ["1:8 class", "1:21 class.new"]),
    ],
)
def test_quoted_or_marked_name_is_stored_bare(path: str, code: str, symbols: list[str]) -> None:
    stored = file_outline(source(path, code)).symbols
    assert [f"{symbol.line}:{symbol.column} {symbol.qualified}" for symbol in stored] == symbols
