"""A store for self-tests, and copies of it to plant faults in."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from codebatch.operations.project.stores import StoreLocator
from codebatch.operations.runs.indexing import build_index
from codebatch.store.batches.resolution import resolve_batch
from tests.selftests.stored import MOODY, Stored
from tests.support.command_line import write
from tests.support.inline_workers import inline, run


@pytest.fixture(scope="module")
def pristine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stored]:
    """The undamaged store. Each test that damages it uses a copy. All commands run in this process."""
    root = tmp_path_factory.mktemp("gates")
    tree = root / "tree"
    write(tree / "a.py", "import os\n\n\ndef a(x):\n    return x\n")
    write(tree / "b.py", "def b(:\n")
    mood = write(root / "mood", "fine")
    write(tree / "tools" / "own.py", MOODY.format(mood=str(mood)))
    write(tree / "codebatch.toml", "[tasks.moody]\npython = 'tools/own.py:task'\n")
    with inline():
        run(tree, root / "store")
        store = StoreLocator(root / "store", start=tree).open()
        build_index(store, resolve_batch(store, None))
        yield Stored(root)


@pytest.fixture
def stored(pristine: Stored, tmp_path: Path) -> Stored:
    """A copy to plant a fault in."""
    shutil.copytree(pristine.root, tmp_path, dirs_exist_ok=True, symlinks=True)
    return Stored(tmp_path)
