"""Tests of syntax that the grammars do not know: it is no error, and its symbols and edges are found."""

from __future__ import annotations

from pathlib import Path
from typing import cast

import pytest
from tree_sitter import Parser, Tree

from codebatch.model.record import Diagnostic, Edge, Symbol
from codebatch_workers.syntax.grammar_gaps.gaps import apply_replacements, tree_without_gaps
from codebatch_workers.syntax.language.languages import load_parser
from codebatch_workers.syntax.language_gaps import LanguageGaps
from tests.execution.test_loaded_modules import loaded_modules_after
from tests.support.resources import cpu_time_below
from tests.support.source_files import created, source

_FAMILIES = "codebatch_workers.languages"

GAPS = [
    ("a.js", "export { f as void, g as if };\n", []),
    ("a.js", "export {\n  /** Says f. */\n  f as try // so\n};\n", []),
    ("a.js", "import { if as when } from 'a';\n", ["when", "a"]),
    ("a.ts", "interface A<in out B, out C, in D = E> { f: C }\n", ["A", "f"]),
    ("a.ts", "interface A<out B, /** A key. */ in C> {}\n", ["A"]),
    ("a.ts", "declare module 'a' {\n  global { interface A { b: number } }\n}\n", ["a", "A", "b"]),
    ("a.ts", "class A { f(using: any): void { g(using); } }\n", ["A", "f", "g"]),
    ("a.ts", "declare class A { abstract?: boolean | null; }\n", ["A", "abstract"]),
    ("a.ts", "export type * from 'a';\n", ["a"]),
    ("a.ts", "type A = { [K in keyof readonly any[]]?: boolean };\n", ["A"]),
    ("a.ts", "type A<T> = keyof import('a').B<T>;\n", ["A", "a"]),
    ("a.ts", "declare const x: import('a').B<'\\'' | '>' | '\\\\'>;\n", ["x", "a"]),
    ("a.ts", "abstract class A { abstract accessor x: number }\n", ["A", "x"]),
    ("a.ts", "f<<E extends Error = D>(e?: E | null) => void>(g);\n", ["f"]),
    # The same code after a `/*` that is not a comment and has no end.
    ("a.ts", "const a = `/*`;\nf<<E extends Error = D>(e?: E | null) => void>(g);\n", ["a", "f"]),
    ("a.ts", "declare const x: import('a').B<C, import('b').D<E>>;\n", ["x", "a", "b"]),
    ("a.ts", "declare function f(): import('a').B[];\n", ["f", "a"]),
    ("a.ts", "declare function f(a: import('a').\u0275B[], b: import('b').É<C>): void;\n", ["f", "a", "b"]),
    ("a.ts", "type A = import('a').B<(c: C) => D>['e'];\n", ["A", "a"]),
    ("a.ts", "declare const x: {\n  (a: A): B\n  <C>(c: C): D\n  // Else:\n  (e: E): F\n}\nlet y;\n", ["x", "y"]),
    # Names that are keywords elsewhere.
    ("a.ts", "function f(...a: (typeof undefined | boolean)[]) {}\n", ["f"]),
    ("a.ts", "export type N<type> = (type extends Function ? type : never)\n", ["N"]),
    ("a.ts", "declare const h: { inject: (any) => void }\n", ["h"]),
    ("a.ts", "type x = (string) => void\n", ["x"]),
    ("a.ts", "type T = [new: type]\n", ["T"]),
    ("a.ts", "import { type as as d } from 'x'\n", ["d", "x"]),
    ("a.ts", "interface A {\n  'b'?: C\n  in2?: C\n  in?: C\n}\n", ["A", "b", "in2", "in"]),
    ("a.js", "export * as function from 'a';\nexport { default as if, class } from 'b';\n", ["a", "b"]),
    (
        "a.js",
        "function f(a) { let using; if (a) { using = g(); using.b(); } return using ? using[0] : 1 }\n",
        ["f", "g", "using.b"],
    ),
    ("a.php", "<?php\n$c = ord($a{0}) | g($a{$b+1});\n", ["ord", "g"]),
    ("a.php", '<?php\nf(new Binary($a, Binary::B));\n$c = "a $d->class b";\n', ["f", "Binary"]),
    (
        "a.php",
        '<?php\nclass A { function f($e) { return "a $e[class]\'>$e[match]"; } function g() {} }\n',
        ["A", "f", "g"],
    ),
    ("a.php", "<?php\nclass A { use T { T::f as protected list; g as class; } }\n", ["A", "T"]),
    ("a.php", "<?php\nfunction f() {}\n__HALT_COMPILER(); function g( {\n", ["f", "__HALT_COMPILER"]),
    ("a.yaml", 'a:\n- b: "c\n  d"\n- e: "f\n  g"  # h\n', []),
    ("a.yaml", "a:\n  b: 'c\n  d ''e'\n  f: g\n", []),
    ("a.js", "function f() {\n  let a\n  [b, c] = g();\n}\n", ["f", "g"]),
    ("a.js", "for (async of => 1;;) { break }\n", []),
    ("a.jsx", "const A = () => <li class='b' for={c} default><var>d</var></li>;\n", ["A"]),
    # Modifiers in unusual order, and words that are modifiers or members.
    ("a.ts", "class A { static accessor y: number }\n", ["A", "y"]),
    ("a.ts", "class A { accessor() {} }\n", ["A", "accessor"]),
    ("a.ts", "class A { declare accessor }\n", ["A", "accessor"]),
    ("a.ts", "class A { static [k: string]: any }\n", ["A"]),
    ("a.ts", "abstract class A { protected abstract override v: B; abstract public f(); }\n", ["A", "v", "f"]),
    ("a.ts", "export default abstract class { f() {} }\n", ["default", "f"]),
    ("a.ts", "export default function <A>(b: A): (c: number) => A;\nlet x;\n", ["default", "x"]),
    # Declarations.
    ("a.ts", "for (using z of zs) {}\nfor await (using q of qs) {}\n", []),
    ("a.ts", "{\n  using a: A = f();\n  await using b: B = g();\n}\n", ["a", "b", "f", "g"]),
    ("a.js", "for (using a = f(), b = g();;) {}\n", ["a", "b", "f", "g"]),
    ("a.ts", "import defer * as ns from './n'\n", ["ns", "./n"]),
    ("a.js", "const a = await import.source('./a.wasm');\n", ["a", "./a.wasm"]),
    ("a.ts", "export { default } from './a' with { type: 'json' };\n", ["./a"]),
    ("a.js", "export * from './a' with { type: 'json' };\n", ["./a"]),
    ("a.js", "class A {\n  p\n  *f() {}\n}\n", ["A", "p", "f"]),
    # Code that the grammar reads as a comparison, or in which it requires a `!`.
    ("a.ts", "const R = styled.div<{ a: B }>`c ${(d) => d.e}`;\n", ["R", "styled.div"]),
    ("a.ts", "[a as any] = f(x);\nfor (a as b of c) {}\n", ["f"]),
    ("a.ts", "const a = f<typeof import('b')>();\n", ["a", "f", "b"]),
    ("a.ts", "type A = { f: (c: (import('a').B & { d: D[]; })[]) => import('a').B[] };\n", ["A", "a", "a"]),
    ("a.ts", "@(x[0]) class D {}\n", ["D"]),
    # Text.
    ("a.tsx", "const x = <a href='a?b=1&c=2'>a & b &amp; c</a>;\n", ["x"]),
    ("a.tsx", "const x = <b>a {y} b & c</b>;\n", ["x"]),
    # JSX: text after each kind of child, in each kind of place, beside code that has the same tokens.
    ("a.jsx", "const x = <b>{/* it's & */} R&D's {...y} && z</b>;\nif (x & 1) { f(x) }\n", ["x", "f"]),
    ("a.js", "const x = y && <><A.B c={d => d & e} />\n  &frac12; `f` // g & {h}\n  & i</>;\n", ["x", "A.B"]),
    ("a.jsx", "const x = <a b='&' c={<i>d & e</i>}>{f ? <g>& h</g> : <j in default/>} & k</a>;\n", ["x"]),
    ("a.tsx", "type F = <A>(a: A) => A & B;\nconst x = <C<D> e='&1;'>{`<${f}>`} & {g < h}&</C>;\n", ["F", "x", "C"]),
    ("a.tsx", "const f = <A,>(a: A) => { return (\n<b c:d={/[&<']/}>{a} &\n {`&`}</b>) };\n", ["f"]),
    ("a.ts", "type A<B extends string> = `\\0${B}\\`\\n`;\n", ["A"]),
    ("a.js", "const r = String.raw`\\unicode \\xi`;\n", ["r", "String.raw"]),
    # Rust: `try` of edition 2015, tokens in macros, attributes of operands, bounds, and unstable syntax.
    ("a.rs", "fn f() -> Result<(), E> { let x = try!(g()); Ok(x) }\n", ["f", "try!", "g", "Ok"]),
    ("a.rs", "fn f() { m!(a ~ b); g() }\n", ["f", "m!", "g"]),
    ("a.rs", "macro_rules! m { ($($t:tt)*) => { $crate::x!($($t)* $ ~) }; }\nfn f() {}\n", ["m", "f", "x!"]),
    ("a.rs", "macro_rules ! m { () => {} }\n", ["m"]),
    ("a.rs", 'fn f() { g(str![[r#"a"#]]); }\n', ["f", "g", "str!"]),
    ("a.rs", 'fn f() { g((A, #[cfg(b)] c::D, #[cfg(any(e, f = "]"))] h())) }\n', ["f", "g", "h"]),
    ("a.rs", "fn f() { let a = '\"'; g((A, #[cfg(b)] c::D)) }\n", ["f", "g"]),
    ("a.rs", "fn f(#[a] #[b] c: C) { let A { #[d] e, .. } = g(); }\n", ["f", "g"]),
    ("a.rs", "struct A\nwhere\n    B: C;\nfn f() {}\n", ["A", "f"]),
    ("a.rs", "fn f(a: &(dyn 'a + B), c: Box<dyn for<'c> D<'c>>) {}\n", ["f"]),
    ("a.rs", "fn f() { g::<-1>(); h(|a: A, b: B,| c()); }\n", ["f", "g", "h", "c"]),
    ("a.rs", "fn f() { g::<a::B::<C>>(); }\n", ["f", "g"]),
    ("a.rs", "fn f(a: A) { if let A::B { 0: b, 1: c } = a { g(b, c) } }\n", ["f", "g"]),
    ("a.rs", 'extern "C" { pub safe fn f(); }\nmod a { pub const default: B = 0; }\n', ["f", "a", "default"]),
    ("a.rs", "pub trait A = B<C>\nwhere\n    D: E;\nfn f() {}\n", ["A", "f", "B"]),
    ("a.rs", "const trait A {}\nimpl const B for C { fn f() { do yeet 1f16 } }\n", ["A", "f", "B"]),
    # Ruby: commands as bodies, symbols of special variables, letters beyond ASCII.
    (
        "a.rb",
        'class A\n  def a = raise B, "x"\n  def c = puts "d" if e # f\n  def g(h) = i h, j: 1\nend\n',
        ["A", "a", "c", "g", "raise", "puts", "e", "i"],
    ),
    ("a.rb", 'def a = raise "b"\ndef c = d "e", :f\ndef g; end\n', ["a", "c", "g", "raise", "d"]),
    ("a.rb", "A = { :$: => 1, :$\x27 => 2 }\ndef f; end\n", ["A", "f"]),
    ("a.rb", "class É; end\nmodule Ж; end\n", ["É", "Ж"]),
    ("a.rb", "def a(b, c)\n  b<<c\nend\n", ["a"]),
    ("a.rb", "def self; end\ndef self(a); end\n", ["self", "self"]),
    ("a.rb", "A = -> b: { c }\nB = -> d=e() { f }\n", ["A", "B", "c", "e", "f"]),
    ("a.rb", "A = { :$= => 1, :$; => 2, :$, => 3, :$/ => 4 }\ndef f; end\n", ["A", "f"]),
    ("a.php", "<?php\n$a = clone $b ??= f();\n$c = clone $d = clone $e = g();\n", ["f", "g"]),
    ("a.rs", "struct A<B:, C: /* d */> { e: B }\n", ["A", "e"]),
    ("a.rs", "fn f() { g(0\u2028, 1); }\n", ["f", "g"]),
    ("a.go", "package a\n\nfunc f() { g((make)([]int, 0), (new)(int)) }\n", ["a", "f", "g", "make", "new"]),
    # TOML: blanks after a backslash, and TOML 1.1.
    ("a.toml", 'a = """b\\ \t\n  c"""\n', []),
    ("a.toml", 'a = """b\\  \r\n  c"""\r\n', []),
    ("a.toml", 'a = "\\e\\x41"\nb = 07:32\nc = [1979-05-27 07:32Z, 1979-05-27T07:32-07:00]\n', []),
    ("a.toml", "a = { b = 1, }\nc = {\n  d = [\n    1,\n  ], # e\n  'f,}' = { g = 2\n  },\n}\n", []),
    ("a.json", '{"a": [-1.5e+10, 1E+5]}\n', []),
    ("a.js", "@(a[0]) class A { @b c() {} }\n", ["A", "c", "b"]),
    ("a.js", "import source s from './a.wasm';\n", ["s", "./a.wasm"]),
    ("a.ts", "export import q = require('./x');\nlet y;\n", ["q", "y", "./x"]),
    # Java and Go.
    ("A.java", "class A { void f(String @Nullable ... b) {} }\n", ["A", "f"]),
    ("a.go", "package a\n\nfunc f() { g(new(b * 2)) }\n", ["a", "f", "g", "new"]),
]
WRONG = [
    ("a.yaml", 'a: "b\nc: [\n'),
    ("a.js", "export { f as };\n"),
    ("a.ts", "interface A<in out B, out> { f: }\n"),
    ("a.ts", "declare const x: import('a').B<C;\n"),
    ("a.ts", "export type * from;\n"),
    ("a.ts", "f<<E(e) => void>(g);\n"),
    ("a.ts", "a as number = 42;\n"),
    ("a.ts", "class A { static accessor y: }\n"),
    ("a.ts", "const R = styled.div<{ a: B >`c`;\n"),
    ("a.js", "const r = `\\unicode`;\n"),
    ("a.js", "const r = '\\xi', s = t`\\u`;\n"),
    ("a.js", "export { f } from 'a' with { type: };\nclass { }\n"),
    ("a.jsx", "const A = <li class=>b</li>;\n"),
    ("a.jsx", "const A = <b>a {x} b & c</i>;\n"),
    ("a.jsx", "const A = <b>a & {x &} c</b>;\n"),
    ("a.tsx", "const A = a & <b>c</b> & ;\n"),
    ("a.rs", "fn f() { let a = b ~ c; }\n"),
    ("a.rs", "fn f() { m!(a ~ (b); }\n"),
    ("a.rs", 'fn f() { m!(a ~ "b); }\n'),
    ("a.rs", "fn f() { try!(g() }\n"),
    ("a.rs", "fn f() { g(A, #[cfg(b) c::D) }\n"),
    ("a.rs", "fn f() { g((A, #[cfg(b] c::D)) }\n"),
    ("a.rs", "// A.\n#[(b)]\nstruct A { c: , d: E }\n"),
    ("a.rs", "mod a {\n    #[derive(A, B]\n    struct C;\n}\n"),
    ("A.java", "class A { void f(String @Nullable ... ) {} }\n"),
    ("a.toml", 'a = """b\\ c"""\n'),
    ("a.toml", "a = { b = 1, , }\n"),
    ("a.toml", "a = { b = 1\n  c = 2 }\n"),
    ("a.toml", "a = { , }\n"),
    ("a.php", '<?php\n$a = "b $c[class";\n'),
    ("a.php", "<?php\nclass A { use T { f as ; } }\n"),
    ("a.json", "[1e+]\n"),
    ("a.toml", "a = 07:\n"),
    ("a.rb", "def a = raise B, \n"),
    ("a.rb", "def a = raise (b\ndef c; end\n"),
    ("a.rb", "class A\n  def a = raise b)\nend\n"),
    ("a.rb", "A = { :$' => 1\n"),
    ("a.rb", "def a(b)\n  b<<\nend\n"),
    ("a.rb", "A = -> b: { c\n"),
    ("a.php", "<?php\n$a = clone $b = ;\n"),
    ("a.rs", "struct A<B: C {}\n"),
    ("a.go", "package a\n\nfunc f() { g((make)([]int, 0) }\n"),
]


