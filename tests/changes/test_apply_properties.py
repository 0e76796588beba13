"""Properties of `apply`: its undo, its repetition, and its agreement with the printed patch."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from hypothesis import example, given, settings

from codebatch.model.nearest_directories import directories_above
from codebatch.operations.changes.patch import file_patch
from tests.changes.strategies import tree_pairs
from tests.changes.trees import (
    Tree,
    TreeFile,
    apply_tree,
    proposed_changes,
    read_directories,
    read_tree,
    states,
    tree_contents,
    write_tree,
)

Pair = tuple[dict[bytes, TreeFile], dict[bytes, TreeFile]]
FILE_TO_DIRECTORY: Pair = (
    {b"d/x": TreeFile(b"x\n"), b"z": TreeFile(b"z\n")},
    {b"d/x/y/1": TreeFile(b"1\n"), b"d/x/2": TreeFile(b"2\n"), b"z/z": TreeFile(b"z\n")},
)
LINK_TO_DIRECTORY: Pair = ({b"d/x": TreeFile(b"..", kind="link")}, {b"d/x/y": TreeFile(b"../..", kind="link")})


@contextmanager
def tree_directory(tree: Tree) -> Iterator[Path]:
    """Yield a directory with the files of a tree, and a directory that is empty."""
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        (root / "empty").mkdir()
        write_tree(root, tree)
        yield root


def git_files(tree: Tree) -> dict[bytes, tuple[bytes, bool, str]]:
    """Return the parts of files that git keeps."""
    return {path: (file.content, file.is_executable, file.kind) for path, file in tree.items()}


def check_directories(root: Path, tree: Tree) -> None:
    """Check that there are no directories except those of the files, and the empty one."""
    assert read_directories(root) == directories_above(tree) | {b"empty"}


@given(tree_pairs())
@settings(max_examples=60)
@example(FILE_TO_DIRECTORY)
@example(FILE_TO_DIRECTORY[::-1])
@example(LINK_TO_DIRECTORY)
@example(LINK_TO_DIRECTORY[::-1])
def test_apply_makes_the_new_tree_and_reverse_restores_the_old_one(pair: Pair) -> None:
    before, after = pair
    with tree_directory(before) as root:
        outcomes = apply_tree(root, before, after)
        assert {*states(outcomes).values()} <= {"written"}
        assert read_tree(root) == after
        check_directories(root, after)
        undone = apply_tree(root, before, after, is_reversed=True)
        assert {*states(undone).values()} <= {"written"}
        # A file that was deleted has lost its permissions, except whether it was executable.
        expected = {
            path: file
            if path in after or file.kind == "link"
            else TreeFile(file.content, 0o755 if file.is_executable else 0o644)
            for path, file in before.items()
        }
        assert read_tree(root) == expected
        check_directories(root, before)


@given(tree_pairs())
@settings(max_examples=60)
@example(FILE_TO_DIRECTORY)
@example(FILE_TO_DIRECTORY[::-1])
@example(LINK_TO_DIRECTORY)
@example(LINK_TO_DIRECTORY[::-1])
def test_second_apply_writes_nothing(pair: Pair) -> None:
    before, after = pair
    with tree_directory(before) as root:
        apply_tree(root, before, after)
        inodes = {path: (root / os.fsdecode(path)).lstat().st_ino for path in after}
        outcomes = apply_tree(root, before, after)
        assert {*states(outcomes).values()} <= {"applied"}
        assert read_tree(root) == after
        assert {path: (root / os.fsdecode(path)).lstat().st_ino for path in after} == inodes


@given(tree_pairs())
@settings(max_examples=60)
@example(FILE_TO_DIRECTORY)
@example(FILE_TO_DIRECTORY[::-1])
@example(LINK_TO_DIRECTORY[::-1])
@example(({b"e": TreeFile(b"")}, {}))
@example(({}, {b"e": TreeFile(b"", 0o755)}))
@example(({b"a": TreeFile(b"x")}, {b"a": TreeFile(b"x\n")}))
@example(({b"c d": TreeFile(b"1\n2\n3\n4\n5\n6\n7\n8\n9\n")}, {b"c d": TreeFile(b"0\n2\n3\n4\n5\n6\n7\n8\n8")}))
@example(({b"d/a": TreeFile(b"x", kind="link")}, {b"d/a": TreeFile(b"../y", kind="link")}))
@example(({b"a": TreeFile(b"\0" * 27)}, {b"a": TreeFile(b"\0" + bytes(range(256)))}))
def test_git_applies_the_patch_with_the_same_result(pair: Pair) -> None:
    before, after = pair
    changes = proposed_changes(before, after)
    if not changes or any(before[path].kind == "link" for path in before.keys() & directories_above(after)):
        return  # git follows a link that the patch replaces by a directory.
    contents = tree_contents(before, after)
    patch = b"".join(
        file_patch(
            change.path,
            None if change.before is None else contents.read(change.before),
            None if change.after is None else contents.read(change.after),
            was_executable=change.path in before and before[change.path].is_executable,
            is_executable=change.executable,
            is_link=change.kind == "link",
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
        assert git_files(read_tree(root)) == git_files(after)
        check_directories(root, after)
