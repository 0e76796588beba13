"""Tests of the task analyze: metrics in a fixed order, and none that is unknown."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec import UNSET

from codebatch.model.record import Metric, Symbol
from tests.support.source_files import created, file_metrics, source

ORDER = [
    "bytes",
    "lines",
    "code",
    "comment",
    "blank",
    "functions",
    "classes",
    "imports",
    "complexity",
    "max_complexity",
    "cognitive",
    "max_cognitive",
    "max_nesting",
    "max_parameters",
]

PYTHON = '''\
# a comment
import os, sys
from x import (
    y,
)


class A:
    """Text is a comment."""

    def m(self):  # beside code
        for a in b:
            if a and b or c:
                pass
            elif d:
                return 1 if e else 2

        def inner():
            return [x for x in y if x]

    async def n(self):
        try:
            while True:
                pass
        except E:
            match x:
                case 1: pass


if A:
    pass
'''


def test_python_metrics_match_a_manual_count() -> None:
    metrics = file_metrics(source("a.py", PYTHON))
    assert list(metrics) == ORDER
    # m: 1 + for, if, and, or, elif, ternary; inner: 1 + for, if; n: 1 + while, except, case; and the module's if.
    # Cognitive: m: for 1, if 2, and and or 2, elif 1, ternary 3; n: while 1, except 1, match 2; and the module's if.
    expected = [len(PYTHON), 31, 22, 2, 7, 3, 1, 2, 7 + 3 + 4 + 1, 7, 9 + 4 + 1, 9, 3, 1]
    assert list(metrics.values()) == expected


@pytest.mark.parametrize(
    ("path", "content", "expected"),
    [
        (
            "a.js",
            "const f = a => a && b ? 1 : 2; // x\n/* y\n\n z */ function g() { f ??= 1 }\n",
            (2, 2, 0, 2, 0, 0, 5, 3),
        ),
        (
            "a.c",
            "/* a\n * b */\nint f(int x) { switch (x) { case 1: case 2: break; default: ; } return x && 1; }\n",
            (1, 2, 0, 1, 0, 0, 4, 4),
        ),
        ("a.go", "package a\nfunc f() { for { if a || b { } } }\ntype S struct{}\n", (3, 0, 0, 1, 1, 0, 4, 4)),
        (
            "a.rs",
            "fn f() -> R { let x = a?; match x { 1 => 2, _ => 3 } }\n/// doc\nstruct S;\n",
            (2, 1, 0, 1, 1, 0, 4, 4),
        ),
        ("a.java", "import a.B;\nclass A { void f() { if (a && b) {} } }\n", (2, 0, 0, 1, 1, 1, 3, 3)),
        ("a.sh", "f() { if a; then b && c; fi; }\n# x\n", (1, 1, 0, 1, 0, 0, 3, 3)),
        ("a.ts", "interface I {}\nenum E { A }\nclass C { m() { return 1 } }\n", (3, 0, 0, 1, 3, 0, 1, 1)),
    ],
)
def test_structure_metrics_are_consistent_across_languages(path: str, content: str, expected: tuple[int, ...]) -> None:
    metrics = file_metrics(source(path, content))
    assert tuple(metrics[name] for name in ["code", "comment", "blank", *ORDER[5:10]]) == expected


@pytest.mark.parametrize(
    ("path", "content", "expected"),
    [
        ("a.md", b"a\n\n b\n", {"bytes": 6, "lines": 3, "code": 2, "comment": 0, "blank": 1}),
        ("a.bin", b"\0\0", {"bytes": 2}),
        ("a.py", b"", {"bytes": 0, "lines": 0, "code": 0, "comment": 0, "blank": 0}),
        ("a.json", b"{}\n", {"bytes": 3, "lines": 1, "code": 1, "comment": 0, "blank": 0}),
        ("a.txt", b"a\r\n\r\n\x0c\n", {"bytes": 7, "lines": 3, "code": 1, "comment": 0, "blank": 2}),
    ],
)
def test_unknown_metrics_are_omitted(path: str, content: bytes, expected: dict[str, int]) -> None:
    assert file_metrics(source(path, content)) == expected


@pytest.mark.parametrize(
    ("path", "content", "expected"),
    [
        # Docstrings are comments, including their blank lines. Other strings are code.
        ("a.py", 'def f():\n    """Say.\n\n    More.\n    """\n    return """a\nb"""\n', (3, 4, 0)),
        ("a.py", 'class A: """Beside code."""\n', (1, 0, 0)),
        ("a.py", 'x = 1; """Behind code,\nbefore code."""; y = 2\n', (2, 0, 0)),
        ("a.py", '"""Alone."""\n\n"no docstring"[0]\n', (1, 1, 1)),
        # A blank line in any other string is code.
        ("b.py", 'x = """a\n\n  \nb"""\n\ny = 1\n', (5, 0, 1)),
        ("a.rb", "x = <<~END\n  a\n\n  b\nEND\n\nputs 'a\n\nb'\n", (8, 0, 1)),
        ("a.sh", 'x="a\n\nb"\ncat <<END\n\nEND\n\n', (6, 0, 1)),
        ("a.go", "package a\n\nvar x = `\n\n`\n", (4, 0, 1)),
        ("a.ts", "const x = `a\n\n${\n\n1}`\n", (4, 0, 1)),
        ("a.kt", 'val x = """\n\n"""\n', (3, 0, 0)),
        ("a.swift", 'let x = """\n\na\n"""\n\n', (4, 0, 1)),
        ("A.java", 'class A {\n\n  String x = """\n\n""";\n}\n', (5, 0, 1)),
        ("a.cs", 'class A {\n\n  string x = @"\n\n";\n}\n', (5, 0, 1)),
        ("a.php", "<?php\n\n$x = <<<E\na\n\nb\nE;\n$y = 'a\n\nb';\n", (9, 0, 1)),
        ("a.lua", "x = [[\n\n]]\n\n", (3, 0, 1)),
        ("a.rs", 'const X: &str = "\n\n";\n\n', (3, 0, 1)),
        ("a.toml", 'x = """\n\n"""\n\n', (3, 0, 1)),
        ("a.scala", 'val x = """\n\n"""\n\n', (3, 0, 1)),
        # A blank line in a comment belongs to the comment. One before or after it does not.
        ("a.c", "\n/* a\n\n \n*/\n\nint b;\n", (1, 4, 2)),
        ("a.rs", "/// a\n///\n\nfn f() {}\n", (1, 2, 1)),
        # Without a grammar, the comments are found by patterns of the language.
        ("Makefile", "# a\nall: # b\n\ttrue\n\n", (2, 1, 1)),
        ("configure.ac", "dnl a\n# b\nAC_INIT([a#b])\n", (1, 2, 0)),
        ("a.vue", "<template>\n<!-- a\n\nb -->\n</template>\n", (2, 3, 0)),
        ("highlights.scm", "; a\n(b) @c ; d\n", (1, 1, 0)),
        ("a.blade.php", "{{-- a\n\nb --}}\n<p>{{ $x }}</p>\n", (1, 3, 0)),
        # A first line with `#!` is a comment, an attribute in Rust is not.
        ("a.js", "#!/usr/bin/env node\nf()\n#!x\n", (2, 1, 0)),
        ("a.php", "#!/usr/bin/php\n<?php\n", (1, 1, 0)),
        ("a.lua", "#!/usr/bin/env -S lua\n", (0, 1, 0)),
        ("a.hs", "#!/usr/bin/env stack\nx = 1\n", (1, 1, 0)),
        ("a.rs", "#![allow(a)]\nfn f() {}\n", (2, 0, 0)),
        # Prose has no comments, and neither has a language without comments.
        ("a.md", "# a\n<!-- b -->\n", (2, 0, 0)),
        ("a.csv", "# a\n\n", (1, 0, 1)),
        # A file that hardly parses, and one that is not parsed because it is minified.
        ("a.min.js", "// a\nf()\n", (1, 1, 0)),
        ("a.js", "// a\n" + "%% <> ]] {{ (( @@ §§\n" * 40, (40, 1, 0)),
    ],
)
def test_line_counts_match_scc(path: str, content: str, expected: tuple[int, int, int]) -> None:
    metrics = file_metrics(source(path, content))
    assert (metrics["code"], metrics["comment"], metrics["blank"]) == expected
    assert sum(expected) == metrics["lines"]


def test_elif_chain_counts_all_branches() -> None:
    metrics = file_metrics(source("a.py", "def f(x):\n    if x: pass\n" + "    elif x: pass\n" * 100))
    assert metrics["max_complexity"] == 102


@pytest.mark.parametrize(
    ("path", "content", "expected"),
    [
        (
            "a.py",
            "class A:\n  def m(self, a, *b):\n    for x in a:\n      if x: pass\n  def e(self): pass\n",
            "2 A.m complexity=3 cognitive=3 nesting=2 parameters=3|5 A.e complexity=1 parameters=1",
        ),
        (
            "a.js",
            "const f = (a, {b}) => () => a && b && (c || d);\nx.map(z => z);\n",
            ("1 f complexity=1 parameters=2|1 f.<anonymous> complexity=4 cognitive=2|"
            "2 <anonymous> complexity=1 parameters=1"),
        ),
        (
            "a.c",
            "char **f(int a, void *b, ...) { return 0; }\nint g(void) { goto x; x: if (a) if (b) {} else {} }\n",
            "1 f complexity=1 parameters=3|2 g complexity=3 cognitive=5 nesting=2",
        ),
        ("a.c", "int f(int a) {\n#if X && Y\n#endif\n}\n", "1 f complexity=1 parameters=1"),
        (
            "a.go",
            "package a\nfunc (t *T) f(a, b int) { if x { } else if y { } else { go func() { for { } }() } }\n",
            "2 T.f complexity=4 cognitive=6 nesting=3 parameters=2",
        ),
        (
            "a.rs",
            "impl A { fn f(&self, a: u8) -> u8 { match a { 1 => 2, _ => loop { break } } } }\n",
            "1 A::f complexity=4 cognitive=3 nesting=2 parameters=2",
        ),
        ("a.java", "class A { void f(int... a) { a: for (;;) break a; } }\n",
         "1 A.f complexity=2 cognitive=2 nesting=1 parameters=1"),
        ("a.ts", "class A { m(a?: T, b = 1) { try {} catch { a ??= b } } }\n",
         "1 A.m complexity=3 cognitive=1 nesting=1 parameters=2"),
        ("a.sh", "f() { case $x in a) ;; esac; }\n", "1 f complexity=2 cognitive=1 nesting=1"),
        (
            "a.cs",
            """class A { int F(int a, int b = 1) {
while (a) { if (b && (c && d) || e) goto x; else if (b) { } else { } }
switch (a) { case 1: case 2: break; default: break; } return l.Select(q => q ? 1 : 2); } }
""",
            "1 A.F complexity=10 cognitive=11 nesting=2 parameters=2",
        ),
        (
            "a.kt",
            """fun f(a: Int, b: Int = 1) {
o@ for (i in a) { if (b && (c && d) || e) { break@o } else if (b) { } else { } }
when (a) { 1 -> 2
else -> l.map { if (it) 1 else 2 } } }
""",
            "1 f complexity=10 cognitive=13 nesting=3 parameters=2",
        ),
        (
            "a.swift",
            """func f(a: Int, _ b: Int) {
o: for i in a { if b > 1 && c > 2 && d > 3 || e { break o } else if b { } else { } }
guard a else { return }; switch a { case 1: x(); default: l.map { $0 ? 1 : 2 } } }
""",
            "1 f complexity=10 cognitive=13 nesting=3 parameters=2",
        ),
        (
            "a.scala",
            """object A { def f(a: Int, b: Int)(c: Int) = {
for (i <- a) { if (b && (c && d) || e) 1 else if (b) 2 else 3 }
try { a match { case 1 => 2 } } catch { case e => l.map { case x => if (x) 1 else 2 } } } }
""",
            "1 A.f complexity=11 cognitive=13 nesting=3 parameters=3",
        ),
        (
            "a.php",
            """<?php function f(int $a, ...$b) {
while ($a) { if ($b && ($c && $d) || $e) { break 2; } elseif ($b) { } else { } }
switch ($a) { case 1: goto x; default: } $x = fn ($q) => match ($q) { 1 => $q ?: 2 }; }
""",
            "1 f complexity=10 cognitive=15 nesting=3 parameters=2",
        ),
        (
            "a.rb",
            """def f(a, b = 1, *c, d:, &e)
