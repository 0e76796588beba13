"""Commands that do odd things to their trees, and trees that cannot be made."""

from __future__ import annotations

from pathlib import Path

import pytest

from codebatch.model.digest import Digest
from codebatch.model.outcome import TaskOutcome
from codebatch.model.work.trees import TreeSettings
from codebatch.store.work.trees import BatchTrees, TreeName
from tests.support.git_repositories import git
from tests.support.work_batches import coordinating, make_place, wait_until
from tests.trees.places import Kind, TreePlace, attempt, isolated, make_tree_place, needing, write_files

KINDS = pytest.mark.parametrize("kind", ["worktree", "copy"])


def run(directory: Path, text: str, *, kind: Kind = "worktree") -> tuple[TreePlace, TaskOutcome, str]:
    """Run an isolated command in a new project. Return its place, its outcome and its log. No tree is left."""
    place = make_tree_place(directory, isolated(text, kind=kind), keep="none")
    with coordinating(place.place) as coordinator:
        outcome = attempt(coordinator)
        wait_until(lambda: not place.names())
    if kind == "worktree":
        assert place.registered() == []
        assert git(place.root, "status", "--porcelain") == ""
    return place, outcome, place.place.log().decode()


@KINDS
@pytest.mark.parametrize(
    "text",
    ['rm -rf "$CODEBATCH_TREE"', 'rm -rf "$CODEBATCH_TREE"; mkdir "$CODEBATCH_TREE"', "mv . ../x; ln -s x ../a.r1"],
    ids=["removed", "replaced", "moved"],
)
def test_lost_tree_fails_the_attempt(tmp_path: Path, kind: Kind, text: str) -> None:
    text = text.replace("mv . ../x", "cd ..; mv a.r1 x; cd x")
    _, outcome, log = run(tmp_path, text, kind=kind)
    assert (outcome.type, outcome.reason, outcome.changes) == ("failed", "check", "")
    assert "the command has removed or replaced the directory of its tree" in log


@KINDS
def test_directory_replaced_by_a_link_to_outside(tmp_path: Path, kind: Kind) -> None:
    write_files(tmp_path, {"outside/b": b"outside", "outside/deep/c": b"c\n"})
    place, outcome, _ = run(tmp_path, f"rm -r sub; ln -s {tmp_path}/outside sub", kind=kind)
    target = str(tmp_path / "outside").encode()
    assert place.contents(outcome) == {"sub": target, "sub/b": None, "sub/deep/c": None}
    assert (tmp_path / "outside/b").read_bytes() == b"outside"


@KINDS
def test_file_replaced_by_a_directory_and_the_reverse(tmp_path: Path, kind: Kind) -> None:
    place, outcome, _ = run(tmp_path, "rm -r a sub; mkdir a; echo x > a/x; echo y > sub", kind=kind)
    expected = {"a": None, "a/x": b"x\n", "sub": b"y\n", "sub/b": None, "sub/deep/c": None}
    assert place.contents(outcome) == expected


@KINDS
def test_directory_without_permissions(tmp_path: Path, kind: Kind) -> None:
    text = "echo x > a; chmod 000 a sub/deep; chmod 400 sub; chmod 500 ."
    place, outcome, log = run(tmp_path, text, kind=kind)
    assert place.contents(outcome) == {"a": b"x\n"}
    assert outcome.type == "result", log


@KINDS
def test_files_that_ignore_rules_hide_afterwards_are_compared(tmp_path: Path, kind: Kind) -> None:
    place, outcome, _ = run(tmp_path, "echo '*' > .gitignore; echo 6 >> a; echo hidden > hidden", kind=kind)
    assert place.contents(outcome) == {".gitignore": b"*\n", "a": b"1\n2\n3\n4\n5\n6\n"}


def test_repository_files_that_the_command_damages(tmp_path: Path) -> None:
    place, outcome, log = run(tmp_path, "rm .git; echo x > a; echo n > sub/n; echo o > o.o")
    assert outcome.type == "result", log
    assert place.contents(outcome) == {"a": b"x\n", "sub/n": b"n\n"}


@pytest.mark.slow
def test_many_files(tmp_path: Path) -> None:
    text = "python3 -c 'import os\nfor n in range(100000): os.close(os.open(f\"f{n}\", os.O_CREAT))'"
    place, outcome, log = run(tmp_path, text)
    assert outcome.type == "result", log
    assert len(place.changes(outcome)) == 100_000


