"""`apply` and `apply --branch` judge the same changes of the same files alike."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from codebatch.git.new_commits import TreeBlob, blob_id
from codebatch.model.change import ListedChange, ProposedChange, TreeChange
from codebatch.model.digest import digest_bytes
from codebatch.model.nearest_directories import directories_above
from codebatch.operations.changes.apply import apply_writes
from codebatch.operations.changes.commit_plan import CommitGroup, plan_commits
from codebatch.operations.changes.file_writes import plan_write, plan_writes
from codebatch.operations.changes.hidden_files import read_hidden_files
from tests.changes.repositories import make_work_tree
from tests.changes.strategies import PATHS, tree_pairs
from tests.changes.trees import MemoryContents, Tree, TreeFile, UnsyncedCalls, proposed_changes, write_tree


class Case(NamedTuple):
    """A tree, the same tree after changes that fit, and changes that replace some of them."""

    before: Tree
    after: Tree
    others: Sequence[TreeChange]

    @property
    def changes(self) -> list[TreeChange]:
        """All changes, of which many do not fit."""
        replaced = {change.path for change in self.others}
        fitting = [proposed.change for proposed in proposed_changes(self.before, self.after)]
        changes = [*self.others, *(change for change in fitting if change.path not in replaced)]
        # No task can delete a file and another one below it.
        deleted = {change.path for change in changes if change.after is None}
        return [change for change in changes if change.after or not directories_above([change.path]) & deleted]

    @property
    def contents(self) -> MemoryContents:
        """The contents of all files."""
        return MemoryContents([*_CONTENTS, *(file.content for tree in self[:2] for file in tree.values())])


Verdicts = dict[bytes, str]
"""The verdict on the change of each path: `fits`, `done`, or the reason of the refusal."""
OLD, NEW = b"old\n", b"new\n"
_MARKS = (b"d/HEAD", b"d/objects/x", b"d/refs/x", b"d/commondir", b"new/head", b"new/Objects", b"new/refs")


_CONTENTS = (b"", OLD, NEW, b"a.py", b"../a.py")


@st.composite
def changes_of(draw: st.DrawFn, tree: Tree) -> list[TreeChange]:
    """Return changes of files, of which many do not fit on a tree."""
    contents = st.one_of(st.none(), st.sampled_from(_CONTENTS))
    changes = []
    for path in sorted(draw(st.sets(st.one_of(PATHS, st.sampled_from([*_MARKS, *tree])), max_size=6))):
        present = tree.get(path)
        own = None if present is None else present.content
        before, after = draw(st.one_of(st.just(own), contents)), draw(st.one_of(contents, st.just(own)))
        was_executable, executable = draw(st.booleans()), draw(st.booleans())
        if before != after or (before is not None and was_executable != executable):
            changes.append(
                TreeChange(
                    path=path,
                    kind=draw(st.sampled_from(["file", "file", "link"])) if present is None else present.kind,
                    before=None if before is None else digest_bytes(before),
                    after=None if after is None else digest_bytes(after),
                    was_executable=was_executable,
                    executable=executable,
                )
            )
    return changes


@st.composite
def cases(draw: st.DrawFn) -> Case:
    before, after = ({path: with_small_content(file) for path, file in tree.items()} for tree in draw(tree_pairs()))
    return Case(before, after, draw(changes_of(before)))


def with_small_content(file: TreeFile) -> TreeFile:
    return file if file.kind == "link" else file._replace(content=_CONTENTS[len(file.content) % len(_CONTENTS)])


def verdicts_of_apply(root: Path, changes: Sequence[TreeChange], contents: MemoryContents) -> Verdicts:
    """Apply changes to the files below a directory."""
    proposed = [ProposedChange(change=change, task="t", added=0, removed=0) for change in changes]
    outcomes = apply_writes(UnsyncedCalls(), os.fsencode(root), plan_writes(proposed), contents, is_partial=True)
    names = {"written": "fits", "applied": "done"}
    return {outcome.write.path: names.get(outcome.state, outcome.reason) for outcome in outcomes}


def verdicts_of_branch(tree: Tree, changes: Sequence[TreeChange], contents: MemoryContents) -> Verdicts:
    """Plan one commit with changes on a commit that has the files of a tree."""
    modes = {"link": "120000", "file": "100644"}
    blobs = {
        path: TreeBlob("100755" if file.is_executable else modes[file.kind], blob_id(file.content))
        for path, file in tree.items()
    }
    by_id = {blob_id(file.content): file.content for file in tree.values()}
    listed = tuple(ListedChange(change=change, added=0, removed=0) for change in changes)
    plan = plan_commits(
        [CommitGroup(task="t", changes=listed)],
        blobs,
        contents,
        tree_name="commit 1",
        read_blob=by_id.__getitem__,
        is_partial=True,
    )
    verdicts = dict.fromkeys((change.path for change in changes), "done")
    verdicts |= {file.path: "fits" for commit in plan.commits for file in commit.files}
    return verdicts | {path: reason for path, _, reason in plan.refused}


def run_shell(directory: Path, command: str) -> None:
    environment = {**os.environ, "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_NOSYSTEM": "1"}
    subprocess.run(["sh", "-ec", command], cwd=directory, check=True, capture_output=True, env=environment)


def is_refused(verdict: str) -> bool:
    return verdict not in ("fits", "done")


def change(path: bytes, before: bytes | None, after: bytes | None) -> TreeChange:
    return TreeChange(
        path=path,
        before=None if before is None else digest_bytes(before),
        after=None if after is None else digest_bytes(after),
    )


A_TREE: Tree = {b"a": TreeFile(OLD), b"d/b": TreeFile(OLD)}


@given(cases())
@settings(max_examples=300)
@example(Case(A_TREE, A_TREE, [change(b"a/x", OLD, None)]))
@example(Case(A_TREE, A_TREE, [change(b"d", OLD, None)]))
@example(Case(A_TREE, A_TREE, [change(b"n", None, NEW), change(b"n/x", None, NEW)]))
@example(Case(A_TREE, A_TREE, [change(b"a", OLD, NEW), change(b"a/x", None, NEW)]))
@example(Case(A_TREE, A_TREE, [change(b"d", None, NEW), change(b"d/b", NEW, None)]))
def test_apply_and_branch_agree_on_each_change_of_a_committed_tree(case: Case) -> None:
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        (root / ".git").mkdir()
        write_tree(root, case.before)
        applied = verdicts_of_apply(root, case.changes, case.contents)
    planned = verdicts_of_branch(case.before, case.changes, case.contents)
    differences = {
        path: (verdict, planned[path])
        for path, verdict in applied.items()
        if is_refused(verdict) != is_refused(planned[path]) or (not is_refused(verdict) and verdict != planned[path])
    }
    assert not differences


INDEX = "the index of git"
HIDDEN_STATES = {
    "sparse": (INDEX, "git sparse-checkout set --no-cone /a"),
    "sparse cone": (INDEX, "git sparse-checkout set --cone none"),
    "sparse index": (INDEX, "git sparse-checkout set --cone --sparse-index none"),
    "skip-worktree": (INDEX, "git update-index --skip-worktree d/b; rm -r d"),
    "deleted": ("the commit", "rm -r d"),
    "deleted, staged": ("the commit", "git rm -q d/b"),
    "assume-unchanged": ("the commit", "git update-index --assume-unchanged d/b; rm -r d"),
}


def apply_shown(root: Path, commit: str, write: TreeChange, *, is_reversed: bool = False) -> str:
    """Apply a change to a work tree, and return the verdict."""
    writes = [plan_write(write, "t", is_reversed=is_reversed)]
    hidden = read_hidden_files(os.fsencode(root), commit, writes, pytest.fail)
    (outcome,) = apply_writes(UnsyncedCalls(), os.fsencode(root), writes, MemoryContents([OLD, NEW]), hidden)
    return outcome.reason.replace(f"commit {commit[:12]}", "the commit") or outcome.state


@pytest.mark.parametrize(("place", "command"), HIDDEN_STATES.values(), ids=HIDDEN_STATES)
def test_file_of_the_commit_that_the_tree_does_not_show_is_not_replaced(
    tmp_path: Path, place: str, command: str
) -> None:
    commit = make_work_tree(tmp_path, A_TREE)
    run_shell(tmp_path, command)
    assert not (tmp_path / "d").exists()
    expected = {
        b"d/b": f"it already exists in {place}",
        b"d/b/below": f"d/b is a file in {place}",
        b"d": f"it is a directory in {place}",
    }
    creations = [change(path, None, NEW) for path in expected]
    assert {write.path: apply_shown(tmp_path, commit, write) for write in creations} == expected
    planned = verdicts_of_branch(A_TREE, creations[:1], MemoryContents([NEW]))
    assert planned == {b"d/b": "it already exists in commit 1"}
    assert apply_shown(tmp_path, commit, change(b"e/f", None, NEW)) == "written"
    (tmp_path / "d").mkdir()
    assert apply_shown(tmp_path / "d", commit, change(b"b", None, NEW)) == expected[b"d/b"]


@pytest.mark.parametrize(("place", "command"), HIDDEN_STATES.values(), ids=HIDDEN_STATES)
def test_only_a_file_that_git_marks_as_hidden_is_not_taken_for_deleted(
    tmp_path: Path, place: str, command: str
) -> None:
    commit = make_work_tree(tmp_path, A_TREE)
    run_shell(tmp_path, command)
    deletion = change(b"d/b", OLD, None)
    hidden = f"it is in {INDEX}, but not in the work tree"
    assert apply_shown(tmp_path, commit, deletion) == (hidden if place == INDEX else "applied")
    undone = apply_shown(tmp_path, "", deletion, is_reversed=True)
    assert undone == (f"it already exists in {INDEX}" if place == INDEX else "written")


def test_file_that_the_changes_delete_is_not_hidden(tmp_path: Path) -> None:
    commit = make_work_tree(tmp_path, A_TREE)
    changes = [change(b"d/b", OLD, None), change(b"d", None, NEW), change(b"a", OLD, None), change(b"a/x", None, NEW)]
    for state in ("written", "applied"):
        writes = [plan_write(each, "t") for each in changes]
        hidden = read_hidden_files(os.fsencode(tmp_path), commit, writes, pytest.fail)
        outcomes = apply_writes(UnsyncedCalls(), os.fsencode(tmp_path), writes, MemoryContents([OLD, NEW]), hidden)
        assert {outcome.state for outcome in outcomes} == {state}


def test_submodule_that_is_not_checked_out_gets_no_files(tmp_path: Path) -> None:
    commit = make_work_tree(tmp_path, A_TREE)
    run_shell(tmp_path, f"git update-index --add --cacheinfo 160000,{commit},sub && mkdir sub")
    for write in (change(b"sub/x", None, NEW), change(b"sub/x", OLD, None)):
        assert apply_shown(tmp_path, commit, write) == "it is in the submodule sub"
    assert not any((tmp_path / "sub").iterdir())


def test_commit_that_git_cannot_read_is_noted(tmp_path: Path) -> None:
    make_work_tree(tmp_path, A_TREE)
    notes: list[str] = []
    writes = [plan_write(change(b"new", None, NEW), "t")]
    assert read_hidden_files(os.fsencode(tmp_path), "1" * 40, writes, notes.append) is not None
    assert [note.partition(", which")[0] for note in notes] == ["new files are not compared with commit 111111111111"]
    (tmp_path / ".git/index").write_bytes(b"damaged")
    assert read_hidden_files(os.fsencode(tmp_path), "", writes, notes.append) is None
    assert notes[1].startswith("files that git does not check out are not known: ")
    assert read_hidden_files(os.fsencode(tmp_path), "", [plan_write(change(b"a", OLD, NEW), "t")], pytest.fail) is None


def test_link_through_a_link_of_the_commit_stays_in_the_tree() -> None:
    tree = {b"out": TreeFile(b"../..", kind="link"), b"in": TreeFile(b"d", kind="link"), b"d/x": TreeFile(OLD)}
    targets = [b"out/x", b"in/x"]
    changes = [
        msgspec.structs.replace(change(b"new%d" % number, None, target), kind="link")
        for number, target in enumerate(targets)
    ]
    assert verdicts_of_branch(tree, changes, MemoryContents(targets)) == {
        b"new0": "its target leads out of the tree through another link",
        b"new1": "fits",
    }
