"""Tests of the snapshot index in frames: splicing equals a full encoding, and partial reads equal a full read."""

from __future__ import annotations

import hashlib
import random
import tempfile
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from codebatch.errors import StoreCorrupt
from codebatch.model.digest import Digest
from codebatch.model.documents import encode_document
from codebatch.model.entry import Entry, EntryKind, encode_entry
from codebatch.store import layout
from codebatch.store.objects.frames import decompress_all
from codebatch.store.snapshots import index_frames, snapshots
from codebatch.store.snapshots.index_frames import (
    IndexFrame,
    SnapshotIndex,
    check_frames,
    frame_entries,
    make_snapshot_index,
    splice_index,
)
from codebatch.store.snapshots.snapshots import (
    Snapshot,
    SnapshotSource,
    decode_snapshot,
    load_snapshot,
    publish_snapshot,
)
from codebatch.system.files.files import RealFiles

KINDS: tuple[EntryKind, ...] = ("file", "file", "file", "symlink")


def _entry(path: bytes, seed: int) -> Entry:
    digest = Digest(hashlib.sha256(b"%d" % seed).hexdigest())
    return Entry(path, KINDS[seed % len(KINDS)], bool(seed % 3 == 0 and seed % 4 != 3), seed % 100_000, digest)


def _many(count: int) -> dict[bytes, Entry]:
    generator = random.Random(count)
    paths = {b"d%d/y%s/f%d\xff" % (number % 37, b"x" * generator.randrange(90), number) for number in range(count)}
    return {path: _entry(path, number) for number, path in enumerate(sorted(paths))}


def _make(entries: dict[bytes, Entry]) -> SnapshotIndex:
    return make_snapshot_index(encode_entry(entries[path]) for path in sorted(entries))


MANY = _many(1500)
WHOLE = _make(MANY)
PATHS = sorted(MANY)


def _publish(root: Path, index: SnapshotIndex) -> Snapshot:
    source = SnapshotSource(base="", roots=(), listing="")
    document = publish_snapshot(RealFiles(), root, index, source=source, created_at="")
    return load_snapshot(RealFiles(), root, document.snapshot_id)


def test_index_frames_contain_and_count_all_lines() -> None:
    lines = b"".join(encode_entry(MANY[path]) for path in PATHS)
    assert decompress_all(WHOLE.data) == lines
    assert hashlib.sha256(lines).hexdigest() == WHOLE.digest
    assert len(WHOLE.frames) > 3
    assert all(32 << 10 <= frame.content < (128 << 10) + 1000 for frame in WHOLE.frames[:-1])
    assert sum(frame.entries for frame in WHOLE.frames) == len(MANY)
    assert sum(frame.size for frame in WHOLE.frames) == sum(e.size for e in MANY.values() if e.kind == "file")


def test_frame_ends_at_its_byte_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = [encode_entry(MANY[path]) for path in PATHS[:10]]
    monkeypatch.setattr(index_frames, "_FRAME_LINES_AVERAGE", 1 << 33)
    monkeypatch.setattr(index_frames, "_FRAME_BYTES_MIN", 1)
    monkeypatch.setattr(index_frames, "_FRAME_BYTES_MAX", len(b"".join(lines[:4])))
    assert make_snapshot_index(lines).frames[0].entries == 4


_new_paths = st.one_of(st.binary(min_size=1, max_size=9), st.sampled_from(PATHS).map(lambda path: path + b"+"))


@settings(max_examples=30, deadline=None)
@given(
    st.dictionaries(st.one_of(st.sampled_from(PATHS), _new_paths), st.one_of(st.none(), st.integers(0, 99)), max_size=9)
)
def test_spliced_index_matches_a_full_index(seeds: dict[bytes, int | None]) -> None:
    changes = {path: None if seed is None else _entry(path, seed) for path, seed in seeds.items()}
    after = {path: entry for path, entry in (MANY | changes).items() if entry is not None}
    assert splice_index(WHOLE, changes) == _make(after)


