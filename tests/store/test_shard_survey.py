"""Tests of the survey of shard files after any damage, and of the repair that relinks names to sound files."""

from __future__ import annotations

import copy
import errno
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from codebatch.model.digest import Digest
from codebatch.operations.project.configuration import load_configuration
from codebatch.operations.runs.execution import ExecutionSettings, Listener
from codebatch.operations.runs.repair import RepairFailure, relink_names, repair_shard_files
from codebatch.store.batches.batch_directory import BatchDir, batch_ids, open_batch
from codebatch.store.batches.store_directory import StoreDir, create_store, open_store
from codebatch.store.results.adoption import adopt_batch
from codebatch.store.results.compaction import compact_batch
from codebatch.store.results.shard_survey import ShardFileSurvey, ShardName, shard_names, survey_shard_files
from codebatch.system.files.files import RealFiles
from codebatch.system.files.system_calls import RealCalls
from tests.support.calls import Fate, Operation, WatchedCalls
from tests.support.crashes import PLACE, killed_at_each_write, refused_at_each_write
from tests.support.disk import Disk
from tests.support.invariants import merged
from tests.support.stores import make_merged


def make_two_batches(store: StoreDir) -> tuple[BatchDir, BatchDir]:
    """Make a batch and another that shares all its shard files."""
    one = make_merged(store, [b"a", b"bb"], second=1)
    return one, adopt_batch(store, one, sources=(b"/elsewhere",), stat_cache="", at_ns=2 * 10**9)


def survey_batches(store: StoreDir, *batches: BatchDir, is_full: bool = True) -> ShardFileSurvey:
    return survey_shard_files(store.files, [name for batch in batches for name in shard_names(batch)], is_full=is_full)


@pytest.mark.parametrize("is_chosen", [True, False])
def test_quick_survey_reads_every_byte_of_chosen_digests_only(store: StoreDir, is_chosen: bool) -> None:
    names = [name for batch in make_two_batches(store) for name in shard_names(batch)]
    damaged, *_ = (name for name in names if name.task == "lint")
    chosen = damaged.digest if is_chosen else next(name.digest for name in names if name.digest != damaged.digest)
    _flip(damaged.path)
    survey = survey_shard_files(store.files, names, is_full=False, choose=lambda _: {chosen})
    assert (survey.read, [fault.digest for fault in survey.faults]) == (1, [chosen] if is_chosen else [])


def _lint_shard(batch: BatchDir) -> ShardName:
    return next(name for name in shard_names(batch) if name.task == "lint")


def _flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[3] ^= 1
    path.write_bytes(data)


def _cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-1])


def _append(path: Path) -> None:
    path.write_bytes(path.read_bytes() + b"\0")


def _replace(path: Path, make: Callable[[Path], object]) -> None:
    path.unlink()
    make(path)


def _replace_by_another_task(path: Path) -> None:
    (replacement,) = (path.parent.parent / "parse").iterdir()
    _replace(path, lambda path: shutil.copy(replacement, path))


def _replace_by_directory(path: Path) -> None:
    _replace(path, lambda path: (path / "below").mkdir(parents=True))


def _replace_by_link(path: Path) -> None:
    _replace(path, lambda path: path.symlink_to("/etc/hostname"))


def _replace_by_link_to_sound_copy(path: Path) -> None:
    path.rename(path.with_name("sound"))
    path.symlink_to("sound")


IN_PLACE = (_flip, _cut, _append)
ONE_NAME_ONLY = (
    Path.unlink,
    _replace_by_another_task,
    _replace_by_directory,
    _replace_by_link,
    _replace_by_link_to_sound_copy,
)
LENGTHS_TELL = (_cut, _append, *ONE_NAME_ONLY)


