"""Shards: contiguous ranges of a snapshot's items, and the work of project tasks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NewType

import msgspec

from codebatch.model.entry import Entry

ShardId = NewType("ShardId", str)

SHARD_ID_DIGITS_MIN = 8

_PROJECT_PREFIX = "project-"
SHARD_ID_PATTERN = rf"[0-9a-f]{{{SHARD_ID_DIGITS_MIN},64}}|{_PROJECT_PREFIX}[a-z][a-z0-9_-]{{0,63}}"
"""A pattern for the IDs of shards and of the work of project tasks.

These IDs occur in the names of registers and leases.
"""

PROJECT_PATH = b"."
"""The path in the failure record of a project task, which is not about any file."""


class ShardRule(msgspec.Struct, frozen=True, kw_only=True):
    """The rule that divides a snapshot into shards. It is part of the plan, but output does not depend on it.

    A shard has about `files_average` files, at least `files_min` and at most `files_max`. Its size is at most
    `bytes_max`: it ends before a file that would exceed this size, and a larger file has a shard of its own.
    """

    files_average: int = 256
    files_min: int = 16
    files_max: int = 768
    bytes_max: int = 8 * 1024 * 1024

    def __post_init__(self) -> None:
        if not 1 <= self.files_min <= self.files_average <= self.files_max or self.bytes_max < 1:
            raise ValueError("a shard rule needs 1 <= files_min <= files_average <= files_max and bytes_max >= 1")

    def for_parts(self, files: int) -> ShardRule:
        """Return a rule with smaller shards if there are few files, so that parts get equal work.

        The rule is the same on all machines and for all numbers of parts. A rule that a user has set stays.
        """
        average = 1 << max(4, (files // 64).bit_length() - 1)
        if self != ShardRule() or average >= self.files_average:
            return self
        return ShardRule(files_average=average, files_min=average // 4, files_max=3 * average)


class Shard(msgspec.Struct, frozen=True, kw_only=True):
    """A shard: the items [start, end) of the snapshot, with `bytes` of content. It is never empty."""

    id: ShardId
    start: int
    end: int
    bytes: int

    @property
    def items(self) -> int:
        """The number of items. Units and outcomes number the items of a shard from 0."""
        return self.end - self.start


class ProjectWork(msgspec.Struct, frozen=True):
    """The work of a project task: one item that represents the whole project.

    Units, leases and registers use its `id` as if it were the ID of a shard. No shard has such an ID.
    """

    task: str

    @property
    def id(self) -> ShardId:
        """The ID that names the work's units, leases and registers."""
        return ShardId(_PROJECT_PREFIX + self.task)

    @property
    def items(self) -> int:
        """The number of items: always 1."""
        return 1


Work = Shard | ProjectWork
"""All work that is divided into units: a shard, or the work of a project task.

Mappings use the ID of the work as key, because names and messages contain this ID.
"""


def work_item_path(work: Work, item: int, items: Sequence[Entry]) -> bytes:
    """Return the path of an item of `work`, numbered from the first item of `work`.

    `items` are all items of the plan.
    """
    match work:
        case Shard(start=start):
            return items[start + item].path
        case ProjectWork():
            return PROJECT_PATH
