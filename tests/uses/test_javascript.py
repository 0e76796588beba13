"""Uses of names in JavaScript and TypeScript, resolved to definitions."""

# ruff: noqa: E501  # Each shape is one line.

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.uses.shapes import resolve_marked
from tests.uses.small_batches import batch_of

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
    ("key of a pattern", {"a.ts": "class A { m() {} }\nfunction g() { const { «m» } = new A(); }\n"}, "inferred", ["a.ts:1 A.m"]),
    ("renamed key of a pattern", {"a.ts": "class A { m() {} }\nfunction g({ «m»: n = null }: A) {}\n"}, "inferred", ["a.ts:1 A.m"]),
    ("key with a default value", {"a.ts": "class A { m() {} }\nfunction g({ «m» = null }: A) {}\n"}, "inferred", ["a.ts:1 A.m"]),
    ("key of an inner pattern", {"a.ts": "class A { m() {} }\nclass B { a: A }\nfunction g({ a: { «m» } }: B) {}\n"}, "inferred", ["a.ts:1 A.m"]),
    ("key of a pattern in a loop", {"a.ts": "class A { m() {} }\nfunction g(x: A[]) { for (const { «m» } of x) {} }\n"}, "inferred", ["a.ts:1 A.m"]),
    ("key of an argument", {"a.ts": "class A { m() {} }\nfunction g(x: A[]) { x.map(({ «m» }) => 1); }\n"}, "inferred", ["a.ts:1 A.m"]),
    ("key of an argument in JavaScript", {"a.js": "class A { m() {} }\n[new A()].map(({ «m» }) => 1);\n"}, "inferred", ["a.js:1 A.m"]),
    ("key of an assignment", {"a.ts": "class A { m() {} }\nlet m;\n({ «m» } = new A());\n"}, "inferred", ["a.ts:1 A.m"]),
    ("key of an unknown object", {"a.ts": "function m() {}\nfunction g() { const { «m» } = h(); }\n"}, "name", []),
    ("key of an imported module", {"a.ts": "export function f() {}\n", "b.ts": "async function g() { const { «f» } = await import('./a'); }\n"}, "exact", ["a.ts:1 f"]),
    ("base without some members", {"a.ts": "interface A { m(): void; n: string }\ninterface B extends Omit<A, 'n'> {}\nfunction g(x: B) { x.«m»(); }\n"}, "inferred", ["a.ts:1 A.m"]),
    ("type with some members", {"a.ts": "interface A { m(): void; n: string }\nfunction g(x: Pick<A, 'm'>) { x.«m»(); }\n"}, "inferred", ["a.ts:1 A.m"]),
    ("result through many modules", {
        "t/app.ts": "export interface App { m(): void }\n",
        "t/inner/index.ts": "export * from '../app';\n",
        "t/index.ts": "export * from './inner';\n",
        "run/app.ts": "import type { App } from '../t';\nexport const app: App = make();\nexport function useApp() { return app; }\n",
        "run/index.ts": "export { useApp } from './app';\n",
        "index.ts": "export * from './run';\n",
        "b.ts": "import { useApp } from './index';\nconst app = useApp();\nexport const g = h(app.«m»());\n",
    }, "inferred", ["t/app.ts:1 App.m"]),
    ("builtin", {"a.ts": "class A {\n  parseInt() { return «parseInt»('1'); }\n}\n"}, "name", []),
    ("external", {"a.ts": "import { f } from 'pkg';\n«f»();\n"}, "external", []),
]  # fmt: skip


@pytest.mark.parametrize(("files", "certainty", "places"), [pytest.param(*shape, id=name) for name, *shape in SHAPES])
def test_use_is_resolved(files: Mapping[str, str], certainty: str, places: list[str]) -> None:
    assert resolve_marked(files) == (certainty, places)


@pytest.mark.parametrize("line", [2, 3])
def test_getter_and_setter_are_one_property(tmp_path: Path, line: int) -> None:
    text = "class A {\n  get p() { return 1; }\n  set p(v) {}\n}\nfunction f(a: A) { a.p = a.p + 1; }\n"
    with batch_of(tmp_path, {"a.ts": text}) as batch:
        uses = batch.uses("p", definition=f"{tmp_path}/tree/a.ts:{line}").result.uses
        assert [use.certainty for use in uses if use.use.role == "reference"] == ["inferred"] * 2
