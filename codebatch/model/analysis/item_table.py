"""The item table: for every item the length and the digest of its records, in item order.

A row is 36 bytes: length as unsigned 32-bit little-endian, then the raw sha256 of the item's record lines. The table
says where an item's records lie in an output, and its own digest is a task's digest: rows know no shard, so
neither shard size nor splits can change it.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterable, Iterator
from itertools import accumulate

from codebatch.model.digest import Digest, digest_bytes, digest_pairs

ROW_BYTES = 36
ITEM_BYTES_MAX = 2**32 - 1

_row = struct.Struct("<I32s")


def make_row(records: bytes) -> bytes:
    """The row of an item whose record lines are `records`."""
    return _row.pack(len(records), hashlib.sha256(records).digest())


_ROW_OF_NOTHING = make_row(b"")


def make_table(items: Iterable[bytes]) -> bytes:
    """The rows of items whose record lines these are: of most files most tasks say nothing."""
    return b"".join([make_row(records) if records else _ROW_OF_NOTHING for records in items])


def item_lengths(table: bytes) -> list[int]:
    """The lengths of all rows. Raises ValueError where the table is cut."""
    if len(table) % ROW_BYTES:
        raise ValueError("the item table is truncated")
    return [length for length, _ in _row.iter_unpack(table)]


def item_range(table: bytes, item: int) -> tuple[int, int]:
    """Where the records of row `item` begin and end, in bytes from the first row's."""
    ends = list(accumulate(item_lengths(table[: (item + 1) * ROW_BYTES]), initial=0))
    return ends[item], ends[item + 1]


def iter_items(table: bytes, blocks: Iterable[bytes]) -> Iterator[bytes]:
    """The record lines of each row's item, one at a time, out of blocks cut anyhow.

    Raises ValueError unless the blocks are exactly what the rows say; what was yielded before is.
    """
    more = iter(blocks)
    held = b""
    start = 0
    for length, digest in _row.iter_unpack(table):
        if len(held) - start < length:
            held, start = _held(held[start:], more, length), 0
        item = held[start : start + length]
        if hashlib.sha256(item).digest() != digest:
            raise ValueError("it does not match its item table")
        start += length
        yield item
    if start != len(held) or any(more):
        raise ValueError("it does not match its item table")


def task_digest(table: bytes) -> Digest:
    """The digest of a task's whole output: that of its item table."""
    return digest_bytes(table)


def result_digest(tasks: Iterable[tuple[str, Digest]]) -> Digest:
    """The digest of a batch's outputs: over (task, task digest), sorted by task."""
    return digest_pairs(sorted(tasks))


def _held(held: bytes, more: Iterator[bytes], length: int) -> bytes:
    """What is held and as many blocks more as are needed for so many bytes, or all there are."""
    pieces = [held]
    missing = length - len(held)
    while missing > 0 and (block := next(more, None)) is not None:
        pieces.append(block)
        missing -= len(block)
    return b"".join(pieces)
