"""The plan of commits: changes that fit on a tree, and the reasons of those that do not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

from codebatch.git.new_commits import TreeBlob, blob_id
from codebatch.model.change import ListedChange, TreeChange
from codebatch.model.digest import digest_bytes
from codebatch.operations.changes.commit_plan import CommitGroup, CommitPlan, plan_commits
from tests.changes.trees import MemoryContents

OLD, NEW = b"old\n", b"new\n"
TARGETS = (b"a", b"../out", b"d")
CONTENTS = MemoryContents([OLD, NEW, *TARGETS])
TREE = {
    b"a": TreeBlob("100644", blob_id(OLD)),
    b"x.sh": TreeBlob("100755", blob_id(OLD)),
    b"d/e/f": TreeBlob("100644", blob_id(OLD)),
    b"link": TreeBlob("120000", blob_id(b"a")),
    b"sub": TreeBlob("160000", "0" * 40),
}


def edit(path: bytes, before: bytes | None = OLD, after: bytes | None = NEW, **more: object) -> ListedChange:
    change = TreeChange(
        path=path,
        before=None if before is None else digest_bytes(before),
        after=None if after is None else digest_bytes(after),
        **more,  # type: ignore[arg-type]
    )
    return ListedChange(change=change, added=1, removed=1)


def plan_groups(
    groups: Sequence[CommitGroup],
    tree: Mapping[bytes, TreeBlob] = TREE,
    *,
    is_partial: bool = False,
    contents: MemoryContents = CONTENTS,
) -> CommitPlan:
    blobs = {blob_id(content): content for content in contents.contents.values()}
    return plan_commits(
        groups, tree, contents, tree_name="commit 1", read_blob=blobs.__getitem__, is_partial=is_partial
    )


def plan(*changes: ListedChange, is_partial: bool = False, contents: MemoryContents = CONTENTS) -> CommitPlan:
    groups = [CommitGroup(task="t", changes=changes)]
    return plan_groups(groups, is_partial=is_partial, contents=contents)


def refusals(*changes: ListedChange) -> dict[bytes, str]:
    result = plan(*changes)
    assert not result.commits
    return {path: reason for path, _, reason in result.refused}


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (edit(b"a", before=NEW, after=b"a"), "its old content is not the one in commit 1"),
        (edit(b"a", before=None), "it already exists in commit 1"),
        (edit(b"missing"), "it does not exist in commit 1"),
        (edit(b"a/below", before=None), "a is a file in commit 1"),
        (edit(b"link/below", before=None), "link is a symbolic link in commit 1"),
        (edit(b"d", before=None), "it is a directory in commit 1"),
        (edit(b"d/e", before=None), "it is a directory in commit 1"),
        (edit(b"sub/x", before=None), "it is in the submodule sub"),
        (edit(b"sub/x", after=None), "it is in the submodule sub"),
        (edit(b"sub"), "it is a submodule in commit 1"),
        (edit(b"link"), "it is not a regular file in commit 1"),
        (edit(b"a", kind="link"), "it is not a symbolic link in commit 1"),
        (edit(b"new", before=None, after=b"../out", kind="link"), "its target is invalid, or leads out of the tree"),
        (edit(b"link", before=b"a", after=b"../out", kind="link"), "its target is invalid, or leads out of the tree"),
        (edit(b"../a"), "the path leads out of the tree"),
        (edit(b".git/config"), "the path belongs to git or codebatch"),
        (edit(b"a", after=b"unknown"), "its new content, object"),
        (edit(b"a", before=b"unknown"), "its content, object"),
    ],
)
def test_change_that_does_not_fit_is_refused(change: ListedChange, reason: str) -> None:
    (refusal,) = refusals(change).values()
    assert refusal.startswith(reason)
    result = plan(change, edit(b"x.sh"), is_partial=True)
    assert [file.path for commit in result.commits for file in commit.files] == [b"x.sh"]


def test_size_of_a_target_is_checked_before_it_is_read() -> None:
    contents = MemoryContents([], {b"large": 1 << 32})
    change = edit(b"new", before=None, after=b"large", kind="link")
    assert plan(change, contents=contents).refused[0].reason == "its target is invalid, or leads out of the tree"


def test_several_changes_of_one_path_in_a_commit_are_refused() -> None:
    assert refusals(edit(b"a"), edit(b"a")) == {b"a": "the batch has several changes of this file"}


@pytest.mark.parametrize(
    ("change", "mode"),
    [
        (edit(b"a"), "100644"),
        (edit(b"x.sh"), "100755"),
        (edit(b"a", executable=True), "100755"),
        (edit(b"x.sh", was_executable=True), "100644"),
        (edit(b"x.sh", was_executable=True, executable=True), "100755"),
        (edit(b"n", before=None), "100644"),
        (edit(b"n", before=None, executable=True), "100755"),
        (edit(b"n", before=None, after=b"d", kind="link"), "120000"),
        (edit(b"link", before=b"a", after=b"d", kind="link"), "120000"),
        (edit(b"a", after=OLD, executable=True), "100755"),
    ],
)
def test_mode_is_the_one_of_the_tree_unless_the_change_sets_it(change: ListedChange, mode: str) -> None:
    (commit,) = plan(change).commits
    assert [(file.path, file.mode) for file in commit.files] == [(change.change.path, mode)]


def test_directory_takes_the_place_of_a_file_that_is_deleted_and_the_reverse() -> None:
    (commit,) = plan(edit(b"a/b", before=None), edit(b"a", after=None)).commits
    assert [(file.path, file.content is None) for file in commit.files] == [(b"a", True), (b"a/b", False)]
    (commit,) = plan(edit(b"d", before=None), edit(b"d/e/f", after=None)).commits
    assert [file.path for file in commit.files] == [b"d/e/f", b"d"]
    assert refusals(edit(b"n/x", before=None), edit(b"n", before=None)) == {
        b"n": "another change of the batch needs a directory of this name"
    }
    groups = [
        CommitGroup(task="one", changes=(edit(b"n/x", before=None),)),
        CommitGroup(task="two", changes=(edit(b"n", before=None),)),
    ]
    result = plan_groups(groups)
    assert [refused.reason for refused in result.refused] == ["it is a directory in commit 1"]


def test_refused_commit_leaves_no_trace_for_later_ones() -> None:
    groups = [
        CommitGroup(task="one", changes=(edit(b"a"), edit(b"missing"))),
        CommitGroup(task="two", changes=(edit(b"a", after=b"a"),)),
    ]
    result = plan_groups(groups)
    assert [commit.group.task for commit in result.commits] == ["two"]
    assert [group.task for group in result.left_out] == ["one"]


def test_change_that_the_tree_has_already_is_counted() -> None:
    result = plan(edit(b"a", before=NEW, after=OLD), edit(b"gone", after=None), edit(b"x.sh"))
    assert (result.applied, [file.path for commit in result.commits for file in commit.files]) == (2, [b"x.sh"])
    assert [change.change.path for change in result.commits[0].group.changes] == [b"x.sh"]
    assert plan(edit(b"a", before=NEW, after=OLD), edit(b"missing"), is_partial=True).applied == 1
    assert not plan(edit(b"a", before=NEW, after=OLD)).commits
    assert plan(edit(b"a", before=NEW, after=OLD, executable=True)).refused
