"""Word segments as bytes (SPEC.md "Words"). No I/O.

A segment has the words of some contents. Each content has a slot, which neighboring contents may share. A segment maps
each word to the slots whose contents may have it. Words are stored as hashes. So a search may also return slots without
the word, and the caller must search their contents. No slot with the word is ever missed.

The file of a segment consists of a directory, the keys of the contents and the buckets. A bucket has the words whose
hashes begin with the same bits. So a search reads the directory and one bucket for each word.
"""

from __future__ import annotations

import struct
import zlib
from bisect import bisect_left
from collections import defaultdict, deque
from collections.abc import Iterable, Sequence
from itertools import accumulate, repeat

import msgspec
import zstandard

from codebatch.index.generations import WordSegment
from codebatch.index.words import CONTENT_KEY_BYTES, without_numbers
from codebatch.store.objects.frames import decompress_one

SLOTS_MAX = 256
CONTENTS_MAX = 2048
"""Maximum number of contents of a segment. Up to eight contents share a slot."""

WORDS_MAX = 500_000
"""Number of distinct words at which a segment is complete. It limits the memory for building a segment."""

_CONTENTS_ADDRESSABLE = 1 << 16
_BUCKET_WORDS = 1024
_COMPRESSION_LEVEL = 3
_HASH_BITS = 32
_KEY_BITS = 16
_count_struct = struct.Struct("<I")
_entry_struct = struct.Struct("<III")
DIRECTORY_ENTRY_BYTES = _entry_struct.size


class BucketLocation(msgspec.Struct, frozen=True):
    """The place of a bucket in the file of its segment, its crc32, and its size before compression."""

    offset: int
    length: int
    crc32: int
    size: int


class WordBucket(msgspec.Struct, frozen=True):
    """The words whose hashes begin with the same bits.

    - `keys`: the next 16 bits of each hash, ascending.
    - `ends`: for each word, the end of its slots in `slots`, after a leading 0. A word without slots is in any slot.
    """

    keys: Sequence[int]
    ends: Sequence[int]
    slots: bytes

    def find(self, key: int) -> bytes | None:
        """Return the slots of the word with a key, ascending. None means that any slot may have the word."""
        position = bisect_left(self.keys, key)
        if position == len(self.keys) or self.keys[position] != key:
            return b""
        return self.slots[self.ends[position] : self.ends[position + 1]] or None


