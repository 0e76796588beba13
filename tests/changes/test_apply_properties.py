"""Properties of `apply`: its undo, its repetition, and its agreement with the printed patch."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from hypothesis import example, given, settings

from codebatch.operations.changes.patch import file_patch
from tests.changes.strategies import tree_pairs
from tests.changes.trees import (
    Tree,
    TreeFile,
    apply_tree,
    proposed_changes,
    read_tree,
    states,
    tree_contents,
    write_tree,
)

Pair = tuple[dict[bytes, TreeFile], dict[bytes, TreeFile]]


@contextmanager
def tree_directory(tree: Tree) -> Iterator[Path]:
    """Yield a directory with the files of a tree. All directories of the trees exist."""
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        for directory in ("d/e", "f g"):
            (root / directory).mkdir(parents=True)
        write_tree(root, tree)
        yield root


@given(tree_pairs())
@settings(max_examples=60)
def test_apply_makes_the_new_tree_and_reverse_restores_the_old_one(pair: Pair) -> None:
    before, after = pair
    with tree_directory(before) as root:
        outcomes = apply_tree(root, before, after)
        assert {*states(outcomes).values()} <= {"written"}
        assert read_tree(root) == after
        undone = apply_tree(root, before, after, is_reversed=True)
        assert {*states(undone).values()} <= {"written"}
        # A file that was deleted has lost its permissions, except whether it was executable.
        expected = {
            path: file if path in after else TreeFile(file.content, 0o755 if file.is_executable else 0o644)
            for path, file in before.items()
        }
        assert read_tree(root) == expected


@given(tree_pairs())
@settings(max_examples=60)
def test_second_apply_writes_nothing(pair: Pair) -> None:
    before, after = pair
    with tree_directory(before) as root:
        apply_tree(root, before, after)
        inodes = {path: (root / os.fsdecode(path)).stat().st_ino for path in after}
        outcomes = apply_tree(root, before, after)
        assert {*states(outcomes).values()} <= {"applied"}
        assert read_tree(root) == after
        assert {path: (root / os.fsdecode(path)).stat().st_ino for path in after} == inodes


@given(tree_pairs())
@settings(max_examples=60)
@example(({b"e": TreeFile(b"")}, {}))
@example(({}, {b"e": TreeFile(b"", 0o755)}))
@example(({b"a": TreeFile(b"x")}, {b"a": TreeFile(b"x\n")}))
@example(({b"c d": TreeFile(b"1\n2\n3\n4\n5\n6\n7\n8\n9\n")}, {b"c d": TreeFile(b"0\n2\n3\n4\n5\n6\n7\n8\n8")}))
@example(({b"a": TreeFile(b"\0" * 27)}, {b"a": TreeFile(b"\0" + bytes(range(256)))}))
def test_git_applies_the_patch_with_the_same_result(pair: Pair) -> None:
    before, after = pair
    changes = proposed_changes(before, after)
    if not changes:
        return
    contents = tree_contents(before, after)
    patch = b"".join(
        file_patch(
            change.path,
            None if change.before is None else contents.read(change.before),
            None if change.after is None else contents.read(change.after),
            was_executable=change.path in before and before[change.path].is_executable,
            is_executable=change.executable,
        )
        for change in (proposed.change for proposed in changes)
    )
    with tree_directory(before) as root:
        ended = subprocess.run(
            ["git", "apply", "--whitespace=nowarn", "-"],
            cwd=root,
            input=patch,
            capture_output=True,
            check=False,
            env={**os.environ, "GIT_CEILING_DIRECTORIES": str(root.parent), "GIT_CONFIG_GLOBAL": "/dev/null"},
        )
        assert ended.returncode == 0, ended.stderr + patch
        result = {path: (file.content, file.is_executable) for path, file in read_tree(root).items()}
        assert result == {path: (file.content, file.is_executable) for path, file in after.items()}