def test_splicing_adds_and_removes_whole_ranges() -> None:
    none: dict[bytes, Entry] = {}
    some = {path: MANY[path] for path in PATHS[500:1000]}
    for before in (none, some, MANY):
        for after in (none, some, MANY):
            index = _make(before)
            changes = {path: after.get(path) for path in {*before, *after} if before.get(path) != after.get(path)}
            assert splice_index(index, changes) == _make(after)


def test_changed_line_leaves_later_frames_unchanged() -> None:
    path = PATHS[100]
    spliced = splice_index(WHOLE, {path: _entry(path, 1_000_000)})
    assert spliced.digest != WHOLE.digest
    assert spliced.frames[-2:] == WHOLE.frames[-2:]


def test_damaged_index_is_not_spliced() -> None:
    generator = random.Random(1)
    for place in generator.sample(range(len(WHOLE.data)), 20):
        damaged = bytearray(WHOLE.data)
        damaged[place] ^= 1 << generator.randrange(8)
        try:  # zstd has unused bits: if one of them is flipped, the content is unchanged.
            assert splice_index(msgspec.structs.replace(WHOLE, data=bytes(damaged)), {}).digest == WHOLE.digest
        except ValueError:
            continue
    for data in (b"", WHOLE.data[:-1], WHOLE.data + b"\0"):
        with pytest.raises(ValueError, match=r"frame|content size"):
            splice_index(msgspec.structs.replace(WHOLE, data=data), {})
    with pytest.raises(ValueError, match="it does not match its frames"):
        splice_index(msgspec.structs.replace(WHOLE, digest=Digest("0" * 64)), {})


def test_partial_reads_match_the_full_snapshot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(snapshots, "_FRAMES_CACHED_MAX", 2)
    snapshot = _publish(tmp_path, WHOLE)
    items = [MANY[path] for path in PATHS if MANY[path].kind == "file"]
    generator = random.Random(2)
    bounds = [(0, len(items)), (0, 0), (0, 1), (len(items) - 1, len(items)), (len(items), len(items))]
    bounds += [tuple(sorted(generator.sample(range(len(items)), 2))) for _ in range(10)]  # type: ignore[misc]
    for start, end in bounds:
        assert load_snapshot(RealFiles(), tmp_path, snapshot.id).items_between(start, end) == items[start:end]
        assert snapshot.items_between(start, end) == items[start:end]
        assert snapshot._items_of.cache_info().currsize <= 2
    with pytest.raises(StoreCorrupt, match="items"):
        snapshot.items_between(0, len(items) + 1)
    for number in generator.sample(range(len(items)), 20):
        assert snapshot.find_items([items[number].path]) == {items[number].path: number}
    for path in (b"", b"a", PATHS[7] + b"+", b"\xff\xff", *(path for path in PATHS[:9] if MANY[path].kind != "file")):
        assert snapshot.find_items([path]) == {}
    some = [items[7].path, PATHS[0] + b"+", items[3].path]
    assert list(snapshot.find_items(some).items()) == [(items[7].path, 7), (items[3].path, 3)]
    assert snapshot.entries == [MANY[path] for path in PATHS]


@settings(max_examples=10, deadline=None)
@given(st.sets(st.sampled_from(PATHS), max_size=5), st.sets(st.sampled_from(PATHS), max_size=5))
def test_snapshot_difference_matches_the_entries(removed: set[bytes], changed: set[bytes]) -> None:
    after = {path: entry for path, entry in MANY.items() if path not in removed}
    after |= {path: _entry(path, 7) for path in changed}
    with tempfile.TemporaryDirectory() as root:
        old, new = _publish(Path(root), WHOLE), _publish(Path(root), _make(after))
        before, later = old.differing_entries(new)
        differing = {path for path in {*before, *later} if before.get(path) != later.get(path)}
        assert differing == {path for path in MANY if MANY[path] != after.get(path)}
        assert all(old.entry(path) == MANY[path] and new.entry(path) == after.get(path) for path in removed | changed)
        assert old.entry(b"not there") is None


