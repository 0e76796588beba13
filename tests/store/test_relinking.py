"""A store that was copied without its hard links: equal shard files become one again, and nothing else does."""

from __future__ import annotations

import errno
import os
import shutil
from pathlib import Path

import pytest

from codebatch.cli.output.records import collected_line
from codebatch.model.digest import Digest
from codebatch.operations.runs.collection import collect_garbage, stats_of
from codebatch.store.batches.batches import BatchDir, batch_ids, open_batch
from codebatch.store.batches.store import StoreDir, create_store, open_store
from codebatch.store.results.adoption import adopt_batch
from codebatch.store.results.compaction import compact_batch
from codebatch.store.results.relinking import find_copies, relink
from codebatch.store.results.shard_survey import ShardName, shard_names, survey
from codebatch.system.files.files import RealFiles
from codebatch.system.files.system_calls import RealCalls
from tests.proof.invariants import merged
from tests.store.crashes import PLACE, killed_at_each_write, refused_at_each_write
from tests.store.support import make_merged
from tests.support.calls import Fate, Operation, WatchedCalls
from tests.support.disk import Disk

TASKS = 5


@pytest.fixture
def shared(tmp_path: Path) -> StoreDir:
    """Three batches that share their shard files; nothing is left to settle."""
    store = create_store(RealFiles(), tmp_path / "store")[0]
    make_three(store)
    collect_garbage(store, keep=9)
    return store


def make_three(store: StoreDir) -> None:
    first = make_merged(store, [b"a", b"bb"], second=1)
    (outputs,) = store.files.listing(first.root / "outputs")
    compact_batch(first, Digest(outputs))
    for second in (2, 3):
        adopt_batch(store, first, sources=(b"/elsewhere",), stat_cache="", at_ns=second * 10**9)


@pytest.fixture
def copied(shared: StoreDir, tmp_path: Path) -> StoreDir:
    """As `cp -r` has it."""
    shutil.copytree(shared.root, tmp_path / "copied", symlinks=True)
    return open_store(RealFiles(), tmp_path / "copied")


def batches_of(store: StoreDir) -> list[BatchDir]:
    return [open_batch(store, batch_id) for batch_id in batch_ids(store)]


def names_of(store: StoreDir) -> list[ShardName]:
    return [name for batch in batches_of(store) for name in shard_names(batch)]


def _files(store: StoreDir) -> int:
    found = survey(store.files, names_of(store), is_full=True)
    return found.files


def test_copied_store_is_as_small_as_it_was_and_says_the_same(shared: StoreDir, copied: StoreDir) -> None:
    assert (_files(shared), _files(copied)) == (TASKS, 3 * TASKS)
    results = [merged(batch) for batch in batches_of(copied)]
    before = {path: path.stat().st_ino for path in copied.root.rglob("*")}
    told = collect_garbage(copied, keep=9, is_dry=True)
    assert {path: path.stat().st_ino for path in copied.root.rglob("*")} == before
    assert (told.relinked, told.relinked_bytes) == (2 * TASKS, told.freed_bytes)
    assert collected_line(told, is_dry=True).startswith("would remove 10 copies of shard files: ")
    size = stats_of(copied).bytes
    assert collect_garbage(copied, keep=9) == told
    assert stats_of(copied).bytes == size - told.relinked_bytes
    assert _files(copied) == TASKS
    assert [merged(batch) for batch in batches_of(copied)] == results
    assert [path for path in copied.root.rglob("*") if path.name.endswith(".tmp")] == []
    again = collect_garbage(copied, keep=9)
    assert (again.relinked, again.relinked_bytes, collected_line(again)) == (0, 0, "nothing to remove")
    relink(open_store(RealFiles(WatchedCalls(RealCalls(), _refuse_writes)), copied.root), [])


def _refuse_writes(operation: Operation) -> Fate | None:
    return Fate(OSError(errno.EROFS, "read-only")) if operation.is_write else None


def test_what_has_a_name_elsewhere_is_linked_and_frees_nothing(copied: StoreDir, tmp_path: Path) -> None:
    for number, name in enumerate(names_of(copied)):
        os.link(name.path, tmp_path / str(number))
    told = collect_garbage(copied, keep=9)
    assert (told.relinked, told.relinked_bytes) == (2 * TASKS, 0)


