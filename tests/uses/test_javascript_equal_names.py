"""JavaScript and TypeScript: definitions with equal names. A use is exact only if scope and exports leave no other."""

# ruff: noqa: E501  # Each shape is one line.

from __future__ import annotations

from collections.abc import Mapping

import pytest

from tests.uses.shapes import resolve_marked

F = "export function f() {}\n"
A = "export class A { m() {} }\n"
SHAPES: list[tuple[str, Mapping[str, str], str, list[str]]] = [
    ("method named as its caller", {"a.ts": "function f() {}\nclass A {\n  f() { return «f»(); }\n}\n"}, "exact", ["a.ts:1 f"]),
    ("import hidden by a constant", {"a.ts": F, "b.ts": "import { f } from './a';\n{ const f = 1; «f»; }\n"}, "exact", ["b.ts:2 f"]),
    ("import hidden by a pattern", {"a.ts": F, "b.ts": "import { f } from './a';\nfunction g({ f }) { «f»(); }\n"}, "name", []),
    ("import hidden by using", {"a.ts": F, "b.ts": "import { f } from './a';\nfunction g() { using f = h(); «f»(); }\n"}, "name", []),
    ("barrel of barrels", {"a.ts": F, "i.ts": "export * from './a';\n", "j.ts": "export { f as g } from './i';\n", "b.ts": "import { g as h } from './j';\n«h»();\n"}, "exact", ["a.ts:1 f"]),
    ("own export before a star", {"a.ts": F, "i.ts": "export * from './a';\nexport function f() {}\n", "b.ts": "import { f } from './i';\n«f»();\n"}, "exact", ["i.ts:2 f"]),
    ("star leaves out the default", {"a.ts": "export default function f() {}\n", "i.ts": "export * from './a';\n", "b.ts": "import f from './i';\n«f»();\n"}, "name", []),
    ("namespace of a module", {"a.ts": F, "i.ts": "export * as n from './a';\n", "b.ts": "import { n } from './i';\nn.«f»();\n"}, "exact", ["a.ts:1 f"]),
    ("default that is a named value", {"a.ts": "const f = () => 1;\nexport default f;\n", "b.ts": "import g from './a';\n«g»();\n"}, "exact", ["a.ts:1 f"]),
    ("type and value with one name", {"a.ts": "export const X = 1;\nexport type X = string;\n", "b.ts": "import { X } from './a';\nlet y: «X»;\n"}, "exact", ["a.ts:2 X"]),
    ("value and type with one name", {"a.ts": "export const X = 1;\nexport type X = string;\n", "b.ts": "import { X } from './a';\nf(«X»);\n"}, "exact", ["a.ts:1 X"]),
    ("global value named as a type", {"a.ts": "interface File {}\nf(«File»);\n"}, "name", []),
    ("global type named as a value", {"a.ts": "const Text = 1;\nlet x: «Text»;\n"}, "name", []),
    ("constructor of a class object", {"a.ts": "class A { constructor() {} }\nA.«constructor»;\n"}, "name", []),
    ("global of a declaration file", {"g.d.ts": "declare var D: boolean;\n", "a.ts": "f(«D»);\n"}, "inferred", ["g.d.ts:1 D"]),
    ("global block of a module", {"g.d.ts": "export {};\ndeclare global {\n  interface I {}\n}\n", "a.ts": "let x: «I»;\n"}, "inferred", ["g.d.ts:3 I"]),
    ("export of a declaration file", {"g.d.ts": "export declare var D: boolean;\n", "a.ts": "f(«D»);\n"}, "name", []),
    ("overloads", {"a.ts": "export function f(x: string): void;\nexport function f(x: number): void;\nexport function f(x: any) {}\n", "b.ts": "import { f } from './a';\n«f»(1);\n"}, "exact", ["a.ts:2 f", "a.ts:3 f"]),
    ("type parameter", {"a.ts": "class T {}\nfunction f<T>(x: «T») {}\n"}, "name", []),
    ("key of a pattern", {"a.ts": "function f() {}\nconst { «f»: g } = h();\n"}, "name", []),
    ("exported under another name", {"a.ts": "function f() {}\nfunction g() {}\nexport { g as «f» };\n"}, "exact", ["a.ts:2 g"]),
    ("re-exported name", {"a.ts": F, "b.ts": "function f() {}\nexport { «f» } from './a';\n"}, "exact", ["a.ts:1 f"]),
    ("member of an unknown object", {"a.ts": "function f() {}\nfunction g(x) { x.«f»(); }\n"}, "name", []),
    ("spread", {"a.ts": "function f() {}\ng(...«f»());\n"}, "exact", ["a.ts:1 f"]),
    ("function expression with an own name", {"a.ts": "function f() {}\nconst g = function f() { «f»(); };\n"}, "name", []),
    ("super", {"a.ts": "class A { m() {} }\nclass B extends A {\n  m() { super.«m»(); }\n}\n"}, "inferred", ["a.ts:1 A.m"]),
    ("field with a type", {"a.ts": A, "b.ts": "import { A } from './a';\nclass B { constructor(private a: A) {}\n  n() { this.a.«m»(); }\n}\n"}, "inferred", ["a.ts:1 A.m"]),
    ("optional chain", {"a.ts": A, "b.ts": "import { A } from './a';\nfunction g(a: A | undefined) { a?.«m»(); }\n"}, "inferred", ["a.ts:1 A.m"]),
    ("array of a class", {"a.ts": A, "b.ts": "import { A } from './a';\nfunction g(xs: A[]) { xs[0].«m»(); }\n"}, "inferred", ["a.ts:1 A.m"]),
    ("loop over an array", {"a.ts": A, "b.ts": "import { A } from './a';\nfunction g(xs: A[]) { for (const x of xs) x.«m»(); }\n"}, "inferred", ["a.ts:1 A.m"]),
    ("loop over keys", {"a.ts": A, "b.ts": "import { A } from './a';\nfunction g(xs: A[]) { for (const x in xs) x.«m»(); }\n"}, "name", []),
    ("argument of an array method", {"a.ts": A, "b.ts": "import { A } from './a';\nfunction g(xs: A[]) { xs.map(x => x.«m»()); }\n"}, "inferred", ["a.ts:1 A.m"]),
    ("argument by the type of a function", {"a.ts": A + "export type G = (a: A) => void;\n", "b.ts": "import { G } from './a';\nconst g: G = x => x.«m»();\n"}, "inferred", ["a.ts:1 A.m"]),
    ("promised object", {"a.ts": A, "b.ts": "import { A } from './a';\nasync function g(): Promise<A> { return new A(); }\nasync function h() { (await g()).«m»(); }\n"}, "inferred", ["a.ts:1 A.m"]),
    ("type alias", {"a.ts": A + "export type B = A | null;\n", "b.ts": "import { B } from './a';\nfunction g(x: B) { x.«m»(); }\n"}, "inferred", ["a.ts:1 A.m"]),
    ("union of classes", {"a.ts": "class A { m() {} }\nclass B { m() {} }\nfunction g(x: A | B) { x.«m»(); }\n"}, "name", ["a.ts:1 A.m", "a.ts:2 B.m"]),
    ("cast", {"a.ts": A, "b.ts": "import { A } from './a';\n(x as A).«m»();\n"}, "inferred", ["a.ts:1 A.m"]),
    ("alias of a namespace", {"a.ts": F, "b.ts": "import * as n from './a';\nimport g = n.f;\n«g»();\n"}, "exact", ["a.ts:1 f"]),
    ("exports of an assigned function", {"a.js": "exports.f = function () {};\n", "b.js": "const { f } = require('./a');\n«f»();\n"}, "exact", ["a.js:1 f"]),
    ("module that is a function", {"a.js": "function f() {}\nmodule.exports = f;\n", "b.js": "const g = require('./a');\n«g»();\n"}, "exact", ["a.js:1 f"]),
    ("require in another function", {"a.js": "exports.f = function () {};\n", "b.js": "function g() { const { f } = require('./a'); }\nfunction h() { «f»(); }\n"}, "name", []),
    ("dynamic import", {"a.ts": F, "b.ts": "async function g() {\n  const { f } = await import('./a');\n  «f»();\n}\n"}, "exact", ["a.ts:1 f"]),
]  # fmt: skip


@pytest.mark.parametrize(("files", "certainty", "places"), [pytest.param(*shape, id=name) for name, *shape in SHAPES])
def test_use_is_resolved(files: Mapping[str, str], certainty: str, places: list[str]) -> None:
    assert resolve_marked(files) == (certainty, places)
