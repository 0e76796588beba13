"""Tests of indexes that processes build beside a run: the bytes are the same, whichever pieces are there."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from codebatch.errors import StoreCorrupt, StoreUnwritable
from codebatch.index import word_ranges
from codebatch.index.generations import index_directory, list_generations
from codebatch.index.word_build import unindexed_ranges
from codebatch.index.word_ranges import build_segments, decode_piece, divide_contents, encode_piece, piece_name
from codebatch.index.words import INDEXED_BYTES_MAX
from codebatch.model.entry import Entry
from codebatch.operations.runs import index_helpers
from codebatch.operations.runs.index_helpers import IndexHelpers
from codebatch.operations.runs.index_process import build_index_from_pieces
from codebatch.operations.runs.indexing import build_index, verify_index
from codebatch.store.batches.batch_directory import BatchDir, load_batch_snapshot
from codebatch.store.batches.store_directory import StoreDir
from tests.support.inline_workers import inline, run

from .batches import make_saying, make_store, spoilt

_FILES = 60


@pytest.fixture
def store(tmp_path: Path) -> StoreDir:
    return make_store(tmp_path)


@pytest.fixture
def batch(store: StoreDir, monkeypatch: pytest.MonkeyPatch) -> BatchDir:
    """A batch whose contents are divided into four ranges, and for whose words helpers are started."""
    monkeypatch.setattr(word_ranges, "CONTENTS_MAX", 16)
    monkeypatch.setattr(index_helpers, "_CONTENT_BYTES_MIN", 1)
    return _make_batch(store)


def _make_batch(store: StoreDir, *bases: BatchDir) -> BatchDir:
    contents = {b"f%03d.py" % number: b"common own%d\n" % number for number in range(_FILES)}
    ids = tuple(base.id for base in bases)
    return make_saying(store, _FILES, {}, contents=contents, second=len(bases), bases=ids)


def _word_files(store: StoreDir, batch: BatchDir) -> list[bytes]:
    root = index_directory(store, batch.id) / str(list_generations(store, batch.id)[-1])
    return [path.read_bytes() for path in sorted(root.iterdir()) if path.name.startswith(("words", "contents"))]


def _start(helpers: IndexHelpers, store: StoreDir, batch: BatchDir, jobs: int = 2) -> list[Path]:
    """Start helpers, and return the unfinished directories in `indexes/`."""
    helpers.start_words(store, batch, load_batch_snapshot(store, batch), jobs=jobs)
    return [store.root / "indexes" / name for name in store.files.unfinished(store.root / "indexes")]


def _ranges(store: StoreDir, batch: BatchDir) -> list[list[Entry]]:
    return unindexed_ranges(store, batch, load_batch_snapshot(store, batch))


def _refuse_builds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("codebatch.index.word_build.build_segments", lambda *_: pytest.fail("a segment is built"))


@example([10 << 20] * 7, 9)
@example([INDEXED_BYTES_MAX, INDEXED_BYTES_MAX, 1], 9)
@given(st.lists(st.one_of(st.integers(0, 100), st.integers(0, INDEXED_BYTES_MAX + 2)), max_size=40), st.integers(1, 9))
def test_contents_are_divided_in_order_and_within_limits(sizes: Sequence[int], contents_max: int) -> None:
    entries = [Entry(b"f%d" % number, "file", False, size, "") for number, size in enumerate(sizes)]  # type: ignore[arg-type]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(word_ranges, "CONTENTS_MAX", contents_max)
        ranges = divide_contents(entries)
    assert [entry for part in ranges for entry in part] == [
        entry for entry in entries if entry.size <= INDEXED_BYTES_MAX
    ]
    for part, following in zip(ranges, [*ranges, []][1:], strict=True):
        total = sum(entry.size for entry in part)
        assert 1 <= len(part) <= contents_max
        assert total <= 32 << 20
        if following:
            assert len(part) == contents_max or total + following[0].size > 32 << 20


def test_pieces_are_decoded_and_damage_is_detected(store: StoreDir, batch: BatchDir) -> None:
    segments = list(build_segments(store.objects(), _ranges(store, batch)[0]))
    data = encode_piece(segments)
    assert decode_piece(data) == segments
    assert [len(segment.keys) for segment in segments] == [16]
    for damaged in spoilt(data):
        with pytest.raises(ValueError, match="damaged"):
            decode_piece(damaged)


def test_the_name_of_a_piece_depends_on_all_contents_and_their_order(store: StoreDir, batch: BatchDir) -> None:
    entries = _ranges(store, batch)[0]
    names = {piece_name(some) for some in (entries, entries[1:], entries[:-1], entries[::-1])}
    assert len(names) == 4


@pytest.mark.slow
@pytest.mark.parametrize("jobs", [2, 24])
def test_an_index_from_pieces_has_the_same_bytes(
    store: StoreDir, batch: BatchDir, monkeypatch: pytest.MonkeyPatch, jobs: int
) -> None:
    build_index(store, batch)
    expected = _word_files(store, batch)
    store.files.remove_tree(index_directory(store, batch.id))
    monkeypatch.setattr(index_helpers, "usable_cores", lambda: 64)
    with IndexHelpers() as helpers:
        (directory,) = _start(helpers, store, batch, jobs)
        assert len(list(directory.glob("request-*"))) == -(-jobs // 8)
        with monkeypatch.context() as patch:
            _refuse_builds(patch)
            answer = build_index(store, batch, read_piece=helpers.read_piece)
    assert (answer.contents, len(expected)) == (_FILES, 5)
    assert _word_files(store, batch) == expected
    assert store.files.unfinished(store.root / "indexes") == []
    assert verify_index(store, batch).contents == _FILES


def _remove(path: Path) -> None:
    path.unlink()


def _damage(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-1])


def _replace_by_directory(path: Path) -> None:
    path.unlink()
    path.mkdir()


@pytest.mark.slow
@pytest.mark.parametrize("spoil", [_remove, _damage, _replace_by_directory])
def test_a_lost_piece_is_built(store: StoreDir, batch: BatchDir, spoil: Callable[[Path], None]) -> None:
    build_index(store, batch)
    expected = _word_files(store, batch)
    names = _piece_names(store, batch)
    store.files.remove_tree(index_directory(store, batch.id))
    with IndexHelpers() as helpers:
        (directory,) = _start(helpers, store, batch)
        assert helpers.read_piece(names[-1]), "the last piece is not written"
        spoil(directory / names[1])
        build_index(store, batch, read_piece=helpers.read_piece)
    assert _word_files(store, batch) == expected


def _piece_names(store: StoreDir, batch: BatchDir) -> list[str]:
    entries = sorted(load_batch_snapshot(store, batch).entries, key=lambda entry: entry.path)
    return list(map(piece_name, divide_contents(entries)))


@pytest.mark.slow
def test_without_helpers_no_piece_is_waited_for(store: StoreDir, batch: BatchDir) -> None:
    with IndexHelpers() as helpers:
        assert helpers.read_piece("any") is None
        (directory,) = _start(helpers, store, batch)
        process = helpers._word_processes[0]
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        assert helpers.read_piece("0" * 64) is None
        assert directory.exists()
    assert not directory.exists()
    assert helpers.read_piece("any") is None


@pytest.mark.slow
def test_a_helper_that_hangs_is_killed(store: StoreDir, batch: BatchDir, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(index_helpers, "_PIECE_SECONDS_MAX", 0.05)
    with IndexHelpers() as helpers:
        _start(helpers, store, batch)
        process = helpers._word_processes[0]
        os.kill(process.pid, signal.SIGSTOP)
        assert helpers.read_piece("0" * 64) is None
        assert process.returncode == -signal.SIGKILL


def test_no_helpers_are_started_if_they_would_not_pay(
    store: StoreDir, batch: BatchDir, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(index_helpers, "start_process", lambda *_, **__: pytest.fail("a helper is started"))
    size = sum(entry.size for entry in load_batch_snapshot(store, batch).entries)
    with IndexHelpers() as helpers:
        assert _start(helpers, store, batch, jobs=1) == []
        with monkeypatch.context() as patch:
            patch.setattr(index_helpers, "_CONTENT_BYTES_MIN", size + 1)
            assert _start(helpers, store, batch) == []
        build_index(store, batch)
        assert _start(helpers, store, batch) == []
        assert _start(helpers, store, _make_batch(store, batch)) == []


@pytest.mark.parametrize("error", [StoreUnwritable("full"), OSError("no process")])
def test_a_run_goes_on_if_no_helper_can_be_started(
    store: StoreDir, batch: BatchDir, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(index_helpers, "start_process", refuse)
    with IndexHelpers() as helpers:
        _start(helpers, store, batch)
        build_index(store, batch, read_piece=helpers.read_piece)
    assert verify_index(store, batch).contents == _FILES
    assert store.files.unfinished(store.root / "indexes") == []


_KILLED_RUN = """
import os, sys
from pathlib import Path
from codebatch.operations.runs import index_helpers
from codebatch.store.batches.batch_directory import iter_batches, load_batch_snapshot
from codebatch.store.batches.store_directory import open_store
from codebatch.system.files.files import RealFiles