@pytest.mark.parametrize(("path", "content", "names"), GAPS)
def test_grammar_gap_is_not_an_error(path: str, content: str, names: list[str]) -> None:
    file = source(path, content)
    assert load_parser(file.language).parse(file.utf8).root_node.has_error, (
        "the grammar parses this by now: remove the case"
    )
    assert not [record for record in created("parse", Path()).run_file(file) if isinstance(record, Diagnostic)]
    assert not file.has_syntax_error
    records = created("symbols", Path()).run_file(file)
    symbols = [record for record in records if isinstance(record, Symbol)]
    assert [record.name for record in symbols] + [
        record.target for record in records if isinstance(record, Edge)
    ] == names
    lines = content.split("\n")
    named = [record for record in symbols if record.name != "default"]
    assert all(lines[record.line - 1][record.column - 1 :].strip("'").startswith(record.name) for record in named)


@pytest.mark.parametrize(("path", "content"), WRONG)
def test_error_beside_a_grammar_gap_is_reported(path: str, content: str) -> None:
    records = created("parse", Path()).run_file(source(path, content))
    assert "syntax-error" in {record.code for record in records if isinstance(record, Diagnostic)}


@pytest.mark.parametrize(
    ("language", "content"),
    [
        ("typescript", "f(g << h, i < j, k);\n"),
        ("typescript", "(await import('a')).b<C>(d);\nimport('a').then<B>(c);\n"),
        ("typescript", "const f = (a: A) =>\n  <B>(b: B) => c;\n"),
        ("typescript", "f\n  (a ? b : c)\n"),
        ("javascript", "interface<in out>(using)\n"),
        ("ruby", "def a = b + 1\ndef c = d if e\ndef f() = g(h)\ndef i; j k; end\ndef l = m ? 1 : 2\n"),
    ],
)
def test_code_similar_to_a_gap_is_not_rewritten(language: str, content: str) -> None:
    stand_ins = [replacement for kind in LanguageGaps.of(language).finders for replacement in kind(content.encode())]
    assert apply_replacements(content.encode(), stand_ins) == content.encode()


