"""Tests of the index of a batch: it equals the records, narrows queries, and is published atomically."""

from __future__ import annotations

import shutil
from array import array
from pathlib import Path

import pytest
from msgspec.structs import replace

from codebatch.errors import BatchIncomplete, CorruptFile, StoreCorrupt, StoreError, UnknownId
from codebatch.index import keys
from codebatch.index.generations import index_hint, list_generations
from codebatch.index.read import open_index
from codebatch.index.terms import ShardTerms, TermColumn, encode_terms
from codebatch.model.digest import Digest
from codebatch.operations.maintenance.diagnosis import diagnose_store, repair_store
from codebatch.operations.project.configuration import load_configuration
from codebatch.operations.runs.collection import collect_garbage
from codebatch.operations.runs.execution import ExecutionSettings, Listener
from codebatch.operations.runs.indexing import build_index, verify_index
from codebatch.store.batches.batch_directory import BatchDir
from codebatch.store.batches.store_directory import StoreDir, create_store, open_store
from codebatch.store.results.outputs import MergedOutputs, TaskOutput, current_outputs
from codebatch.system.files.files import RealFiles
from tests.support.batches import make_batch
from tests.support.disk import Disk
from tests.support.stores import make_merged

from .batches import BASE, Said, calls, diagnostic, frame_lines, make_saying, make_store, opened, spoilt, symbol

RECORDS: Said = {
    "symbols": [[symbol("f")], [symbol("g")], [], [symbol("f"), calls("a.f")], [], [symbol("fg")], [symbol("g")]],
    "lint": [[], [diagnostic("E1")], [], [diagnostic("E10", "hint")], [], [], [diagnostic("E1", "info")]],
}


@pytest.fixture
def store(tmp_path: Path) -> StoreDir:
    return make_store(tmp_path)


@pytest.fixture
def batch(store: StoreDir, monkeypatch: pytest.MonkeyPatch) -> BatchDir:
    """A batch of seven items in three shards, with a frame for each record."""
    frame_lines(monkeypatch)
    return make_saying(store, 7, RECORDS)


def _remove_index(store: StoreDir, batch: BatchDir) -> None:
    shutil.rmtree(store.root / "indexes" / batch.id)


def _outputs(batch: BatchDir) -> MergedOutputs:
    outputs = current_outputs(batch)
    assert outputs is not None
    return outputs


def _output(batch: BatchDir, task: str) -> TaskOutput:
    output = _outputs(batch).manifest.task_output(task)
    assert output is not None
    return output


def _shard_file(batch: BatchDir, task: str, place: int) -> Path:
    return _outputs(batch).shard_path(_output(batch, task), place)


def test_an_index_names_the_frames_of_each_shard(store: StoreDir, batch: BatchDir) -> None:
    answer = build_index(store, batch)
    assert (answer.shard_files, answer.terms, answer.postings, answer.decoded, answer.damaged) == (6, 7, 9, 6, 0)
    index = opened(store, batch)
    symbols, lint = _output(batch, "symbols"), _output(batch, "lint")
    assert index.narrow_frames(symbols, [keys.make_lookup(keys.SYMBOL_TAG, "f")]) == [[0], [0], []]
    assert index.narrow_frames(symbols, [keys.make_lookup(keys.SYMBOL_TAG, "f*")]) == [[0], [0, 2], []]
    assert index.narrow_frames(symbols, [keys.make_lookup(keys.SYMBOL_TAG, name) for name in ("g", "fg")]) == [
        [1],
        [2],
        [0],
    ]
    assert index.narrow_frames(symbols, [keys.make_lookup(keys.REFERENCE_TAG, "f")]) == [[], [1], []]
    assert index.narrow_frames(lint, [keys.make_code_lookup("E1")]) == [[0], [], [0]]
    assert index.narrow_frames(lint, [keys.make_code_lookup("E1*")]) == [[0], [0], [0]]
    assert index.narrow_frames(lint, [keys.make_lookup(keys.SYMBOL_TAG, "f")]) == [[], [], []]