while a do if b && (c && d) || e then 1 elsif b then 2 else 3 end end
case a when 1 then 2 else 3 end
l.each { |q| q unless q }
rescue
end
""",
            "1 f complexity=10 cognitive=11 nesting=2 parameters=5",
        ),
        (
            "a.lua",
            """function f(a, ...)
while a do if b and (c and d) or e then goto x elseif b then else end end
repeat until a; l(function(q) if q then end end) end
""",
            ("1 f complexity=8 cognitive=9 nesting=2 parameters=2|"
            "3 f.<anonymous> complexity=2 cognitive=1 nesting=1 parameters=1"),
        ),
    ],
)  # fmt: skip
def test_each_function_is_measured(path: str, content: str, expected: str, tmp_path: Path) -> None:
    metrics_by_function: dict[tuple[int, str], list[str]] = {}
    for record in created("analyze", tmp_path).run_file(source(path, content)):
        assert isinstance(record, Metric)
        if record.symbol:
            metrics_by_function.setdefault((record.line, record.symbol), []).append(f"{record.metric}={record.value}")
    assert (
        "|".join(f"{line} {symbol} {' '.join(values)}" for (line, symbol), values in metrics_by_function.items())
        == expected
    )


def test_maximum_metrics_do_not_depend_on_function_order() -> None:
    code = "def f(a, b, c):\n  if a:\n    if b: pass\ndef g(): pass\n"
    metrics = file_metrics(source("a.py", code))
    names = ("max_complexity", "max_cognitive", "max_nesting", "max_parameters")
    assert [metrics[name] for name in names] == [3, 3, 2, 3]


FUNCTIONS = {
    "a.py": """class A:
    @property
    def x(self):
        return 1

    @x.setter
    def x(self, value):
        pass

    class B:
        def inner(self):
            def deep():
                pass
