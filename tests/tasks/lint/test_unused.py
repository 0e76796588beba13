"""Tests of unused and shadowing names in JavaScript and TypeScript, each on a small source."""

from __future__ import annotations

import pytest

from codebatch_workers.lint.unused import shadowed_names, unused_imports, unused_variables
from tests.support.source_files import source


@pytest.mark.parametrize(
    ("path", "content", "imports", "variables"),
    [
        ("a.js", "import a, { b, c as d } from 'a';\nimport * as e from 'e';\nd();\n", "a b e", ""),
        ("a.js", "import React from 'react';\nexport const a = <b />;\n", "", ""),
        ("a.js", "import React from 'react';\nexport const a = 1;\n", "React", ""),
        # A property, a string, a key and a name of another scope are not uses.
        ("a.js", "import a from 'a';\nx.a; 'a'; ({ a: 1 }); function f(a) { a; } f();\n", "a", ""),
        ("a.js", "import a from 'a';\nexport default { a };\n", "", ""),
        ("a.js", "import a from 'a';\nexport { a };\n", "", ""),
        ("a.js", "export const a = 1; const b = 2, { c, d: [e, f = c] } = b; let _g;\n", "", "e f"),
        ("a.js", "export function f(x, y) { var a = 1; if (x) { var b; } a = 2; try {} catch (e) {} }\n", "", "a b"),
        ("a.js", "export default function () { function g() {} class C {} for (const i of []) {} }\n", "", "g C i"),
        # A page may use the top-level names of a script that is not a module.
        ("a.js", "var a = 1; function f() { var b; }\n", "", "b"),
        ("a.js", "const a = require('a'); function f() {}\n", "", "a f"),
        ("a.js", "import a from 'a'; eval('a');\n", "", ""),
        ("a.js", "import a from 'a'; f( ;\n", "", ""),
        ("a.ts", "import { T, U } from 't';\nimport V = require('v');\nexport let x: T;\n", "U V", ""),
        ("a.ts", "type A = 1; interface B<C> { b: C } enum D { E } export type F = A;\n", "", "B D"),
        ("a.ts", "import { T } from 't'; export function f<T>(a: T): T;\n", "T", ""),
        ("a.ts", "declare global { interface Window { x: 1 } }\nexport {};\n", "", ""),
        ("a.d.ts", "import a from 'a'; type B = 1;\n", "", ""),
    ],
)
def test_unused_names_are_reported(path: str, content: str, imports: str, variables: str) -> None:
    file = source(path, content)
    reported = [
        " ".join(file.utf8[start:end].decode() for start, end, _ in rule(file))
        for rule in (unused_imports, unused_variables)
    ]
    assert reported == [imports, variables]


@pytest.mark.parametrize(
    ("path", "content", "expected"),
    [
        ("a.js", "let a; function f(a) { { let a; } }\n", "1:19 1:30"),
        ("a.js", "function f() { let g; } function g() {}\n", "1:20"),
        ("a.js", "function f() { let a; } let a;\n", ""),
        ("a.js", "var f = function f() {};\n", ""),
        ("a.js", "x = function a() { var a; };\n", "1:24"),
        ("a.ts", "let a; type F = (a: number) => void; class C<T> { m<T>() {} }\n", ""),
    ],
)
def test_shadowing_names_are_reported(path: str, content: str, expected: str) -> None:
    file = source(path, content)
    places = [file.position(start) for start, _, _ in shadowed_names(file)]
    assert " ".join(f"{line}:{column}" for line, column in places) == expected
