"""Reading of the words of an index: the items that may contain given words (SPEC.md "Words")."""

from __future__ import annotations

import zlib
from array import array
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property, partial
from itertools import accumulate
from pathlib import Path
from typing import TypeVar

from codebatch.index.generations import ContentTable, WordLayer, WordSegment, corrupt_index
from codebatch.index.word_segments import (
    BucketLocation,
    WordBucket,
    bucket_and_key,
    check_bucket,
    check_segment,
    decode_bucket,
    decode_directory,
    decode_keys,
    keys_offset,
    word_hash,
)
from codebatch.index.words import CONTENT_KEY_BYTES, word_alternatives
from codebatch.store import layout
from codebatch.store.objects.frames import decompress_one
from codebatch.store.objects.packs import little_endian
from codebatch.system.files.file_reader import FileReader

T = TypeVar("T")

NOT_INDEXED = -1
"""The place of a content whose words are not indexed."""

_PLACE_BYTES = 4
_POSITION_BITS = 16


def encode_place(segment: int, position: int) -> int:
    """Return the place of a content: the number of its segment, and its position in the segment."""
    return segment << _POSITION_BITS | position


class SegmentReader:
    """A reader of a word segment. Its methods raise CorruptFile, or FileNotFoundError if the file was removed."""

    def __init__(self, files: FileReader, path: Path, about: WordSegment) -> None:
        self._files = files
        self._path = path
        self._about = about
        self._buckets: dict[int, WordBucket] = {}

    def find_positions(self, words: Sequence[bytes]) -> range | list[int]:
        """Return the positions of the contents that may have all of the words, ascending."""
        about = self._about
        slots: frozenset[int] | None = None
        for word in words:
            with_word = self._find_slots(word)
            if with_word is not None:
                slots = with_word if slots is None else slots & with_word
        if slots is None:
            return range(about.contents)
        return [
            position
            for slot in sorted(slots)
            for position in range(slot * about.group, min((slot + 1) * about.group, about.contents))
        ]

    def has_words(self, words: Iterable[bytes], position: int) -> bool:
        """Return whether the content at a position is found by each of the words."""
        slot = position // self._about.group
        return all((slots := self._find_slots(word)) is None or slot in slots for word in words)

    def read_keys(self) -> list[bytes]:
        """Return the keys of the contents."""
        about = self._about
        return self._decode(
            lambda: decode_keys(about, self._read(keys_offset(about), about.contents * CONTENT_KEY_BYTES))
        )

    def check(self) -> None:
        """Verify all bytes of the file against their checksums."""
        self.read_keys()
        for location in self._directory:
            self._decode(partial(check_bucket, location, self._read(location.offset, location.length)))
        if self._read(self._about.length, 1):
            raise self._damage("it is too long")

    def _find_slots(self, word: bytes) -> frozenset[int] | None:
        """Return the slots that may have a word. None means any slot."""
        slots: set[int] = set()
        for alternative in word_alternatives(word):
            number, key = bucket_and_key(word_hash(alternative), self._about.buckets)
            with_word = self._bucket(number).find(key)
            if with_word is None:
                return None
            slots.update(with_word)
        return frozenset(slots)

    def _bucket(self, number: int) -> WordBucket:
        bucket = self._buckets.get(number)
        if bucket is None:
            location = self._directory[number]
            data = self._read(location.offset, location.length)
            bucket = self._buckets[number] = self._decode(partial(decode_bucket, location, data))
        return bucket

    @cached_property
    def _directory(self) -> list[BucketLocation]:
        about = self._about

        def decode() -> list[BucketLocation]:
            check_segment(about)
            return decode_directory(about, self._read(0, keys_offset(about)))

        return self._decode(decode)

    def _read(self, offset: int, length: int) -> bytes:
        return self._files.read_range(self._path, offset, length)

    def _decode(self, decode: Callable[[], T]) -> T:
        try:
            return decode()
        except ValueError as error:
            raise self._damage(str(error)) from error

    def _damage(self, problem: str) -> Exception:
        return corrupt_index(self._path, f"is damaged: {problem}")


class WordReader:
    """A reader of the words of an index. Its methods raise CorruptFile, or FileNotFoundError if a file was removed."""

    def __init__(self, files: FileReader, root: Path, layer: WordLayer) -> None:
        """Read the words of the index in the directory `root`."""
        self._files = files
        self._path = root / layout.INDEX_CONTENTS
        self._table = layer.contents
        self.segments = [
            SegmentReader(files, root / layout.index_words_name(number), segment)
            for number, segment in enumerate(layer.segments)
        ]

    def find_items(self, words: Sequence[bytes]) -> list[int]:
        """Return the numbers of the items that may have all of the words, ascending.

        These include all items whose words are not indexed.
        """
        places = {NOT_INDEXED}
        for number, segment in enumerate(self.segments):
            places.update(encode_place(number, position) for position in segment.find_positions(words))
        return [item for item, place in enumerate(self.places) if place in places]

    def has_words(self, item: int, words: Iterable[bytes]) -> bool:
        """Return whether an item is found by each of the words. True if the words of the item are not indexed."""
        if item >= len(self.places):
            return False
        segment, position = divmod(self.places[item], 1 << _POSITION_BITS)
        if self.places[item] == NOT_INDEXED:
            return True
        return 0 <= segment < len(self.segments) and self.segments[segment].has_words(words, position)

    @cached_property
    def places(self) -> Sequence[int]:
        """The place of the content of each item (`encode_place`), or NOT_INDEXED."""
        return _decode_table(self._table, self._files, self._path)

    def check(self) -> None:
        """Verify all bytes."""
        _decode_table(self._table, self._files, self._path)
        for segment in self.segments:
            segment.check()


def _decode_table(table: ContentTable, files: FileReader, path: Path) -> list[int]:
    data = files.read_range(path, 0, table.length + 1)
    if len(data) != table.length or zlib.crc32(data) != table.crc32:
        raise corrupt_index(path, "is damaged: it does not match index.json")
    try:
        differences = array("i", decompress_one(data, table.items * _PLACE_BYTES))
    except ValueError as error:
        raise corrupt_index(path, f"is damaged: {error}") from error
    return list(accumulate(little_endian(differences)))
