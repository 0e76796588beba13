"""What the grammars of JavaScript and TypeScript do not know is no error, and what stands in it is found."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from codebatch.model.record import Diagnostic, Edge, Symbol
from codebatch_workers.grammar_gaps import with_stand_ins
from codebatch_workers.languages import grammar
from tests.tasks.support import created, source

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
    ("a.ts", "abstract class A { abstract accessor x: number }\n", ["A", "x"]),
    ("a.ts", "f<<E extends Error = D>(e?: E | null) => void>(g);\n", ["f"]),
    ("a.ts", "declare const x: import('a').B<C, import('b').D<E>>;\n", ["x", "a", "b"]),
    ("a.ts", "declare function f(): import('a').B[];\n", ["f", "a"]),
    ("a.ts", "type A = import('a').B<(c: C) => D>['e'];\n", ["A", "a"]),
    ("a.ts", "declare const x: {\n  (a: A): B\n  <C>(c: C): D\n  // Else:\n  (e: E): F\n}\nlet y;\n", ["x", "y"]),
]
WRONG = [
    ("a.js", "export { f as };\n"),
    ("a.ts", "interface A<in out B, out> { f: }\n"),
    ("a.ts", "declare const x: import('a').B<C;\n"),
    ("a.ts", "export type * from;\n"),
    ("a.ts", "f<<E(e) => void>(g);\n"),
]


@pytest.mark.parametrize(("path", "content", "names"), GAPS)
def test_what_the_grammar_does_not_know_is_no_error(path: str, content: str, names: list[str]) -> None:
    file = source(path, content)
    assert grammar(file.language).parser.parse(file.utf8).root_node.has_error, "the grammar knows it by now"
    assert not [each for each in created("parse", Path()).run(file) if isinstance(each, Diagnostic)]
    found = created("symbols", Path()).run(file)
    symbols = [each for each in found if isinstance(each, Symbol)]
    assert [each.name for each in symbols] + [each.target for each in found if isinstance(each, Edge)] == names
    lines = content.split("\n")
    assert all(lines[each.line - 1][each.column - 1 :].strip("'").startswith(each.name) for each in symbols)


@pytest.mark.parametrize(("path", "content"), WRONG)
def test_what_is_wrong_beside_it_is_told(path: str, content: str) -> None:
    found = created("parse", Path()).run(source(path, content))
    assert "syntax-error" in {each.code for each in found if isinstance(each, Diagnostic)}


@pytest.mark.parametrize(
    ("language", "content"),
    [
        ("typescript", "f(g << h, i < j, k);\n"),
        ("typescript", "(await import('a')).b<C>(d);\nimport('a').then<B>(c);\n"),
        ("typescript", "const f = (a: A) =>\n  <B>(b: B) => c;\n"),
        ("typescript", "f\n  (a ? b : c)\n"),
        ("javascript", "interface<in out>(using)\n"),
    ],
)
def test_what_looks_like_a_gap_is_left_alone(language: str, content: str) -> None:
    assert with_stand_ins(content.encode(), language) == content.encode()


@pytest.mark.parametrize(
    "content",
    [
        "x<<y(" * 200_000,
        " (a\n" * 200_000,
        "*/\n (a): b\n" * 50_000,
        "import('a').b<" * 50_000,
        "<" * 500_000,
        "a,\n" * 300_000,
    ],
)
def test_time_grows_with_the_file(content: str) -> None:
    started = time.process_time()
    with_stand_ins(content.encode(), "typescript")
    assert time.process_time() - started < 5
