"""Files in `cache/` that prove themselves: what is kept there is speed, and made anew where it is damaged or gone."""

from __future__ import annotations

import contextlib
import zlib

from codebatch.errors import StoreError
from codebatch.store import layout
from codebatch.store.batches.store import StoreDir

_CRC_BYTES = 4


def read_kept(store: StoreDir, name: str, magic: bytes) -> bytes | None:
    """What was kept under a name, with the same magic; None where nothing sound is."""
    try:
        data = store.files.read(store.root / layout.CACHE / name)
    except (FileNotFoundError, StoreError):
        return None
    start = len(magic) + _CRC_BYTES
    body = data[start:]
    return body if data[:start] == magic + _crc(body) else None


def write_kept(store: StoreDir, name: str, magic: bytes, body: bytes) -> None:
    """Keep something for `read_kept`. A store that cannot be written goes without."""
    with contextlib.suppress(StoreError, OSError):
        store.files.write_volatile(store.root / layout.CACHE / name, magic + _crc(body) + body)


def _crc(body: bytes) -> bytes:
    return zlib.crc32(body).to_bytes(_CRC_BYTES, "little")