@pytest.mark.parametrize(("content", "loaded"), [("fn f() {}", []), ("fn f(", [f"{_FAMILIES}.rust.gaps"])])
def test_gaps_are_loaded_only_for_a_tree_with_errors(content: str, loaded: list[str]) -> None:
    code = f"SourceFile(b'a.rs', {content.encode()!r}, executable=False, contexts={{}}).captures"
    names = f"{_FAMILIES}.rust.gaps {_FAMILIES}.go.gaps"
    assert loaded_modules_after(f"from codebatch_workers.syntax.source import SourceFile; {code}", names) == loaded


def test_number_of_parses_is_bounded() -> None:
    parser = load_parser("rust")
    calls: list[bytes] = []

    class CountingParser:
        def parse(self, utf8: bytes, old: Tree | None = None) -> Tree:
            calls.append(utf8)
            return parser.parse(utf8, old)

    wrong = b"fn f() { g(A, #[b] c::D, -1, || try!(h) box } }\n"
    for content, most in ((b"fn f() {}\n", 0), (wrong, 200), (b"//" + b"a b " * 175_000 + b"\n" + wrong, 2)):
        calls.clear()
        tree_without_gaps(content, "rust", parser.parse(content), cast("Parser", CountingParser()))
        assert len(calls) <= most


