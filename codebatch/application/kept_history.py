"""The history of a work tree: asked of git, and kept in the store by the newest commit.

What is kept is `cache/churn-<16 hex>.bin`. It proves itself, and is made anew where it is damaged, or of another place
or commit. A store that cannot be written goes without.
"""

from __future__ import annotations

import contextlib
import zlib
from pathlib import Path

import msgspec

from codebatch.errors import StoreError
from codebatch.model.digest import digest_bytes
from codebatch.store import layout
from codebatch.store.store import Store
from codebatch.system.git import GitError, find_git
from codebatch.system.git_history import Head, History, find_head, read_history

__all__ = ["GitError", "find_history"]

_MAGIC = b"cbchurn\1"
_CRC_BYTES = 4
_HEAD_BYTES = len(_MAGIC) + _CRC_BYTES


class _Kept(msgspec.Struct, frozen=True, array_like=True):
    directory: bytes
    head: Head
    history: History


def find_history(store: Store, directory: bytes) -> tuple[Head, History]:
    """The newest commit of a work tree, and how often what lies in it was changed in the year before that.

    Raises GitError.
    """
    git = find_git()
    if git is None:
        raise GitError("there is no git")
    head = find_head(git, directory)
    kept = _load(store, directory)
    if kept is None or kept.head != head:
        kept = _Kept(directory, head, read_history(git, directory, head))
        with contextlib.suppress(StoreError, OSError):
            _save(store, kept)
    return kept.head, kept.history


def _path(store: Store, directory: bytes) -> Path:
    return store.root / layout.CACHE / layout.churn_cache_name(digest_bytes(directory))


def _load(store: Store, directory: bytes) -> _Kept | None:
    try:
        data = store.files.read(_path(store, directory))
        body, crc = data[_HEAD_BYTES:], data[len(_MAGIC) : _HEAD_BYTES]
        if not data.startswith(_MAGIC) or zlib.crc32(body).to_bytes(_CRC_BYTES, "little") != crc:
            return None
        kept = msgspec.msgpack.decode(body, type=_Kept)
    except (FileNotFoundError, StoreError, msgspec.DecodeError):
        return None
    return kept if kept.directory == directory else None


def _save(store: Store, kept: _Kept) -> None:
    body = msgspec.msgpack.encode(kept)
    path = _path(store, kept.directory)
    store.files.write_volatile(path, _MAGIC + zlib.crc32(body).to_bytes(_CRC_BYTES, "little") + body)