def test_names_that_are_not_text(tmp_path: Path) -> None:
    place, outcome, _ = run(tmp_path, r"printf x > $(printf 'n\377'); printf y > 'new line'; printf z > '-rf'")
    assert [each.change.path for each in place.changes(outcome)] == [b"-rf", b"new line", b"n\xff"]


def test_process_that_stays_does_not_hold_the_tree(tmp_path: Path) -> None:
    place = make_tree_place(tmp_path, isolated("sleep 1000 & echo x > a", leftovers="leave"))
    with coordinating(place.place) as coordinator:
        assert place.contents(attempt(coordinator)) == {"a": b"x\n"}
        wait_until(lambda: not place.names())


NOT_MADE = {
    "no such commit": ({"base": "1" * 40}, "is not in {root} any more"),
    "no snapshot": ({"snapshot": "snap-0123456789abcdef"}, "its tree cannot be made: "),
    "no directory": ({"directory": b"/dev/null/trees"}, "its tree cannot be made: "),
}


@pytest.mark.parametrize(("settings", "message"), NOT_MADE.values(), ids=NOT_MADE)
def test_tree_that_cannot_be_made_fails_the_attempt(tmp_path: Path, settings: dict[str, object], message: str) -> None:
    git_settings = {"repository": bytes(tmp_path / "root"), "base": "1" * 40, "directory": bytes(tmp_path / "trees")}
    kind: Kind = "copy" if "snapshot" in settings else "worktree"
    write_files(tmp_path / "root", {"a": b""})
    git(tmp_path / "root", "init", "-q")
    trees = TreeSettings(**{**git_settings, **settings})  # type: ignore[arg-type]
    place = make_place(tmp_path, isolated("true", kind=kind), trees=trees)
    with coordinating(place) as coordinator:
        outcome = attempt(coordinator)
    assert (outcome.type, outcome.reason, outcome.is_final) == ("failed", "start", "is not in" in message)
    assert place.log().decode().startswith("codebatch: not started: its tree cannot be made: ")
    assert message.format(root=tmp_path / "root") in place.log().decode()
    assert not BatchTrees(place.store, place.batch.id, trees).names()


def test_batch_without_settings_of_trees(tmp_path: Path) -> None:
    place = make_place(tmp_path, isolated("true"))
    with coordinating(place) as coordinator:
        assert attempt(coordinator).reason == "start"
    assert place.log() == b"codebatch: not started: this batch was made without settings of trees\n"


def test_missing_directory_of_the_root_in_the_commit(tmp_path: Path) -> None:
    place = make_tree_place(tmp_path, isolated("true"), subdirectory="later")
    with coordinating(place.place) as coordinator:
        assert attempt(coordinator).reason == "start"
    assert b"does not have the root of this batch" in place.place.log()
    assert place.registered() == []


def test_damaged_change_set_of_a_needed_task(tmp_path: Path) -> None:
    place = make_tree_place(tmp_path, isolated("true"))
    needed = {"gone": Digest("0" * 64), "damaged": Digest(place.place.batch.plan().snapshot_digest)}
    with coordinating(place.place) as coordinator:
        for round_, (task, digest) in enumerate(needed.items(), 1):
            assert attempt(coordinator, round_=round_, tree=needing(**{task: digest})).reason == "start"
    assert place.names() == place.registered() == []


@KINDS
def test_leftover_of_a_killed_attempt_is_replaced(tmp_path: Path, kind: Kind) -> None:
    place = make_tree_place(tmp_path, isolated("echo began; test -e left && exec sleep 1000; ls", kind=kind))
    tree = place.trees.path(TreeName("a", 1))
    if kind == "worktree":
        tree.parent.mkdir(parents=True)
        git(place.root, "worktree", "add", "-q", "--detach", "--lock", str(tree))
    write_files(tree, {"left": b"", "locked/x": b""})
    (tree / "locked").chmod(0)
    with coordinating(place.place) as coordinator:
        outcome = attempt(coordinator)
    assert outcome.type == "result"
    assert b"left" not in place.place.log()


def test_tree_of_another_process_is_not_touched(tmp_path: Path) -> None:
    place = make_tree_place(tmp_path, isolated("true"))
    place.trees.make_directory()
    lock = place.trees.try_lock(TreeName("a", 1))
    assert lock is not None
    write_files(place.trees.path(TreeName("a", 1)), {"file": b""})
    with coordinating(place.place) as coordinator:
        assert attempt(coordinator).reason == "start"
    assert b"another process works in the tree" in place.place.log()
    assert (place.trees.path(TreeName("a", 1)) / "file").exists()
    lock.release()