def test_index_from_stored_terms_is_identical_without_reading_records(store: StoreDir, batch: BatchDir) -> None:
    build_index(store, batch)
    first = opened(store, batch).read_postings()
    for path in batch.root.glob("outputs/*/*/*.zst"):
        path.write_bytes(b"")
    _remove_index(store, batch)
    assert build_index(store, batch).decoded == 0
    assert opened(store, batch).read_postings() == first
    assert build_index(store, batch, rebuilds=True).damaged == 6


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"cbterms",
        None,
        ShardTerms(1, (TermColumn(array("I", [1]), b""),)),
        ShardTerms(1, (TermColumn(array("I", [2]), b"nf"),)),
    ],
)
def test_damaged_or_missing_terms_file_is_rebuilt(
    store: StoreDir, batch: BatchDir, content: bytes | ShardTerms | None
) -> None:
    """The result is the same if the file is forged and consistent in itself."""
    build_index(store, batch)
    first = opened(store, batch).read_postings()
    whole = {path: path.read_bytes() for path in (store.root / "indexes" / "terms").iterdir()}
    for path in whole:
        if content is None:
            path.unlink()
        else:
            path.write_bytes(content if isinstance(content, bytes) else encode_terms(Digest(path.name), content))
    _remove_index(store, batch)
    assert build_index(store, batch).decoded == 6
    assert opened(store, batch).read_postings() == first
    assert {path: path.read_bytes() for path in whole} == whole


def test_shards_shared_with_an_indexed_batch_are_not_read_again(store: StoreDir, batch: BatchDir) -> None:
    build_index(store, batch)
    changed = {**RECORDS, "symbols": [[symbol("h")], *RECORDS["symbols"][1:]]}
    later = make_saying(store, 7, changed, second=1)
    assert build_index(store, later).decoded == 1
    lookup = [keys.make_lookup(keys.SYMBOL_TAG, "h")]
    assert opened(store, later).narrow_frames(_output(later, "symbols"), lookup) == [[0], [], []]


def test_index_of_another_batch_covers_shared_shard_files(store: StoreDir, batch: BatchDir) -> None:
    build_index(store, batch)
    changed = {**RECORDS, "symbols": [[symbol("f")], [], *RECORDS["symbols"][2:]]}
    later = make_saying(store, 7, changed, second=1)
    lookup = [keys.make_lookup(keys.SYMBOL_TAG, "f")]
    assert opened(store, batch).narrow_frames(_output(later, "symbols"), lookup) == [None, [0], []]
    with pytest.raises(UnknownId, match="has no index"):
        verify_index(store, later)


def test_damaged_shard_is_reported_and_omitted(store: StoreDir, batch: BatchDir) -> None:
    path = _shard_file(batch, "symbols", 1)
    path.write_bytes(path.read_bytes()[:-1])
    notes: list[str] = []
    answer = build_index(store, batch, note=notes.append)
    assert (answer.damaged, answer.shard_files) == (1, 5)
    assert [str(path) in note for note in notes] == [True]
    narrowed = opened(store, batch).narrow_frames(_output(batch, "symbols"), [keys.make_lookup(keys.SYMBOL_TAG, "f")])
    assert narrowed == [[0], None, []]
    with pytest.raises(StoreCorrupt, match="cannot be verified"):
        verify_index(store, batch)


def test_index_verification_compares_with_the_records(store: StoreDir, batch: BatchDir) -> None:
    build_index(store, batch)
    before = {path: path.stat().st_mtime_ns for path in store.root.rglob("*")}
    assert verify_index(store, batch).decoded == 6
    assert {path: path.stat().st_mtime_ns for path in store.root.rglob("*")} == before
    for path in (store.root / "indexes" / "terms").iterdir():
        path.unlink()
    make_saying_less = {**RECORDS, "lint": [[] for _ in range(7)]}
    lesser = make_saying(store, 7, make_saying_less, second=1)
    build_index(store, lesser)
    (store.root / "indexes" / batch.id).rename(store.root / "indexes" / "gone")
    (store.root / "indexes" / lesser.id).rename(store.root / "indexes" / batch.id)
    with pytest.raises(StoreCorrupt, match="does not match its records"):
        verify_index(store, batch)


