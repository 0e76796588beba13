"""Uses of names in JavaScript and TypeScript, resolved to definitions."""

# ruff: noqa: E501  # Each shape is one line.

from __future__ import annotations

from collections.abc import Mapping

import pytest

from tests.uses.shapes import resolve_marked

SHAPES: list[tuple[str, Mapping[str, str], str, list[str]]] = [
    ("named import", {"a.ts": "export function f() {}\n", "b.ts": "import { f } from './a';\n«f»();\n"}, "exact", ["a.ts:1 f"]),
    ("renamed import", {"a.ts": "export function f() {}\n", "b.ts": "import { f as g } from './a';\n«g»();\n"}, "exact", ["a.ts:1 f"]),
    ("default import", {"a.ts": "export default function f() {}\n", "b.ts": "import g from './a';\n«g»();\n"}, "exact", ["a.ts:1 f"]),
    ("anonymous default", {"a.ts": "export default class { m() {} }\n", "b.ts": "import G from './a';\nnew «G»();\n"}, "exact", ["a.ts:1 default"]),
    ("namespace import", {"a.ts": "export function f() {}\n", "b.ts": "import * as a from './a';\na.«f»();\n"}, "exact", ["a.ts:1 f"]),
    ("barrel", {"a.ts": "export function f() {}\n", "i.ts": "export { f } from './a';\n", "b.ts": "import { f } from './i';\n«f»();\n"}, "exact", ["a.ts:1 f"]),
    ("export star", {"a.ts": "export function f() {}\n", "i.ts": "export * from './a';\n", "b.ts": "import { f } from './i';\n«f»();\n"}, "exact", ["a.ts:1 f"]),
    ("conflicting stars", {"a.ts": "export function f() {}\n", "c.ts": "export function f() {}\n", "i.ts": "export * from './a';\nexport * from './c';\n", "b.ts": "import { f } from './i';\n«f»();\n"}, "name", ["a.ts:1 f", "c.ts:1 f"]),
    ("not exported", {"a.ts": "function f() {}\nexport const g = 1;\n", "b.ts": "import { f } from './a';\n«f»();\n"}, "name", []),
    ("exported under another name", {"a.ts": "function f() {}\nexport { f as g };\n", "b.ts": "import { g } from './a';\n«g»();\n"}, "exact", ["a.ts:1 f"]),
    ("require", {"a.js": "function f() {}\nmodule.exports = { f };\n", "b.js": "const a = require('./a');\na.«f»();\n"}, "exact", ["a.js:1 f"]),
    ("destructured require", {"a.js": "function f() {}\nmodule.exports = { f };\n", "b.js": "const { f } = require('./a');\n«f»();\n"}, "exact", ["a.js:1 f"]),
    ("parameter hides import", {"a.ts": "export function f() {}\n", "b.ts": "import { f } from './a';\nfunction g(f) { «f»(); }\n"}, "name", []),
    ("typed parameter", {"a.ts": "export class A { m() {} }\n", "b.ts": "import { A } from './a';\nfunction g(x: A) { x.«m»(); }\n"}, "inferred", ["a.ts:1 A.m"]),
    ("constructed constant", {"a.ts": "export class A { m() {} }\nexport const a = new A();\n", "b.ts": "import { a } from './a';\na.«m»();\n"}, "inferred", ["a.ts:1 A.m"]),
    ("this", {"a.ts": "class A {\n  m() {}\n  n() { this.«m»(); }\n}\n"}, "inferred", ["a.ts:2 A.m"]),
    ("key of an object", {"a.ts": "function f() {}\nconst o = { «f»: 1 };\n"}, "name", []),
    ("getter", {"a.ts": "class B { m() {} }\nclass A { get b() { return new B(); } }\nnew A().b.«m»();\n"}, "inferred", ["a.ts:1 B.m"]),
    ("method that is not called", {"a.ts": "class B { m() {} }\nclass A { b() { return new B(); } }\nnew A().b.«m»();\n"}, "name", []),
    ("function with members", {"a.ts": "class B { m() {} }\nfunction f(): B { return new B(); }\nnamespace f { export const x = 1; }\nf().«m»();\n"}, "inferred", ["a.ts:1 B.m"]),
    ("builtin", {"a.ts": "class A {\n  parseInt() { return «parseInt»('1'); }\n}\n"}, "name", []),
    ("external", {"a.ts": "import { f } from 'pkg';\n«f»();\n"}, "external", []),
]  # fmt: skip


@pytest.mark.parametrize(("files", "certainty", "places"), [pytest.param(*shape, id=name) for name, *shape in SHAPES])
def test_use_is_resolved(files: Mapping[str, str], certainty: str, places: list[str]) -> None:
    assert resolve_marked(files) == (certainty, places)
