"""Division of a snapshot's items into shards at content-defined boundaries.

Items are the entries of kind `file`, in path order. A shard ends after an item whose path hash is a multiple of a
modulus (content-defined chunking, after LBFS, Muthitacharoen et al. 2001). So an added or removed file usually moves
one boundary, rarely two.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from codebatch.model.entry import Entry
from codebatch.model.shard import SHARD_ID_DIGITS_MIN, Shard, ShardId, ShardRule


def cut_shards(items: Sequence[Entry], rule: ShardRule) -> list[Shard]:
    """Divide items into shards by a rule. Each item is in exactly one shard. The items must be sorted by path."""
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
        is_boundary = count >= rule.files_min and int.from_bytes(hashes[index][:8], "big") % modulus == 0
        if is_boundary or count == rule.files_max or size > rule.bytes_max:
            ranges.append((start, index + 1, size))
            start, size = index + 1, 0
    if start < len(items):
        ranges.append((start, len(items), size))
    names = unique_prefixes([hashes[first].hex() for first, _, _ in ranges])
    return [
        Shard(id=ShardId(name), start=first, end=end, bytes=total)
        for name, (first, end, total) in zip(names, ranges, strict=True)
    ]


def unique_prefixes(digests: Sequence[str]) -> list[str]:
    """Return the shortest unique prefix of each digest, but at least SHARD_ID_DIGITS_MIN digits.

    The prefixes do not depend on the order of the digests.
    """
    prefix_digits: dict[str, int] = {}
    for one, other in zip(ordered := sorted(digests), ordered[1:], strict=False):
        shared = next(i for i, (a, b) in enumerate(zip(one, other, strict=True)) if a != b)
        prefix_digits[one] = max(prefix_digits.get(one, 0), shared + 1)
        prefix_digits[other] = max(prefix_digits.get(other, 0), shared + 1)
    return [digest[: max(SHARD_ID_DIGITS_MIN, prefix_digits.get(digest, 0))] for digest in digests]