def test_new_index_replaces_the_previous_generation(store: StoreDir, batch: BatchDir) -> None:
    assert open_index(store, batch.id) is None
    for number in (1, 2):
        build_index(store, batch)
        assert list_generations(store, batch.id) == [number]
    assert [path.name for path in (store.root / "indexes").iterdir() if path.name.startswith(".")] == []


@pytest.mark.parametrize("is_asked_before", [False, True])
def test_open_index_remains_usable_during_a_rebuild(store: StoreDir, batch: BatchDir, is_asked_before: bool) -> None:
    build_index(store, batch)
    index = opened(store, batch)
    if is_asked_before:
        index.find([keys.make_lookup(keys.SYMBOL_TAG, "g")])
    build_index(store, batch)
    assert index.narrow_frames(_output(batch, "symbols"), [keys.make_lookup(keys.SYMBOL_TAG, "f")]) == [[0], [0], []]


def test_index_with_missing_files_is_damaged(store: StoreDir, batch: BatchDir) -> None:
    build_index(store, batch)
    for name in (BASE, "index.json"):
        (store.root / "indexes" / batch.id / "1" / name).unlink()
        with pytest.raises(CorruptFile, match="lacks a file"):
            opened(store, batch).read_postings()


def test_diagnose_reports_a_damaged_index_and_repair_rebuilds_it(store: StoreDir, batch: BatchDir) -> None:
    build_index(store, batch)
    sound = opened(store, batch).read_postings()
    assert diagnose_store(store, is_full=False).damaged == ()
    path = store.root / "indexes" / batch.id / "1" / BASE
    path.write_bytes(path.read_bytes()[:-1])
    (damage,) = diagnose_store(store, is_full=False).damaged
    assert damage.names == (f"indexes/{batch.id}",)
    assert (str(path) in damage.problem, damage.hint) == (True, index_hint(batch.id))
    diagnosis, status = repair_store(ExecutionSettings(configuration=load_configuration(store.root)), store, Listener())
    assert (status, diagnosis.damaged, diagnosis.repaired) == (0, (), (replace(damage, hint=""),))
    assert opened(store, batch).read_postings() == sound


@pytest.mark.parametrize("is_link", [False, True])
@pytest.mark.parametrize("place", ["", "terms", "batch"])
def test_diagnose_reports_a_foreign_file_in_place_of_a_directory(
    store: StoreDir, batch: BatchDir, place: str, is_link: bool
) -> None:
    build_index(store, batch)
    path = store.root / "indexes" / (batch.id if place == "batch" else place)
    aside = path.rename(store.root.parent / "aside")
    path.symlink_to(aside) if is_link else path.write_bytes(b"")
    for is_full in (False, True):
        (damage,) = diagnose_store(store, is_full=is_full).damaged
        assert (damage.problem, damage.names) == (f"{path} is not a directory", (str(path.relative_to(store.root)),))
        assert damage.hint == f"move it away: {path}"
    path.unlink()
    assert diagnose_store(store, is_full=False).damaged == ()


def test_gc_removes_terms_that_only_removed_batches_used(store: StoreDir, batch: BatchDir) -> None:
    changed = {**RECORDS, "symbols": [[symbol("h")], *RECORDS["symbols"][1:]]}
    later = make_saying(store, 7, changed, second=1)
    for indexed in (batch, later):
        build_index(store, indexed)
    terms = store.root / "indexes" / "terms"
    own = {_output(batch, "symbols").shards[0].digest, _output(later, "symbols").shards[0].digest}
    (unused,) = own - {_output(later, "symbols").shards[0].digest}
    before = {path.name for path in terms.iterdir()}
    would = collect_garbage(store, keep=1, is_dry=True)
    assert {path.name for path in (store.root / "indexes").iterdir()} == {batch.id, later.id, "terms"}
    assert collect_garbage(store, keep=1) == would
    assert {path.name for path in (store.root / "indexes").iterdir()} == {later.id, "terms"}
    assert {path.name for path in terms.iterdir()} == before - {unused}
    assert verify_index(store, later).terms == 8


