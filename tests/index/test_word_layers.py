"""Tests of the words of an index: which files are found, which segments are reused, and how damage is handled."""

from __future__ import annotations

import random
import threading
from collections.abc import Mapping
from pathlib import Path

import pytest

from codebatch.errors import CorruptFile, StoreCorrupt
from codebatch.index.generations import is_indexed, read_newest
from codebatch.index.words import name_words
from codebatch.operations.runs.indexing import build_index, verify_index
from codebatch.query.sources.records import BatchRecords
from codebatch.store.batches.batch_directory import BatchDir
from codebatch.store.batches.store_directory import StoreDir

from .batches import make_saying, make_store, opened, spoilt

Tree = dict[bytes, bytes]


@pytest.fixture
def store(tmp_path: Path) -> StoreDir:
    return make_store(tmp_path)


def _make_tree(files: int) -> Tree:
    return {b"f%04d.py" % number: b"common own%d\n" % number for number in range(files)}


def _make(store: StoreDir, second: int, tree: Tree, *bases: BatchDir) -> BatchDir:
    """Make a batch with an index."""
    batch = _make_without(store, second, tree, *bases)
    build_index(store, batch)
    return batch


def _make_without(store: StoreDir, second: int, tree: Tree, *bases: BatchDir) -> BatchDir:
    ids = tuple(base.id for base in bases)
    return make_saying(store, len(tree), {}, second=second, bases=ids, contents=tree, shard_items=len(tree))


def _find(store: StoreDir, batch: BatchDir, name: str) -> list[bytes]:
    """Return the paths of the files that are read for a name. Fail if the index is damaged."""
    records = BatchRecords(store, batch, pytest.fail)
    return [entry.path for _, entry in records.items_with_name(name)]


def _segments(store: StoreDir, batch: BatchDir) -> list[tuple[int, int]]:
    """Return the inode and the number of contents of each segment."""
    newest = read_newest(store, batch.id)
    assert newest is not None
    assert newest[1].words is not None
    root, segments = newest[0], newest[1].words.segments
    return [((root / f"words-{number:06d}.bin").stat().st_ino, about.contents) for number, about in enumerate(segments)]


def _files(store: StoreDir, batch: BatchDir) -> list[Path]:
    newest = read_newest(store, batch.id)
    assert newest is not None
    return sorted(path for path in newest[0].iterdir() if path.name.startswith(("words", "contents")))


def test_only_files_that_may_contain_a_name_are_found(store: StoreDir) -> None:
    tree = {**_make_tree(40), b"same.py": b"common own7\n", b"n.ipynb": rb'"\town7"', b"latin.py": b"own7\xe9 x"}
    batch = _make(store, 0, tree)
    assert _find(store, batch, "own7") == [b"f0007.py", b"latin.py", b"n.ipynb", b"same.py"]
    assert _find(store, batch, "own7é") == [b"latin.py"]
    assert _find(store, batch, "nope") == []
    assert _find(store, batch, "common") == _find(store, batch, "+") == sorted(tree)
    assert verify_index(store, batch).contents == 42


def test_names_that_all_occur_in_a_file(store: StoreDir) -> None:
    batch = _make(store, 0, {**_make_tree(40), b"both.py": b"own3 own4"})
    found = BatchRecords(store, batch, pytest.fail).items_with_name("own3", "own4")
    assert [entry.path for _, entry in found] == [b"both.py"]


def test_all_files_are_read_without_an_index(store: StoreDir) -> None:
    tree = _make_tree(5)
    batch = _make_without(store, 0, tree)
    assert _find(store, batch, "own3") == sorted(tree)
    build_index(store, batch)
    assert _find(store, batch, "own3") == [b"f0003.py"]
    without = BatchRecords(store, batch).items_with_name("own3")
    assert [entry.path for _, entry in without] == sorted(tree)


def test_a_changed_file_gets_a_small_segment_of_its_own(store: StoreDir) -> None:
    tree = _make_tree(510)
    first = _make(store, 0, tree)
    second = _make(store, 1, {**tree, b"f0500.py": b"edited now"}, first)
    assert _segments(store, second) == [_segments(store, first)[0], (_segments(store, second)[1][0], 1)]
    assert _find(store, second, "edited") == [b"f0500.py"]
    assert b"f0500.py" not in _find(store, second, "own500")
    assert b"f0501.py" in _find(store, second, "own501")
    assert _files(store, second)[2].stat().st_size < 100
    assert verify_index(store, second).contents == 510


