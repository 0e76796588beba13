"""Imported and exported names of JavaScript and TypeScript files."""

from __future__ import annotations

import pytest

from codebatch_workers.languages.javascript.file_exports import file_exports
from codebatch_workers.symbols.language_symbols import LanguageSymbols
from tests.support.source_files import source

IMPORTS = {
    "import d from './m'": [("d", "./m", "default")],
    "import d, { a as b, type T, default as q } from './m'": [
        ("d", "./m", "default"),
        ("b", "./m", "a"),
        ("T", "./m", "T"),
        ("q", "./m", "default"),
    ],
    "import * as n from './m'": [("n", "./m", "*")],
    "import { 'a b' as c } from './m'": [("c", "./m", "a b")],
    "import './m'": [],
    "import r = require('./m')": [("r", "./m", "=")],
    "import a = n.b": [("a", "", "n.b")],
    "const { a: b, c } = require('./m')": [("b", "./m", "a"), ("c", "./m", "c")],
    "const y = require('./m').member": [("y", "./m", "member")],
    "const y = require('./m')": [("y", "./m", "=")],
    "const w = await import('./m')": [("w", "./m", "*")],
    "const { s } = await import('./m')": [("s", "./m", "s")],
    "const p = import('./m')": [],
    "const f = require(name)": [],
    "const f = wrap(require('./m'))": [],
    "const { ...rest } = require('./m')": [],
}
EXPORTS = {
    "export { a as b, c }": [("b", "a", "", ""), ("c", "c", "", "")],
    "export { a as b, default } from './m'": [("b", "", "./m", "a"), ("default", "", "./m", "default")],
    "export * from './m'": [("*", "", "./m", "*")],
    "export * as n from './m'": [("n", "", "./m", "*")],
    "export default X": [("default", "X", "", "")],
    "export default function () {}": [("default", "default", "", "")],
    "export default function named() {}": [("default", "named", "", "")],
    "export default class K {}": [("default", "K", "", "")],
    "export default a.b": [("default", "", "", "")],
    "export const e = 1, { f, g: [h] } = z": [("e", "e", "", ""), ("f", "f", "", ""), ("h", "h", "", "")],
    "export interface J {}": [("J", "J", "", "")],
    "export declare const d: number": [("d", "d", "", "")],
    "export = N": [("=", "N", "", "")],
    "export as namespace Q": [],
    "declare module 'x' { export const z: number }": [],
    "module.exports = { a, b: c, d() {}, e: 1, ...f }": [
        ("a", "a", "", ""),
        ("b", "c", "", ""),
        ("d", "d", "", ""),
        ("e", "", "", ""),
        ("*", "", "", "*"),
    ],
    "module.exports = { ...require('./m') }": [("*", "", "./m", "*")],
    "exports.x = module.exports.y = z": [("x", "z", "", ""), ("y", "z", "", "")],
    "exports.f = function () {}": [("f", "f", "", "")],
    "module.exports = require('./m')": [("=", "", "./m", "=")],
    "other.exports = a": [],
}


@pytest.mark.parametrize(("text", "expected"), IMPORTS.items(), ids=IMPORTS)
def test_imports(text: str, expected: list[tuple[str, str, str]]) -> None:
    imports = file_exports(source("a.ts", text)).imports
    assert [(name.local, name.target, name.member) for name in imports] == expected
    assert all(text.encode()[name.start :].startswith(name.local.encode()) for name in imports)


@pytest.mark.parametrize(("text", "expected"), EXPORTS.items(), ids=EXPORTS)
def test_exports(text: str, expected: list[tuple[str, str, str, str]]) -> None:
    exports = file_exports(source("a.ts", text)).exports
    assert [(name.name, name.local, name.module, name.member) for name in exports] == expected


def test_a_file_of_another_language_has_none() -> None:
    assert LanguageSymbols.of("python").exports is None
