"""The trees of a batch on disk: their names, locks and removal, and concurrent work trees of one repository."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from codebatch.errors import UnsupportedEntry
from codebatch.git.linked_trees import fill_linked_tree, register_linked_tree, unregister_linked_tree
from codebatch.git.repository import GitError, find_git
from codebatch.model.work.trees import TreesKept
from codebatch.store.work.trees import TreeName, remove_leftover_trees, remove_trees
from codebatch.system.files.writable_tree import remove_any_tree
from tests.support.git_repositories import git
from tests.trees.places import TreePlace, isolated, make_tree_place, write_files


def place_with_trees(directory: Path, *names: str, keep: TreesKept = "failed") -> TreePlace:
    """Return a batch with some trees that no process uses. `a.r3>a.r1` is a link to an earlier tree."""
    place = make_tree_place(directory, isolated("true"), keep=keep)
    place.trees.make_directory()
    for name in names:
        link, _, target = name.partition(">")
        path = place.trees.directory / link
        if target:
            path.symlink_to(target)
        else:
            git(place.root, "worktree", "add", "-q", "--detach", "--lock", str(path))
            write_files(place.trees.directory, {f"{link}.lock": b"", f"{link}.start": b""})
    return place


def entries(place: TreePlace) -> list[str]:
    return sorted(os.listdir(place.trees.directory))


def test_names_of_trees() -> None:
    name = TreeName.of_attempt("fix/src/a", 3)
    assert str(name) == "fix+src+a.r3"


def test_removing_a_batch_removes_its_trees(tmp_path: Path) -> None:
    place = place_with_trees(tmp_path, "a.r1", "a.r3>a.r1", "b.r1")
    (place.trees.directory / ".base").touch()
    remove_trees(place.place.store, place.place.batch.id, place.settings)
    assert not place.trees.directory.parent.exists()
    assert place.registered() == []
    remove_trees(place.place.store, place.place.batch.id, place.settings)


def test_removing_a_batch_leaves_trees_that_a_process_uses(tmp_path: Path) -> None:
    place = place_with_trees(tmp_path, "a.r1", "b.r1")
    lock = place.trees.try_lock(TreeName("a", 1))
    assert lock is not None
    remove_trees(place.place.store, place.place.batch.id, place.settings)
    assert place.names() == ["a.r1"]
    assert place.registered() == [str(place.trees.directory / "a.r1")]
    lock.release()


@pytest.mark.parametrize(
    ("keep", "running", "left"),
    [
        ("failed", [], ["a.r1", "a.r3", "b.r2"]),
        ("failed", ["c/x"], ["a.r1", "a.r3", "b.r2", "c+x.r1"]),
        ("none", [], []),
        ("none", ["a"], ["a.r1", "a.r2", "a.r3"]),
    ],
)
def test_leftovers_are_removed(tmp_path: Path, keep: TreesKept, running: list[str], left: list[str]) -> None:
    place = place_with_trees(tmp_path, "a.r1", "a.r2", "a.r3>a.r1", "b.r1", "b.r2", "c+x.r1", keep=keep)
    kept = [("a", 3), ("b", 2), ("d", 1)]
    remove_leftover_trees(place.place.store, place.place.batch.id, place.settings, kept, running)
    assert place.names() == left


def test_leftovers_of_a_batch_without_trees(tmp_path: Path) -> None:
    place = make_tree_place(tmp_path, isolated("true"))
    remove_leftover_trees(place.place.store, place.place.batch.id, place.settings, [])
    remove_trees(place.place.store, place.place.batch.id, place.settings)
    assert not (tmp_path / "trees").exists()


@pytest.mark.parametrize("target", ["a.r4", "a.r3", "b.r1", "..", "/etc", "a.r0"])
def test_link_to_another_place_is_not_followed(tmp_path: Path, target: str) -> None:
    place = place_with_trees(tmp_path, "b.r1", "a.r4", f"a.r3>{target}")
    assert place.trees.origin(TreeName("a", 3)) is None
    remove_leftover_trees(place.place.store, place.place.batch.id, place.settings, [("a", 4), ("b", 1)])
    assert place.names() == ["a.r4", "b.r1"]


def test_lock_is_taken_again_after_its_file_was_removed(tmp_path: Path) -> None:
    place = place_with_trees(tmp_path, "a.r1")
    name = TreeName("a", 1)
    first = place.trees.try_lock(name)
    assert first is not None
    assert place.trees.try_lock(name) is None
    place.trees.remove(name)
    second = place.trees.try_lock(name)
    assert second is not None, "a lock of a removed file counts"
    first.release()
    assert place.trees.try_lock(name) is None
    second.release()


def test_directory_of_trees_that_cannot_be_made(tmp_path: Path) -> None:
    write_files(tmp_path, {"trees": b""})
    place = make_tree_place(tmp_path, isolated("true"))
    with pytest.raises(UnsupportedEntry, match="a file instead of a directory"):
        place.trees.make_directory()


def test_many_work_trees_at_once(tmp_path: Path) -> None:
    """git itself fails if several processes add and remove the first and the last work tree of a repository."""
    place = make_tree_place(tmp_path, isolated("true"))
    program = find_git()
    assert program is not None
    place.trees.make_directory()

    def add_and_remove(number: int) -> None:
        assert program is not None
        for _ in range(4):
            path = place.trees.directory / f"a.r{number}"
            with place.trees.locking_repository():
                register_linked_tree(program, bytes(place.root), bytes(path), place.settings.base, lambda: True)
            fill_linked_tree(program, bytes(path), lambda: True)
            assert (path / "sub/deep/c").read_bytes() == b"c\n"
            remove_any_tree(path)
            with place.trees.locking_repository():
                unregister_linked_tree(program, bytes(place.root), bytes(path))

    with ThreadPoolExecutor(4) as threads:
        assert list(threads.map(add_and_remove, range(1, 5))) == [None] * 4
    assert place.registered() == []


def test_other_work_trees_of_the_user_stay_registered(tmp_path: Path) -> None:
    """Their directories may be missing, for example on a disk that is not mounted."""
    place = place_with_trees(tmp_path, "a.r1")
    git(place.root, "worktree", "add", "-q", "--detach", str(tmp_path / "mine"))
    remove_any_tree(tmp_path / "mine")
    remove_trees(place.place.store, place.place.batch.id, place.settings)
    assert place.registered() == [str(tmp_path / "mine")]


def test_shallow_repository(tmp_path: Path) -> None:
    place = make_tree_place(tmp_path / "deep", isolated("true"))
    write_files(place.root, {"a": b"2"})
    git(place.root, "-c", "user.name=n", "-c", "user.email=n@n", "commit", "-qam", "2")
    git(tmp_path, "clone", "-q", "--depth=1", f"file://{place.root}", "shallow")
    program = find_git()
    assert program is not None
    base = git(tmp_path / "shallow", "rev-parse", "HEAD")
    register_linked_tree(program, bytes(tmp_path / "shallow"), bytes(tmp_path / "tree"), base, lambda: True)
    fill_linked_tree(program, bytes(tmp_path / "tree"), lambda: True)
    assert (tmp_path / "tree/a").read_bytes() == b"2"


def test_git_is_ended_on_request(tmp_path: Path) -> None:
    place = make_tree_place(tmp_path, isolated("true"), files={"a": b"", ".gitattributes": b"a filter=slow\n"})
    git(place.root, "config", "filter.slow.smudge", "sleep 60")
    program = find_git()
    assert program is not None
    register_linked_tree(program, bytes(place.root), bytes(tmp_path / "tree"), place.settings.base, lambda: True)
    with pytest.raises(GitError, match="ended on request"):
        fill_linked_tree(program, bytes(tmp_path / "tree"), lambda: False)


def test_tree_without_permissions_is_removed(tmp_path: Path) -> None:
    write_files(tmp_path, {"tree/a/b/c": b"", "outside/kept": b""})
    (tmp_path / "tree/link").symlink_to(tmp_path / "outside")
    for path in ("tree/a/b", "tree/a", "tree"):
        (tmp_path / path).chmod(0o000)
    remove_any_tree(tmp_path / "tree")
    assert sorted(os.listdir(tmp_path)) == ["outside"]
    assert (tmp_path / "outside/kept").exists()
    remove_any_tree(tmp_path / "tree")