def test_copies_in_what_goes_or_is_settled_count_as_gone_with_that(copied: StoreDir) -> None:
    told = collect_garbage(copied, keep=1)
    assert (len(told.batches), told.relinked) == (1, TASKS), "the other two have other sources"


@pytest.mark.parametrize("place", [0, 3, -1])
def test_what_is_damaged_is_neither_taken_for_a_copy_nor_copied(copied: StoreDir, place: int) -> None:
    """Also where most names are those of the damaged one."""
    first, second, third = (next(iter(shard_names(batch))).path for batch in batches_of(copied))
    data = bytearray(first.read_bytes())
    data[place] ^= 1
    first.write_bytes(data)
    second.unlink()
    os.link(first, second)
    assert collect_garbage(copied, keep=9).relinked == 2 * TASKS - 2
    assert first.read_bytes() == second.read_bytes() == data != third.read_bytes()


def test_names_that_a_file_does_not_get_stay_with_the_copy(copied: StoreDir, monkeypatch: pytest.MonkeyPatch) -> None:
    link = os.link
    left = iter(range(1))

    def refuse(*arguments: object, **keywords: object) -> None:
        if next(left, None) is None:
            raise OSError(errno.EMLINK, "Too many links")
        link(*arguments, **keywords)  # type: ignore[arg-type]

    monkeypatch.setattr(os, "link", refuse)
    collect_garbage(copied, keep=9)
    assert _files(copied) == 3 * TASKS - 1
    assert survey(copied.files, names_of(copied), is_full=True).faults == []


@pytest.mark.parametrize("number", [errno.EACCES, errno.EPERM, errno.EROFS, errno.EISDIR])
def test_name_that_is_refused_stays_with_the_copy_and_no_other_does(copied: StoreDir, number: int) -> None:
    found = find_copies(copied.files, names_of(copied))
    refused = found[0].names[0]

    def refuse(operation: Operation) -> Fate | None:
        return Fate(OSError(number, os.strerror(number))) if operation == Operation("rename", refused) else None

    with copied.alone():
        relink(open_store(RealFiles(WatchedCalls(RealCalls(), refuse)), copied.root), found)
    assert _files(copied) == TASKS + 1
    assert [path for path in copied.root.rglob("*") if path.name.endswith(".tmp")] == []


def test_what_is_removed_by_hand_meanwhile_is_passed_over(copied: StoreDir) -> None:
    names = names_of(copied)
    found = find_copies(copied.files, names)
    names[0].path.unlink()
    copied.files.remove_tree(names[-1].batch.root)
    with copied.alone():
        relink(copied, found)


@pytest.fixture(scope="module")
def old() -> Disk:
    """A store whose every shard file is there three times."""
    disk = Disk()
    store = create_store(RealFiles(disk.calls()), PLACE)[0]
    make_three(store)
    for name in names_of(store):
        written = store.root / "cache" / "written"
        store.files.write_new(written, store.files.read(name.path))
        store.files.replace(written, name.path)
    assert _files(store) == 3 * TASKS
    disk.sync()
    return disk


@pytest.mark.slow
@pytest.mark.parametrize("seed", [None, 1, 2])
def test_whoever_is_killed_linking_at_any_write_leaves_all_that_was_there(old: Disk, seed: int | None) -> None:
    """Then power is lost, or not, and the next one comes to the same end."""
    for left, _ in killed_at_each_write(old, _link_in, seed=seed, least=20):
        store = open_store(RealFiles(left.calls()), PLACE)
        assert survey(store.files, names_of(store), is_full=True).faults == []
        _link_all(store)
        assert _files(store) == TASKS
        assert store.files.unfinished(store.batches) == []


def _link_in(files: RealFiles) -> None:
    _link_all(open_store(files, PLACE))


def _link_all(store: StoreDir) -> None:
    with store.alone():
        relink(store, find_copies(store.files, names_of(store)))


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EIO, errno.EROFS])
def test_refused_write_is_told_and_leaves_all_that_was_there(old: Disk, number: int) -> None:
    for left in refused_at_each_write(old, _link_in, number, least=20, step=3):
        store = open_store(RealFiles(left.calls()), PLACE)
        assert survey(store.files, names_of(store), is_full=True).faults == []
