"""Shards: contiguous ranges of a snapshot's items, cut where the paths themselves say so.

Items are the entries of kind `file`, in path order. A cut follows an item whose path hash divides by a modulus
(content-defined chunking, after LBFS, Muthitacharoen et al. 2001), so that an edit moves one cut, rarely two.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import NewType

import msgspec

from codebatch.model.entry import Entry

ShardId = NewType("ShardId", str)

SHARD_ID_DIGITS_MIN = 8

_PROJECT_PREFIX = "project-"
SHARD_ID_PATTERN = rf"[0-9a-f]{{{SHARD_ID_DIGITS_MIN},64}}|{_PROJECT_PREFIX}[a-z][a-z0-9_-]{{0,63}}"
"""What the id of any work matches, in the names of registers and leases."""

PROJECT_PATH = b"."
"""The path in a record that speaks of no file: a project task that failed."""


class ShardRule(msgspec.Struct, frozen=True, kw_only=True):
    """Where shards end. Part of the plan; no byte of output depends on it.

    `files_average` is aimed at, `files_min` and `files_max` bound the count, `bytes_max` the size: a bigger file
    stands alone, and a shard ends early rather than pass it.
    """

    files_average: int = 256
    files_min: int = 16
    files_max: int = 768
    bytes_max: int = 8 * 1024 * 1024

    def __post_init__(self) -> None:
        if not 1 <= self.files_min <= self.files_average <= self.files_max or self.bytes_max < 1:
            raise ValueError("a shard rule needs 1 <= files_min <= files_average <= files_max and bytes_max >= 1")


class Shard(msgspec.Struct, frozen=True, kw_only=True):
    """Items [start, end) of the snapshot, `bytes` of content in all. Never empty."""

    id: ShardId
    start: int
    end: int
    bytes: int

    @property
    def items(self) -> int:
        """How many items it has; positions in units and outcomes run from 0 to this."""
        return self.end - self.start


class ProjectWork(msgspec.Struct, frozen=True):
    """What a task of project scope works on: the project, as one item.

    In units, leases and registers its `id` stands where a shard's does; no shard has such an id.
    """

    task: str

    @property
    def id(self) -> ShardId:
        """The id that its units, leases and registers bear."""
        return ShardId(_PROJECT_PREFIX + self.task)

    @property
    def items(self) -> int:
        """One."""
        return 1


Work = Shard | ProjectWork
"""All that a unit can be cut from. Keys stay ids: they are what stands in names and messages, and hash fast."""


def path_of(work: Work, item: int, items: Sequence[Entry]) -> bytes:
    """The path of an item of some work, of all the plan's `items`."""
    match work:
        case Shard(start=start):
            return items[start + item].path
        case ProjectWork():
            return PROJECT_PATH


def cut_shards(items: Sequence[Entry], rule: ShardRule) -> list[Shard]:
    """Cut path-sorted items into shards that cover each exactly once."""
    modulus = rule.files_average - rule.files_min + 1
    hashes = [hashlib.sha256(item.path).digest() for item in items]
    ranges: list[tuple[int, int, int]] = []
    start = size = 0
    for index, item in enumerate(items):
        if index > start and size + item.size > rule.bytes_max:
            ranges.append((start, index, size))
            start, size = index, 0
        size += item.size
        count = index + 1 - start
        says_cut = count >= rule.files_min and int.from_bytes(hashes[index][:8], "big") % modulus == 0
        if says_cut or count == rule.files_max or size > rule.bytes_max:
            ranges.append((start, index + 1, size))
            start, size = index + 1, 0
    if start < len(items):
        ranges.append((start, len(items), size))
    names = _unique_prefixes([hashes[first].hex() for first, _, _ in ranges])
    return [
        Shard(id=ShardId(name), start=first, end=end, bytes=total)
        for name, (first, end, total) in zip(names, ranges, strict=True)
    ]


def _unique_prefixes(digests: Sequence[str]) -> list[str]:
    """The shortest prefixes, of 8 digits or more, that no other digest shares. Independent of order."""
    longest: dict[str, int] = {}
    for one, other in zip(ordered := sorted(digests), ordered[1:], strict=False):
        shared = next(i for i, (a, b) in enumerate(zip(one, other, strict=True)) if a != b)
        longest[one] = max(longest.get(one, 0), shared + 1)
        longest[other] = max(longest.get(other, 0), shared + 1)
    return [digest[: max(SHARD_ID_DIGITS_MIN, longest.get(digest, 0))] for digest in digests]