@pytest.mark.parametrize(
    "content",
    [
        "x<<y(" * 20_000,
        " (a\n" * 20_000,
        "*/\n (a): b\n" * 5_000,
        "import('a').b<" * 5_000,
        "<" * 50_000,
        "a,\n" * 30_000,
        "#[" * 30_000,
        "where (" * 10_000,
        "`" * 30_001,
        "export {a" * 10_000,
        "</a><a>{" * 10_000,
        "=<a <" * 10_000,
        "=<a //" * 10_000,
        '= <a b="' * 10_001,
        "=`${<a>&" * 10_000,
        "trait A " * 10_000,
        "x<" * 30_000,
        "static " * 10_000,
        "=\n" * 30_000,
        "\n" * 50_000,
        "from 'a'/*" * 10_000,
        "def a = b c" * 10_000,
        "def a = b c\n" * 20_000,
        "<<~A #{\n" * 20_000,
        "struct A " * 10_000,
        "`\\" * 20_000,
        '"`\\' * 20_000,
        "@(/*" * 10_000,
        "in" + " " * 50_000,
        " \n" * 25_000,
        'a: "\n' * 20_000,
        "- " * 30_000,
    ],
)
def test_gap_search_takes_linear_time(content: str) -> None:
    with cpu_time_below(5):
        for language in ("typescript", "rust", "java", "go", "yaml"):
            for kind in LanguageGaps.of(language).finders:
                apply_replacements(content.encode(), kind(content.encode()))