def test_small_segments_are_merged(store: StoreDir) -> None:
    """After many changes of one file each, every file is found and there are few segments."""
    tree, batch, most = _make_tree(300), None, 0
    for second in range(60):
        tree[b"f%04d.py" % (7 * second % 300)] = b"edit%d\n" % second
        batch = _make(store, second, tree, *([] if batch is None else [batch]))
        most = max(most, len(_segments(store, batch)))
        assert b"f%04d.py" % (7 * second % 300) in _find(store, batch, f"edit{second}")
    assert batch is not None
    assert 3 <= most <= 7
    for second in range(60):
        assert b"f%04d.py" % (7 * second % 300) in _find(store, batch, f"edit{second}")
    assert verify_index(store, batch).contents == 300


def test_a_segment_of_which_half_is_no_longer_needed_is_replaced(store: StoreDir) -> None:
    tree = _make_tree(100)
    first = _make(store, 0, tree)
    rest = dict(list(tree.items())[:51])
    second = _make(store, 1, rest, first)
    assert _segments(store, second) == _segments(store, first)
    third = _make(store, 2, dict(list(rest.items())[:50]), second)
    assert [contents for _, contents in _segments(store, third)] == [50]


def test_an_unchanged_batch_links_all_segments(store: StoreDir) -> None:
    tree = _make_tree(30)
    first = _make(store, 0, tree)
    second = _make_without(store, 1, tree, first)
    answer = build_index(store, second)
    assert (answer.contents, answer.contents_reused) == (30, 30)
    assert _segments(store, second) == _segments(store, first)
    rebuilt = build_index(store, second, rebuilds=True)
    assert (rebuilt.contents, rebuilt.contents_reused) == (30, 0)
    assert _segments(store, second) != _segments(store, first)


