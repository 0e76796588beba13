"""Frames: how the records of a shard are compressed (SPEC.md "Frames").

The bytes of a shard are cut after the first newline at or behind each multiple of 32 KiB counted from the shard's
start; each piece is one zstd frame with content size and checksum. Whoever assembles a shard from several outcomes
cuts anew, so that the frames of a shard do not tell how its work was split. `zstdcat` reads a file of frames.

`ZstdDecompressor.decompress` silently stops after the first frame of several, so nothing here calls it.
"""

from __future__ import annotations

from collections.abc import Iterator

import zstandard

FRAME_BYTES = 32 * 1024
# Level 3 makes records 1 % smaller or larger, and takes 17 to 26 % longer (three trees, zstandard 0.25).
LEVEL = 1


class FrameWriter:
    """Compresses shards into frames; keeps one compressor."""

    def __init__(self) -> None:
        self._compressor = zstandard.ZstdCompressor(level=LEVEL, write_checksum=True, write_content_size=True)

    def encode(self, records: bytes) -> bytes:
        """The frames of a whole shard's records, which are LF-terminated lines."""
        view = memoryview(records)
        return b"".join(self._compressor.compress(view[start:end]) for start, end in _cuts(records))

    def encode_nothing(self) -> bytes:
        """A frame that holds nothing: zstd refuses a file of 0 bytes, and an output without records is sound."""
        return self._compressor.compress(b"")


def decode_frames(frames: bytes, size: int) -> bytes:
    """All bytes in some frames. Raises ValueError unless they are exactly `size` bytes, sound and whole."""
    try:
        with zstandard.ZstdDecompressor().stream_reader(frames, read_across_frames=True) as reader:
            records = reader.read(size + 1)
    except zstandard.ZstdError as error:
        raise ValueError(str(error)) from error
    if len(records) != size:
        raise ValueError(f"{len(records)} bytes where {size} were expected")
    return records


def _cuts(records: bytes) -> Iterator[tuple[int, int]]:
    start = 0
    while start < len(records):
        boundary = (start // FRAME_BYTES + 1) * FRAME_BYTES
        newline = records.find(b"\n", boundary) if boundary < len(records) else -1
        end = len(records) if newline < 0 else newline + 1
        yield start, end
        start = end
