"""Calls in the arguments of Rust macros, which the grammar does not parse.

There, a name before parentheses is a call: `a.f::<T>(…)`.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator

from codebatch_workers.syntax.source import SourceFile

_CHAIN_BYTES_MAX = 400
_CHAIN = re.compile(rb"(?:(?:[\w\x80-\xff$]+|(?<=[)\]}?>]))\s*(?:::|\.)\s*)*\Z")
_NAME = re.compile(rb"[\w\x80-\xff]+\Z")
_ARGUMENTS = re.compile(rb"\s*\(")
_DECLARATION = re.compile(rb"\b(?:fn|struct|enum|union|trait|type|mod)\s+\Z")


def unmarked_calls(file: SourceFile) -> tuple[tuple[int, int], ...]:
    """Return the ranges of the chains of names that are called, in text order."""
    return tuple(sorted(_called_chains(file)))


def _called_chains(file: SourceFile) -> Iterator[tuple[int, int]]:
    utf8 = file.utf8
    attributes = [(node.start_byte, node.end_byte) for node in file.captures.get("attribute", ())]
    starts = [start for start, _ in attributes]
    for node in file.captures.get("token_call", ()):
        if not _ARGUMENTS.match(utf8, node.end_byte):
            continue  # The query ignores tokens such as a comma before the parenthesis.
        end = node.end_byte if node.is_named else _before_generics(utf8, node.end_byte)
        index = bisect_right(starts, end) - 1
        if index >= 0 and end <= attributes[index][1]:
            continue  # The argument of an attribute: `#[cfg(all(unix))]`.
        name = _NAME.search(utf8, max(end - _CHAIN_BYTES_MAX, 0), end)
        if name is not None and not _DECLARATION.search(utf8, max(name.start() - 20, 0), name.start()):
            chain = _CHAIN.search(utf8, max(name.start() - _CHAIN_BYTES_MAX, 0), name.start())
            yield chain.start() if chain is not None else name.start(), end


def _before_generics(utf8: bytes, end: int) -> int:
    """Return the offset before `::<…>`, which ends at `end`. Return `end` if the text there is a comparison."""
    depth = 0
    for position in range(end - 1, max(end - _CHAIN_BYTES_MAX, 0), -1):
        byte = utf8[position : position + 1]
        if byte == b">" and utf8[position - 1 : position] != b"-":
            depth += 1
        elif byte == b"<":
            depth -= 1
            if depth == 0:
                return position - 2 if utf8[position - 2 : position] == b"::" else end
    return end