@pytest.mark.parametrize("damage", [*IN_PLACE, *ONE_NAME_ONLY])
def test_damaged_shard_file_is_a_single_fault_with_all_its_names(
    store: StoreDir, damage: Callable[[Path], None]
) -> None:
    one, adopted = make_two_batches(store)
    sound = survey_batches(store, one, adopted)
    assert (sound.names, sound.files, sound.faults) == (10, 5, [])
    damage(_lint_shard(one).path)
    for is_full in (True, False):
        faults = survey_batches(store, one, adopted, is_full=is_full).faults
        if is_full or damage in LENGTHS_TELL:
            (fault,) = faults
            assert [name.batch.id for name in fault.names] == [one.id, adopted.id][: 2 if damage in IN_PLACE else 1]
            assert {name.path.parent.name for name in fault.names} == {"lint"}
        else:
            assert faults == []


def test_survey_finds_every_flipped_byte_and_every_truncation(store: StoreDir) -> None:
    batch = make_merged(store, [b"a"])
    name = _lint_shard(batch)
    sound = name.path.read_bytes()
    for place in range(len(sound)):
        name.path.write_bytes(sound[:place] + bytes([sound[place] ^ 0x20]) + sound[place + 1 :])
        assert len(survey_shard_files(store.files, [name], is_full=True).faults) == 1, place
        name.path.write_bytes(sound[:place])
        assert len(survey_shard_files(store.files, [name], is_full=False).faults) == 1, place


def test_quick_survey_finds_truncation_without_a_length_in_the_manifest(store: StoreDir) -> None:
    name = _lint_shard(make_merged(store, [b"a"]))
    taken_over = replace(name, size=None)
    sound = name.path.read_bytes()
    for length in range(len(sound) + 2):
        name.path.write_bytes((sound + b"\0")[:length])
        for names in ([taken_over], [taken_over, name]):
            faults = survey_shard_files(store.files, names, is_full=False).faults
            assert [fault.names for fault in faults] == ([] if length == len(sound) else [tuple(names)]), length


def test_unreadable_shard_file_is_a_fault(store: StoreDir) -> None:
    batch = make_merged(store, [b"a"])
    path = _lint_shard(batch).path

    def refuse(operation: Operation) -> Fate | None:
        return Fate(OSError(errno.EIO, "I/O error")) if operation == Operation("pread", path) else None

    failing = RealFiles(WatchedCalls(RealCalls(), refuse))
    (fault,) = survey_shard_files(failing, shard_names(batch), is_full=True).faults
    assert ([name.path for name in fault.names], "I/O error" in fault.problem) == ([path], True)


def test_survey_ignores_batches_that_were_removed_meanwhile(store: StoreDir) -> None:
    one, adopted = make_two_batches(store)
    names = [*shard_names(one), *shard_names(adopted)]
    store.files.remove_tree(one.root)
    assert survey_shard_files(store.files, names, is_full=True).faults == []
    assert [*shard_names(one)] == []


def test_survey_reports_removed_task_directories_as_missing(store: StoreDir) -> None:
    batch = make_merged(store, [b"a"])
    (outputs,) = (batch.root / "outputs").iterdir()
    for task in ("lint", "parse"):
        shutil.rmtree(outputs / task)
    faults = survey_batches(store, batch).faults
    assert sorted(name.task for fault in faults for name in fault.names) == ["lint", "parse"]
    assert {fault.problem for fault in faults} == {"it is missing"}


# -- Repair by relinking ----------------------------------------------------------------------------------------------


def repair_by_relinking(store: StoreDir, survey: ShardFileSurvey) -> dict[Digest, RepairFailure]:
    """Repair from sound files, without executing tasks."""
    execution = ExecutionSettings(configuration=load_configuration(Path("/")))
    with store.writing() as lock:
        return dict(repair_shard_files(execution, store, lock, survey, Listener()).reasons)


@pytest.mark.parametrize("damage", ONE_NAME_ONLY)
def test_damaged_name_is_relinked_to_the_sound_file_of_another_batch(
    store: StoreDir, damage: Callable[[Path], None]
) -> None:
    one, adopted = make_two_batches(store)
    damage(_lint_shard(one).path)
    assert repair_by_relinking(store, survey_batches(store, one, adopted)) == {}
    survey = survey_batches(store, one, adopted)
    assert (survey.faults, survey.files) == ([], 5), "the repaired name is a file of its own"
    merged(one)
    assert [path for path in store.batches.iterdir() if path.name.startswith(".")] == []