def test_equal_frames_are_not_decoded_for_a_snapshot_difference(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = PATHS[-1]
    old, new = (_publish(tmp_path, _make(MANY | {path: _entry(path, seed)})) for seed in (1, 2))
    decoded = []

    def decode(lines: bytes, frame: IndexFrame) -> list[Entry]:
        decoded.append(frame.path)
        return frame_entries(lines, frame)

    monkeypatch.setattr(snapshots, "frame_entries", decode)
    before, after = old.differing_entries(new)
    assert before[path] != after[path]
    assert decoded == [WHOLE.frames[-1].path] * 2
    assert old.differing_entries(old) == ({}, {})


def test_empty_index_has_a_single_empty_frame(tmp_path: Path) -> None:
    snapshot = _publish(tmp_path, _make({}))
    assert (snapshot.entries, snapshot.items_between(0, 0), snapshot.find_items([b"a"])) == ([], [], {})
    assert [frame.content for frame in snapshot.document.frames] == [0]


def test_partial_read_requires_only_its_own_frames(tmp_path: Path) -> None:
    snapshot = _publish(tmp_path, WHOLE)
    index = tmp_path / layout.SNAPSHOTS / snapshot.id / layout.SNAPSHOT_INDEX
    data = bytearray(WHOLE.data)
    data[-9] ^= 255
    index.write_bytes(data)
    assert snapshot.items_between(0, 5)
    with pytest.raises(StoreCorrupt):
        snapshot.items_between(snapshot.files - 5, snapshot.files)
    with pytest.raises(StoreCorrupt):
        snapshot.find_items([PATHS[-1]])
    with pytest.raises(StoreCorrupt):
        _ = snapshot.entries


@pytest.mark.parametrize("change", ["entries", "files", "size", "content", "length", "path", "digest"])
def test_frames_that_do_not_match_the_index_are_rejected_and_rewritten(tmp_path: Path, change: str) -> None:
    snapshot = _publish(tmp_path, WHOLE)
    first, second, *rest = WHOLE.frames
    if change == "digest":
        forged = (msgspec.structs.replace(first, digest=second.digest), second)
    elif change == "path":
        forged = (msgspec.structs.replace(first, path=first.path + b"a"), second)
    else:  # The sums are unchanged.
        values = (getattr(first, change) - 1, getattr(second, change) + 1)
        forged = tuple(  # type: ignore[assignment]
            msgspec.structs.replace(frame, **{change: value})
            for frame, value in zip((first, second), values, strict=True)
        )
    document = msgspec.structs.replace(snapshot.document, frames=(*forged, *rest))
    document_path = tmp_path / layout.SNAPSHOTS / snapshot.id / layout.SNAPSHOT_FILE
    document_path.write_bytes(encode_document(document))
    forged_snapshot = load_snapshot(RealFiles(), tmp_path, snapshot.id)
    with pytest.raises(StoreCorrupt):
        forged_snapshot.items_between(0, forged_snapshot.files)
    assert _publish(tmp_path, WHOLE).items_between(0, 9) == snapshot.items_between(0, 9)


def test_inconsistent_frames_are_rejected() -> None:
    first, second, *rest = WHOLE.frames
    replace = msgspec.structs.replace
    for frames in (
        (),
        (second, first),
        (first, first),
        (replace(first, files=first.entries + 1),),
        (replace(first, files=-1),),
        (replace(first, size=-1),),
        (replace(first, content=-1),),
        (replace(first, content=1 << 40),),
        (replace(first, length=0),),
    ):
        with pytest.raises(ValueError, match="of the index"):
            check_frames(frames)
    check_frames((first, second, *rest))


def test_snapshot_document_with_wrong_counts_is_rejected(tmp_path: Path) -> None:
    document = _publish(tmp_path, WHOLE).document
    for name in ("entries", "files", "bytes"):
        with pytest.raises(ValueError, match="count"):
            decode_snapshot(encode_document(msgspec.structs.replace(document, **{name: 1})))
