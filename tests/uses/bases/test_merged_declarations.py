"""Several declarations of one type: each place selects all uses."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.uses.small_batches import batch_of

SHAPES = [
    (
        "typescript module",
        {
            "c.ts": "export interface Renderer {}\n",
            "u.ts": "declare module './c' {\n  interface Renderer { more(): void }\n}\nexport {};\n",
            "d.ts": "import { Renderer } from './c';\nexport function f(r: Renderer) {}\n",
        },
        "Renderer",
        ("c.ts:1", "u.ts:2"),
        "d.ts:2",
    ),
    (
        "typescript interfaces",
        {"a.ts": "interface Two { a: 1 }\ninterface Two { b: 2 }\nfunction f(t: Two) {}\n"},
        "Two",
        ("a.ts:1", "a.ts:2"),
        "a.ts:3",
    ),
    (
        "csharp in one file",
        {"a.cs": "partial class W { }\npartial class W { }\nclass U { W w; }\n"},
        "W",
        ("a.cs:1", "a.cs:2"),
        "a.cs:3",
    ),
    (
        "csharp in two files",
        {"a.cs": "partial class W { }\n", "b.cs": "partial class W { }\n", "c.cs": "class U { W w; }\n"},
        "W",
        ("a.cs:1", "b.cs:1"),
        "c.cs:1",
    ),
    (
        "ruby",
        {"a.rb": "class W\nend\nclass W\nend\nW.name\n"},
        "W",
        ("a.rb:1", "a.rb:3"),
        "a.rb:5",
    ),
]


@pytest.mark.parametrize(
    ("files", "name", "definitions", "use"), [shape[1:] for shape in SHAPES], ids=[shape[0] for shape in SHAPES]
)
def test_each_declaration_has_the_uses_of_all(
    tmp_path: Path, files: dict[str, str], name: str, definitions: tuple[str, str], use: str
) -> None:
    with batch_of(tmp_path, files) as batch:
        for definition in definitions:
            uses = batch.uses(name, definition=definition, role=["reference", "call"]).result.uses
            assert [(f"{each.row['path']}:{each.row['line']}", each.certainty) for each in uses] == [(use, "exact")]
