"""Which source directories count as removed: only those for which evidence proves it."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from codebatch.model.digest import digest_bytes
from codebatch.operations.runs.collection import collect_garbage, collect_garbage_after_run
from codebatch.store import layout
from codebatch.store.batches.batch_directory import BatchDir, batch_ids, create_batch
from codebatch.store.batches.holders import HolderFile, HolderRegistration, new_holder_id
from codebatch.store.batches.pins import pin_reference
from codebatch.store.batches.source_places import RemovedSources, locate_source
from codebatch.store.batches.store_directory import StoreDir, create_store
from codebatch.store.results.adoption import adopt_batch
from codebatch.store.snapshots.snapshots import snapshot_ids
from codebatch.system.clock import wall_ns
from codebatch.system.files.files import RealFiles
from codebatch.system.host import this_host
from tests.support.batches import make_batch
from tests.support.git_repositories import git, make_repository
from tests.support.stores import merge, work

DAY_NS = 24 * 3600 * 10**9


class Trees:
    """A repository with a store, and a linked work tree and a plain directory in `place`."""

    def __init__(self, top: Path, place: Path) -> None:
        self.main = top / "main"
        make_repository(self.main, [(1, {b"a": b"a"})])
        self.store = create_store(RealFiles(), self.main / ".codebatch")[0]
        self.place = place
        self.tree, self.plain = place / "tree", place / "plain"
        git(self.main, "worktree", "add", "-q", "--detach", str(self.tree), "main")
        (self.tree / "part").mkdir()
        self.plain.mkdir()

    def git(self, *arguments: str) -> None:
        git(self.main, *arguments)

    def remove(self, directory: Path, *, days: float = 0) -> None:
        """Remove a directory as if it was some days ago."""
        shutil.rmtree(directory)
        self.age(days)

    def age(self, days: float) -> None:
        """Set the time of the last change of the parent directory."""
        at_ns = wall_ns() - round(days * DAY_NS)
        os.utime(self.place, ns=(at_ns, at_ns))


def _trees(tmp_path: Path) -> Trees:
    (tmp_path / "place").mkdir()
    return Trees(tmp_path, tmp_path / "place")


def _judge(trees: Trees, directory: Path, act: Callable[[Trees], object]) -> bool:
    sources = (os.path.realpath(bytes(directory)),)
    place = locate_source(sources, trees.store.root)
    act(trees)
    return RemovedSources(trees.store.root, wall_ns()).has(sources, place)


def _move_repository(trees: Trees) -> None:
    """Move the repository, but leave the store where it is."""
    trees.remove(trees.tree)
    (trees.main / ".git").rename(trees.main / "elsewhere")


def _hide_behind_a_file(trees: Trees) -> None:
    trees.git("worktree", "remove", "--force", str(trees.tree))
    shutil.rmtree(trees.place)
    trees.place.write_text("")


def _move_and_repair(trees: Trees) -> None:
    trees.tree.rename(trees.place / "other")
    git(trees.place / "other", "worktree", "repair")


def _replace_the_parent(trees: Trees) -> None:
    trees.place.rename(trees.place.with_name("was"))
    trees.place.mkdir()
    trees.age(2)


def _break_the_list(trees: Trees) -> None:
    trees.git("worktree", "remove", "--force", str(trees.tree))
    broken = trees.main / ".git" / "worktrees" / "broken"
    broken.mkdir(parents=True)
    os.mkfifo(broken / "gitdir")


def _lock_and_remove(trees: Trees) -> None:
    trees.git("worktree", "lock", str(trees.tree))
    trees.remove(trees.tree, days=2)


def _remove_by_git(trees: Trees) -> None:
    trees.git("worktree", "remove", "--force", str(trees.tree))


def _remove_and_add_again(trees: Trees) -> None:
    _remove_by_git(trees)
    trees.git("worktree", "add", "-q", "--detach", str(trees.tree), "main")


def _move_by_git(trees: Trees) -> None:
    trees.git("worktree", "move", str(trees.tree), str(trees.place / "other"))


def _list_with_a_link(trees: Trees) -> None:
    """The list names the work tree by another path to it."""
    (trees.main / "link").symlink_to(trees.place)
    (trees.main / ".git" / "worktrees" / "tree" / "gitdir").write_text(f"{trees.main}/link/tree/.git\n")
    shutil.rmtree(trees.tree)


def _list_with_a_relative_path(trees: Trees) -> None:
    own = trees.main / ".git" / "worktrees" / "tree"
    (own / "gitdir").write_text(os.path.relpath(trees.tree / ".git", own) + "\n")
    shutil.rmtree(trees.tree)


def _remove_and_prune(trees: Trees) -> None:
    trees.remove(trees.tree)
    trees.git("worktree", "prune")


def _remove_with_the_parent(trees: Trees) -> None:
    _remove_by_git(trees)
    shutil.rmtree(trees.place)


def _replace_by_a_link(trees: Trees) -> None:
    trees.remove(trees.plain)
    trees.plain.symlink_to("x")
    trees.age(2)


LINKED_CASES: dict[str, tuple[Callable[[Trees], object], bool]] = {
    "exists": (lambda trees: None, False),
    "removed by git": (_remove_by_git, True),
    "removed, git lists it": (lambda trees: trees.remove(trees.tree), False),
    "removed over a day ago, git lists it": (lambda trees: trees.remove(trees.tree, days=1.1), True),
    "removed almost a day ago, git lists it": (lambda trees: trees.remove(trees.tree, days=0.9), False),
    "removed and pruned": (_remove_and_prune, True),
    "removed over a day ago, locked": (_lock_and_remove, False),
    "made again at the same place": (_remove_and_add_again, False),
    "moved by git": (_move_by_git, True),
    "moved and repaired": (_move_and_repair, True),
    "removed with its parent": (_remove_with_the_parent, True),
    "the repository is elsewhere": (_move_repository, False),
    "a file in place of the parent": (_hide_behind_a_file, False),
    "the list cannot be read": (_break_the_list, False),
    "listed by a link": (_list_with_a_link, False),
    "listed by a relative path": (_list_with_a_relative_path, False),
}
PLAIN_CASES: dict[str, tuple[Callable[[Trees], object], bool]] = {
    "exists": (lambda trees: trees.age(2), False),
    "removed just now": (lambda trees: trees.remove(trees.plain), False),
    "removed over a day ago": (lambda trees: trees.remove(trees.plain, days=1.1), True),
    "a link in its place": (_replace_by_a_link, False),
    "another parent directory": (_replace_the_parent, False),
    "removed with its parent": (lambda trees: shutil.rmtree(trees.place), False),
}


@pytest.mark.parametrize(("act", "is_removed"), LINKED_CASES.values(), ids=LINKED_CASES)
def test_linked_work_tree_is_removed_if_git_no_longer_lists_it(
    tmp_path: Path, act: Callable[[Trees], object], is_removed: bool
) -> None:
    trees = _trees(tmp_path)
    assert _judge(trees, trees.tree, act) is is_removed


@pytest.mark.parametrize("name", ["exists", "removed by git", "removed, git lists it", "moved by git"])
def test_directory_in_a_linked_work_tree_is_removed_with_the_tree(tmp_path: Path, name: str) -> None:
    act, is_removed = LINKED_CASES[name]
    trees = _trees(tmp_path)
    assert _judge(trees, trees.tree / "part", act) is is_removed


@pytest.mark.parametrize(("act", "is_removed"), PLAIN_CASES.values(), ids=PLAIN_CASES)
def test_directory_is_removed_if_its_parent_has_not_had_it_for_a_day(
    tmp_path: Path, act: Callable[[Trees], object], is_removed: bool
) -> None:
    trees = _trees(tmp_path)
    assert _judge(trees, trees.plain, act) is is_removed


def test_source_without_evidence_is_never_removed(tmp_path: Path) -> None:
    trees = _trees(tmp_path)
    sources = bytes(trees.plain), bytes(trees.tree)
    (trees.plain / "file").write_text("")
    assert locate_source(sources, trees.store.root) is None
    assert locate_source((bytes(trees.plain / "file"),), trees.store.root) is None
    assert locate_source((bytes(tmp_path / "none"),), trees.store.root) is None
    assert not RemovedSources(trees.store.root, wall_ns()).has((bytes(tmp_path / "none"),), None)


@pytest.mark.skipif(os.geteuid() != 0 or shutil.which("mount") is None, reason="mounting needs root, and mount(8)")
@pytest.mark.parametrize("is_pruned", [False, True], ids=["git lists it", "pruned meanwhile"])
def test_directories_on_a_disk_that_is_not_mounted_are_not_removed(tmp_path: Path, is_pruned: bool) -> None:
    place = tmp_path / "disk"
    place.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(place)]
    if subprocess.run(command, check=False, capture_output=True).returncode != 0:
        pytest.skip("this system forbids mounting")
    try:
        trees = Trees(tmp_path, place)
        located = {
            directory: locate_source((bytes(directory),), trees.store.root) for directory in (trees.tree, trees.plain)
        }
    finally:
        subprocess.run(["umount", "-l", place], check=True)
    if is_pruned:
        trees.git("worktree", "prune", "--expire", "now")
    trees.age(2)
    removed = RemovedSources(trees.store.root, wall_ns())
    assert [directory for directory, place in located.items() if removed.has((bytes(directory),), place)] == []


# -- Garbage collection -----------------------------------------------------------------------------------------------


def _make_batch(store: StoreDir, source: Path, content: bytes, *, is_merged: bool = True) -> BatchDir:
    batch = make_batch(
        store,
        [b"a"],
        shard_items=1,
        at_ns=wall_ns() + 10**9,  # A batch is younger than its snapshot, which is not made yet.
        contents={b"a": content},
        sources=(os.path.realpath(bytes(source)),),
    )
    if is_merged:
        work(store, batch)
        merge(batch)
    return batch


def test_no_batch_of_a_removed_source_is_kept_unless_it_is_protected(tmp_path: Path) -> None:
    """Merged and unmerged batches are removed with their snapshots and caches. The run of another source does it."""
    trees = _trees(tmp_path)
    store, source = trees.store, trees.tree
    merged = _make_batch(store, source, b"1")
    unmerged = _make_batch(store, source, b"2", is_merged=False)
    pinned = _make_batch(store, source, b"3")
    named = _make_batch(store, source, b"4")
    held = _make_batch(store, source, b"5", is_merged=False)
    own = _make_batch(store, trees.main, b"6")
    unfinished = make_batch(
        store,
        [b"a"],
        shard_items=1,
        bases=[named.id],
        contents={b"a": b"7"},
        sources=own.about.sources,
        at_ns=wall_ns(),
    )
    pin_reference(store, pinned.id, lambda _: None)
    churn = layout.churn_cache_name(digest_bytes(os.path.realpath(bytes(source))))
    headlines = [layout.headline_cache_name(digest_bytes(batch.id.encode())) for batch in (merged, own)]
    for name in (churn, *headlines):
        store.files.write_volatile(store.root / layout.CACHE / name, b"")
    _remove_by_git(trees)
    about = HolderFile(
        holder=new_holder_id(), role="worker", pid=os.getpid(), host=this_host(), since_ns=1, parent=None
    )
    registration = HolderRegistration(store.files, held.root, about)
    collected = collect_garbage_after_run(store, keep=50, ran=own, note=lambda _: None)
    registration.close()
    assert collected is not None
    assert collected.batches == (merged.id, unmerged.id)
    assert collected.removed_sources == (os.path.realpath(source),)
    assert collected.snapshots == tuple(sorted(batch.about.snapshot_id for batch in (merged, unmerged)))
    assert batch_ids(store) == [pinned.id, named.id, held.id, own.id, unfinished.id]
    assert {*store.files.listing(store.root / layout.CACHE)} >= {headlines[1], churn}, "pinned batches need the caches"
    assert headlines[0] not in store.files.listing(store.root / layout.CACHE)


def test_snapshot_that_was_taken_again_outlives_the_batches_of_a_removed_source(tmp_path: Path) -> None:
    trees = _trees(tmp_path)
    batches = [_make_batch(trees.store, trees.tree, content) for content in (b"1", b"2")]
    again = batches[0].about.snapshot_id
    later_ns = wall_ns() + 60 * 10**9
    os.utime(trees.store.root / "snapshots" / again, ns=(later_ns, later_ns))
    _remove_by_git(trees)
    assert collect_garbage(trees.store, keep=50, is_dry=True).snapshots == (batches[1].about.snapshot_id,)
    assert collect_garbage(trees.store, keep=50).batches == tuple(batch.id for batch in batches)
    assert snapshot_ids(trees.store.files, trees.store.root) == [again]


def test_adopted_batch_has_the_place_of_its_own_source(tmp_path: Path) -> None:
    trees = _trees(tmp_path)
    first = _make_batch(trees.store, trees.tree, b"1")
    sources = (os.path.realpath(bytes(trees.main)),)
    adopted = adopt_batch(trees.store, first, sources=sources, stat_cache="", at_ns=wall_ns())
    assert adopted.about.place == locate_source(sources, trees.store.root) != first.about.place
    plan = first.plan()
    assert create_batch(trees.store, plan, sources=sources, at_ns=wall_ns()).about.place == adopted.about.place
    _remove_by_git(trees)
    assert collect_garbage(trees.store, keep=50).batches == (first.id,)
