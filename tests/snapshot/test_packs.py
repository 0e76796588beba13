"""Tests of the format of packs and their indexes."""

from __future__ import annotations

import hashlib

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from codebatch.store.objects.frames import (
    FrameError,
    PackFrame,
    compress_frame,
    decompress_all,
    decompress_one,
    iter_frames,
)
from codebatch.store.objects.packs import (
    PackIndex,
    build_index,
    decode_damaged_keys,
    decode_index,
    encode_damaged_keys,
    encode_index,
    index_from_pack,
)

GOLDEN = bytes.fromhex(
    "6362696478000001"  # magic, format 1
    "0200000000000000"  # two objects
    "2000000000000000"  # pack of 32 bytes
    + "11" * 32
    + "22" * 32
    + "1400000000000000"
    + "0000000000000000"  # offsets
    + "0c00000000000000"
    + "1400000000000000"  # lengths
    + "0300000000000000"
    + "8000000000000000"  # sizes
)
GOLDEN += hashlib.sha256(GOLDEN).digest()


def _golden_index() -> PackIndex:
    return build_index(32, [(b"\x22" * 32, PackFrame(0, 20, 128)), (b"\x11" * 32, PackFrame(20, 12, 3))])


def test_pack_index_matches_the_golden_bytes() -> None:
    assert encode_index(_golden_index()) == GOLDEN
    assert decode_index(GOLDEN) == _golden_index()


def test_damaged_pack_index_is_rejected() -> None:
    for length in range(len(GOLDEN)):
        with pytest.raises(ValueError, match="pack index"):
            decode_index(GOLDEN[:length])
    for at in range(len(GOLDEN)):
        with pytest.raises(ValueError, match="pack index"):
            decode_index(GOLDEN[:at] + bytes([GOLDEN[at] ^ 1]) + GOLDEN[at + 1 :])


@given(st.lists(st.binary(max_size=300), max_size=8))
def test_pack_index_rebuilt_from_the_pack_is_identical(contents: list[bytes]) -> None:
    contents = list(dict.fromkeys(contents))
    pack, frames = b"", []
    for content in contents:
        data = compress_frame(content)
        frames.append((hashlib.sha256(content).digest(), PackFrame(len(pack), len(data), len(content))))
        pack += data
    index = build_index(len(pack), frames)
    assert index_from_pack(lambda offset, length: pack[offset : offset + length], len(pack)) == index
    assert decode_index(encode_index(index)) == index
    for key, frame in frames:
        row = index.find(key)
        assert row is not None
        assert index.frame_at_row(row) == frame
    assert index.find(b"\0" * 32) is None


@pytest.mark.parametrize("checksum", [True, False])
@pytest.mark.parametrize("content", [b"", b"x", b"ab" * 400_000, b"\0" * 300_000, bytes(range(256)) * 700])
def test_frame_length_matches_zstd(content: bytes, checksum: bool) -> None:
    frame = zstandard.ZstdCompressor(write_checksum=checksum).compress(content)
    data = frame + compress_frame(b"next")
    frames = list(iter_frames(lambda offset, length: data[offset : offset + length], len(data)))
    assert frames == [PackFrame(0, len(frame), len(content)), PackFrame(len(frame), len(data) - len(frame), 4)]


def test_all_concatenated_frames_are_decompressed() -> None:
    data = compress_frame(b"first") + compress_frame(b"second")
    assert zstandard.ZstdDecompressor().decompress(data) == b"first", (
        "zstandard now decompresses all frames, so decompress_all is unnecessary"
    )
    assert decompress_all(data) == b"firstsecond"


def test_truncated_frames_are_rejected() -> None:
    data = compress_frame(b"first" * 50) + compress_frame(b"second")
    complete_lengths = {0, len(compress_frame(b"first" * 50))}
    for length in range(len(data)):
        if length in complete_lengths:
            continue
        with pytest.raises(FrameError):
            decompress_all(data[:length])


def test_truncated_pack_yields_its_complete_frames() -> None:
    frames = [compress_frame(content) for content in (b"one", b"two" * 100, b"three")]
    pack = b"".join(frames)
    end_offsets = [len(b"".join(frames[:count])) for count in range(4)]
    for length in range(len(pack) + 1):
        torn = pack[:length]
        index = index_from_pack(lambda offset, count, torn=torn: torn[offset : offset + count], length)  # type: ignore[misc]
        assert len(index) == sum(end <= length for end in end_offsets[1:])


def test_frame_of_an_unexpected_size_is_rejected() -> None:
    with pytest.raises(FrameError):
        decompress_one(compress_frame(b"abc"), 4)


def test_condemned_keys_round_trip_and_foreign_lines_are_skipped() -> None:
    keys = {b"\x01" * 32, b"\x02" * 32}
    assert decode_damaged_keys(encode_damaged_keys(keys) + b"nonsense\n\xff\n") == keys
