"""Uses of a definition by another name: renamed imports and exports, default exports, whole modules."""

# Each shape is one line.

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from codebatch.query.fields import JsonRecord
from tests.uses.small_batches import batch_of

_ESM = "export function helper() { return 1; }\n"
_DEFAULT = "export default function helper() { return 1; }\n"
_CJS = "function helper() { return 1; }\nmodule.exports = { helper };\n"

# Title, files, and the caller of `helper` or `Helper`. Where none is found, the answer must not be a firm `none`.
SHAPES: list[tuple[str, Mapping[str, str], str]] = [
    (
        "renamed",
        {
            "util.ts": _ESM,
            "index.ts": 'export { helper as pub } from "./util";\n',
            "a.ts": 'import { pub } from "./index";\npub();\n',
        },
        "a.ts:2: (file) calls pub",
    ),
    (
        "renamed twice",
        {
            "util.ts": _ESM,
            "index.ts": 'export { helper as pub } from "./util";\n',
            "j.ts": 'export { pub as more } from "./index";\n',
            "a.ts": 'import { more as x } from "./j";\nx();\n',
        },
        "a.ts:2: (file) calls x",
    ),
    (
        "renamed local",
        {
            "util.ts": _ESM,
            "index.ts": 'import { helper } from "./util";\nexport { helper as pub };\n',
            "a.ts": 'import { pub } from "./index";\npub();\n',
        },
        "a.ts:2: (file) calls pub",
    ),
    (
        "renamed const",
        {
            "util.ts": _ESM,
            "index.ts": 'import { helper } from "./util";\nexport const pub = helper;\n',
            "a.ts": 'import { pub } from "./index";\npub();\n',
        },
        "none, but",
    ),
    ("default", {"util.ts": _DEFAULT, "a.ts": 'import h from "./util";\nh();\n'}, "a.ts:2: (file) calls h"),
    (
        "default as",
        {
            "util.ts": _DEFAULT,
            "index.ts": 'export { default as pub } from "./util";\n',
            "a.ts": 'import { pub } from "./index";\npub();\n',
        },
        "a.ts:2: (file) calls pub",
    ),
    (
        "default default",
        {
            "util.ts": _DEFAULT,
            "index.ts": 'export { default } from "./util";\n',
            "a.ts": 'import q from "./index";\nq();\n',
        },
        "a.ts:2: (file) calls q",
    ),
    (
        "as default",
        {
            "util.ts": _ESM,
            "index.ts": 'export { helper as default } from "./util";\n',
            "a.ts": 'import q from "./index";\nq();\n',
        },
        "a.ts:2: (file) calls q",
    ),
    (
        "import export default",
        {
            "util.ts": _ESM,
            "index.ts": 'import { helper } from "./util";\nexport default helper;\n',
            "a.ts": 'import q from "./index";\nq();\n',
        },
        "a.ts:2: (file) calls q",
    ),
    (
        "default import export default",
        {
            "util.ts": _DEFAULT,
            "index.ts": 'import hh from "./util";\nexport default hh;\n',
            "a.ts": 'import q from "./index";\nq();\n',
        },
        "a.ts:2: (file) calls q",
    ),
    (
        "default as string",
        {
            "util.ts": _DEFAULT,
            "index.ts": 'export { default as "pub" } from "./util";\n',
            "a.ts": 'import { pub } from "./index";\npub();\n',
        },
        "a.ts:2: (file) calls pub",
    ),
    (
        "star",
        {
            "util.ts": _ESM,
            "index.ts": 'export * from "./util";\n',
            "a.ts": 'import { helper } from "./index";\nhelper();\n',
        },
        "a.ts:2: (file) calls helper",
    ),
    (
        "star star",
        {
            "util.ts": _ESM,
            "index.ts": 'export * from "./util";\n',
            "j.ts": 'export * from "./index";\n',
            "a.ts": 'import { helper as z } from "./j";\nz();\n',
        },
        "a.ts:2: (file) calls z",
    ),
    (
        "star as",
        {
            "util.ts": _ESM,
            "index.ts": 'export * as ns from "./util";\n',
            "a.ts": 'import { ns } from "./index";\nns.helper();\n',
        },
        "a.ts:2: (file) calls ns.helper",
    ),
    (
        "star as renamed",
        {
            "util.ts": _ESM,
            "index.ts": 'export * as ns from "./util";\n',
            "a.ts": 'import { ns as m } from "./index";\nm.helper();\n',
        },
        "a.ts:2: (file) calls m.helper",
    ),
    (
        "namespace import export",
        {
            "util.ts": _ESM,
            "index.ts": 'import * as ns from "./util";\nexport { ns };\n',
            "a.ts": 'import { ns } from "./index";\nns.helper();\n',
        },
        "a.ts:2: (file) calls ns.helper",
    ),
    (
        "default object",
        {
            "util.ts": _ESM,
            "index.ts": 'import { helper } from "./util";\nexport default { helper };\n',
            "a.ts": 'import x from "./index";\nx.helper();\n',
        },
        "a.ts:2: (file) calls x.helper (by name)",
    ),
    (
        "dynamic import",
        {"util.ts": _ESM, "a.ts": 'async function f() { const { helper: h } = await import("./util"); h(); }\n'},
        "none, but",
    ),
    (
        "dynamic then",
        {"util.ts": _ESM, "a.ts": 'import("./util").then(({ helper }) => helper());\n'},
        "a.ts:1: (file) calls helper (by name)",
    ),
    (
        "cjs object",
        {"util.js": _CJS, "a.js": 'const { helper } = require("./util");\nhelper();\n'},
        "a.js:2: (file) calls helper",
    ),
    (
        "cjs member",
        {"util.js": _CJS, "a.js": 'const u = require("./util");\nu.helper();\n'},
        "a.js:2: (file) calls u.helper",
    ),
    (
        "cjs direct",
        {"util.js": _CJS, "a.js": 'require("./util").helper();\n'},
        "a.js:1: (file) calls .helper (by name)",
    ),
    (
        "cjs renamed",
        {
            "util.js": "function helper() {}\nexports.pub = helper;\n",
            "a.js": 'const { pub } = require("./util");\npub();\n',
        },
        "a.js:2: (file) calls pub",
    ),
    (
        "cjs renamed in object",
        {"util.js": "function helper() {}\nmodule.exports = { pub: helper };\n", "a.js": 'require("./util").pub();\n'},
        "none, but",
    ),
    (
        "cjs whole",
        {"util.js": "function helper() {}\nmodule.exports = helper;\n", "a.js": 'const h = require("./util");\nh();\n'},
        "a.js:2: (file) calls h",
    ),
    (
        "cjs whole called",
        {"util.js": "function helper() {}\nmodule.exports = helper;\n", "a.js": 'require("./util")();\n'},
        "none, but",
    ),
    (
        "cjs reexport whole",
        {
            "util.js": _CJS,
            "index.js": 'module.exports = require("./util");\n',
            "a.js": 'const { helper } = require("./index");\nhelper();\n',
        },
        "a.js:2: (file) calls helper (by name, 2 candidates)",
    ),
    (
        "cjs reexport member",
        {
            "util.js": _CJS,
            "index.js": 'exports.pub = require("./util").helper;\n',
            "a.js": 'const { pub } = require("./index");\npub();\n',
        },
        "none, but",
    ),
    (
        "cjs reexport spread",
        {
            "util.js": _CJS,
            "index.js": 'module.exports = { ...require("./util") };\n',
            "a.js": 'const { helper } = require("./index");\nhelper();\n',
        },
        "a.js:2: (file) calls helper",
    ),
    (
        "cjs assign",
        {
            "util.js": _CJS,
            "index.js": 'Object.assign(module.exports, require("./util"));\n',
            "a.js": 'const { helper } = require("./index");\nhelper();\n',
        },
        "a.js:2: (file) calls helper (by name, 2 candidates)",
    ),
    (
        "cjs exportStar",
        {
            "util.js": _CJS,
            "index.js": '__exportStar(require("./util"), exports);\n',
            "a.js": 'const { helper } = require("./index");\nhelper();\n',
        },
        "a.js:2: (file) calls helper (by name, 2 candidates)",
    ),
    (
        "cjs getter",
        {
            "util.js": _CJS,
            "index.js": 'Object.defineProperty(exports, "pub", { get: () => require("./util").helper });\n',
            "a.js": 'const { pub } = require("./index");\npub();\n',
        },
        "none, but",
    ),
    (
        "cjs default interop",
        {
            "util.js": "function helper() {}\nexports.default = helper;\n",
            "a.js": 'const h = require("./util").default;\nh();\n',
        },
        "a.js:2: (file) calls h",
    ),
    (
        "esm imports cjs",
        {"util.js": "function helper() {}\nmodule.exports = helper;\n", "a.mjs": 'import h from "./util.js";\nh();\n'},
        "a.mjs:2: (file) calls h",
    ),
    (
        "import equals",
        {"util.ts": "function helper() {}\nexport = helper;\n", "a.ts": 'import h = require("./util");\nh();\n'},
        "a.ts:2: (file) calls h",
    ),
    (
        "type only",
        {
            "util.ts": "export interface Helper { a: number }\n",
            "index.ts": 'export type { Helper as Pub } from "./util";\n',
            "a.ts": 'import type { Pub } from "./index";\nlet x: Pub;\n',
        },
        "none, but",
    ),
    (
        "class renamed",
        {
            "util.ts": "export class Helper {}\n",
            "index.ts": 'export { Helper as Pub } from "./util";\n',
            "a.ts": 'import { Pub } from "./index";\nnew Pub();\n',
        },
        "a.ts:2: (file) calls Pub",
    ),
    (
        "method of renamed class",
        {
            "util.ts": "export class Kls { helper() {} }\n",
            "index.ts": 'export { Kls as Pub } from "./util";\n',
            "a.ts": 'import { Pub } from "./index";\nnew Pub().helper();\n',
        },
        "a.ts:2: (file) calls .helper (inferred)",
    ),
    ("alias const", {"a.ts": "function helper() {}\nconst al = helper;\nal();\n"}, "none, but"),
    ("python alias", {"a.py": "def helper(): pass\nal = helper\nal()\n"}, "none, but"),
    (
        "python reexport",
        {
            "u.py": "def helper(): pass\n",
            "p/__init__.py": "from u import helper as pub\n",
            "b.py": "from p import pub\npub()\n",
        },
        "b.py:2: (file) calls pub",
    ),
    (
        "rust reexport",
        {
            "Cargo.toml": '[package]\nname="x"\nversion="0.1.0"\n',
            "src/lib.rs": "mod u;\npub use u::helper as pubh;\nfn f() { pubh(); }\n",
            "src/u.rs": "pub fn helper() {}\n",
        },
        "src/lib.rs:3: f calls pubh",
    ),
]


@pytest.mark.parametrize(("files", "expected"), [shape[1:] for shape in SHAPES], ids=[shape[0] for shape in SHAPES])
def test_callers_are_found_under_another_name(tmp_path: Path, files: Mapping[str, str], expected: str) -> None:
    with batch_of(tmp_path, files) as batch:
        name = "Helper" if any("Helper" in text for text in files.values()) else "helper"
        answer = batch.callers(name)
        if not answer.result:
            assert (expected, answer.completeness.doubt[:9]) == ("none, but", "none, but")
            return
        assert [_text(caller.row) for caller in answer.result] == [expected]


def _text(row: JsonRecord) -> str:
    count = row["candidates"]
    marks = {
        "exact": "",
        "inferred": " (inferred)",
        "name": " (by name)" if count == 1 else f" (by name, {count} candidates)",
    }
    return (
        f"{row['path']}:{row['line']}: {row['scope'] or '(file)'} calls {row['target']}{marks[str(row['resolution'])]}"
    )
