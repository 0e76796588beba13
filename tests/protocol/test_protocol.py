"""Names, frames and messages: round trips, and rejection of invalid input (SPEC.md "Store layout", "Frames")."""

from __future__ import annotations

import random
import subprocess
import tracemalloc
from pathlib import Path

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from codebatch.model.analysis.item_table import iter_items, make_row
from codebatch.model.outcome import HolderId, OutcomeRegister, WorkUnit
from codebatch.model.shard import ShardId
from codebatch.protocol import messages
from codebatch.protocol.record_frames import FRAME_BYTES, FrameWriter, decode_frames, decode_range, iter_frames
from codebatch.store.layout import lease_name, parse_lease_name, parse_register_name, register_name

LINES = st.lists(st.binary(max_size=3000).map(lambda line: line.replace(b"\n", b"") + b"\n"), max_size=80)


@given(st.integers(0, 2**31), st.integers(1, 1000))
def test_names_round_trip(start: int, number: int) -> None:
    shard = ShardId("0123abcd")
    if start < 10**9:
        assert parse_lease_name(lease_name(shard, start, number)) == (shard, start, number)
        register = OutcomeRegister(shard, start, "lint", number)
        assert parse_register_name(register_name(*register)) == register


@pytest.mark.parametrize(
    "name",
    [
        "",
        "x",
        "../a.0.parse.r1",
        "0123abcd.0.parse.r0",
        "0123abcd.00.parse.r1",
        "0123abcd.-1.parse.r1",
        "0123abcd.0.pa/rse.r1",
        "a.0.1",
        "0123abcd.\u0660.1",
        "0123abcd.0.parse.r\u0661",
    ],
)
def test_foreign_names_are_neither_registers_nor_leases(name: str) -> None:
    assert parse_register_name(name) is None
    assert parse_lease_name(name) is None


@given(LINES)
def test_frames_round_trip_with_boundaries_of_the_specification(lines: list[bytes]) -> None:
    records = b"".join(lines)
    frames = FrameWriter().encode(records)
    assert decode_frames(frames, len(records)) == records
    sizes = _frame_sizes(frames)
    assert sum(sizes) == len(records)
    at = 0
    for size in sizes[:-1]:
        at += size
        assert records[at - 1 : at] == b"\n"
        boundary = (at - size) // FRAME_BYTES * FRAME_BYTES + FRAME_BYTES
        assert records.find(b"\n", boundary) == at - 1


@given(LINES)
def test_frames_depend_only_on_the_records(lines: list[bytes]) -> None:
    records = b"".join(lines)
    writer = FrameWriter()
    writer.encode(b"something before\n")
    assert writer.encode(records) == FrameWriter().encode(records)


def test_every_frame_is_decoded() -> None:
    """The one-shot decompress of python-zstandard returns only the first of several frames, without an error."""
    records = b"".join(b"%06d %s\n" % (n, b"x" * 90) for n in range(5000))
    frames = FrameWriter().encode(records)
    assert len(zstandard.ZstdDecompressor().decompress(frames)) < len(records)
    assert decode_frames(frames, len(records)) == records


def test_truncated_or_flipped_frames_are_rejected() -> None:
    records = b"".join(b"%d\n" % n for n in range(20_000))
    frames = FrameWriter().encode(records)
    for length in (*range(0, len(frames), 97), *range(len(frames) - 8, len(frames))):
        with pytest.raises(ValueError, match=r"."):
            decode_frames(frames[:length], len(records))
    for at in (*range(0, len(frames), 997), *range(len(frames) - 8, len(frames))):
        damaged = bytearray(frames)
        damaged[at] ^= 0x40
        with pytest.raises(ValueError, match=r"."):
            decode_frames(bytes(damaged), len(records))


@pytest.mark.parametrize("by", [-1, 1])
def test_frames_of_an_unexpected_size_are_rejected(by: int) -> None:
    records = b"".join(b"%d\n" % n for n in range(20_000))
    with pytest.raises(ValueError, match="expected"):
        decode_frames(FrameWriter().encode(records), len(records) + by)


def test_frame_with_an_oversized_claim_is_not_decompressed() -> None:
    """The header claims 2**60 bytes, which must not be allocated."""
    frame = zstandard.ZstdCompressor(write_checksum=True).compress(b"x" * 70_000)
    header = frame[:4] + bytes([0b11100100]) + (2**60).to_bytes(8, "little")
    with pytest.raises(ValueError, match="not of the 70000 bytes"):
        decode_frames(header + frame[zstandard.frame_header_size(frame) :], 70_000)


