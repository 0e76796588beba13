"""Checksummed files in `cache/`. They only save time: if one is damaged or missing, its value is computed again."""

from __future__ import annotations

import contextlib
import zlib
from typing import TypeVar

import msgspec

from codebatch.errors import StoreError
from codebatch.store import layout
from codebatch.store.batches.store_directory import StoreDir

_CRC_BYTES = 4

T = TypeVar("T")


def read_cached(store: StoreDir, name: str, magic: bytes, type_: type[T]) -> T | None:
    """Return the cached value from the file `name`, or None if the file has no such value.

    There is no such value if the file is missing or damaged, begins with another `magic`, or contains another type.
    """
    try:
        data = store.files.read(store.root / layout.CACHE / name)
        start = len(magic) + _CRC_BYTES
        body = data[start:]
        return msgspec.msgpack.decode(body, type=type_) if data[:start] == magic + _crc_bytes(body) else None
    except (FileNotFoundError, StoreError, ValueError):  # msgspec raises ValueError for undecodable bytes.
        return None


def write_cached(store: StoreDir, name: str, magic: bytes, value: object) -> None:
    """Write a value to the file `name` for `read_cached`. If the store cannot be written, do nothing.

    `magic` is the prefix of the file that identifies its format and version.
    """
    body = msgspec.msgpack.encode(value)
    with contextlib.suppress(StoreError, OSError):
        store.files.write_volatile(store.root / layout.CACHE / name, magic + _crc_bytes(body) + body)


def _crc_bytes(body: bytes) -> bytes:
    return zlib.crc32(body).to_bytes(_CRC_BYTES, "little")
