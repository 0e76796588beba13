"""The item table: the length and digest of each item's records, in item order.

A row is 36 bytes: the length in bytes as unsigned 32-bit little-endian, then the raw sha256 of the item's record lines.
Readers use the table to find an item's records in an output. The digest of the table is the digest of the task's
output. Rows do not depend on shards, so this digest does not depend on how items are divided into shards and units.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterable, Iterator
from itertools import accumulate

from codebatch.model.digest import Digest, digest_bytes, digest_pairs

ROW_BYTES = 36
ITEM_BYTES_MAX = 2**32 - 1

_row_struct = struct.Struct("<I32s")


def make_row(records: bytes) -> bytes:
    """Return the row of an item with the record lines `records`."""
    return _row_struct.pack(len(records), hashlib.sha256(records).digest())


_EMPTY_ROW = make_row(b"")


def make_table(items: Iterable[bytes]) -> bytes:
    """Return the rows of items, in the same order. `items` are the record lines of each item.

    All items without records share one precomputed row, which saves hashing: most tasks emit nothing for most files.
    """
    return b"".join([make_row(records) if records else _EMPTY_ROW for records in items])


def item_lengths(table: bytes) -> list[int]:
    """Return the lengths of all rows. Raises ValueError if the table is truncated."""
    if len(table) % ROW_BYTES:
        raise ValueError("the item table is truncated")
    return [length for length, _ in _row_struct.iter_unpack(table)]


def item_range(table: bytes, item: int) -> tuple[int, int]:
    """Return the start and end of an item's records in bytes, relative to the records of the first item."""
    ends = list(accumulate(item_lengths(table[: (item + 1) * ROW_BYTES]), initial=0))
    return ends[item], ends[item + 1]


def iter_items(table: bytes, blocks: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the record lines of each item, verified by its row. `blocks` are the record lines, split anywhere.

    Raises ValueError if the blocks do not match the rows exactly.
    """
    more = iter(blocks)
    buffer = b""
    start = 0
    for length, digest in _row_struct.iter_unpack(table):
        if len(buffer) - start < length:
            buffer, start = _fill_buffer(buffer[start:], more, length), 0
        item = buffer[start : start + length]
        if hashlib.sha256(item).digest() != digest:
            raise ValueError("it does not match its item table")
        start += length
        yield item
    if start != len(buffer) or any(more):
        raise ValueError("it does not match its item table")


def task_digest(table: bytes) -> Digest:
    """Return the digest of a task's whole output: the digest of its item table."""
    return digest_bytes(table)


def result_digest(tasks: Iterable[tuple[str, Digest]]) -> Digest:
    """Return the digest of a batch's outputs. It is computed from the name and digest of each task, sorted by name."""
    return digest_pairs(sorted(tasks))


def _fill_buffer(buffer: bytes, more: Iterator[bytes], length: int) -> bytes:
    """Return `buffer` and following blocks from `more`, until there are `length` bytes or no more blocks."""
    pieces = [buffer]
    missing = length - len(buffer)
    while missing > 0 and (block := next(more, None)) is not None:
        pieces.append(block)
        missing -= len(block)
    return b"".join(pieces)
