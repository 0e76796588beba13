"""Tests of a store that was copied without its hard links: only equal shard files are linked again."""

from __future__ import annotations

import errno
import os
import shutil
from pathlib import Path

import pytest

from codebatch.cli.output.records import collection_line
from codebatch.model.digest import Digest
from codebatch.operations.runs.collection import collect_garbage, read_store_stats
from codebatch.store.batches.batch_directory import BatchDir, batch_ids, open_batch
from codebatch.store.batches.store_directory import StoreDir, create_store, open_store
from codebatch.store.results.adoption import adopt_batch
from codebatch.store.results.compaction import compact_batch
from codebatch.store.results.relinking import find_copies, replace_by_links
from codebatch.store.results.shard_survey import ShardName, shard_names, survey_shard_files
from codebatch.system.files.files import RealFiles
from codebatch.system.files.system_calls import RealCalls
from tests.support.calls import Fate, Operation, WatchedCalls
from tests.support.crashes import PLACE, killed_at_each_write, refused_at_each_write
from tests.support.disk import Disk
from tests.support.invariants import merged
from tests.support.stores import make_merged

TASKS = 5


@pytest.fixture
def shared(tmp_path: Path) -> StoreDir:
    """A store of three batches that share their shard files. All batches are settled."""
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
    """A copy of the store as made by `cp -r`, without hard links."""
    shutil.copytree(shared.root, tmp_path / "copied", symlinks=True)
    return open_store(RealFiles(), tmp_path / "copied")


def open_batches(store: StoreDir) -> list[BatchDir]:
    return [open_batch(store, batch_id) for batch_id in batch_ids(store)]


def all_shard_names(store: StoreDir) -> list[ShardName]:
    return [name for batch in open_batches(store) for name in shard_names(batch)]


def _count_shard_files(store: StoreDir) -> int:
    survey = survey_shard_files(store.files, all_shard_names(store), is_full=True)
    return survey.files


def test_gc_relinks_a_copied_store_to_its_original_size(shared: StoreDir, copied: StoreDir) -> None:
    assert (_count_shard_files(shared), _count_shard_files(copied)) == (TASKS, 3 * TASKS)
    results = [merged(batch) for batch in open_batches(copied)]
    before = {path: path.stat().st_ino for path in copied.root.rglob("*")}
    collected = collect_garbage(copied, keep=9, is_dry=True)
    assert {path: path.stat().st_ino for path in copied.root.rglob("*")} == before
    assert (collected.relinked, collected.relinked_bytes) == (2 * TASKS, collected.freed_bytes)
    assert collection_line(collected, is_dry=True).startswith("would remove 10 copies of shard files: ")
    size = read_store_stats(copied).bytes
    assert collect_garbage(copied, keep=9) == collected
    assert read_store_stats(copied).bytes == size - collected.relinked_bytes
    assert _count_shard_files(copied) == TASKS
    assert [merged(batch) for batch in open_batches(copied)] == results
    assert [path for path in copied.root.rglob("*") if path.name.endswith(".tmp")] == []
    repeated = collect_garbage(copied, keep=9)
    assert (repeated.relinked, repeated.relinked_bytes, collection_line(repeated)) == (0, 0, "nothing to remove")
    replace_by_links(open_store(RealFiles(WatchedCalls(RealCalls(), _refuse_writes)), copied.root), [])


def _refuse_writes(operation: Operation) -> Fate | None:
    return Fate(OSError(errno.EROFS, "read-only")) if operation.is_write else None


def test_relinking_frees_nothing_if_copies_have_other_names(copied: StoreDir, tmp_path: Path) -> None:
    for number, name in enumerate(all_shard_names(copied)):
        os.link(name.path, tmp_path / str(number))
    collected = collect_garbage(copied, keep=9)
    assert (collected.relinked, collected.relinked_bytes) == (2 * TASKS, 0)


def test_copies_in_removed_batches_are_not_counted_as_relinked(copied: StoreDir) -> None:
    collected = collect_garbage(copied, keep=1)
    assert (len(collected.batches), collected.relinked) == (1, TASKS), (
        "batches of other sources were removed or left unlinked"
    )


