"""Tests that imports that loading a file executes are distinguished from other imports."""

from __future__ import annotations

import pytest

from codebatch_workers.symbols.outline import file_outline
from tests.support.source_files import source

_NOW, _TYPES, _LATER = (False, False), (True, False), (False, True)


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
        ("a.ts", "import { X } from './x';", _NOW),
        ("a.ts", "import './x';", _NOW),
        ("a.ts", "export * from './x';", _NOW),
        ("a.ts", "import type { X } from './x';", _TYPES),
        ("a.ts", "import { type X, type Y } from './x';", _TYPES),
        ("a.ts", "import { type X, y } from './x';", _NOW),
        ("a.ts", "import z, { type X } from './x';", _NOW),
        ("a.ts", "import { type } from './x';", _NOW),
        ("a.ts", "export type { X } from './x';", _TYPES),
        ("a.ts", "export { type X } from './x';", _TYPES),
        ("a.ts", "import x = require('./x');", _NOW),
        ("a.d.ts", "import { X } from './x';", _TYPES),
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
def test_import_has_the_expected_load_time(name: str, content: str, expected: tuple[bool, bool]) -> None:
    imports = [edge for edge in file_outline(source(name, content)).edges if edge.edge_type == "imports"]
    assert [(edge.type_only, edge.deferred) for edge in imports] == [expected]