index_helpers._CONTENT_BYTES_MIN = 1
store = open_store(RealFiles(), Path(sys.argv[1]))
batch = next(iter(iter_batches(store)))
helpers = index_helpers.IndexHelpers()
helpers.start_words(store, batch, load_batch_snapshot(store, batch), jobs=2)
print(helpers._word_processes[0].pid, flush=True)
os.kill(os.getpid(), 9)
"""


@pytest.mark.slow
def test_after_a_kill_the_next_writer_removes_the_pieces(store: StoreDir, batch: BatchDir) -> None:
    killed = subprocess.run(
        [sys.executable, "-c", _KILLED_RUN, str(store.root)], stdout=subprocess.PIPE, check=False, text=True
    )
    assert killed.returncode == -signal.SIGKILL
    deadline = time.monotonic() + 10
    while sys.platform == "linux" and _is_running(int(killed.stdout)):
        assert time.monotonic() < deadline, "the helper is alive"
        time.sleep(0.01)
    assert len(store.files.unfinished(store.root / "indexes")) == 1
    with store.writing():
        pass
    assert store.files.unfinished(store.root / "indexes") == []
    build_index(store, batch)
    assert verify_index(store, batch).contents == _FILES


def _is_running(pid: int) -> bool:
    try:
        return "State:\tZ" not in Path(f"/proc/{pid}/status").read_text(encoding="ascii")
    except (FileNotFoundError, ProcessLookupError):
        return False


@pytest.mark.slow
def test_the_index_of_a_batch_is_built_from_all_pieces(
    store: StoreDir, batch: BatchDir, monkeypatch: pytest.MonkeyPatch
) -> None:
    with IndexHelpers() as helpers:
        (directory,) = _start(helpers, store, batch)
        for name in _piece_names(store, batch):
            assert helpers.read_piece(name)
        with monkeypatch.context() as patch:
            _refuse_builds(patch)
            build_index_from_pieces(store.root, batch.id, directory)
        next(directory.glob("[0-9a-f]*")).unlink()
        build_index_from_pieces(store.root, batch.id, directory)
    assert verify_index(store, batch).contents == _FILES


@pytest.mark.slow
def test_a_process_builds_the_index_only_after_all_pieces(store: StoreDir, batch: BatchDir) -> None:
    with IndexHelpers() as helpers:
        helpers.start_index(batch)
        assert not helpers.has_built_index()
        _start(helpers, store, batch)
        process = helpers._word_processes[0]
        os.kill(process.pid, signal.SIGSTOP)
        helpers.start_index(batch)
        assert not helpers.has_built_index()
        os.kill(process.pid, signal.SIGCONT)
        assert process.wait() == 0
        helpers.start_index(batch)
        assert helpers.has_built_index()
    assert verify_index(store, batch).contents == _FILES


@pytest.mark.slow
def test_a_process_that_does_not_end_has_built_no_index(
    store: StoreDir, batch: BatchDir, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(index_helpers, "_INDEX_SECONDS_MAX", 0.05)
    with IndexHelpers() as helpers:
        _start(helpers, store, batch)
        helpers._word_processes[0].wait()
        helpers.start_index(batch)
        process = helpers._index_process
        assert process is not None
        os.kill(process.pid, signal.SIGSTOP)
        assert not helpers.has_built_index()
    assert process.returncode == -signal.SIGKILL


@pytest.mark.slow
def test_an_index_without_damaged_data_is_left_to_the_run(
    store: StoreDir, batch: BatchDir, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("codebatch.index.word_build.batch_items", _raise_damage)
    with pytest.raises(StoreCorrupt, match="unreadable"):
        build_index_from_pieces(store.root, batch.id, tmp_path)
    assert list_generations(store, batch.id) == []


def _raise_damage(*_: object) -> None:
    raise StoreCorrupt("the items are unreadable")


def _make_tree(root: Path) -> Path:
    tree = root / "tree"
    tree.mkdir()
    for number in range(9):
        (tree / f"m{number}.py").write_text(f"own{number} = {number}\n", encoding="utf-8")
    return tree


@pytest.mark.slow
def test_processes_build_the_index_of_a_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(index_helpers, "_CONTENT_BYTES_MIN", 1)
    monkeypatch.setattr(IndexHelpers, "start_index", _start_index_later)
    with inline(), monkeypatch.context() as patch:
        patch.setattr("codebatch.operations.runs.indexing.build_index", lambda *_, **__: pytest.fail("it is built"))
        first = run(_make_tree(tmp_path), tmp_path / "store")
    assert verify_index(first.store, first.batch).contents == 9
    assert first.store.files.unfinished(first.store.root / "indexes") == []
    expected = _word_files(first.store, first.batch)
    build_index(first.store, first.batch, rebuilds=True)
    assert _word_files(first.store, first.batch) == expected


_start_index = IndexHelpers.start_index


def _start_index_later(helpers: IndexHelpers, batch: BatchDir) -> None:
    """Start the process for the index after all pieces are written. A run of so few files takes less time than they."""
    for process in helpers._word_processes:
        process.wait()
    _start_index(helpers, batch)


@pytest.mark.slow
def test_a_run_builds_its_index_if_a_process_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(index_helpers, "_CONTENT_BYTES_MIN", 1)
    monkeypatch.setattr(index_helpers, "_INDEX_MODULE", "codebatch.no_such_module")
    monkeypatch.setattr(IndexHelpers, "start_index", _start_index_later)
    with inline(), monkeypatch.context() as patch:
        _refuse_builds(patch)
        first = run(_make_tree(tmp_path), tmp_path / "store")
    assert verify_index(first.store, first.batch).contents == 9


@pytest.mark.slow
def test_a_run_without_an_index_starts_no_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(index_helpers, "_CONTENT_BYTES_MIN", 1)
    monkeypatch.setattr(index_helpers, "start_process", lambda *_, **__: pytest.fail("a process is started"))
    tree = _make_tree(tmp_path)
    (tree / "codebatch.toml").write_text('[index]\nbuild = "never"\n', encoding="utf-8")
    with inline():
        first = run(tree, tmp_path / "store")
    assert list_generations(first.store, first.batch.id) == []