@pytest.mark.parametrize("place", [0, 3, -1])
def test_damaged_file_is_neither_relinked_nor_used_as_the_original(copied: StoreDir, place: int) -> None:
    """The result is the same if most names belong to the damaged file."""
    first, second, third = (next(iter(shard_names(batch))).path for batch in open_batches(copied))
    data = bytearray(first.read_bytes())
    data[place] ^= 1
    first.write_bytes(data)
    second.unlink()
    os.link(first, second)
    assert collect_garbage(copied, keep=9).relinked == 2 * TASKS - 2
    assert first.read_bytes() == second.read_bytes() == data != third.read_bytes()


def test_copies_beyond_the_link_limit_remain(copied: StoreDir, monkeypatch: pytest.MonkeyPatch) -> None:
    link = os.link
    left = iter(range(1))

    def refuse(*arguments: object, **keywords: object) -> None:
        if next(left, None) is None:
            raise OSError(errno.EMLINK, "Too many links")
        link(*arguments, **keywords)  # type: ignore[arg-type]

    monkeypatch.setattr(os, "link", refuse)
    collect_garbage(copied, keep=9)
    assert _count_shard_files(copied) == 3 * TASKS - 1
    assert survey_shard_files(copied.files, all_shard_names(copied), is_full=True).faults == []


@pytest.mark.parametrize("number", [errno.EACCES, errno.EPERM, errno.EROFS, errno.EISDIR])
def test_refused_name_keeps_its_copy_and_others_are_relinked(copied: StoreDir, number: int) -> None:
    copies = find_copies(copied.files, all_shard_names(copied))
    refused = copies[0].names[0]

    def refuse(operation: Operation) -> Fate | None:
        return Fate(OSError(number, os.strerror(number))) if operation == Operation("rename", refused) else None

    with copied.exclusive_lock():
        replace_by_links(open_store(RealFiles(WatchedCalls(RealCalls(), refuse)), copied.root), copies)
    assert _count_shard_files(copied) == TASKS + 1
    assert [path for path in copied.root.rglob("*") if path.name.endswith(".tmp")] == []


def test_relinking_ignores_files_that_were_removed_meanwhile(copied: StoreDir) -> None:
    names = all_shard_names(copied)
    copies = find_copies(copied.files, names)
    names[0].path.unlink()
    copied.files.remove_tree(names[-1].batch.root)
    with copied.exclusive_lock():
        replace_by_links(copied, copies)


@pytest.fixture(scope="module")
def old() -> Disk:
    """A disk with a store that contains three copies of every shard file."""
    disk = Disk()
    store = create_store(RealFiles(disk.calls()), PLACE)[0]
    make_three(store)
    for name in all_shard_names(store):
        copy = store.root / "cache" / "written"
        store.files.write_new(copy, store.files.read(name.path))
        store.files.replace(copy, name.path)
    assert _count_shard_files(store) == 3 * TASKS
    disk.sync()
    return disk


@pytest.mark.slow
@pytest.mark.parametrize("seed", [None, 1, 2])
def test_relinking_killed_at_any_write_loses_nothing(old: Disk, seed: int | None) -> None:
    """The check is made with and without a power loss after the kill. The next relinking reaches the same state."""
    for left, _ in killed_at_each_write(old, _link_in, seed=seed, least=20):
        store = open_store(RealFiles(left.calls()), PLACE)
        assert survey_shard_files(store.files, all_shard_names(store), is_full=True).faults == []
        _link_all(store)
        assert _count_shard_files(store) == TASKS
        assert store.files.unfinished(store.batches) == []


def _link_in(files: RealFiles) -> None:
    _link_all(open_store(files, PLACE))


def _link_all(store: StoreDir) -> None:
    with store.exclusive_lock():
        replace_by_links(store, find_copies(store.files, all_shard_names(store)))


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EIO, errno.EROFS])
def test_relinking_with_refused_writes_loses_nothing(old: Disk, number: int) -> None:
    for left in refused_at_each_write(old, _link_in, number, least=20, step=3):
        store = open_store(RealFiles(left.calls()), PLACE)
        assert survey_shard_files(store.files, all_shard_names(store), is_full=True).faults == []
