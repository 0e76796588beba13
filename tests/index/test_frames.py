"""Tests of frames: the terms that they post, from records or their lines, and the reading of frames from an index."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from codebatch.errors import StoreCorrupt
from codebatch.index.build import decode_shard_terms, merge_terms, publish_index
from codebatch.index.terms import FrameTerms, collect_terms, line_terms
from codebatch.model.record import Record
from codebatch.operations.runs.indexing import build_index, verify_index
from codebatch.protocol.record_frames import FRAME_BYTES, FrameWriter, iter_frames, iter_places
from codebatch.query.filters.filters import RecordFilter
from codebatch.query.sources.records import BatchRecords
from codebatch.store.batches.batch_directory import BatchDir
from codebatch.store.batches.store_directory import StoreDir
from codebatch.store.results.outputs import MergedOutputs, TaskOutput, current_outputs
from codebatch_workers.runtime.results import NO_RECORDS, EncodedRecords, ReusedRecords
from codebatch_workers.runtime.terms import terms_by_frame

from .batches import calls, depends, diagnostic, frame_lines, make_saying, make_store, metric, symbol

SOME: list[Record] = [
    symbol("f"),
    symbol("g"),
    calls("a.f"),
    calls("b.f"),
    depends("a/b.py"),
    diagnostic("E1"),
    diagnostic("E1", "hint"),
    metric("loc", 3),
]
FILTER = RecordFilter(names=("f",))

# The end of a line: the number of frames after its first one, and its distance in bytes from the end of that frame.
ends = st.tuples(st.integers(0, 3), st.integers(-2, 2))
records = st.tuples(st.sampled_from(SOME), st.none() | ends)
items = st.tuples(st.sampled_from(["new", "kept", "kept"]), st.lists(records, max_size=6))


def _line(record: Record) -> bytes:
    return msgspec.json.encode(record) + b"\n"


def _padded_record(record: Record, at: int, end: tuple[int, int] | None) -> Record:
    """Return a record whose line begins at byte `at` of its shard and ends as given, unless it is too long for that."""
    if end is None:
        return record
    missing = (at // FRAME_BYTES + 1 + end[0]) * FRAME_BYTES + end[1] - at - len(_line(record))
    return replace(record, path="a" + "/" * max(missing, 0))


def _make_records(
    drawn: Sequence[tuple[str, list[tuple[Record, tuple[int, int] | None]]]],
) -> list[EncodedRecords | ReusedRecords]:
    encoded: list[EncodedRecords | ReusedRecords] = []
    at = 0
    for how, drawn_records in drawn:
        new_records: list[Record] = []
        lines = b""
        for record, end in drawn_records:
            new_records.append(_padded_record(record, at + len(lines), end))
            lines += _line(new_records[-1])
        at += len(lines)
        encoded.append(
            ReusedRecords(lines)
            if how == "kept"
            else EncodedRecords(lines, new_records, [*map(type, new_records)])
            if new_records
            else NO_RECORDS
        )
    return encoded


def _terms(posted: FrameTerms) -> dict[bytes, bytes]:
    return collect_terms((posted,)).frames_by_key()


@settings(deadline=None)
@given(st.lists(items, max_size=8))
def test_frames_post_the_same_terms_from_records_as_from_lines(
    drawn: list[tuple[str, list[tuple[Record, tuple[int, int] | None]]]],
) -> None:
    """Items may be empty, have some lines or several frames, and end exactly at the end of a frame or next to it."""
    encoded = _make_records(drawn)
    lines = b"".join(item_records.lines for item_records in encoded)
    frames = FrameWriter().encode(lines)
    sizes = [place.bytes for place in iter_places(frames, len(lines))]
    line_blocks = [*iter_frames(frames, len(lines))]
    posted_terms = [*terms_by_frame(encoded, sizes)]
    assert len(posted_terms) == len(line_blocks)
    for posted, lines_of_frame in zip(posted_terms, line_blocks, strict=True):
        assert _terms(posted) == _terms(line_terms(lines_of_frame))


def test_invalid_reused_lines_are_rejected() -> None:
    with pytest.raises(ValueError, match="cannot be read"):
        list(terms_by_frame([EncodedRecords(b"", [], []), ReusedRecords(b"[]\n")], [3]))


@pytest.fixture
def store(tmp_path: Path) -> StoreDir:
    return make_store(tmp_path)


def _shard(batch: BatchDir) -> tuple[MergedOutputs, TaskOutput]:
    outputs = current_outputs(batch)
    assert outputs is not None
    output = outputs.manifest.task_output("symbols")
    assert output is not None
    return outputs, output


def _answer(store: StoreDir, batch: BatchDir, note: bool = True) -> bytes:
    records = BatchRecords(store, batch, pytest.fail if note else None)
    return msgspec.json.encode([*records.iter_records("symbols", FILTER)])


def test_selected_frames_match_the_full_shard(store: StoreDir, monkeypatch: pytest.MonkeyPatch) -> None:
    frame_lines(monkeypatch)
    batch = make_saying(store, 3, {"symbols": [[symbol(f"{name}{item}") for name in "abc"] for item in range(3)]})
    outputs, output = _shard(batch)
    every = [*outputs.iter_shard(output, 0)]
    assert len(every) == 9
    chance = random.Random(0)
    for size in (*range(10), 3, 5):
        some = sorted(chance.sample(range(9), size))
        before = outputs.read.frames
        assert [*outputs.iter_frames(output, 0, some)] == [every[frame] for frame in some]
        assert outputs.read.frames == before + size
    for some in ([9], [0, 9], [2**32 - 1]):
        assert [*outputs.iter_frames(output, 0, some)] == every


def test_index_with_nonexistent_frames_hides_no_record(store: StoreDir, monkeypatch: pytest.MonkeyPatch) -> None:
    frame_lines(monkeypatch)
    batch = make_saying(store, 6, {"symbols": [[symbol("f"), symbol(f"g{item}")] for item in range(6)]})
    expected = _answer(store, batch, note=False)
    outputs, _ = _shard(batch)
    contents = merge_terms(decode_shard_terms(store, outputs, pytest.fail)[0].items())
    for frame in (6, 7, 2**32 - 1):
        posting = frame | 1 << 32
        pairs = {
            key: value + posting.to_bytes(8, "little") if key == b"nf" else value
            for key, value in contents.pairs.items()
        }
        publish_index(store, batch.id, contents._replace(pairs=pairs), None)
        assert _answer(store, batch) == expected
        with pytest.raises(StoreCorrupt, match="does not match its records"):
            verify_index(store, batch)


def test_flipped_byte_in_a_frame_is_reported_or_harmless(store: StoreDir, monkeypatch: pytest.MonkeyPatch) -> None:
    """The byte may be anywhere in a shard file, of which the index selects some frames.

    The reported error has exit status 4.
    """
    frame_lines(monkeypatch)
    batch = make_saying(store, 3, {"symbols": [[symbol("f" if item % 3 else "g"), symbol("h")] for item in range(3)]})
    build_index(store, batch)
    expected = _answer(store, batch)
    outputs, output = _shard(batch)
    path = outputs.shard_path(output, 0)
    sound = path.read_bytes()
    trailer = outputs.trailer(output, 0)
    errors: dict[int, StoreCorrupt] = {}
    for at in range(len(sound)):
        path.write_bytes(sound[:at] + bytes([sound[at] ^ 1 << at % 8]) + sound[at + 1 :])
        try:
            assert _answer(store, batch) == expected
        except StoreCorrupt as error:
            errors[at] = error
    assert {error.exit_status for error in errors.values()} == {4}
    frames = enumerate(iter_frames(sound[: trailer.length], trailer.bytes))
    selected = [frame for frame, lines in frames if b'"name":"f"' in lines]
    assert selected == [2, 4]
    in_frames = {at for at in errors if at < trailer.length}
    offsets = trailer.offsets
    in_selected = {at for frame in selected for at in range(offsets[frame], offsets[frame + 1])}
    assert in_frames <= in_selected, "a frame that the index does not name was read"
    assert len(in_frames) > 0.9 * len(in_selected), "more than the few unused bits were not checked"
