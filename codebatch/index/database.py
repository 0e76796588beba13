"""LMDB databases as bytes: created in memory and read from memory.

LMDB has no checksums, and if a file is truncated while it is mapped, the process is killed (SIGBUS). So LMDB never
opens a file of the store. Instead, the file's bytes are read, verified and copied to a memory file (memfd_create(2)).
LMDB opens this copy by its name in /proc. In the same way, LMDB writes only to memory, and `Files` writes the result to
the store.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence

import lmdb

from codebatch.errors import StoreError
from codebatch.index.keys import TermLookup

_PAGE_BYTES = 4096
_SPARE_BYTES = 1 << 20


def make_database(pairs: Mapping[bytes, bytes]) -> bytes:
    """Return a database with values by key. `pairs` must be in key order. It is written in one transaction.

    Raises StoreError if there is not enough memory.
    """
    # An upper bound: large values have pages of their own. Leaves and branches are at least half full.
    values = sum(map(len, pairs.values()))
    size = 2 * (sum(map(len, pairs)) + values + 64 * len(pairs)) + _PAGE_BYTES * (values // 1024)
    try:
        descriptor = os.memfd_create("codebatch-index", os.MFD_CLOEXEC)
        try:
            environment = lmdb.open(
                _descriptor_path(descriptor), subdir=False, lock=False, sync=False, map_size=2 * size + _SPARE_BYTES
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


class TermDatabase:
    """A read-only database. Processes that were forked after it was opened may use it too."""

    def __init__(self, data: bytes) -> None:
        """Open the database. Raises ValueError if the bytes are not a database or cannot be mapped."""
        try:
            descriptor = os.memfd_create("codebatch-index", os.MFD_CLOEXEC)
            try:
                view = memoryview(data)
                while view:
                    view = view[os.write(descriptor, view) :]
                self._environment = lmdb.open(
                    _descriptor_path(descriptor), subdir=False, lock=False, readonly=True, create=False
                )
            finally:
                os.close(descriptor)
        except (OSError, lmdb.Error) as error:
            raise ValueError(str(error)) from error

    def first_and_last_key(self) -> tuple[bytes, bytes]:
        """Return the first and the last key. Raises ValueError if the database is empty or damaged."""
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
        """Return the value of a key, or None. Raises ValueError if the database is damaged."""
        try:
            with self._environment.begin() as transaction:
                value: bytes | None = transaction.get(key)
                return value
        except lmdb.Error as error:
            raise ValueError(str(error)) from error

    def matching_values(self, lookup: TermLookup) -> Sequence[bytes]:
        """Return the values of all keys that match a lookup. Raises ValueError if the database is damaged."""
        if lookup.is_prefix:
            return [value for _, value in self.iter_from(lookup.key, lookup.first, lookup.last)]
        value = self.get(lookup.key)
        return () if value is None else (value,)

    def iter_from(self, prefix: bytes, first: bytes = b"", last: bytes = b"") -> Iterator[tuple[bytes, bytes]]:
        """Yield the (key, value) pairs whose keys begin with a prefix, in key order.

        `first` and `last`, if not empty, are the smallest and the greatest key to yield. Both must begin with the
        prefix. Raises ValueError if the database is damaged.
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
        """Release the memory. The database cannot be used after this call."""
        self._environment.close()


def _descriptor_path(descriptor: int) -> str:
    return f"/proc/self/fd/{descriptor}"
