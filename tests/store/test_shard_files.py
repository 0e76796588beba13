"""Tests of shard files: reading returns the written items, and any change of the bytes is detected."""

from __future__ import annotations

import random
import shutil
import subprocess
import zlib

import msgspec
import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from codebatch.model.analysis.item_table import item_range, make_row
from codebatch.model.digest import Digest
from codebatch.protocol.record_frames import FRAME_BYTES, FrameWriter, decode_frames
from codebatch.store.results.shard_files import make_trailer, read_trailer, split_shard_file


def _shard_file(items: list[bytes]) -> bytes:
    return _shard_file_with_digest(items)[0]


def _shard_file_with_digest(items: list[bytes]) -> tuple[bytes, Digest]:
    """Return a shard file and its digest."""
    records = b"".join(items)
    frames = FrameWriter().encode(records)
    trailer = make_trailer(frames, b"".join(map(make_row, items)), len(records))
    return frames + trailer, read_trailer(trailer).digest


def _random_items(sizes: list[int]) -> list[bytes]:
    chance = random.Random(0)
    return [bytes(chance.choices(b"abcdefgh\n", k=size)) + b"\n" if size else b"" for size in sizes]


@settings(deadline=None)
@given(st.lists(st.sampled_from([0, 1, 100, FRAME_BYTES - 1, FRAME_BYTES, 3 * FRAME_BYTES]), max_size=12))
def test_item_is_read_from_only_the_frames_that_contain_it(sizes: list[int]) -> None:
    items = _random_items(sizes)
    data, digest = _shard_file_with_digest(items)
    frames, trailer = split_shard_file(data, digest)
    assert frames == data[: trailer.length]
    assert trailer == read_trailer(data[trailer.length :])
    assert (trailer.bytes, trailer.crc) == (sum(map(len, items)), zlib.crc32(frames))
    for index, item in enumerate(items):
        start, end = item_range(trailer.table, index)
        covering = trailer.covering_frames(start, end)
        size = sum(frame.bytes for frame in covering.frames)
        records = decode_frames(frames[covering.offset : covering.end], size)
        assert records[start - covering.first : end - covering.first] == item
        assert size <= len(item) + 2 * (FRAME_BYTES + 3 * FRAME_BYTES)


@settings(deadline=None, max_examples=50)
@given(st.lists(st.sampled_from([0, 1, 100, FRAME_BYTES - 1, FRAME_BYTES, 3 * FRAME_BYTES]), max_size=12), st.data())
def test_several_items_are_read_with_each_frame_read_once(sizes: list[int], data: st.DataObject) -> None:
    items = _random_items(sizes)
    chosen = sorted(data.draw(st.sets(st.sampled_from(range(len(items)))))) if items else []
    frames, trailer = split_shard_file(*_shard_file_with_digest(items))
    records_by_item = []
    read = 0
    for covering, inside in trailer.frames_with(chosen):
        assert covering.offset >= read, "a frame was read twice or out of order"
        read = covering.end
        records = decode_frames(frames[covering.offset : covering.end], sum(frame.bytes for frame in covering.frames))
        records_by_item += [
            (item, records[start - covering.first : end - covering.first]) for item, start, end in inside
        ]
    assert records_by_item == [(item, items[item]) for item in chosen]


def test_rows_longer_than_the_frames_are_rejected() -> None:
    trailer = split_shard_file(*_shard_file_with_digest([b"a\n"]))[1]
    with pytest.raises(ValueError, match="inconsistent"):
        msgspec.structs.replace(trailer, table=make_row(b"more\n")).frames_with([0])


def test_different_shard_files_have_different_digests() -> None:
    assert _shard_file_with_digest([b"a\n", b"b\n"]) == _shard_file_with_digest([b"a\n", b"b\n"])
    shard_files = [
        _shard_file_with_digest(items) for items in ([b"a\n", b"b\n"], [b"a\nb\n"], [b"a\nb\n", b""], [], [b""])
    ]
    assert len({digest for _, digest in shard_files}) == len(shard_files)
    with pytest.raises(ValueError, match="it belongs to another shard"):
        split_shard_file(shard_files[0][0], shard_files[1][1])


@pytest.mark.parametrize("sizes", [[], [0], [3], [40_000, 0, 20_000]])
def test_truncated_or_flipped_shard_file_is_rejected(sizes: list[int]) -> None:
    data, digest = _shard_file_with_digest(_random_items(sizes))
    step = max(1, len(data) // 700)
    for at in range(0, len(data), step):
        with pytest.raises(ValueError, match="it"):
            split_shard_file(data[:at], digest)
        flipped = bytearray(data)
        flipped[at] ^= 0x10
        with pytest.raises(ValueError, match="it"):
            split_shard_file(bytes(flipped), digest)
        with pytest.raises(ValueError, match="it"):
            split_shard_file(data + data[: at + 1], digest)


def test_trailer_with_an_oversized_length_is_rejected() -> None:
    data, digest = _shard_file_with_digest([b"a\n"])
    frames, trailer = split_shard_file(data, digest)
    tail = bytearray(data[len(frames) :])
    tail[8:12] = (2**32 - 1).to_bytes(4, "little")
    with pytest.raises(ValueError, match="damaged"):
        read_trailer(bytes(tail))
    assert read_trailer(data[len(frames) :]) == trailer


@pytest.mark.skipif(shutil.which("zstdcat") is None, reason="needs zstd")
def test_zstdcat_and_python_zstandard_skip_the_trailer() -> None:
    files = [_shard_file(_random_items(sizes)) for sizes in ([3], [], [40_000])]
    whole = b"".join(_random_items([3]) + _random_items([40_000]))
    assert subprocess.run(["zstdcat"], input=b"".join(files), stdout=subprocess.PIPE, check=True).stdout == whole
    with zstandard.ZstdDecompressor().stream_reader(b"".join(files), read_across_frames=True) as reader:
        assert reader.read() == whole
