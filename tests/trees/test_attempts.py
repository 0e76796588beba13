"""Attempts in trees of their own: what the command finds there, and the change set that it leaves."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from codebatch.model.work.command import Command, CommandId
from codebatch.model.work.trees import TreeInput
from tests.support.git_repositories import git
from tests.support.work_batches import coordinating, make_place, wait_until
from tests.trees.places import Kind, TreePlace, attempt, commit_all, isolated, make_tree_place, write_files

KINDS = pytest.mark.parametrize("kind", ["worktree", "copy"])
EDIT = """
sed -i s/3/three/ a; rm sub/b; printf 'new\\n' > sub/new; printf x > ignored.o; chmod +x sub/deep/c; ln -s a link
"""


def run(directory: Path, text: str, *, kind: Kind = "worktree") -> tuple[TreePlace, str]:
    """Run an isolated command in a new project. Return its place and its log."""
    place = make_tree_place(directory, isolated(text, kind=kind))
    with coordinating(place.place) as coordinator:
        attempt(coordinator)
    return place, place.place.log().decode()


@KINDS
def test_changes_are_recorded_and_the_project_stays_unchanged(tmp_path: Path, kind: Kind) -> None:
    place = make_tree_place(tmp_path, isolated(EDIT, kind=kind))
    before = sorted((path, path.read_bytes()) for path in place.root.rglob("*") if path.is_file())
    with coordinating(place.place) as coordinator:
        outcome = attempt(coordinator)
        wait_until(lambda: not place.names())
    assert outcome.type == "result", place.place.log()
    assert place.contents(outcome) == {
        "a": b"1\n2\nthree\n4\n5\n", "link": b"a", "sub/b": None, "sub/deep/c": b"c\n", "sub/new": b"new\n",
    }  # fmt: skip
    listed = {each.change.path: each for each in place.changes(outcome)}
    assert (listed[b"a"].added, listed[b"a"].removed) == (1, 1)
    assert (listed[b"sub/b"].added, listed[b"sub/b"].removed) == (0, 1)
    assert (listed[b"sub/new"].added, listed[b"sub/new"].removed) == (1, 0)
    assert (listed[b"sub/deep/c"].added, listed[b"sub/deep/c"].removed) == (0, 0)
    assert (listed[b"sub/deep/c"].change.was_executable, listed[b"sub/deep/c"].change.executable) == (False, True)
    assert listed[b"link"].change.kind == "link"
    assert sorted((path, path.read_bytes()) for path in place.root.rglob("*") if path.is_file()) == before
    if kind == "worktree":
        assert place.registered() == []


@KINDS
def test_second_tree_has_the_files_of_the_first(tmp_path: Path, kind: Kind) -> None:
    """The contents of the first tree are known to later ones, in the same worker and in others."""
    place = make_tree_place(tmp_path, *(isolated("cat a sub/b sub/deep/c; echo >> a", id_, kind=kind) for id_ in "abc"))
    expected = {"a": b"1\n2\n3\n4\n5\n\n"}
    with coordinating(place.place) as coordinator:
        assert [place.contents(attempt(coordinator, item)) for item in (0, 1)] == [expected, expected]
    with coordinating(place.place) as coordinator:
        assert place.contents(attempt(coordinator, 2)) == expected
    assert {place.place.log(item) for item in range(3)} == {b"1\n2\n3\n4\n5\nb\nc\n"}


@KINDS
def test_places_of_a_command_are_in_its_tree(tmp_path: Path, kind: Kind) -> None:
    (tmp_path / "root").mkdir()
    command = isolated(
        'pwd; echo "$PWD $CODEBATCH_TREE"; cat; echo "$@"',
        kind=kind, cwd="sub", stdin="file:sub/b", files=("sub/b", "a"), check='echo "check in $(pwd)"',
    )  # fmt: skip
    place = make_tree_place(tmp_path, command)
    with coordinating(place.place) as coordinator:
        assert attempt(coordinator).type == "result"
    tree = place.trees.directory / "a.r1"
    assert place.place.log().decode() == f"{tree}/sub\n{tree}/sub {tree}\nb\nsub/b a\ncheck in {tree}/sub\n"
    assert tree.parent.stat().st_mode & 0o777 == tree.parent.parent.stat().st_mode & 0o777 == 0o700


def test_root_in_a_subdirectory_of_the_repository(tmp_path: Path) -> None:
    place = make_tree_place(tmp_path, isolated("pwd; cat ../a; echo new > b; echo x > ../a"), subdirectory="sub")
    with coordinating(place.place) as coordinator:
        outcome = attempt(coordinator)
    tree = place.trees.directory / "a.r1"
    assert place.place.log().decode().splitlines()[:2] == [f"{tree}/sub", "1"]
    assert place.contents(outcome) == {"a": b"x\n", "sub/b": b"new\n"}


def test_ignore_files_above_the_root_apply_to_a_copy(tmp_path: Path) -> None:
    write_files(tmp_path / "root", {"c": b""})
    git(tmp_path / "root", "init", "-q")
    place = make_tree_place(
        tmp_path,
        isolated("echo x > x.o; mkdir built; echo y > built/y; echo new > new", kind="copy"),
        files={".gitignore": b"*.o\n/sub/built/\n", "sub/b": b"1\n"},
        subdirectory="sub",
    )
    with coordinating(place.place) as coordinator:
        assert place.contents(attempt(coordinator)) == {"new": b"new\n"}


def test_no_variable_leads_git_to_the_repository_of_the_caller(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    other = tmp_path / "other"
    write_files(other, {"other": b""})
    git(other, "init", "-q")
    commit_all(other)
    for name, value in {"GIT_DIR": ".git", "GIT_WORK_TREE": ".", "GIT_INDEX_FILE": ".git/index"}.items():
        monkeypatch.setenv(name, str(other / value))
    monkeypatch.setenv("GIT_AUTHOR_NAME", "me")
    text = 'git rev-parse --show-toplevel; git ls-files; echo "$GIT_AUTHOR_NAME"; echo 7 > a; git add -A'
    place, log = run(tmp_path, text)
    assert log.splitlines() == [f"{place.trees.directory}/a.r1", ".gitignore", "a", "sub/b", "sub/deep/c", "me"]
    assert git(other, "status", "--porcelain") == "" == git(place.root, "status", "--porcelain")


def test_git_finds_no_repository_above_a_copy(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q")
    write_files(tmp_path, {".gitignore": b"*\n"})
    place, log = run(tmp_path, "git rev-parse --git-dir; ls -A; echo x > a; echo n > new", kind="copy")
    assert "not a git repository" in log
    (outcome,) = place.place.outcomes()
    assert place.contents(outcome) == {"a": b"x\n", "new": b"n\n"}


def test_commits_branches_and_collection_count_as_their_content(tmp_path: Path) -> None:
    identity = "git -c user.name=n -c user.email=n@n"
    place, log = run(
        tmp_path,
        f"echo one > a; git checkout -q -b topic; {identity} commit -q -a -m one; echo two > two; git add two; "
        f"{identity} commit -q -m two; git rm -q --cached sub/b; git gc -q; git stash -q || :; git worktree prune",
    )
    (outcome,) = place.place.outcomes()
    assert outcome.type == "result", log
    assert place.contents(outcome) == {"a": b"one\n", "two": b"two\n"}
    assert git(place.root, "status", "--porcelain") == ""


def test_unfinished_rebase_is_recorded_as_its_files(tmp_path: Path) -> None:
    identity = "git -c user.name=n -c user.email=n@n"
    place, log = run(
        tmp_path,
        f"git checkout -q -b x; echo x > a; {identity} commit -qam x; git checkout -q -b y HEAD~1; echo y > a; "
        f"{identity} commit -qam y; {identity} rebase x; test -d $(git rev-parse --git-path rebase-merge)",
    )
    (outcome,) = place.place.outcomes()
    assert outcome.type == "result", log
    content = place.contents(outcome)["a"]
    assert content is not None
    assert b"<<<<<<<" in content


def test_head_that_moved_does_not_matter(tmp_path: Path) -> None:
    place = make_tree_place(tmp_path, isolated("cat a; echo x > later"))
    write_files(place.root, {"a": b"moved\n", "later": b"l\n"})
    commit_all(place.root)
    with coordinating(place.place) as coordinator:
        outcome = attempt(coordinator)
    assert place.place.log() == b"1\n2\n3\n4\n5\n"
    assert [each.change.before for each in place.changes(outcome)] == [None]


def test_hooks_do_not_run_and_filters_do(tmp_path: Path) -> None:
    place = make_tree_place(tmp_path, isolated("cat a"), files={"a": b"A\n", ".gitattributes": b"a filter=low\n"})
    hook = place.root / ".git/hooks/post-checkout"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(f"#!/bin/sh\ntouch {tmp_path}/hooked\n", encoding="utf-8")
    hook.chmod(0o755)
    git(place.root, "config", "filter.low.smudge", "tr A-Z a-z")
    with coordinating(place.place) as coordinator:
        outcome = attempt(coordinator)
    assert place.place.log() == b"a\n"
    assert place.changes(outcome) == []
    assert not (tmp_path / "hooked").exists()


@KINDS
def test_failed_attempt_keeps_its_changes_and_its_tree(tmp_path: Path, kind: Kind) -> None:
    text = 'test -n "$CODEBATCH_PREVIOUS_TREE" && cat $CODEBATCH_PREVIOUS_TREE/a && exit 0; echo bad > a; exit 3'
    place = make_tree_place(tmp_path, isolated(text, kind=kind))
    with coordinating(place.place) as coordinator:
        outcome = attempt(coordinator)
        assert (outcome.type, place.contents(outcome)) == ("failed", {"a": b"bad\n"})
        assert place.names() == ["a.r1"]
        outcome = attempt(coordinator, round_=2, tree=TreeInput(previous_round=1))
        assert (outcome.type, place.changes(outcome)) == ("result", [])
        assert place.place.log(round_=2, epoch=2) == b"bad\n"
        wait_until(lambda: not place.names())
    assert sorted(os.listdir(place.trees.directory)) == ([".base", ".base.lock"] if kind == "worktree" else [])


def test_failed_tree_is_removed_if_none_is_kept(tmp_path: Path) -> None:
    place = make_tree_place(tmp_path, isolated("echo bad > a; exit 3"), keep="none")
    with coordinating(place.place) as coordinator:
        assert place.contents(attempt(coordinator)) == {"a": b"bad\n"}
        wait_until(lambda: not place.names())


ASKING = """
case $CODEBATCH_ROUND in
1) echo one >> a; echo 'which?' > $CODEBATCH_QUESTION;;
2) echo two >> a; echo 'and?' > $CODEBATCH_QUESTION;;
3) cat a; echo "$CODEBATCH_TREE"; echo n > new;;
esac
"""


@KINDS
def test_attempt_after_an_answer_continues_in_the_tree(tmp_path: Path, kind: Kind) -> None:
    place = make_tree_place(tmp_path, isolated(ASKING, kind=kind), files={"a": b"", "b": b"b"})
    with coordinating(place.place) as coordinator:
        first = attempt(coordinator)
        second = attempt(coordinator, round_=2, tree=TreeInput(continued_round=1))
        assert place.names() == ["a.r1", "a.r2"]
    with coordinating(place.place) as coordinator:
        third = attempt(coordinator, round_=3, tree=TreeInput(continued_round=2))
        wait_until(lambda: not place.names())
    assert [outcome.type for outcome in (first, second, third)] == ["blocked", "blocked", "result"]
    assert place.contents(first) == {"a": b"one\n"}
    assert place.contents(second) == {"a": b"one\ntwo\n"}
    assert place.contents(third) == {"a": b"one\ntwo\n", "new": b"n\n"}
    assert place.place.log(round_=3, epoch=3).decode() == f"one\ntwo\n{place.trees.directory}/a.r1\n"


def test_missing_tree_of_a_question_is_replaced_by_a_new_one(tmp_path: Path) -> None:
    place = make_tree_place(tmp_path, isolated(ASKING), files={"a": b""}, keep="none")
    with coordinating(place.place) as coordinator:
        attempt(coordinator)
        wait_until(lambda: not place.names())
        outcome = attempt(coordinator, round_=2, tree=TreeInput(continued_round=1))
    assert place.contents(outcome) == {"a": b"two\n"}
    assert b"does not exist any more" in place.place.log(round_=2, epoch=2)


@KINDS
def test_links_lead_to_the_directories_of_the_user(tmp_path: Path, kind: Kind) -> None:
    text = "cat modules/x; rm modules; mkdir modules; echo y > modules/y; echo z > z"
    place = make_tree_place(
        tmp_path, isolated(text, kind=kind), files={"a": b"", "taken": b""}, links=(b"modules", b"none", b"taken")
    )
    write_files(place.root, {"modules/x": b"x\n"})
    with coordinating(place.place) as coordinator:
        outcome = attempt(coordinator)
    assert outcome.notes == (
        "none is not linked: it does not exist in the directory of the user",
        "taken is not linked: the tree has files of its own there",
    )
    assert place.place.log().decode().splitlines() == [*(f"codebatch: {note}" for note in outcome.notes), "x"]
    assert place.contents(outcome) == {"modules/y": b"y\n", "z": b"z\n"}, "the link was replaced by files of the task"
    assert (place.root / "modules/x").read_bytes() == b"x\n"


def test_batch_without_isolation_starts_no_git_and_makes_no_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = tmp_path / "started"
    program = tmp_path / "bin/git"
    write_files(tmp_path, {"bin/git": f"#!/bin/sh\necho git >> {log}\n".encode()})
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    place = make_place(tmp_path, Command(id=CommandId("a"), run="echo $CODEBATCH_TREE"))
    before = sorted(path for path in tmp_path.rglob("*") if place.store.root not in path.parents)
    with coordinating(place) as coordinator:
        assert coordinator.do().type == "result"
    assert place.log() == b"\n"
    assert not log.exists()
    assert sorted(path for path in tmp_path.rglob("*") if place.store.root not in path.parents) == before
