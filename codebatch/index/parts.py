"""A layer of an index, stored in parts. Each part is an LMDB database with a range of keys, in a file of its own.

So a query reads only the parts whose ranges contain its keys. A part is read, verified and opened when it is first
used. If it is damaged, the error is raised then.
"""

from __future__ import annotations

import zlib
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate, chain, islice, repeat
from operator import add
from pathlib import Path

from codebatch.errors import CorruptFile
from codebatch.index import keys
from codebatch.index.database import TermDatabase, make_database
from codebatch.index.generations import IndexLayer, LayerPart, corrupt_index, read_part
from codebatch.index.keys import TermLookup
from codebatch.model.digest import Digest
from codebatch.store import layout
from codebatch.store.objects.frames import compress_frame, decompress_one
from codebatch.system.files.file_reader import FileReader
from codebatch.system.files.files import StoreFiles

PART_BYTES_MAX = 1 << 20
"""Maximum size of a part in bytes before compression. A part with only one key may be larger."""

# The zstd level. Parts are ten percent smaller than with level 1, in the same time. Level 7 saves ten percent more, but
# takes four times as long.
_COMPRESSION_LEVEL = 3
# Approximate overhead of LMDB for each key and value.
_NODE_BYTES = 12


def write_parts(files: StoreFiles, directory: Path, name: str, pairs: Mapping[bytes, bytes]) -> tuple[LayerPart, ...]:
    """Write the pairs of a layer as parts into a directory that is not published yet. `pairs` must be in key order.

    On return the bytes are on disk. Raises StoreUnwritable or StoreError.
    """
    parts: list[LayerPart] = []

    def contents() -> Iterator[tuple[Path, bytes]]:
        for part_pairs in _cut_into_parts(pairs):
            database = make_database(part_pairs)
            data = compress_frame(database, _COMPRESSION_LEVEL)
            path = directory / layout.index_part_name(name, len(parts))
            parts.append(
                LayerPart(first=next(iter(part_pairs)), length=len(data), crc32=zlib.crc32(data), content=len(database))
            )
            yield path, data

    files.write_many(contents())
    return tuple(parts)


def _cut_into_parts(pairs: Mapping[bytes, bytes]) -> Iterator[dict[bytes, bytes]]:
    sizes = map(add, map(len, pairs), map(len, pairs.values()))
    ends = list(accumulate(map(add, sizes, repeat(_NODE_BYTES)), initial=0))
    pairs_left = iter(pairs.items())
    done = 0
    while done < len(pairs):
        upto = max(bisect_right(ends, ends[done] + PART_BYTES_MAX) - 1, done + 1)
        yield dict(islice(pairs_left, upto - done))
        done = upto


class LayerReader:
    """A reader of a layer. Its methods raise CorruptFile, or FileNotFoundError if a part was removed."""

    def __init__(self, files: FileReader, root: Path, name: str, layer: IndexLayer) -> None:
        """Open a layer of an index. Its parts are the files in the directory `root` whose names begin with `name`."""
        self.slots = layer.slots
        self._files = files
        self._paths = [root / layout.index_part_name(name, number) for number in range(len(layer.parts))]
        self._parts = layer.parts
        self._first_keys = [part.first for part in layer.parts]
        self._databases: dict[int, TermDatabase] = {}

    def find(self, lookups: Sequence[TermLookup]) -> Iterator[tuple[Digest, list[int]]]:
        """Yield the frames that match any of the lookups, with the trailer digest of their shard file.

        The same shard file may be yielded several times.
        """
        lookups_by_part: dict[int, list[TermLookup]] = {}
        for lookup in lookups:
            for number in self._part_numbers(lookup):
                lookups_by_part.setdefault(number, []).append(lookup)
        for number, part_lookups in lookups_by_part.items():
            try:
                database = self._cached_database(number)
                values = chain.from_iterable(map(database.matching_values, part_lookups))
                matches = [(self._slot_digest(slot), frames) for slot, frames in keys.frames_by_slot(values).items()]
            except ValueError as error:
                raise self._damaged_part_error(number, error) from error
            yield from matches

    def iter_posted(self) -> Iterator[tuple[bytes, Digest, list[int]]]:
        """Yield all entries: a key, the digest of a shard file's trailer, and the frames.

        Each part is closed after its last entry.
        """
        for number in range(len(self._parts)):
            try:
                database = self._open_part(number)
                for key, value in database.iter_from(b""):
                    for slot, frames in keys.frames_by_slot([value]).items():
                        yield key, self._slot_digest(slot), frames
                database.close()
            except ValueError as error:
                raise self._damaged_part_error(number, error) from error

    def check(self) -> None:
        """Verify the bytes of every part against index.json."""
        for path, part in zip(self._paths, self._parts, strict=True):
            read_part(self._files, path, part)

    def close(self) -> None:
        """Release the memory. The layer cannot be used after this call."""
        for database in self._databases.values():
            database.close()

    def _part_numbers(self, lookup: TermLookup) -> Sequence[int]:
        """Return the numbers of the parts that may contain keys that match a lookup."""
        first = end = bisect_right(self._first_keys, lookup.first or lookup.key)
        if lookup.is_prefix:
            while end < len(self._first_keys) and self._first_keys[end].startswith(lookup.key):
                if lookup.last and self._first_keys[end] > lookup.last:
                    break
                end += 1
        return range(max(first - 1, 0), end)

    def _cached_database(self, number: int) -> TermDatabase:
        database = self._databases.get(number)
        if database is None:
            # Several threads may open the same part at the same time. Then each thread gets a database of its own.
            database = self._databases[number] = self._open_part(number)
        return database

    def _open_part(self, number: int) -> TermDatabase:
        """Open a part.

        Raises ValueError if it is not a database, or if its first and last key do not match index.json.
        """
        part = self._parts[number]
        database = TermDatabase(decompress_one(read_part(self._files, self._paths[number], part), part.content))
        first, last = database.first_and_last_key()
        if first != part.first or any(last >= next_first for next_first in self._first_keys[number + 1 : number + 2]):
            raise ValueError("its keys do not match index.json")
        return database

    def _slot_digest(self, slot: int) -> Digest:
        """Return the trailer digest of the shard file in a slot. Raises ValueError if there is no such slot."""
        if slot >= len(self.slots):
            raise ValueError("it refers to a slot that does not exist")
        return self.slots[slot]

    def _damaged_part_error(self, number: int, error: ValueError) -> CorruptFile:
        return corrupt_index(self._paths[number], f"is damaged: {error}")
