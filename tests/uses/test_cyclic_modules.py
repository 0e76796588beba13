"""Modules that all re-export each other: a use in them is resolved in bounded time, or it is known by name only."""

from __future__ import annotations

from tests.uses.shapes import resolve_marked

COUNT = 14


def test_javascript_modules_that_export_each_other() -> None:
    files = {
        f"m{number}.ts": "".join(f"export * from './m{other}';\n" for other in range(COUNT) if other != number)
        for number in range(COUNT)
    }
    assert resolve_marked({**files, "u.ts": "import { f } from './m0';\n«f»();\n"}) == ("name", [])


def test_python_modules_that_import_each_other() -> None:
    files = {
        f"m{number}.py": "".join(f"from m{other} import *\n" for other in range(COUNT) if other != number)
        for number in range(COUNT)
    }
    assert resolve_marked({**files, "u.py": "from m0 import *\n«f»()\n"}) == ("name", [])
