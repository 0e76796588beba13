"""The git directory of a work tree, read from its files: what any user can write is not enough."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from codebatch.git.worktrees import common_directory, linked_common_directory

from .conftest import Workbench


def test_work_trees_share_the_git_directory_of_their_repository(bench: Workbench) -> None:
    bench.write("a.py")
    bench.commit()
    bench.git("worktree", "add", "-q", "../linked")
    bench.git("init", "-q", "--separate-git-dir", "../elsewhere", "../separate")
    beside = bench.source.parent
    common = os.path.realpath(bytes(bench.source / ".git"))
    assert common_directory(bytes(bench.source)) == common
    assert common_directory(bytes(beside / "linked")) == linked_common_directory(bytes(beside / "linked")) == common
    assert common_directory(bytes(beside / "separate")) == os.path.realpath(bytes(beside / "elsewhere"))
    assert linked_common_directory(bytes(beside / "separate")) is None
    assert common_directory(bytes(beside)) is None


@pytest.mark.parametrize("pointer", ["gitdir: ../missing\n", "gitdir: ../repository/worktrees/other\n", "x\n", ""])
def test_forged_pointer_to_a_git_directory_is_ignored(tmp_path: Path, pointer: str) -> None:
    """The second one names the directory of another linked work tree."""
    top, other = tmp_path / "top", tmp_path / "repository" / "worktrees" / "other"
    top.mkdir()
    other.mkdir(parents=True)
    (other / "commondir").write_text("../..\n")
    (other / "gitdir").write_text(f"{tmp_path}/other/.git\n")
    (top / ".git").write_text(pointer)
    assert common_directory(bytes(top)) is None
    assert linked_common_directory(bytes(top)) is None