def test_all_names_of_a_damaged_file_are_relinked_to_an_equal_file(store: StoreDir) -> None:
    one, adopted = make_two_batches(store)
    equal = make_merged(store, [b"a", b"bb"], second=3)
    _flip(_lint_shard(one).path)
    assert repair_by_relinking(store, survey_batches(store, one, adopted, equal)) == {}
    assert len({_lint_shard(batch).path.stat().st_ino for batch in (one, adopted, equal)}) == 1


def test_file_at_the_link_limit_is_copied_once(store: StoreDir, monkeypatch: pytest.MonkeyPatch) -> None:
    one, adopted = make_two_batches(store)
    equal = make_merged(store, [b"a", b"bb"], second=3)
    full = _lint_shard(equal).path.stat().st_ino
    _flip(_lint_shard(one).path)
    link = os.link

    def refuse(source: str, *arguments: object, **keywords: object) -> None:
        if os.stat(source, dir_fd=keywords["src_dir_fd"]).st_ino == full:  # type: ignore[arg-type]
            raise OSError(errno.EMLINK, "Too many links")
        link(source, *arguments, **keywords)  # type: ignore[arg-type]

    monkeypatch.setattr(os, "link", refuse)
    repair_by_relinking(store, survey_batches(store, one, adopted, equal))
    inodes = [_lint_shard(batch).path.stat().st_ino for batch in (one, adopted, equal)]
    assert inodes[0] == inodes[1] != inodes[2] == full
    assert survey_batches(store, one, adopted, equal).faults == []


@pytest.mark.parametrize("number", [errno.EACCES, errno.EPERM, errno.EROFS, errno.EXDEV])
def test_refused_name_is_reported_and_others_are_relinked(store: StoreDir, number: int) -> None:
    one, adopted = make_two_batches(store)
    equal = make_merged(store, [b"a", b"bb"], second=3)
    for name in shard_names(one):
        _flip(name.path)
    refused = _lint_shard(one)

    def refuse(operation: Operation) -> Fate | None:
        is_it = operation == Operation("rename", refused.path)
        return Fate(OSError(number, os.strerror(number))) if is_it else None

    bound = open_store(RealFiles(WatchedCalls(RealCalls(), refuse)), store.root)
    reasons = repair_by_relinking(bound, survey_batches(store, one, adopted, equal))
    assert [*reasons] == [refused.digest]
    assert str(refused.path) in reasons[refused.digest].message
    assert "--again" not in reasons[refused.digest].hint
    (fault,) = survey_batches(store, one, adopted, equal).faults
    assert [name.path for name in fault.names] == [refused.path]
    assert store.files.unfinished(store.batches) == []


def test_settled_batch_has_the_same_shard_names(store: StoreDir) -> None:
    batch = make_merged(store, [b"a"])
    (outputs,) = (batch.root / "outputs").iterdir()
    compact_batch(batch, outputs.name)  # type: ignore[arg-type]
    assert len([*shard_names(batch)]) == 5


@pytest.fixture(scope="module")
def damaged() -> tuple[Disk, Path, list[Path], bytes, bytes]:
    """A disk, the path of a sound file, two names of a damaged file in two directories, and the bytes of both files."""
    disk = Disk()
    store = create_store(RealFiles(disk.calls()), PLACE)[0]
    one, adopted = make_two_batches(store)
    sound = _lint_shard(make_merged(store, [b"a", b"bb"], second=3)).path
    names = [_lint_shard(batch).path for batch in (one, adopted)]
    good = store.files.read(sound)
    bad = good[:-1] + b"\0"
    store.files.replace(_written(store, bad), names[0])
    store.files.remove(names[1])
    store.files.create_exclusive(names[0], names[1])
    disk.sync()
    return disk, sound, names, good, bad


def _written(store: StoreDir, data: bytes) -> Path:
    path = store.root / "cache" / "written"
    store.files.write_new(path, data)
    return path


