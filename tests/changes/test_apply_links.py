"""Symbolic links that `apply` creates, retargets and deletes, and those that it refuses."""

from __future__ import annotations

import itertools
import os
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from codebatch.model.digest import digest_bytes
from codebatch.operations.changes.apply import apply_writes
from codebatch.operations.changes.checks import FileOutcome
from codebatch.operations.changes.file_writes import FileWrite
from codebatch.operations.changes.link_targets import link_target_reason
from tests.changes.trees import MemoryContents, TreeFile, UnsyncedCalls, apply_tree, read_tree, reasons, states

OUTSIDE = "leads out of the tree"
THROUGH = "leads out of the tree through another link"


def link(target: bytes) -> TreeFile:
    return TreeFile(target, kind="link")


def make_link(root: Path, path: bytes, target: bytes | None, before: bytes | None = None) -> list[FileOutcome]:
    """Apply the change of one link. Without a target, it is deleted."""
    write = FileWrite(
        path=path,
        task="t",
        before=None if before is None else digest_bytes(before),
        after=None if target is None else digest_bytes(target),
        is_link=True,
    )
    known = [content for content in (before, target) if content is not None]
    return apply_writes(UnsyncedCalls(), os.fsencode(root), [write], MemoryContents(known))


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A tree with directories beside a directory with a canary."""
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside/canary").write_bytes(b"mine")
    (tmp_path / "root/d/e").mkdir(parents=True)
    (tmp_path / "root/a").write_bytes(b"a")
    return tmp_path / "root"


def test_link_is_created_retargeted_and_deleted_and_each_is_undone(root: Path) -> None:
    steps: list[dict[bytes, TreeFile]] = [{}, {b"d/x": link(b"../a")}, {b"d/x": link(b"e")}, {}]
    file = {b"a": TreeFile(b"a")}
    for before, after in itertools.pairwise(steps):
        for is_reversed, expected in ((False, after), (True, before), (False, after)):
            outcomes = apply_tree(root, before, after, is_reversed=is_reversed)
            assert states(outcomes) == {b"d/x": "written"}
            assert read_tree(root) == {**file, **expected}
            again = apply_tree(root, before, after, is_reversed=is_reversed)
            assert states(again) == {b"d/x": "applied"}


@pytest.mark.parametrize(
    ("path", "target", "reason"),
    [
        (b"x", b"/etc/passwd", OUTSIDE),
        (b"x", b"../outside", OUTSIDE),
        (b"d/x", b"../../outside", OUTSIDE),
        (b"d/x", b"e/../../../outside", OUTSIDE),
        (b"d/x", b"./../../outside", OUTSIDE),
        (b"d/e/x", b"../y/../a", OUTSIDE),
        (b"x", b"", OUTSIDE),
        (b"x", b"a\0b", OUTSIDE),
        (b"x", b"a" * 4096, OUTSIDE),
        (b"x", b".git/hooks", OUTSIDE),
        (b"d/x", b"../.GIT/hooks/post-commit", OUTSIDE),
        (b"x", b".codebatch", OUTSIDE),
        (b"x", b"d/out", THROUGH),
        (b"x", b"d/out/canary", THROUGH),
        (b"x", b"d/near/out", THROUGH),
        (b"x", b"d/up/y", THROUGH),
    ],
)
def test_target_out_of_the_tree_is_refused(root: Path, path: bytes, target: bytes, reason: str) -> None:
    (root / "d/out").symlink_to(root.parent / "outside")
    (root / "d/near").symlink_to(".")
    (root / "d/up").symlink_to("../..")
    seen = read_tree(root.parent)
    assert reason in reasons(make_link(root, path, target))[path]
    assert read_tree(root.parent) == seen


@pytest.mark.parametrize(
    ("path", "target"),
    [
        (b"x", b"a"),
        (b"x", b"./d/e/"),
        (b"x", b"missing/later"),
        (b"x", b"a/below-a-file"),
        (b"x", b"x"),
        (b"d/e/x", b"../../a"),
        (b"d/e/x", b".././../d"),
        (b"d/e/x", b"../.."),
        (b"x", b"d/near/e"),
        (b"x", b"..."),
        (b"x", b"loop/y"),
    ],
)
def test_target_in_the_tree_is_written(root: Path, path: bytes, target: bytes) -> None:
    (root / "d/near").symlink_to("../d")
    (root / "loop").symlink_to("loop")
    assert states(make_link(root, path, target)) == {path: "written"}
    assert os.readlink(os.fsencode(root) + b"/" + path) == target


@given(
    st.sampled_from([b"x", b"d/x", b"d/e/x"]),
    st.lists(st.sampled_from([b"..", b".", b"", b"d", b"e", b"d/up", b"new"]), min_size=1, max_size=7),
)
@example(b"d/e/x", [b"d", b"up", b"..", b".."])
def test_accepted_targets_lead_into_the_tree_whatever_links_of_their_kind_there_are(
    path: bytes, names: list[bytes]
) -> None:
    """The names `d/up` and `new` may be links to the root, so `..` below them leads out."""
    target = b"/".join(names)
    if link_target_reason(path, target, lambda _: None) is not None:
        return
    place = [*path.split(b"/")[:-1]]
    for name in b"/".join(names).split(b"/"):
        if name == b"..":
            assert place, "it leads out of the tree"
            place.pop()
        elif name in (b"up", b"new"):
            place = []
        elif name not in (b"", b"."):
            place.append(name)


@pytest.mark.parametrize("entry", ["file", "directory", "other"])
def test_other_entry_is_not_replaced_by_a_link(root: Path, entry: str) -> None:
    match entry:
        case "file":
            (root / "x").write_bytes(b"d")
        case "directory":
            (root / "x").mkdir()
        case _:
            (root / "x").symlink_to("mine")
    seen = read_tree(root)
    reason = "neither the old nor the new content" if entry == "other" else "it is not a symbolic link"
    assert reason in reasons(make_link(root, b"x", b"a", before=b"d"))[b"x"]
    created = reasons(make_link(root, b"x", b"a"))[b"x"]
    assert ("already exists" if entry == "other" else "not a symbolic link") in created
    assert read_tree(root) == seen


def test_link_of_another_user_is_refused(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (root / "x").symlink_to("d")
    monkeypatch.setattr(os, "geteuid", lambda: 12345)
    assert "belongs to another user" in reasons(make_link(root, b"x", b"a", before=b"d"))[b"x"]


def test_missing_target_is_refused(root: Path) -> None:
    write = FileWrite(path=b"x", task="t", before=None, after=digest_bytes(b"a"), is_link=True)
    for contents in (MemoryContents([]), MemoryContents([], {b"a": 1})):
        outcomes = apply_writes(UnsyncedCalls(), os.fsencode(root), [write], contents)
        assert "missing or damaged" in reasons(outcomes)[b"x"]


class RetargetingCalls(UnsyncedCalls):
    """Calls during which another process replaces a link, after the check and before the rename."""

    def __init__(self, place: Path) -> None:
        super().__init__()
        self._place = place

    def sync(self) -> None:
        self._place.unlink(missing_ok=True)
        self._place.symlink_to("mine")


@pytest.mark.parametrize("before", [{}, {b"d/x": link(b"../a")}])
@pytest.mark.parametrize("after", [{}, {b"d/x": link(b"e")}])
def test_link_that_changes_after_its_check_is_left_as_it_is(
    root: Path, before: dict[bytes, TreeFile], after: dict[bytes, TreeFile]
) -> None:
    if before == after:
        return
    if before:
        (root / "d/x").symlink_to("../a")
    outcomes = apply_tree(root, before, after, calls=RetargetingCalls(root / "d/x"))
    assert "while apply was running" in reasons(outcomes)[b"d/x"]
    assert os.readlink(root / "d/x") == "mine"
    assert not list(root.rglob(".codebatch-*"))


def test_temporary_links_of_a_killed_apply_are_removed(root: Path) -> None:
    (root / f".codebatch-{'0' * 32}.tmp").symlink_to("a")
    assert states(make_link(root, b"x", b"a")) == {b"x": "written"}
    assert sorted(os.listdir(root)) == ["a", "d", "x"]
