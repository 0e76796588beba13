"""Fixtures of tests of parts: a tree of several shards, and its parts."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.inline_workers import inline
from tests.support.parts import NAMES_OF_A_TREE, make_tree, run_part


@pytest.fixture
def inline_runs() -> Iterator[None]:
    """Runs of this process call their workers instead of starting them."""
    with inline():
        yield


@pytest.fixture
def tree(inline_runs: None, tmp_path: Path) -> Path:
    """A tree of several shards, in which one file fails."""
    return make_tree(tmp_path / "tree", [*NAMES_OF_A_TREE, "fail.py"])


@pytest.fixture
def parts(tree: Path, tmp_path: Path) -> list[Path]:
    """All three parts of the tree."""
    (tmp_path / "parts").mkdir()
    return [run_part(tree, f"{number}/3", tmp_path / f"store{number}", tmp_path / "parts") for number in range(1, 4)]
