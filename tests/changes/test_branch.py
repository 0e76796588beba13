"""Branches of changes, made with real git: their trees and messages, and what they leave as it is."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pytest
from hypothesis import example, given, settings

from codebatch.errors import InvalidInput, StoreUnwritable
from codebatch.git.ancestry import Repository
from codebatch.git.new_commits import CommitFile, NewCommit, blob_id, read_identities, write_commits
from codebatch.git.repository import GitError, find_git
from codebatch.model.change import encode_change_set
from codebatch.model.digest import Digest, digest_bytes
from tests.changes.repositories import (
    PLAN,
    branch_from,
    commit_all,
    commit_tree,
    git_files,
    group,
    make_work_tree,
    user_state,
)
from tests.changes.strategies import tree_pairs
from tests.changes.trees import MemoryContents, TreeFile, apply_tree, read_tree, tree_contents, write_tree
from tests.support.git_repositories import git

BEFORE = {b"a": TreeFile(b"a\n"), b"d/b": TreeFile(b"b\n", 0o755), b"d/c": TreeFile(b"c\n")}
AFTER = {b"a": TreeFile(b"A\n"), b"d/b": TreeFile(b"B\n", 0o755), b"d/new": TreeFile(b"N\n")}
CONTENTS = tree_contents(BEFORE, AFTER)
CHANGE = group("rename", BEFORE, AFTER)


@given(tree_pairs())
@settings(max_examples=25)
@example(({b"a": TreeFile(b"x")}, {b"a/b": TreeFile(b"y")}))
@example(({b"a/b": TreeFile(b"y"), b"a/c": TreeFile(b"y")}, {b"a": TreeFile(b"x", kind="link")}))
@example(({b"d/e/b": TreeFile(b"y")}, {}))
@example(({b"a": TreeFile(b"x")}, {b"a": TreeFile(b"x", 0o755)}))
def test_tree_of_the_branch_is_the_applied_tree_and_nothing_of_the_user_changes(
    pair: tuple[dict[bytes, TreeFile], dict[bytes, TreeFile]],
) -> None:
    before, after = pair
    contents = tree_contents(before, after)
    with tempfile.TemporaryDirectory() as name:
        root = Path(name) / "root"
        commit = make_work_tree(root, before)
        seen = user_state(root)
        made = branch_from(root, commit, [group("rename", before, after)], contents)
        assert not made.refused
        assert made.is_created == (git_files(before) != git_files(after))
        assert user_state(root, without="new") == seen
        if made.is_created:
            assert git_files(commit_tree(root, "new")) == git_files(after)
            assert git(root, "rev-parse", "new^") == commit
            assert git(root, "fsck", "--strict", "--no-dangling") == ""
        outcomes = apply_tree(root, before, after)
        if {outcome.state for outcome in outcomes} <= {"written"}:
            applied = {path: file for path, file in read_tree(root).items() if not path.startswith(b".git/")}
            assert git_files(applied) == git_files(after)


def test_message_names_the_task_and_has_trailers(tmp_path: Path) -> None:
    commit = make_work_tree(tmp_path / "r", BEFORE)
    (made,) = branch_from(tmp_path / "r", commit, [CHANGE], CONTENTS).commits
    digest = digest_bytes(encode_change_set(CHANGE.changes))
    message = git(tmp_path / "r", "log", "-1", "--format=%an <%ae> %cn <%ce>%n%B", "new")
    assert message.splitlines() == [
        "n <n@n> n <n@n>",
        "rename: Change 4 files",
        "",
        f"Codebatch-Plan: {PLAN}",
        f"Codebatch-Change: {digest}",
    ]
    assert (made.subject, made.files) == ("rename: Change 4 files", 4)
    assert made.id == git(tmp_path / "r", "rev-parse", "new")


@pytest.mark.parametrize(
    ("title", "subject", "trailers"),
    [
        ("Rename it", "Rename it", 2),
        ("Rename it\n\nBecause: of that\nit is so\n", "Rename it", 2),
        ("Rename it\n\nWhy.\n\nSigned-off-by: n <n@n>", "Rename it", 3),
        ("fix: Rename it", "fix: Rename it", 2),
        ("Caf\xe9 \U0001f600", "Caf\xe9 \U0001f600", 2),
    ],
)
def test_title_is_the_message_and_keeps_its_trailers(tmp_path: Path, title: str, subject: str, trailers: int) -> None:
    commit = make_work_tree(tmp_path / "r", BEFORE)
    branch_from(tmp_path / "r", commit, [group("t", BEFORE, AFTER, title=title)], CONTENTS)
    assert git(tmp_path / "r", "log", "-1", "--format=%s", "new") == subject
    assert len(git(tmp_path / "r", "log", "-1", "--format=%(trailers)", "new").splitlines()) == trailers


def test_commits_follow_each_other_in_the_order_of_the_groups(tmp_path: Path) -> None:
    """A later task changes what an earlier one made: `before` is the content after the earlier commit."""
    middle = {**BEFORE, b"a": TreeFile(b"M\n"), b"d/new": TreeFile(b"N\n"), b"e/x": TreeFile(b"M\n")}
    commit = make_work_tree(tmp_path / "r", BEFORE)
    contents = tree_contents(BEFORE, middle, AFTER)
    groups = [group("one", BEFORE, middle), group("two", middle, AFTER, needs=["one"])]
    made = branch_from(tmp_path / "r", commit, groups, contents)
    assert [each.task for each in made.commits] == ["one", "two"]
    assert git_files(commit_tree(tmp_path / "r", "new^")) == git_files(middle)
    assert git_files(commit_tree(tmp_path / "r", "new")) == git_files(AFTER)
    assert git(tmp_path / "r", "rev-parse", "new~2") == commit


def test_task_that_conflicts_is_left_out_with_those_that_need_it(tmp_path: Path) -> None:
    one, two = {**BEFORE, b"a": TreeFile(b"1\n")}, {**BEFORE, b"a": TreeFile(b"2\n"), b"d/c": TreeFile(b"2\n")}
    three, four = {**BEFORE, b"d/b": TreeFile(b"3\n", 0o755)}, {**BEFORE, b"d/c": TreeFile(b"4\n")}
    commit = make_work_tree(tmp_path / "r", BEFORE)
    groups = [
        group("one", BEFORE, one),
        group("two", BEFORE, two),
        group("three", BEFORE, three, needs=["two"]),
        group("last", BEFORE, {**BEFORE, b"x": TreeFile(b"1\n")}, needs=["three"]),
        group("four", BEFORE, four),
    ]
    contents = tree_contents(BEFORE, one, two, three, four)
    made = branch_from(tmp_path / "r", commit, groups, contents, on_refusal="leave_out_commits")
    assert [each.task for each in made.commits] == ["one", "four"]
    assert made.left_out == ("two", "three", "last")
    assert made.refused == ((b"a", "two", "another task changes it"),)
    assert git_files(commit_tree(tmp_path / "r", "new")) == git_files({**one, b"d/c": TreeFile(b"4\n")})
    stopped = branch_from(tmp_path / "r", commit, groups, contents, name="other")
    assert not stopped.is_created
    partial = branch_from(tmp_path / "r", commit, groups, contents, name="part", on_refusal="leave_out_files")
    assert [each.task for each in partial.commits] == ["one", "two", "three", "last"]
    assert partial.left_out == ()


def test_change_that_the_commit_has_already_makes_no_commit(tmp_path: Path) -> None:
    commit = make_work_tree(tmp_path / "r", AFTER)
    made = branch_from(tmp_path / "r", commit, [CHANGE], CONTENTS)
    assert (made.applied, made.commits, made.is_created) == (4, (), False)
    assert git(tmp_path / "r", "branch", "--format=%(refname:short)") == "main"
    mixed = {**AFTER, b"a": BEFORE[b"a"]}
    write_tree(tmp_path / "r", mixed)
    commit = commit_all(tmp_path / "r")
    made = branch_from(tmp_path / "r", commit, [CHANGE], CONTENTS)
    assert (made.applied, [each.subject for each in made.commits]) == (3, ["rename: Change a"])


def test_file_of_git_lfs_and_converted_line_endings_are_named(tmp_path: Path) -> None:
    old = {b"lfs": b"large\n", b"crlf": b"a\r\nb\r\n", b"other": b"mine\n"}
    pointer = f"version https://git-lfs.github.com/spec/v1\noid sha256:{digest_bytes(old[b'lfs'])}\nsize 6\n"
    stored = {
        b"lfs": TreeFile(pointer.encode()),
        b"crlf": TreeFile(b"a\nb\n"),
        b"other": TreeFile(b"theirs\n"),
    }
    commit = make_work_tree(tmp_path / "r", stored)
    before = {path: TreeFile(content) for path, content in old.items()} | {b"missing": TreeFile(b"x\n")}
    after = {path: TreeFile(b"new\n") for path in before}
    made = branch_from(tmp_path / "r", commit, [group("t", before, after)], tree_contents(before, after))
    assert {path: reason for path, _, reason in made.refused} == {
        b"lfs": "it is stored with Git LFS",
        b"crlf": "git converts its line endings (core.autocrlf or .gitattributes)",
        b"other": f"its old content is not the one in commit {commit[:12]}: "
        "it was not committed, or a filter of git converts it",
        b"missing": f"it does not exist in commit {commit[:12]}",
    }
    assert not made.is_created


def test_subdirectory_of_a_repository_is_the_root_of_the_paths(tmp_path: Path) -> None:
    inner = {b"top": TreeFile(b"t\n"), **{b"sub dir/" + path: file for path, file in BEFORE.items()}}
    commit = make_work_tree(tmp_path / "r", inner)
    branch_from(tmp_path / "r/sub dir", commit, [CHANGE], CONTENTS)
    expected = {b"top": TreeFile(b"t\n"), **{b"sub dir/" + path: file for path, file in AFTER.items()}}
    assert git_files(commit_tree(tmp_path / "r", "new")) == git_files(expected)


def test_linked_work_tree_detached_head_shallow_clone_and_sha256_work(tmp_path: Path) -> None:
    commit = make_work_tree(tmp_path / "r", BEFORE)
    git(tmp_path / "r", "commit", "-q", "--allow-empty", "-m", "later")
    later = git(tmp_path / "r", "rev-parse", "HEAD")
    git(tmp_path / "r", "checkout", "-q", "--detach", commit)
    assert branch_from(tmp_path / "r", commit, [CHANGE], CONTENTS, name="one").parent_name == commit[:12]
    git(tmp_path / "r", "worktree", "add", "-q", str(tmp_path / "linked"), "main")
    assert branch_from(tmp_path / "linked", later, [CHANGE], CONTENTS, name="two").parent_name == "main"
    git(tmp_path, "clone", "-q", "--depth=1", "-b", "main", f"file://{tmp_path / 'r'}", "shallow")
    for name, value in (("user.name", "n"), ("user.email", "n@n")):
        git(tmp_path / "shallow", "config", name, value)
    made = branch_from(tmp_path / "shallow", later, [CHANGE], CONTENTS)
    assert made.remote == "origin"
    assert git_files(commit_tree(tmp_path / "shallow", "new")) == git_files(AFTER)
    with pytest.raises(InvalidInput, match=f"cannot read commit {commit[:12]}"):
        branch_from(tmp_path / "shallow", commit, [CHANGE], CONTENTS, name="other")
    commit = make_work_tree(tmp_path / "long", BEFORE, "--object-format=sha256")
    branch_from(tmp_path / "long", commit, [CHANGE], CONTENTS)
    assert git_files(commit_tree(tmp_path / "long", "new")) == git_files(AFTER)


def test_bare_repository_and_no_repository_are_errors(tmp_path: Path) -> None:
    commit = make_work_tree(tmp_path / "r", BEFORE)
    git(tmp_path, "clone", "-q", "--bare", str(tmp_path / "r"), "bare")
    with pytest.raises(InvalidInput, match=r"cannot use .*bare as a git repository"):
        branch_from(tmp_path / "bare", commit, [CHANGE], CONTENTS)
    (tmp_path / "plain").mkdir()
    with pytest.raises(InvalidInput, match="not a git repository"):
        branch_from(tmp_path / "plain", commit, [CHANGE], CONTENTS)


@pytest.mark.parametrize("name", ["-x", "a..b", "a b", "", "@{-1}", "a.lock", "a/", "HEAD", "a~1", "a\nb", "\udcff"])
def test_name_that_git_refuses_is_an_error(tmp_path: Path, name: str) -> None:
    commit = make_work_tree(tmp_path / "r", BEFORE)
    git(tmp_path / "r", "checkout", "-q", "-b", "other")  # `@{-1}` is `main` now.
    seen = user_state(tmp_path / "r")
    with pytest.raises(InvalidInput, match="cannot be the name of a branch"):
        branch_from(tmp_path / "r", commit, [CHANGE], CONTENTS, name=name)
    assert user_state(tmp_path / "r") == seen


@pytest.mark.parametrize(("name", "text"), [("main", "exists"), ("main/x", "exists"), ("a", "exists")])
def test_branch_that_exists_is_an_error_and_stays(tmp_path: Path, name: str, text: str) -> None:
    commit = make_work_tree(tmp_path / "r", BEFORE)
    git(tmp_path / "r", "branch", "a/b")
    seen = user_state(tmp_path / "r")
    with pytest.raises(InvalidInput, match=text):
        branch_from(tmp_path / "r", commit, [CHANGE], CONTENTS, name=name)
    assert user_state(tmp_path / "r") == seen


def test_branch_without_commit_that_is_checked_out_is_not_created(tmp_path: Path) -> None:
    commit = make_work_tree(tmp_path / "r", BEFORE)
    git(tmp_path / "r", "checkout", "-q", "--orphan", "new")
    with pytest.raises(InvalidInput, match="branch new has no commit, and is checked out"):
        branch_from(tmp_path / "r", commit, [CHANGE], CONTENTS)


class RacingContents(MemoryContents):
    """Contents whose first reading lets another process create the branch."""

    def __init__(self, root: Path, contents: MemoryContents) -> None:
        super().__init__([*contents.contents.values()])
        self._root = root

    def read(self, digest: Digest) -> bytes:
        if not git(self._root, "branch", "--list", "new"):
            git(self._root, "branch", "new")
        return super().read(digest)


def test_branch_that_appears_meanwhile_is_not_moved(tmp_path: Path) -> None:
    """The new commit is a descendant of the branch, so git would move it without complaint."""
    commit = make_work_tree(tmp_path / "r", BEFORE)
    with pytest.raises(InvalidInput, match="branch new exists"):
        branch_from(tmp_path / "r", commit, [CHANGE], RacingContents(tmp_path / "r", CONTENTS))
    assert git(tmp_path / "r", "rev-parse", "new") == commit


def test_locked_reference_and_unwritable_repository_are_errors(tmp_path: Path) -> None:
    root = tmp_path / "r"
    commit = make_work_tree(root, BEFORE)
    (root / ".git/refs/heads/new.lock").write_bytes(b"")
    with pytest.raises(StoreUnwritable, match="cannot create branch new: cannot lock ref") as raised:
        branch_from(root, commit, [CHANGE], CONTENTS)
    assert "run the same command again" in (raised.value.hint or "")
    (root / ".git/refs/heads/new.lock").unlink()
    (root / ".git/objects/pack").rmdir()
    (root / ".git/objects/pack").write_bytes(b"")
    seen = user_state(root)
    with pytest.raises(StoreUnwritable, match="cannot create branch new"):
        branch_from(root, commit, [CHANGE], CONTENTS)
    assert user_state(root) == seen
    assert not list((root / ".git").glob("fast_import_crash*"))
    (root / ".git/objects/pack").unlink()
    assert branch_from(root, commit, [CHANGE], CONTENTS).is_created


def test_full_disk_of_temporary_files_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    commit = make_work_tree(tmp_path / "r", BEFORE)
    if not os.access("/dev/full", os.W_OK):
        pytest.skip("this system has no /dev/full")
    monkeypatch.setattr(tempfile, "TemporaryFile", lambda: Path("/dev/full").open("r+b", buffering=0))  # noqa: SIM115
    with pytest.raises(StoreUnwritable, match="cannot write a temporary file: No space left on device"):
        branch_from(tmp_path / "r", commit, [CHANGE], CONTENTS)
    assert git(tmp_path / "r", "branch", "--format=%(refname:short)") == "main"


def test_submodules_and_their_files_are_refused(tmp_path: Path) -> None:
    make_work_tree(tmp_path / "lib", BEFORE)
    commit = make_work_tree(tmp_path / "r", BEFORE)
    git(tmp_path / "r", "-c", "protocol.file.allow=always", "submodule", "add", "-q", str(tmp_path / "lib"), "sub")
    commit = commit_all(tmp_path / "r")
    before = {b"sub/a": TreeFile(b"a\n"), b"sub": TreeFile(b"x")}
    after = {b"sub/a": TreeFile(b"A\n"), b"sub/n": TreeFile(b"N\n"), b"sub": TreeFile(b"y")}
    made = branch_from(tmp_path / "r", commit, [group("t", before, after)], tree_contents(before, after))
    assert [(path, reason) for path, _, reason in made.refused] == [
        (b"sub", f"it is a submodule in commit {commit[:12]}"),
        (b"sub/a", "it is in the submodule sub"),
        (b"sub/n", "it is in the submodule sub"),
    ]


def test_trailer_covers_exactly_the_changes_of_the_commit(tmp_path: Path) -> None:
    """With a refused file, the digest is the one of the others."""
    commit = make_work_tree(tmp_path / "r", {**BEFORE, b"a": TreeFile(b"theirs\n")})
    branch_from(tmp_path / "r", commit, [CHANGE], CONTENTS, on_refusal="leave_out_files")
    kept = [change for change in CHANGE.changes if change.change.path != b"a"]
    expected = digest_bytes(encode_change_set(kept))
    trailer = git(tmp_path / "r", "log", "-1", "--format=%(trailers:key=Codebatch-Change,valueonly)", "new")
    assert trailer == expected


def test_failure_of_git_leaves_no_report_in_the_repository(tmp_path: Path) -> None:
    """git fast-import writes one if the parent is missing, among other causes."""
    make_work_tree(tmp_path / "r", BEFORE)
    program = find_git()
    assert program is not None
    repository = Repository(program, os.fsencode(tmp_path / "r"))
    seen = sorted(os.listdir(tmp_path / "r/.git"))
    commits = [NewCommit(b"m", [CommitFile(b"a", "100644", b"A")])]
    with pytest.raises(GitError):
        write_commits(repository, "1" * 40, commits, read_identities(repository))
    assert sorted(os.listdir(tmp_path / "r/.git")) == seen


def test_parent_is_named_by_its_branch_only_while_it_is_the_newest_commit(tmp_path: Path) -> None:
    commit = make_work_tree(tmp_path / "r", BEFORE)
    assert branch_from(tmp_path / "r", commit, [CHANGE], CONTENTS, name="one").parent_name == "main"
    git(tmp_path / "r", "commit", "-q", "--allow-empty", "-m", "later")
    assert branch_from(tmp_path / "r", commit, [CHANGE], CONTENTS, name="two").parent_name == commit[:12]


def test_replaced_objects_do_not_count(tmp_path: Path) -> None:
    """The checked tree and the one of the new commit are those of the real parent."""
    commit = make_work_tree(tmp_path / "r", BEFORE)
    write_tree(tmp_path / "r", {b"a": TreeFile(b"theirs\n")})
    git(tmp_path / "r", "replace", commit, commit_all(tmp_path / "r"))
    assert branch_from(tmp_path / "r", commit, [CHANGE], CONTENTS).is_created
    listing = git(tmp_path / "r", "--no-replace-objects", "ls-tree", "-r", "new")
    assert blob_id(b"A\n") in listing