class SegmentBuilder:
    """A builder of one segment: the contents are added slot by slot."""

    def __init__(self, group: int) -> None:
        """Begin a segment in which `group` contents share a slot."""
        self.group = group
        self.keys: list[bytes] = []
        self._slots_by_word: defaultdict[bytes, list[int]] = defaultdict(list)
        self._slots = 0

    @property
    def is_full(self) -> bool:
        """Whether no further slot may be added."""
        return self._slots == SLOTS_MAX or len(self._slots_by_word) >= WORDS_MAX

    def add_slot(self, keys: Sequence[bytes], words: Iterable[bytes]) -> None:
        """Add a slot with all words of its contents. Only the last slot may have fewer contents than the others."""
        self.keys += keys
        deque(map(list.append, map(self._slots_by_word.__getitem__, words), repeat(self._slots)), maxlen=0)
        self._slots += 1

    def encode(self) -> tuple[WordSegment, bytes]:
        """Return the segment and the bytes of its file."""
        words = without_numbers(self._slots_by_word)
        bits = (len(words) // _BUCKET_WORDS).bit_length()
        # Of each hash, only the bits for the bucket and for the key are needed.
        shift = _HASH_BITS - _KEY_BITS - bits
        postings = sorted(
            zip((word_hash(word) >> shift for word in words), map(self._slots_by_word.__getitem__, words), strict=True)
        )
        hashes = [hashed for hashed, _ in postings]
        slots = [slots for _, slots in postings]
        compressor = zstandard.ZstdCompressor(level=_COMPRESSION_LEVEL)
        directory, frames = bytearray(), []
        start = 0
        for bucket in range(1 << bits):
            end = bisect_left(hashes, (bucket + 1) << _KEY_BITS, start)
            content = _encode_bucket(hashes[start:end], slots[start:end], frequent=self._slots // 4)
            frames.append(compressor.compress(content))
            directory += _entry_struct.pack(len(frames[-1]), zlib.crc32(frames[-1]), len(content))
            start = end
        keys = b"".join(self.keys)
        data = b"".join((directory, keys, *frames))
        about = WordSegment(
            contents=len(self.keys),
            group=self.group,
            buckets=1 << bits,
            length=len(data),
            keys_crc32=zlib.crc32(keys),
            directory_crc32=zlib.crc32(directory),
        )
        return about, data


def group_size(contents: int) -> int:
    """Return the number of contents that share a slot, for a segment with a number of contents."""
    return -(-contents // SLOTS_MAX)


def word_hash(word: bytes) -> int:
    """Return the hash under which a word is stored."""
    return zlib.crc32(word)


def bucket_and_key(hashed: int, buckets: int) -> tuple[int, int]:
    """Return the number of the bucket of a hash, and its key in the bucket."""
    bits = buckets.bit_length() - 1
    return hashed >> (_HASH_BITS - bits), hashed >> (_HASH_BITS - _KEY_BITS - bits) & 0xFFFF


def check_segment(about: WordSegment) -> None:
    """Raise ValueError if the numbers of a segment in index.json contradict each other."""
    bits = about.buckets.bit_length() - 1
    if not (about.group > 0 and 0 < about.contents <= about.group * SLOTS_MAX <= _CONTENTS_ADDRESSABLE):
        raise ValueError("index.json has an invalid number of contents")
    if about.buckets < 1 or about.buckets != 1 << bits or bits > _KEY_BITS:
        raise ValueError("index.json has an invalid number of buckets")


def keys_offset(about: WordSegment) -> int:
    """Return the offset of the keys in the file of a segment."""
    return about.buckets * DIRECTORY_ENTRY_BYTES


def decode_directory(about: WordSegment, data: bytes) -> list[BucketLocation]:
    """Return the locations of the buckets. Raises ValueError if the directory is damaged."""
    if len(data) != about.buckets * DIRECTORY_ENTRY_BYTES or zlib.crc32(data) != about.directory_crc32:
        raise ValueError("its directory does not match index.json")
    entries = list(_entry_struct.iter_unpack(data))
    start = keys_offset(about) + about.contents * CONTENT_KEY_BYTES
    offsets = list(accumulate((length for length, _, _ in entries), initial=start))
    if offsets[-1] != about.length:
        raise ValueError("its length does not match index.json")
    return [
        BucketLocation(offset, length, crc32, size)
        for offset, (length, crc32, size) in zip(offsets, entries, strict=False)
    ]


def decode_keys(about: WordSegment, data: bytes) -> list[bytes]:
    """Return the keys of the contents. Raises ValueError if they are damaged."""
    if len(data) != about.contents * CONTENT_KEY_BYTES or zlib.crc32(data) != about.keys_crc32:
        raise ValueError("its keys do not match index.json")
    return [data[start : start + CONTENT_KEY_BYTES] for start in range(0, len(data), CONTENT_KEY_BYTES)]


def check_bucket(location: BucketLocation, data: bytes) -> None:
    """Raise ValueError if the bytes of a bucket do not match its length and checksum."""
    if len(data) != location.length or zlib.crc32(data) != location.crc32:
        raise ValueError("a bucket does not match its checksum")


def decode_bucket(location: BucketLocation, data: bytes) -> WordBucket:
    """Decode a bucket. Raises ValueError if it is damaged."""
    check_bucket(location, data)
    content = decompress_one(data, location.size)
    head = _count_struct.size
    count = _count_struct.unpack_from(content)[0] if len(content) >= head else len(content)
    columns = [content[head + column * count : head + (column + 1) * count] for column in range(3)]
    slots = content[head + 3 * count :]
    ends = list(accumulate(columns[2], initial=0))
    if len(columns[2]) != count or ends[-1] != len(slots):
        raise ValueError("a bucket is inconsistent")
    keys = [high << 8 | low for high, low in zip(columns[0], columns[1], strict=True)]
    return WordBucket(keys, ends, slots)


def _encode_bucket(hashes: Sequence[int], slots: Sequence[Sequence[int]], *, frequent: int) -> bytes:
    """Return the bytes of a bucket, given the slots of each hash, in order of hashes.

    A word in more than `frequent` slots is stored without slots.
    """
    slots_by_hash = dict(zip(hashes, slots, strict=True))
    if len(slots_by_hash) < len(hashes):
        for before, hashed, some in zip(hashes, hashes[1:], slots, strict=False):
            if before == hashed:
                slots_by_hash[hashed] = sorted({*slots_by_hash[hashed], *some})
    values = [() if len(some) > frequent else some for some in slots_by_hash.values()]
    high = bytes([hashed >> 8 & 0xFF for hashed in slots_by_hash])
    low = bytes([hashed & 0xFF for hashed in slots_by_hash])
    return b"".join((_count_struct.pack(len(values)), high, low, bytes(map(len, values)), b"".join(map(bytes, values))))
