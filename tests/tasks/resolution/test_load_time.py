"""Tests that imports that loading a file executes are distinguished from other imports."""

from __future__ import annotations

import json

import pytest

from codebatch_workers.symbols.outline import file_outline
from tests.support.source_files import source
from tests.tasks.resolution.resolving import resolver

# Whether an import is for types only, deferred, and erasable by the TypeScript compiler.
_NOW, _TYPES, _LATER, _ERASED = (False, False, False), (True, False, False), (False, True, False), (False, False, True)


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        ("a.py", "import x", _NOW),
        ("a.py", "try:\n    import x\nexcept ImportError:\n    pass", _NOW),
        ("a.py", "class A:\n    import x", _NOW),
        ("a.py", "def f():\n    import x", _LATER),
        ("a.py", "class A:\n    async def f(self):\n        if self:\n            from x import y", _LATER),
        ("a.py", "if TYPE_CHECKING:\n    import x", _TYPES),
        ("a.py", "if typing.TYPE_CHECKING:\n    from x import y", _TYPES),
        ("a.py", "if (TYPE_CHECKING):\n    from x import y", _TYPES),
        ("a.py", "if a:\n    pass\nelif TYPE_CHECKING:\n    import x", _TYPES),
        ("a.py", "if TYPE_CHECKING:\n    pass\nelse:\n    import x", _NOW),
        ("a.py", "if not TYPE_CHECKING:\n    import x", _NOW),
        ("a.py", "if TYPE_CHECKING or a:\n    import x", _NOW),
        ("a.pyi", "import x", _TYPES),
        ("a.py", "if a and TYPE_CHECKING and b:\n    import x", _TYPES),
        ("a.py", "if a or b and TYPE_CHECKING:\n    import x", _NOW),
        ("a.py", "if not (a and TYPE_CHECKING):\n    import x", _NOW),
        ("a.py", "if False:\n    import x", _TYPES),
        ("a.py", "if MYPY:\n    from x import y", _TYPES),
        ("a.py", "if not TYPE_CHECKING:\n    pass\nelse:\n    import x", _TYPES),
        ("a.py", "if not TYPE_CHECKING:\n    pass\nelif a:\n    pass\nelse:\n    import x", _NOW),
        ("a.py", "if __name__ == '__main__':\n    import x", _LATER),
        ("a.py", "if __name__ != '__main__':\n    import x", _NOW),
        ("a.ts", "import './x';", _NOW),
        # Names that are used as types only, or not at all.
        ("a.ts", "import { X } from './x';", _ERASED),
        ("a.ts", "import {} from './x';", _ERASED),
        ("a.ts", "import { X } from './x';\nfunction f(x: X[]): x is X { return x as X; }", _ERASED),
        ("a.ts", "import X, { Y as Z } from './x';\ninterface A extends X<Z> { X: string; Z(): Z }", _ERASED),
        ("a.ts", "import * as X from './x';\nlet a: X.Y.Z, b: typeof X, c: typeof X.d; // X()", _ERASED),
        ("a.ts", "import { X } from './x';\nclass A implements X { X = 'X'; y = this.X; }", _ERASED),
        ("a.ts", "import X = require('./x');\ntype A = X;", _ERASED),
        ("a.tsx", "import { X } from './x';\nconst a = <b x={c as X}>X</b>;", _ERASED),
        ("a.ts", "import { X, y } from './x';\nlet a: X = y;", _NOW),
        ("a.ts", "import { X } from './x';\nclass A extends X {}", _NOW),
        ("a.ts", "import { X } from './x';\nconst a = { X };", _NOW),
        ("a.ts", "import { X } from './x';\nlet a = X.y ?? X;", _NOW),
        ("a.ts", "f(X);\nimport { X } from './x';", _NOW),
        ("a.ts", "import { X } from './x';\nexport { X };", _NOW),
        ("a.ts", "import { X } from './x';\n@X() class A {}", _NOW),
        ("a.tsx", "import { X } from './x';\nconst a = <X/>;", _NOW),
        ("a.tsx", "import React from './x';\nconst a = <><b/></>;", _NOW),
        # Decorators can need types when the program runs.
        ("a.ts", "import { X } from './x';\n@B() class A { constructor(private x: X) {} }", _NOW),
        ("a.ts", "import { X } from './x';\n@B() export class A { @c x: X[]; }", _NOW),
        ("a.ts", "import { X } from './x';\nclass A { @c() f(x: X) {} }", _NOW),
        ("a.ts", "import { X } from './x';\n@B() class A { f() { let x: X; } }\nlet y: X;", _ERASED),
        ("a.ts", "export * from './x';", _NOW),
        ("a.ts", "import type { X } from './x';", _TYPES),
        ("a.ts", "import type X = require('./x');", _TYPES),
        ("a.ts", "export type * from './x';", _TYPES),
        ("a.ts", "import { type X, type Y } from './x';", _ERASED),
        ("a.ts", "import { type X, y } from './x';\ny();", _NOW),
        ("a.ts", "import z, { type X } from './x';\nz;", _NOW),
        ("a.ts", "import { type } from './x';\ntype();", _NOW),
        ("a.ts", "export type { X } from './x';", _TYPES),
        ("a.ts", "export { type X } from './x';", _ERASED),
        ("a.ts", "export { X } from './x';", _NOW),
        ("a.ts", "import x = require('./x');\nx();", _NOW),
        ("a.d.ts", "import { X } from './x';\nX;", _TYPES),
        ("a.ts", "const load = () => import('./x');", _LATER),
        ("a.ts", "import('./x').then(f);", _LATER),
        ("a.ts", "const x = await import('./x');", _NOW),
        ("a.ts", "async function f() { await import('./x'); }", _LATER),
        ("a.js", "const x = require('./x');", _NOW),
        ("a.js", "class A { f() { return require('./x'); } }", _LATER),
        ("a.js", "(function () { require('./x'); })();", _NOW),
        ("a.js", "(function () { require('./x'); }).call(this);", _NOW),
        ("a.js", "(() => { function f() { require('./x'); } })();", _LATER),
        ("a.lua", "local x = require 'x'", _NOW),
        ("a.lua", "local function f() return require 'x' end", _LATER),
        ("a.rb", "require 'x'", _NOW),
        ("a.rb", "module A\n  require 'x'\nend", _NOW),
        ("a.rb", "def f\n  require 'x'\nend", _LATER),
        ("a.rb", "def self.f\n  require 'x'\nend", _LATER),
        ("a.rb", "autoload :X, 'x'", _LATER),
        ("a.php", "<?php\nrequire 'x.php';", _NOW),
        ("a.php", "<?php\nfunction f() { require 'x.php'; }", _LATER),
        ("a.php", "<?php\n$f = function () { require 'x.php'; };", _LATER),
        ("a.php", "<?php\nclass A { function f() { require 'x.php'; } }", _LATER),
        ("a.sh", "source x.sh", _NOW),
        ("a.sh", "f() {\n  . x.sh\n}", _LATER),
        # Compiled languages resolve imports before anything runs.
        ("a.rs", "fn f() { use x::y; }", _NOW),
        ("a.scala", "object A { def f() = { import x.y } }", _NOW),
    ],
)
def test_import_has_the_expected_load_time(name: str, content: str, expected: tuple[bool, bool, bool]) -> None:
    imports = [edge for edge in file_outline(source(name, content)).edges if edge.edge_type == "imports"]
    assert [(edge.type_only, edge.deferred, edge.erasable) for edge in imports] == [expected]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, True),
        ({"verbatimModuleSyntax": True}, False),
        ({"verbatimModuleSyntax": False, "isolatedModules": True}, True),
        ({"importsNotUsedAsValues": "remove"}, True),
        ({"importsNotUsedAsValues": "preserve"}, False),
        ({"importsNotUsedAsValues": "error", "preserveValueImports": False}, False),
        ({"preserveValueImports": True}, False),
    ],
)
def test_compiler_options_determine_whether_imports_are_erased(options: dict[str, object], expected: bool) -> None:
    configuration = json.dumps({"compilerOptions": options})
    files = {
        "own/tsconfig.json": configuration,
        "extended/tsconfig.json": '{"extends": "../own/tsconfig.json"}',
        "reset/tsconfig.json": json.dumps(
            {"extends": "../own/tsconfig", "compilerOptions": dict.fromkeys(options, False)}
        ),
        "split/tsconfig.json": '{"files": [], "references": [{"path": "./tsconfig.app.json"}]}',
        "split/tsconfig.app.json": configuration,
    }
    answers = [
        resolver(files).erases_imports(f"{place}/src/a.ts", "typescript")
        for place in ("own", "extended", "split", "reset")
    ]
    assert answers == [expected, expected, expected, True]
    assert resolver(files).erases_imports("a.ts", "typescript")
