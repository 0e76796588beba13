"""Frames: how the records of a shard are compressed (SPEC.md "Frames").

The bytes of a shard are cut after the first newline at or behind each multiple of 32 KiB counted from the shard's
start; each piece is one zstd frame with content size and checksum. Whoever assembles a shard from several outcomes
cuts anew, so that the frames of a shard do not tell how its work was split. `zstdcat` reads a file of frames.

`ZstdDecompressor.decompress` silently stops after the first frame of several, so it is given them one by one. Where a
frame ends its blocks say (RFC 8878, section 3.1.1), so that a frame that nobody asks for is passed over unread.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec
import zstandard

FRAME_BYTES = 32 * 1024
# Level 3 makes records 1 % smaller or larger, and takes 17 to 26 % longer (three trees, zstandard 0.25).
LEVEL = 1

_HEADER_BYTES_MAX = 18
_BLOCK_HEADER_BYTES = 3
_BLOCK_IS_REPEATED_BYTE = 1
_CHECKSUM_BYTES = 4


class FrameWriter:
    """Compresses shards into frames; keeps one compressor."""

    def __init__(self) -> None:
        self._compressor = zstandard.ZstdCompressor(level=LEVEL, write_checksum=True, write_content_size=True)

    def encode(self, records: bytes) -> bytes:
        """The frames of a whole shard's records, which are LF-terminated lines."""
        return b"".join(self.iter_encode((records,)))

    def iter_encode(self, blocks: Iterable[bytes]) -> Iterator[bytes]:
        """The frames of a whole shard's records, one at a time, out of blocks cut anyhow."""
        held = b""
        at = 0
        for block in blocks:
            held = held + block if held else block
            start = 0
            while end := _find_cut(held, start, at):
                yield self._compressor.compress(memoryview(held)[start:end])
                at += end - start
                start = end
            held = held[start:]
        if held:
            yield self._compressor.compress(held)


def iter_frames(
    frames: bytes | memoryview, size: int, decompressor: zstandard.ZstdDecompressor | None = None
) -> Iterator[bytes]:
    """What each of some frames holds, one at a time: whole lines. Whoever asks often brings a decompressor.

    Raises ValueError unless they are exactly `size` bytes, sound and whole; what was yielded before is sound.
    """
    decompressor = decompressor or zstandard.ZstdDecompressor()
    for frame in iter_places(frames, size):
        yield _decompress(decompressor, frames, frame)


def decode_frames(frames: bytes, size: int) -> bytes:
    """All bytes in some frames. Raises ValueError unless they are exactly `size` bytes, sound and whole."""
    return b"".join(iter_frames(frames, size))


def decode_range(frames: bytes, size: int, start: int, end: int) -> bytes:
    """Bytes [start, end) of the `size` in some frames, of which only those that hold them are decompressed.

    Raises ValueError unless these are sound and whole.
    """
    decompressor = zstandard.ZstdDecompressor()
    found: list[bytes] = []
    at = 0
    for frame in iter_places(frames, size):
        if at >= end:
            break
        if at + frame.bytes > start:
            found.append(_decompress(decompressor, frames, frame)[max(start - at, 0) : end - at])
        at += frame.bytes
    return b"".join(found)


class FrameLocation(msgspec.Struct, frozen=True):
    """Where a frame lies among others, and how many bytes it says it holds."""

    start: int
    end: int
    bytes: int


def iter_places(frames: bytes | memoryview, size: int) -> Iterator[FrameLocation]:
    """The frames one after the other, unread. Raises ValueError where they are none of ours, or do not hold `size`."""
    start = found = 0
    while start < len(frames):
        header = frames[start : start + _HEADER_BYTES_MAX]
        try:
            about = zstandard.get_frame_parameters(header)
            end = start + zstandard.frame_header_size(header)
        except zstandard.ZstdError as error:
            raise ValueError(str(error)) from error
        found += about.content_size
        if found > size or not about.has_checksum:
            raise ValueError(f"a frame that is not of the {size} bytes that were expected")
        is_last = False
        while not is_last:
            block = int.from_bytes(frames[end : end + _BLOCK_HEADER_BYTES], "little")
            is_last = bool(block & 1) or end >= len(frames)
            end += _BLOCK_HEADER_BYTES + (1 if block >> 1 & 3 == _BLOCK_IS_REPEATED_BYTE else block >> 3)
        end += _CHECKSUM_BYTES
        if end > len(frames):
            raise ValueError("the last frame is cut")
        yield FrameLocation(start, end, about.content_size)
        start = end
    if found != size:
        raise ValueError(f"{found} bytes where {size} were expected")


def _decompress(decompressor: zstandard.ZstdDecompressor, frames: bytes | memoryview, place: FrameLocation) -> bytes:
    try:
        return decompressor.decompress(memoryview(frames)[place.start : place.end])
    except zstandard.ZstdError as error:
        raise ValueError(str(error)) from error


def _find_cut(records: bytes, start: int, at: int) -> int:
    """Where the frame that begins at `start` of some records, at `at` of its shard, ends; 0 where they do not say."""
    return records.find(b"\n", start + FRAME_BYTES - at % FRAME_BYTES) + 1
