"""How often the files of a batch were changed in the last year: asked of git, and kept by the newest commit.

What is kept is `cache/churn-<16 hex>.bin`. It proves itself, and is made anew where it is damaged, or of another place
or commit. A store that cannot be written goes without.
"""

from __future__ import annotations

import contextlib
import os
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import msgspec

from codebatch.application.asking import Question
from codebatch.errors import StoreError
from codebatch.model.digest import digest_bytes
from codebatch.model.quantities import count_of
from codebatch.store import layout
from codebatch.store.store import Store
from codebatch.system.git import GitError, find_git
from codebatch.system.git_history import Head, History, find_head, read_history

_MAGIC = b"cbchurn\1"
_CRC_BYTES = 4


class Churn(NamedTuple):
    """How often files were changed in the year before the newest commit, those not named not at all.

    `changes` is None where there is no history; `told` says why, or how much of the year it lacks, and is empty where
    it is whole.
    """

    changes: Mapping[bytes, int] | None
    told: str = ""


class _Kept(msgspec.Struct, frozen=True, array_like=True):
    directory: bytes
    head: Head
    history: History


def churn(question: Question) -> Churn:
    """How often each file of a batch was changed, as the work tree that it was taken of has it now."""
    sources = question.batch.about.sources
    git = find_git()
    if git is None:
        return Churn(None, "changes are not known: there is no git")
    if not sources:
        return Churn(None, "changes are not known: nor is the tree that the batch is of")
    directory = sources[0] if len(sources) == 1 else os.path.commonpath(sources)
    if not os.path.isdir(directory):
        return Churn(None, "changes are not known: the tree that the batch is of is not there")
    try:
        head = find_head(git, directory)
        kept = _load(question.store, directory)
        if kept is None or kept.head != head:
            kept = _Kept(directory, head, read_history(git, directory, head))
            with contextlib.suppress(StoreError, OSError):
                _save(question.store, kept)
    except GitError as error:
        return Churn(None, f"changes are not known: {error}")
    return Churn(kept.history.changes, _told(kept))


def _told(kept: _Kept) -> str:
    if kept.history.is_cut:
        return (
            f"changes are those of the last {count_of(kept.history.commits, 'commit')} alone: there are more of a year"
        )
    if kept.head.is_shallow:
        return f"changes are those of {count_of(kept.history.commits, 'commit')} alone: the repository is shallow"
    return ""


def _path(store: Store, directory: bytes) -> Path:
    return store.root / layout.CACHE / layout.churn_cache_name(digest_bytes(directory))


def _load(store: Store, directory: bytes) -> _Kept | None:
    head_bytes = len(_MAGIC) + _CRC_BYTES
    try:
        data = store.files.read(_path(store, directory))
        if data[: len(_MAGIC)] != _MAGIC or zlib.crc32(data[head_bytes:]) != int.from_bytes(
            data[8:head_bytes], "little"
        ):
            return None
        kept = msgspec.msgpack.decode(data[head_bytes:], type=_Kept)
    except (FileNotFoundError, StoreError, msgspec.DecodeError):
        return None
    return kept if kept.directory == directory else None


def _save(store: Store, kept: _Kept) -> None:
    body = msgspec.msgpack.encode(kept)
    path = _path(store, kept.directory)
    store.files.write_volatile(path, _MAGIC + zlib.crc32(body).to_bytes(_CRC_BYTES, "little") + body)
