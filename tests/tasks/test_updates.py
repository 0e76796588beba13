"""Tests of incremental project tasks: an update from an older state of a tree equals a full run."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from codebatch_workers.syntax.source import SourceFile
from codebatch_workers.tasks.dependencies import DependenciesTask
from tests.support.source_files import created, source

from .states import Result, State, older, patched, whole

NOT_UTF_8 = b"app/caf\xe9.py"


def state(contents: Mapping[str, str], *others: SourceFile) -> State:
    """Return the state of a tree. `others` are files that `source` cannot make."""
    every = [source(path, text) for path, text in contents.items()]
    return State([*every, *others], {task: created(task, Path()).run_file for task in ("parse", "symbols")})


def _count_updated_files(before: State, now: State) -> int | None:
    """Return the number of files whose `dependencies` change, or None if the task starts over.

    The update is compared with a full run.
    """
    result = whole(before, DependenciesTask)
    after = patched(result, before, now, DependenciesTask)
    assert after is None or after == whole(now, DependenciesTask)
    update = DependenciesTask().update(now, older(before, now))
    return None if update is None else len(list(update))


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
    "kt/One.kt": "package p\n\nclass One\n",
    "kt/Two.kt": "package q\n\nimport p.One\n\nclass Two\n",
}


@pytest.mark.parametrize(
    ("path", "text", "redone"),
    [
        ("app/base.py", "x = 2\n\n", 0),
        ("read.me", "other\n", 0),
        ("src/one.rs", "pub fn f() { g() }\n", 0),
        ("src/one.rs", "pub fn g() {}\n", 0),
        ("src/one.rs", "macro_rules! f { () => {} }\n", None),
        ("app/base.py", "import os\n", 1),
        ("app/base.py", "from app import top\n", 3),
        ("app/top.py", "x = 1\n", 2),
        ("src/one.rs", "mod two;\n", None),
        ("kt/One.kt", "package p\n\nclass One {\n    val x = 1\n}\n", 0),
        ("kt/One.kt", "package p\n\nclass Other\n", None),
        ("kt/One.kt", "package q\n\nclass One\n", None),
        ("web/tsconfig.json", "{}\n", None),
        ("pyproject.toml", "", None),
        ("app/new.py", "", None),
    ],
)
def test_edit_updates_only_affected_files(path: str, text: str, redone: int | None) -> None:
    assert _count_updated_files(state(TREE), state({**TREE, path: text})) == redone


@pytest.mark.parametrize(
    ("executable", "attributes", "redone"),
    [(True, b"", 0), (False, b"generated", 0), (False, b"language=Ruby", None)],
    ids=["executable", "generated", "language"],
)
def test_mode_or_context_change_alone_is_a_changed_file(
    executable: bool, attributes: bytes, redone: int | None
) -> None:
    unchanged = {path: text for path, text in TREE.items() if path != "app/middle.py"}
    content = TREE["app/middle.py"].encode()
    middle = SourceFile(b"app/middle.py", content, executable=executable, contexts={"attributes": attributes})
    before, now = state(TREE), state(unchanged, middle)
    assert len(older(before, now).changes) == 1
    assert _count_updated_files(before, now) == redone


@pytest.mark.parametrize(("text", "redone"), [(TREE["app/base.py"], 0), ("import os\n", 1)])
def test_file_with_a_non_utf8_name_has_no_dependencies(text: str, redone: int) -> None:
    before = state(TREE, source(NOT_UTF_8, "import os\n"))
    assert (
        _count_updated_files(before, state({**TREE, "app/base.py": text}, source(NOT_UTF_8, "import app.base\n")))
        == redone
    )


def test_rust_file_named_by_a_configuration_affects_no_imports() -> None:
    paths = '{"compilerOptions": {"paths": {"~/*": ["./*"]}}}'
    tree = {**TREE, "web/tsconfig.json": '{"extends": "./paths.rs"}', "web/paths.rs": paths}
    before, now = state(tree), state({**tree, "web/paths.rs": "{}"})
    result = whole(before, DependenciesTask)
    assert patched(result, before, now, DependenciesTask) == whole(now, DependenciesTask) == result


_NAMES = sorted(TREE)
_TEXTS = sorted(
    {*TREE.values(), "import app.base\n", "mod one;\nmod two;\n", "from . import top\nimport app.middle\n", ""}
)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(_NAMES), st.one_of(st.none(), st.sampled_from(_TEXTS))), max_size=4))
def test_incremental_update_matches_a_full_run(edits: list[tuple[str, str | None]]) -> None:
    before = state(TREE)
    result: Result = whole(before, DependenciesTask)
    contents = dict(TREE)
    for path, text in edits:
        contents.pop(path, None)
        if text is not None:
            contents[path] = text
        now = state(contents)
        expected = whole(now, DependenciesTask)
        assert patched(result, before, now, DependenciesTask) in (None, expected)
        before, result = now, expected
