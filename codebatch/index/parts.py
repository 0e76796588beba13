"""A layer of an index in parts: each a database of LMDB with the keys of a range, in a file of its own.

So a question pays for the keys that it asks for: a part is read, checked and opened when it is first asked. What is
not sound is told then.
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
from codebatch.index.database import Database, make_database
from codebatch.index.generations import Layer, LayerPart, corrupt_index, read_part
from codebatch.index.keys import Lookup
from codebatch.model.digest import Digest
from codebatch.store import layout
from codebatch.store.objects.frames import compress, decompress_one
from codebatch.system.files.file_reader import FileReader
from codebatch.system.files.files import Files

PART_BYTES_MAX = 1 << 20
"""In a part, but where one key has more."""

# A tenth smaller than with level 1, in the same time; level 7 would save as much again, and take four times as long.
_LEVEL = 3
# What LMDB takes for a key and a value beside their bytes, about.
_NODE_BYTES = 12


def write_parts(files: Files, directory: Path, name: str, pairs: Mapping[bytes, bytes]) -> tuple[LayerPart, ...]:
    """Write what a layer holds, by keys in their order, into a directory that nobody else knows yet.

    On return the bytes are on disk. Raises StoreUnwritable or StoreError.
    """
    made: list[LayerPart] = []

    def contents() -> Iterator[tuple[Path, bytes]]:
        for cut in _cut(pairs):
            database = make_database(cut)
            data = compress(database, _LEVEL)
            path = directory / layout.index_part_name(name, len(made))
            made.append(
                LayerPart(first=next(iter(cut)), length=len(data), crc32=zlib.crc32(data), content=len(database))
            )
            yield path, data

    files.write_many(contents())
    return tuple(made)


def _cut(pairs: Mapping[bytes, bytes]) -> Iterator[dict[bytes, bytes]]:
    sizes = map(add, map(len, pairs), map(len, pairs.values()))
    ends = list(accumulate(map(add, sizes, repeat(_NODE_BYTES)), initial=0))
    more = iter(pairs.items())
    done = 0
    while done < len(pairs):
        upto = max(bisect_right(ends, ends[done] + PART_BYTES_MAX) - 1, done + 1)
        yield dict(islice(more, upto - done))
        done = upto


class LayerReader:
    """A layer of an index that is there. What asks raises CorruptFile, or FileNotFoundError where a part has gone."""

    def __init__(self, files: FileReader, root: Path, name: str, layer: Layer) -> None:
        """`root` is the directory in which the parts lie, `name` what theirs begin with."""
        self.slots = layer.slots
        self._files = files
        self._paths = [root / layout.index_part_name(name, number) for number in range(len(layer.parts))]
        self._parts = layer.parts
        self._firsts = [part.first for part in layer.parts]
        self._databases: dict[int, Database] = {}

    def find(self, lookups: Sequence[Lookup]) -> Iterator[tuple[Digest, list[int]]]:
        """The frames that hold any of what is looked for, with the digest of their shard file's trailer.

        A shard file may come several times.
        """
        asked: dict[int, list[Lookup]] = {}
        for lookup in lookups:
            for number in self._numbers(lookup):
                asked.setdefault(number, []).append(lookup)
        for number, some in asked.items():
            try:
                database = self._opened(number)
                values = chain.from_iterable(map(database.values, some))
                found = [(self._digest(slot), frames) for slot, frames in keys.frames_by_slot(values).items()]
            except ValueError as error:
                raise self._damaged(number, error) from error
            yield from found

    def iter_posted(self) -> Iterator[tuple[bytes, Digest, list[int]]]:
        """All that it holds: a key, a shard file by the digest of its trailer, and the frames. Nothing is kept open."""
        for number in range(len(self._parts)):
            try:
                database = self._open(number)
                for key, value in database.iter_from(b""):
                    for slot, frames in keys.frames_by_slot([value]).items():
                        yield key, self._digest(slot), frames
                database.close()
            except ValueError as error:
                raise self._damaged(number, error) from error

    def check(self) -> None:
        """Hold the bytes of every part against index.json."""
        for path, part in zip(self._paths, self._parts, strict=True):
            read_part(self._files, path, part)

    def close(self) -> None:
        """Give the memory back. Nothing may be asked any more."""
        for database in self._databases.values():
            database.close()

    def _numbers(self, lookup: Lookup) -> Sequence[int]:
        """The parts that may hold what is looked for."""
        first = end = bisect_right(self._firsts, lookup.first or lookup.key)
        if lookup.is_prefix:
            while end < len(self._firsts) and self._firsts[end].startswith(lookup.key):
                if lookup.last and self._firsts[end] > lookup.last:
                    break
                end += 1
        return range(max(first - 1, 0), end)

    def _opened(self, number: int) -> Database:
        database = self._databases.get(number)
        if database is None:
            # Where several threads open it at once each has one that is sound.
            database = self._databases[number] = self._open(number)
        return database

    def _open(self, number: int) -> Database:
        """Raises ValueError where it is no database, or not one of the keys that are said to be in it."""
        part = self._parts[number]
        database = Database(decompress_one(read_part(self._files, self._paths[number], part), part.content))
        first, last = database.bounds()
        if first != part.first or any(last >= behind for behind in self._firsts[number + 1 : number + 2]):
            raise ValueError("its keys do not match index.json")
        return database

    def _digest(self, slot: int) -> Digest:
        """Raises ValueError where there is no such slot."""
        if slot >= len(self.slots):
            raise ValueError("it refers to a slot that does not exist")
        return self.slots[slot]

    def _damaged(self, number: int, error: ValueError) -> CorruptFile:
        return corrupt_index(self._paths[number], f"is damaged: {error}")