""",
    "a.js": """class A { get x() { return 1; } set x(v) {}
  handler =
    (e) => {
      return e;
    };
  static #p() {}
}
const f =
  (a) => a + 1;
module.exports = { m() {}, k: function () {} };
""",
    "a.ts": """abstract class A {
  @dec()
  method(): void {}
  constructor(private y: number) {}
}
export default function () {}
""",
    "A.java": """class A {
  @Override
  public String toString() { return ""; }
  record P(int x) { P { } }
}
""",
    "a.c": """static int
main_loop(int a)
{
    return a;
}
""",
    "a.cpp": """template <class T>
struct S { S() {} ~S() {} int operator+(int b) { return b; } operator bool() const { return true; } };
template <class T>
int
S<T>::out() { return 1; }
""",
    "a.cs": """class A {
  ~A() { }
  public static A operator +(A a, A b) { return a; }
  [Obsolete]
  public void M() { void Local() { } }
}
""",
    "a.kt": """class A(val a: Int) {
  constructor(b: String) : this(1) {
    println(b)
  }
  @Deprecated("x")
  fun m(): Int { return 1 }
}
""",
    "a.swift": """class A {
  init(a: Int) {
    print(a)
  }
  subscript(i: Int) -> Int { return i }
  @objc
  func m() { }
}
""",
    "a.rb": """class A
  def x=(v); end
  class << self
    def t
    end
  end