def test_frames_without_checksum_or_size_are_rejected() -> None:
    """Damage in such frames could not be detected."""
    for compressor in (
        zstandard.ZstdCompressor(write_checksum=False),
        zstandard.ZstdCompressor(write_checksum=True, write_content_size=False),
    ):
        with pytest.raises(ValueError, match="a frame that is not of the 2 bytes"):
            decode_frames(compressor.compress(b"x\n"), 2)


def test_damaged_frame_affects_no_earlier_or_skipped_frame() -> None:
    records = b"".join(b"%06d %s\n" % (n, b"x" * (n % 90)) for n in range(3000))
    frames = bytearray(FrameWriter().encode(records))
    frames[-1] ^= 1
    first, *others = _frame_sizes(FrameWriter().encode(records))
    assert len(others) > 1
    decoded = iter_frames(bytes(frames), len(records))
    assert [len(next(decoded)) for _ in others] == [first, *others[:-1]]
    with pytest.raises(ValueError, match="checksum"):
        next(decoded)
    last = len(records) - others[-1]
    assert decode_range(bytes(frames), len(records), 10, last) == records[10:last]
    with pytest.raises(ValueError, match="checksum"):
        decode_range(bytes(frames), len(records), 10, last + 1)


@given(LINES, st.data())
def test_decoded_range_matches_a_slice(lines: list[bytes], data: st.DataObject) -> None:
    records = b"".join(lines)
    start = data.draw(st.integers(0, len(records)))
    end = data.draw(st.integers(start, len(records)))
    assert decode_range(FrameWriter().encode(records), len(records), start, end) == records[start:end]


def test_incompressible_and_uniform_bytes_are_framed() -> None:
    """zstd encodes such bytes as raw blocks and as repetitions of one byte."""
    for records in (random.Random(1).randbytes(400_000), b"\n" * 400_000, b"x" * 400_000, b""):
        assert decode_frames(FrameWriter().encode(records), len(records)) == records


@given(LINES, st.integers(1, 50_000))
def test_frames_do_not_depend_on_the_input_blocks(lines: list[bytes], step: int) -> None:
    records = b"".join(lines)
    blocks = [records[at : at + step] for at in range(0, len(records), step)]
    assert b"".join(FrameWriter().iter_encode(blocks)) == FrameWriter().encode(records)


def test_framing_memory_is_bounded() -> None:
    """A shard of 2 MB is encoded and decoded."""
    item = b"".join(b"%06d %s\n" % (n, b"x" * 100) for n in range(10))
    items = 2_000_000 // len(item)
    frames = FrameWriter().encode(item * items)
    table = make_row(item) * items
    tracemalloc.start()
    try:
        decoded = iter_items(table, iter_frames(frames, items * len(item)))
        assert sum(map(len, FrameWriter().iter_encode(decoded))) == len(frames)
        peak_bytes = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak_bytes < 8 * FRAME_BYTES


def test_zstdcat_reads_frames(tmp_path: Path) -> None:
    records = b"".join(b"%d\n" % n for n in range(50_000))
    path = tmp_path / "x.zst"
    path.write_bytes(FrameWriter().encode(records))
    try:
        answer = subprocess.run(["zstdcat", path], stdout=subprocess.PIPE, check=True).stdout
    except FileNotFoundError:
        pytest.skip("zstdcat is not installed")
    assert answer == records


@given(st.lists(st.integers(0, 1000), min_size=1, max_size=20), st.integers(1, 40))
def test_messages_survive_any_splitting_of_the_stream(epochs: list[int], size: int) -> None:
    unit = WorkUnit(shard=ShardId("0123abcd"), start=1, end=9, tasks=("parse",))
    sent = [messages.Assign(unit=unit, epoch=epoch) for epoch in epochs]
    stream = b"".join(map(messages.encode_message, sent))
    buffer = messages.MessageBuffer()
    bodies = [body for at in range(0, len(stream), size) for body in buffer.feed(stream[at : at + size])]
    assert [messages.decode_to_worker(body) for body in bodies] == sent


def test_message_round_trips() -> None:
    message = messages.Hello(version=1, holder=HolderId("0" * 32))
    assert messages.decode_from_worker(messages.encode_message(message)[4:]) == message


def test_oversized_message_length_is_rejected() -> None:
    with pytest.raises(ValueError, match="bytes"):
        list(messages.MessageBuffer().feed(b"\xff\xff\xff\xff"))


def _frame_sizes(frames: bytes) -> list[int]:
    sizes = []
    while frames:
        decompressor = zstandard.ZstdDecompressor().decompressobj()
        sizes.append(len(decompressor.decompress(frames)))
        frames = decompressor.unused_data
    return sizes