def test_unmerged_batch_has_no_index(store: StoreDir) -> None:
    with pytest.raises(BatchIncomplete, match="has no merged results yet"):
        build_index(store, make_batch(store, [b"a"], shard_items=1))


def test_batch_without_records_has_an_index(store: StoreDir) -> None:
    batch = make_saying(store, 1, {})
    assert (build_index(store, batch).terms, verify_index(store, batch).postings) == (0, 0)


def test_flipped_byte_anywhere_in_an_index_is_detected(store: StoreDir, batch: BatchDir) -> None:
    build_index(store, batch)
    path = store.root / "indexes" / batch.id / "1" / BASE
    for data in spoilt(path.read_bytes()):
        path.write_bytes(data)
        with pytest.raises(CorruptFile, match=r"does not match index\.json"):
            opened(store, batch).read_postings()
    about = path.with_name("index.json")
    document = about.read_bytes()
    for at in range(len(document)):
        about.write_bytes(document[:at])
        with pytest.raises(CorruptFile):
            open_index(store, batch.id)


@pytest.mark.parametrize("broken", ["terms", "base", "generation"])
def test_foreign_file_in_place_of_an_index_file_is_replaced(store: StoreDir, batch: BatchDir, broken: str) -> None:
    build_index(store, batch)
    first = opened(store, batch).read_postings()
    old = store.root / "indexes" / batch.id / "1"
    if broken == "generation":
        shutil.rmtree(old)
        old.write_bytes(b"")
    else:
        for path in (store.root / "indexes" / "terms").iterdir() if broken == "terms" else [old / BASE]:
            path.unlink()
            path.mkdir()
        if broken == "terms":
            _remove_index(store, batch)
        else:
            (damage,) = diagnose_store(store, is_full=False).damaged
            assert damage.hint == index_hint(batch.id)
    assert build_index(store, batch).shard_files == 6
    assert opened(store, batch).read_postings() == first


def test_unreadable_terms_and_base_do_not_prevent_a_new_index(
    store: StoreDir, batch: BatchDir, monkeypatch: pytest.MonkeyPatch
) -> None:
    build_index(store, batch)
    disk = store.files.read, store.files.read_range

    def given(path: Path) -> Path:
        if path.parent.name == "terms" or path.name == BASE:
            raise StoreError("cannot read it")
        return path

    monkeypatch.setattr(store.files, "read", lambda path: disk[0](given(path)))
    monkeypatch.setattr(store.files, "read_range", lambda path, *at: disk[1](given(path), *at))
    answer = build_index(store, batch)
    assert (answer.reused, answer.decoded) == (0, 6)


def test_oversized_database_file_is_rejected(store: StoreDir, batch: BatchDir) -> None:
    build_index(store, batch)
    with (store.root / "indexes" / batch.id / "1" / BASE).open("r+b") as file:
        file.truncate(1 << 43)
    with pytest.raises(CorruptFile, match="does not match"):
        opened(store, batch).read_postings()


def test_diagnose_detects_a_truncated_snapshot_by_its_length(store: StoreDir, batch: BatchDir) -> None:
    snapshot = store.root / "snapshots" / batch.about.snapshot_id
    path = snapshot / "files.index.jsonl.zst"
    whole = path.read_bytes()
    path.write_bytes(whole[:-1])
    for _ in range(2):
        (damage,) = diagnose_store(store, is_full=False).damaged
        assert damage.names == (f"snapshots/{snapshot.name}",)
        path.unlink(missing_ok=True)
    path.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    assert diagnose_store(store, is_full=False).damaged == ()
    assert diagnose_store(store, is_full=True).damaged != ()


def test_index_survives_power_loss() -> None:
    disk, place = Disk(), Path("/a/b/store")
    store = create_store(RealFiles(disk.calls()), place)[0]
    batch = make_merged(store, [b"a", b"bb"])
    disk.sync()
    build_index(store, batch)
    disk.lose_power()
    left = open_store(RealFiles(disk.calls()), place)
    index = open_index(left, batch.id)
    assert index is not None
    index.check()
    assert verify_index(left, batch).postings
