"""`impact` tells what depends on a file."""

from __future__ import annotations

from .process import CommandLine, write

TREE = {
    "app/__init__.py": "",
    "app/base.py": "x = 1\n",
    "app/middle.py": "import os\nfrom .base import x\n",
    "app/top.py": "from app import middle\n",
    "web/util.ts": "export const u = 1;\n",
    "web/main.ts": "import { u } from './util.js';\n",
}


def test_impact_tells_what_depends_on_a_file_and_how(codebatch: CommandLine) -> None:
    for path, content in TREE.items():
        write(codebatch.directory / path, content)
    codebatch("run", ".", "--quiet")
    found = codebatch("impact", "app/base.py", "--json").json
    assert found == [
        {"path": "app/middle.py", "distance": 1, "imports": "app/base.py", "line": 2, "resolution": "exact"},
        {"path": "app/top.py", "distance": 2, "imports": "app/middle.py", "line": 1, "resolution": "exact"},
    ]
    assert [each["path"] for each in codebatch("impact", "app/base.py", "--depth", "1", "--json").json] == [
        "app/middle.py"
    ]
    told = codebatch("impact", "web/util.ts")
    assert told.lines[1].split() == ["1", "web/main.ts", "web/util.ts:1", "exact"]
    assert "nothing in the batch imports app/top.py" in codebatch("impact", "app/top.py").notes


def test_impact_needs_symbols(codebatch: CommandLine) -> None:
    write(codebatch.directory / "a.py", "x = 1\n")
    codebatch("run", ".", "--pipeline", "parse", "--quiet")
    ended = codebatch("impact", "a.py", status=2)
    assert ended.notes.splitlines() == ["error: the batch has no symbols", "hint: run the pipeline `full`"]