end
""",
    "a.php": """<?php
class A {
  #[Attr]
  public static function s(): int { return 1; }
}
""",
    "a.rs": """impl A { #[inline]
  pub fn new() -> A { A } }
""",
    "a.go": """package p
func (a *A) M() int { return 1 }
func G[T any](x T) T { return x }
""",
    "a.lua": """function t.a() end
t.c = function()
  return 3
end
""",
    "a.scala": """class A { def m(x: Int): Int = x
  def this(z: String) = { this() } }
""",
    "a.sh": "f() { echo 1; }\n",
}


@pytest.mark.parametrize("path", FUNCTIONS)
def test_function_metrics_match_symbol_lines_or_state_their_end(path: str, tmp_path: Path) -> None:
    """The symbol has the same line if an attribute, a type or an assignment is on a line of its own."""
    file = source(path, FUNCTIONS[path])
    assert file.tree is not None
    assert not file.tree.root_node.has_error
    symbols = {
        (record.qualified, record.line): record
        for record in created("symbols", tmp_path).run_file(file)
        if isinstance(record, Symbol) and record.symbol_type in ("function", "method", "constructor", "property")
    }
    numbers = [
        record
        for record in created("analyze", tmp_path).run_file(file)
        if isinstance(record, Metric) and record.symbol and record.metric == "complexity"
    ]
    assert numbers
    for number in numbers:
        symbol = symbols.get((number.symbol, number.line))
        assert not (symbol and number.symbol.endswith("<anonymous>"))
        assert symbol is not None or number.end_line is not UNSET
        if number.end_line is not UNSET:
            assert number.line <= number.end_line <= file.line_count
    ends = {number.symbol: (number.line, number.end_line) for number in numbers if number.end_line is not UNSET}
    if path == "a.js":
        assert ends == {"A.<anonymous>": (3, 5), "<anonymous>": (10, 10)}