@pytest.mark.parametrize("seed", [None, 1, 2, 3])
def test_relinking_killed_at_any_write_leaves_each_name_old_or_sound(
    damaged: tuple[Disk, Path, list[Path], bytes, bytes], seed: int | None
) -> None:
    """The check is made with and without a power loss after the kill. The next relinking succeeds."""
    disk, sound, names, good, bad = damaged
    for left, is_over in killed_at_each_write(disk, _relink_names(sound, names), seed=seed, least=4):
        store = open_store(RealFiles(left.calls()), PLACE)
        contents = [store.files.read(name) for name in names]
        assert set(contents) <= {good, bad}
        assert not is_over or contents == [good, good]
        relink_names(store, sound, names)
        assert [store.files.read(name) for name in names] == [good, good]
        with store.writing():
            assert store.files.unfinished(store.batches) == []


def _relink_names(sound: Path, names: list[Path]) -> Callable[[RealFiles], None]:
    def act(files: RealFiles) -> None:
        assert relink_names(open_store(files, PLACE), sound, names) is None, "the system refused one of the names"

    return act


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EIO, errno.EROFS])
def test_relinking_with_refused_writes_leaves_each_name_old_or_sound(
    damaged: tuple[Disk, Path, list[Path], bytes, bytes], number: int
) -> None:
    disk, sound, names, good, bad = damaged
    for left in refused_at_each_write(disk, _relink_names(sound, names), number, least=4):
        store = open_store(RealFiles(left.calls()), PLACE)
        assert {store.files.read(name) for name in names} <= {good, bad}


def test_relinked_names_survive_power_loss(damaged: tuple[Disk, Path, list[Path], bytes, bytes]) -> None:
    disk, sound, names, good, _ = copy.deepcopy(damaged)
    relink_names(open_store(RealFiles(disk.calls()), PLACE), sound, names)
    disk.lose_power()
    store = open_store(RealFiles(disk.calls()), PLACE)
    assert [store.files.read(name) for name in names] == [good, good]


# -- Any damage -------------------------------------------------------------------------------------------------------

HARMS = ("flip", "cut", "remove", "directory", "other content")


@pytest.fixture(scope="module")
def three() -> tuple[Disk, ExecutionSettings]:
    """A disk with two batches that share all files and one with equal files of its own, and settings for repairs."""
    disk = Disk()
    store = create_store(RealFiles(disk.calls()), PLACE)[0]
    make_two_batches(store)
    make_merged(store, [b"a", b"bb"], second=3)
    return disk, ExecutionSettings(configuration=load_configuration(Path("/")))


def _damage(disk: Disk, store: StoreDir, path: Path, how: str) -> None:
    if how in ("flip", "cut"):
        calls = disk.calls()
        file = calls.open(path, os.O_WRONLY)
        if how == "flip":
            calls.write(file, b"\xff")
        else:
            calls.ftruncate(file, 9)
        calls.close(file)
        return
    store.files.remove(path)
    if how == "directory":
        store.files.make_directory(path / "below")
    elif how == "other content":
        store.files.write_new(path, b"other")


@settings(max_examples=25, deadline=None)
@given(harms=st.lists(st.tuples(st.integers(0, 9), st.sampled_from(HARMS)), max_size=6, unique_by=lambda harm: harm[0]))
def test_repair_restores_equal_files_after_any_damage(
    three: tuple[Disk, ExecutionSettings], harms: list[tuple[int, str]]
) -> None:
    disk, execution = copy.deepcopy(three[0]), three[1]
    store = open_store(RealFiles(disk.calls()), PLACE)
    names = [name for batch_id in batch_ids(store) for name in shard_names(open_batch(store, batch_id))]
    before = [store.files.read(name.path) for name in names]
    for place, how in harms:
        _damage(disk, store, names[place].path, how)
    survey = survey_shard_files(store.files, names, is_full=True)
    with store.writing() as lock:
        assert repair_shard_files(execution, store, lock, survey, Listener()).reasons == {}
    assert [store.files.read(name.path) for name in names] == before
    assert survey_shard_files(store.files, names, is_full=True).faults == []
    assert store.files.unfinished(store.batches) == []
