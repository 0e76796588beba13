"""Checksummed files in `cache/`. They only save time, and are recreated if damaged or missing."""

from __future__ import annotations

import contextlib
import zlib

from codebatch.errors import StoreError
from codebatch.store import layout
from codebatch.store.batches.store import StoreDir

_CRC_BYTES = 4


def read_kept(store: StoreDir, name: str, magic: bytes) -> bytes | None:
    """Return the cached bytes under a name, or None if the file is missing, damaged or has another magic."""
    try:
        data = store.files.read(store.root / layout.CACHE / name)
    except (FileNotFoundError, StoreError):
        return None
    start = len(magic) + _CRC_BYTES
    body = data[start:]
    return body if data[:start] == magic + _crc(body) else None


def write_kept(store: StoreDir, name: str, magic: bytes, body: bytes) -> None:
    """Cache bytes for `read_kept`. If the store cannot be written, nothing happens."""
    with contextlib.suppress(StoreError, OSError):
        store.files.write_volatile(store.root / layout.CACHE / name, magic + _crc(body) + body)


def _crc(body: bytes) -> bytes:
    return zlib.crc32(body).to_bytes(_CRC_BYTES, "little")
