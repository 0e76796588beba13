"""A project task that goes on from an older state of a tree says what it would say of the tree as it is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from codebatch.model.digest import digest_bytes
from codebatch.model.entry import Entry
from codebatch.model.record import TAGS, Record
from codebatch_workers.api.before import Change
from codebatch_workers.syntax.source import SourceFile
from codebatch_workers.tasks.dependencies import Dependencies

from .support import created, source

Said = dict[str, dict[bytes, list[Record]]]


class Tree:
    """A state of a tree in memory, with what `parse` and `symbols` say of it. A `Project`."""

    outside: Sequence[Entry] = ()

    def __init__(self, contents: Mapping[str, str], scratch: Path) -> None:
        self.contents = {path.encode(): text.encode() for path, text in contents.items()}
        self.files = [
            Entry(path, "file", False, len(data), digest_bytes(data)) for path, data in sorted(self.contents.items())
        ]
        self.said: Said = {
            task: {path: created(task, scratch).run_file(source(path, data)) for path, data in self.contents.items()}
            for task in ("parse", "symbols")
        }

    def records(self, task: str, *kinds: str, holding: str = "") -> Iterator[tuple[Entry, list[Record]]]:
        assert holding.startswith('"edge_type"') or not holding
        for file in self.files:
            if found := self.records_of(file, task, *kinds):
                yield file, found

    def records_of(self, file: Entry, task: str, *kinds: str) -> list[Record]:
        return [record for record in self.said[task].get(file.path, []) if not kinds or TAGS[type(record)] in kinds]

    def own_records(self) -> Iterator[tuple[Entry, list[Record]]]:
        return self.records("dependencies")

    def find(self, path: bytes) -> Entry | None:
        return next((file for file in self.files if file.path == path), None)

    def read(self, file: Entry) -> bytes:
        return self.contents[file.path]

    def source(self, file: Entry) -> SourceFile:
        raise AssertionError(file)

    def run(self) -> dict[bytes, list[Record]]:
        """What `dependencies` says of it as a whole, by file."""
        found: dict[bytes, list[Record]] = {}
        for record in Dependencies().run_project(self):
            assert isinstance(record.path, str)
            found.setdefault(record.path.encode(), []).append(record)
        return found


class Older:
    """A `Before`: a tree with what `dependencies` said of it, seen from a newer one."""

    def __init__(self, old: Tree, new: Tree) -> None:
        self._old = old
        then, now = ({file.path: file for file in tree.files} for tree in (old, new))
        paths = sorted(path for path in then.keys() | now.keys() if then.get(path) != now.get(path))
        self.changes = [Change(then.get(path), now.get(path)) for path in paths]
        self.records_of, self.own_records, self.read = old.records_of, old.own_records, old.read


def _update(old: Tree, new: Tree) -> dict[bytes, list[Record]] | None:
    """What `dependencies` comes to that goes on from an older tree; None where it does not."""
    found = Dependencies().update(new, Older(old, new))
    if found is None:
        return None
    every = {**old.said["dependencies"], **{file.path: records for file, records in found}}
    return {path: records for path, records in every.items() if records}


TREE = {
    "app/__init__.py": "",
    "app/base.py": "x = 1\n",
    "app/middle.py": "import os\nfrom .base import x\n",
    "app/top.py": "from app import middle\n",
    "pyproject.toml": "[project]\nname = 'app'\n",
    "web/main.ts": "import { u } from '~/util';\n",
    "web/tsconfig.json": '{"compilerOptions": {"paths": {"~/*": ["./*"]}}}\n',
    "web/util.ts": "export const u = 1;\n",
    "c/a.c": '#include "a.h"\nint f(void) { return 0; }\n',
    "c/a.h": "int f(void);\n",
    "Cargo.toml": "[package]\nname = 'r'\nversion = '1'\n",
    "src/lib.rs": "mod one;\nuse crate::one::f;\n",
    "src/one.rs": "pub fn f() {}\n",
    "read.me": "text\n",
}


@pytest.mark.parametrize(
    ("path", "text", "redone"),
    [
        ("app/base.py", "x = 2\n\n", 0),
        ("read.me", "other\n", 0),
        ("src/one.rs", "pub fn f() { g() }\n", 0),
        ("app/base.py", "import os\n", 1),
        ("app/base.py", "from app import top\n", 3),
        ("app/top.py", "x = 1\n", 2),
        ("src/one.rs", "mod two;\n", None),
        ("web/tsconfig.json", "{}\n", None),
        ("pyproject.toml", "", None),
        ("app/new.py", "", None),
    ],
)
def test_only_what_an_edit_touches_is_told_again(path: str, text: str, redone: int | None, tmp_path: Path) -> None:
    old, new = Tree(TREE, tmp_path), Tree({**TREE, path: text}, tmp_path)
    old.said["dependencies"] = old.run()
    found = Dependencies().update(new, Older(old, new))
    assert (None if found is None else len(list(found))) == redone
    assert _update(old, new) in (None, new.run())


def test_rust_source_that_a_configuration_names_says_nothing_of_imports(tmp_path: Path) -> None:
    paths = '{"compilerOptions": {"paths": {"~/*": ["./*"]}}}'
    tree = {**TREE, "web/tsconfig.json": '{"extends": "./paths.rs"}', "web/paths.rs": paths}
    old, new = Tree(tree, tmp_path), Tree({**tree, "web/paths.rs": "{}"}, tmp_path)
    old.said["dependencies"] = old.run()
    assert _update(old, new) == new.run() == old.run()


_NAMES = sorted(TREE)
_TEXTS = sorted(
    {*TREE.values(), "import app.base\n", "mod one;\nmod two;\n", "from . import top\nimport app.middle\n", ""}
)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(_NAMES), st.one_of(st.none(), st.sampled_from(_TEXTS))), max_size=4))
def test_going_on_comes_to_the_same_as_beginning_anew(edits: list[tuple[str, str | None]]) -> None:
    old = Tree(TREE, Path())
    old.said["dependencies"] = old.run()
    contents = dict(TREE)
    for path, text in edits:
        contents.pop(path, None)
        if text is not None:
            contents[path] = text
        new = Tree(contents, Path())
        whole = new.run()
        updated = _update(old, new)
        assert updated is None or updated == whole
        new.said["dependencies"] = whole if updated is None else updated
        old = new