def test_large_trees_have_several_segments(store: StoreDir, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("codebatch.index.word_ranges.CONTENTS_MAX", 16)
    monkeypatch.setattr("codebatch.index.word_segments.SLOTS_MAX", 4)
    batch = _make(store, 0, _make_tree(50))
    assert [contents for _, contents in _segments(store, batch)] == [16, 16, 16, 2]
    for number in range(50):
        assert b"f%04d.py" % number in _find(store, batch, f"own{number}")


def test_missing_and_large_contents_are_always_read(store: StoreDir, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("codebatch.index.word_ranges.INDEXED_BYTES_MAX", 1000)
    tree = {**_make_tree(20), b"large.py": b"x" * 1001}
    batch = _make_without(store, 0, tree)
    for path in (store.root / "objects").glob("*.pack"):
        data = path.read_bytes()
        path.write_bytes(data[:60] + bytes(byte ^ 1 for byte in data[60:90]) + data[90:])
    build_index(store, batch)
    found = _find(store, batch, "nope")
    assert b"large.py" in found
    assert 2 <= len(found) < 21
    assert verify_index(store, batch).contents == 22 - len(found)


def test_damage_is_noted_and_all_files_are_read(store: StoreDir) -> None:
    tree = _make_tree(30)
    batch = _make(store, 0, tree)
    for path in _files(store, batch):
        sound = path.read_bytes()
        for data in spoilt(sound):
            path.write_bytes(data)
            with pytest.raises(CorruptFile, match=f"{path.name} is damaged"):
                opened(store, batch).check()
            notes: list[str] = []
            records = BatchRecords(store, batch, notes.append)
            found = [entry.path for _, entry in records.items_with_name("own7")]
            assert found == (sorted(tree) if notes else [b"f0007.py"])
            assert all(f"{path.name} is damaged" in note for note in notes)
        path.unlink()
        notes = []
        records = BatchRecords(store, batch, notes.append)
        assert len(list(records.items_with_name("own7"))) == 30
        assert "lacks a file" in notes[0]
        path.write_bytes(sound)
    assert _find(store, batch, "own7") == [b"f0007.py"]


def test_damaged_segments_are_not_reused(store: StoreDir) -> None:
    tree = _make_tree(30)
    first = _make(store, 0, tree)
    path = _files(store, first)[-1]
    data = path.read_bytes()
    path.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
    second = _make_without(store, 1, tree, first)
    assert build_index(store, second).contents_reused == 0
    assert verify_index(store, second).contents == 30


def test_verify_detects_missing_words(store: StoreDir) -> None:
    """The contents of two files are exchanged in the table of an index whose checksums are right."""
    tree = {**_make_tree(30), b"a.py": b"first one", b"b.py": b"second one"}
    other = {**tree, b"a.py": b"second one", b"b.py": b"first one"}
    batch, forged = _make(store, 0, tree), _make(store, 1, other)
    for source in _files(store, batch):
        target = next(path for path in _files(store, forged) if path.name == source.name)
        target.write_bytes(source.read_bytes())
    index, other_index = (read_newest(store, each.id) for each in (batch, forged))
    assert index is not None
    assert other_index is not None
    (other_index[0] / "index.json").write_bytes((index[0] / "index.json").read_bytes())
    with pytest.raises(StoreCorrupt, match="lacks words of its files"):
        verify_index(store, forged)


def test_an_index_of_another_batch_is_not_used(store: StoreDir) -> None:
    """A table with another number of files would lead to wrong files."""
    batch, other = _make(store, 0, _make_tree(30)), _make(store, 1, _make_tree(31))
    newest = read_newest(store, batch.id)
    assert newest is not None
    for path in _files(store, other):
        (newest[0] / path.name).write_bytes(path.read_bytes())
    other_newest = read_newest(store, other.id)
    assert other_newest is not None
    (newest[0] / "index.json").write_bytes((other_newest[0] / "index.json").read_bytes())
    notes: list[str] = []
    assert len(list(BatchRecords(store, batch, notes.append).items_with_name("own7"))) == 30
    assert "has another number of files than the batch" in notes[0]


def test_index_without_words_of_the_current_version_is_not_current(
    store: StoreDir, monkeypatch: pytest.MonkeyPatch
) -> None:
    tree = _make_tree(5)
    batch = _make(store, 0, tree)
    assert is_indexed(store, batch.id)
    monkeypatch.setattr("codebatch.index.generations.WORDS_VERSION", 3)
    assert not is_indexed(store, batch.id)
    assert _find(store, batch, "own3") == sorted(tree)
    with pytest.raises(StoreCorrupt, match="lacks words"):
        verify_index(store, batch)
    build_index(store, batch)


def test_readers_use_a_newer_index_that_replaces_theirs(store: StoreDir) -> None:
    batch = _make(store, 0, _make_tree(30))
    index = opened(store, batch)
    build_index(store, batch, rebuilds=True)
    assert index.find_items(name_words("own7"), 30) == [7]


def test_two_builders_and_a_reader(store: StoreDir) -> None:
    batch = _make(store, 0, _make_tree(30))
    builders = [
        threading.Thread(target=lambda: [build_index(store, batch, rebuilds=is_new) for is_new in (True, False) * 3])
        for _ in range(2)
    ]
    for builder in builders:
        builder.start()
    while any(builder.is_alive() for builder in builders):
        assert _find(store, batch, "own7") == [b"f0007.py"]
    assert _find(store, batch, "own7") == [b"f0007.py"]
    assert verify_index(store, batch).contents == 30


@pytest.mark.parametrize("seed", range(3))
def test_random_histories_match_a_search_of_the_bytes(store: StoreDir, seed: int) -> None:
    """Nothing is missed after any sequence of edits, renames and deletions."""
    chance = random.Random(seed)
    vocabulary = [f"word{number}" for number in range(200)]

    def content() -> bytes:
        return " ".join(chance.choices(vocabulary, k=chance.randrange(12))).encode()

    tree: Tree = {b"%03d" % number: content() for number in range(chance.randrange(1, 400))}
    batches: list[BatchDir] = []
    for second in range(12):
        for _ in range(chance.choice((1, 3, 50))):
            path = b"%03d" % chance.randrange(450)
            if chance.random() < 0.3 and len(tree) > 1:
                tree.pop(path, None)
            else:
                tree[path] = content()
        batches.append(_make(store, second, tree, *batches[: -chance.randrange(1, 4) : -1]))
        _check_names(store, batches[-1], tree, chance.sample(vocabulary, 20))


def _check_names(store: StoreDir, batch: BatchDir, tree: Mapping[bytes, bytes], names: list[str]) -> None:
    for name in names:
        expected = {path for path, content in tree.items() if name.encode() in content.split()}
        found = _find(store, batch, name)
        assert found == sorted(found)
        assert expected <= {*found}
