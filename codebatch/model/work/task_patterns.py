"""Wildcards in the names of tasks: `*` and `?` match any characters, also a slash, and `[ab]` one of some."""

from __future__ import annotations

import fnmatch
from collections.abc import Iterable
from typing import TypeVar

_Id = TypeVar("_Id", bound=str)


def has_wildcard(word: str) -> bool:
    """Return whether a word is a pattern. The IDs of tasks contain none of these characters."""
    return not {"*", "?", "["}.isdisjoint(word)


def matching_ids(word: str, ids: Iterable[_Id]) -> list[_Id]:
    """Return the IDs that a word names: each ID that a pattern matches, or the one that equals the word."""
    return [id_ for id_ in ids if (fnmatch.fnmatchcase(str(id_), word) if has_wildcard(word) else id_ == word)]
