"""A database of LMDB that is bytes: made in memory and read from memory.

LMDB has no checksums, and a file of it that is cut under the map ends the process (SIGBUS). So nobody maps a file of
the store: its bytes are read and checked, and LMDB is given a copy that nobody else can change (memfd_create(2)),
through its name in /proc. A file of the store is only ever written by `Files`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence

import lmdb

from codebatch.errors import StoreError
from codebatch.index.keys import Lookup

_PAGE_BYTES = 4096
_SPARE_BYTES = 1 << 20


def make_database(pairs: Mapping[bytes, bytes]) -> bytes:
    """One unnamed database of some values by key, in the order of their keys, written in one transaction.

    Raises StoreError where the machine gives no memory for it.
    """
    # A value that is no part of its leaf has pages of its own; leaves and branches are half full at least.
    values = sum(map(len, pairs.values()))
    size = 2 * (sum(map(len, pairs)) + values + 64 * len(pairs)) + _PAGE_BYTES * (values // 1024)
    try:
        descriptor = os.memfd_create("codebatch-index", os.MFD_CLOEXEC)
        try:
            environment = lmdb.open(
                _name_of(descriptor), subdir=False, lock=False, sync=False, map_size=2 * size + _SPARE_BYTES
            )
            with environment, environment.begin(write=True) as transaction, transaction.cursor() as cursor:
                _, written = cursor.putmulti(pairs.items(), append=True)
                assert written == len(pairs), "keys are given in their order"
            with open(descriptor, "rb", closefd=False) as file:
                return file.read()
        finally:
            os.close(descriptor)
    except (OSError, lmdb.Error) as error:
        raise StoreError(f"cannot build the index: {error}") from error


class Database:
    """A database to look things up in. Safe to use in a process that was forked from the one that opened it."""

    def __init__(self, data: bytes) -> None:
        """Raises ValueError where the bytes are no database, or the machine cannot map them."""
        try:
            descriptor = os.memfd_create("codebatch-index", os.MFD_CLOEXEC)
            try:
                view = memoryview(data)
                while view:
                    view = view[os.write(descriptor, view) :]
                self._environment = lmdb.open(
                    _name_of(descriptor), subdir=False, lock=False, readonly=True, create=False
                )
            finally:
                os.close(descriptor)
        except (OSError, lmdb.Error) as error:
            raise ValueError(str(error)) from error

    def bounds(self) -> tuple[bytes, bytes]:
        """Its first key and its last. Raises ValueError where it has none, or is unsound."""
        try:
            with self._environment.begin() as transaction, transaction.cursor() as cursor:
                if not cursor.first():
                    raise ValueError("it is empty")
                first = cursor.key()
                cursor.last()
                return first, cursor.key()
        except lmdb.Error as error:
            raise ValueError(str(error)) from error

    def get(self, key: bytes) -> bytes | None:
        """The value of a key. Raises ValueError where the database is unsound."""
        try:
            with self._environment.begin() as transaction:
                found: bytes | None = transaction.get(key)
                return found
        except lmdb.Error as error:
            raise ValueError(str(error)) from error

    def values(self, lookup: Lookup) -> Sequence[bytes]:
        """The values of the keys that are looked for. Raises ValueError where the database is unsound."""
        if lookup.is_prefix:
            return [value for _, value in self.iter_from(lookup.key, lookup.first, lookup.last)]
        found = self.get(lookup.key)
        return () if found is None else (found,)

    def iter_from(self, prefix: bytes, first: bytes = b"", last: bytes = b"") -> Iterator[tuple[bytes, bytes]]:
        """The pairs whose keys begin so, in the order of keys, from one that begins so up to another where they are
        given.

        Raises ValueError where the database is unsound.
        """
        try:
            with self._environment.begin() as transaction, transaction.cursor() as cursor:
                if not prefix or cursor.set_range(first or prefix):
                    for pair in cursor.iternext():
                        if not pair[0].startswith(prefix) or (last and pair[0] > last):
                            return
                        yield pair
        except lmdb.Error as error:
            raise ValueError(str(error)) from error

    def close(self) -> None:
        """Give the memory back. Nothing may be asked any more."""
        self._environment.close()


def _name_of(descriptor: int) -> str:
    return f"/proc/self/fd/{descriptor}"
