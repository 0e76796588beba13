"""The history of a work tree: asked of git, and kept in the store by the newest commit (`cache/churn-<16 hex>.bin`)."""

from __future__ import annotations

import msgspec

from codebatch.model.digest import digest_bytes
from codebatch.store import layout
from codebatch.store.kept import read_kept, write_kept
from codebatch.store.store import Store
from codebatch.system.git import GitError, find_git
from codebatch.system.git_history import Head, History, find_head, read_history

__all__ = ["GitError", "find_history", "find_newest"]

_MAGIC = b"cbchurn\1"


class _Kept(msgspec.Struct, frozen=True, array_like=True):
    directory: bytes
    head: Head
    history: History


def find_newest(directory: bytes) -> Head:
    """The newest commit of a work tree. Raises GitError."""
    return find_head(_git(), directory)


def find_history(store: Store, directory: bytes, head: Head) -> History:
    """How often what lies in a work tree was changed in the year before its newest commit. Raises GitError."""
    name = layout.churn_cache_name(digest_bytes(directory))
    kept = _decode(read_kept(store, name, _MAGIC))
    if kept is not None and (kept.directory, kept.head) == (directory, head):
        return kept.history
    history = read_history(_git(), directory, head)
    write_kept(store, name, _MAGIC, msgspec.msgpack.encode(_Kept(directory, head, history)))
    return history


def _git() -> str:
    git = find_git()
    if git is None:
        raise GitError("there is no git")
    return git


def _decode(body: bytes | None) -> _Kept | None:
    try:
        return None if body is None else msgspec.msgpack.decode(body, type=_Kept)
    except msgspec.DecodeError:
        return None
