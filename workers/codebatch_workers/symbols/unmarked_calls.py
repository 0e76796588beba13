"""Calls for which the grammar has no node: in the arguments of Rust macros, and of Ruby methods by their name only.

Rust's grammar does not parse the arguments of macros. There, a name before parentheses is a call: `a.f::<T>(…)`.
A Ruby name is a call unless the enclosing method, class or file binds a local variable with this name.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator

from tree_sitter import Node

from codebatch_workers.syntax.source import SourceFile

_CHAIN_BYTES_MAX = 400
_RUST_CHAIN = re.compile(rb"(?:(?:[\w\x80-\xff$]+|(?<=[)\]}?>]))\s*(?:::|\.)\s*)*\Z")
_RUST_NAME = re.compile(rb"[\w\x80-\xff]+\Z")
_RUST_ARGUMENTS = re.compile(rb"\s*\(")
_RUST_DECLARATION = re.compile(rb"\b(?:fn|struct|enum|union|trait|type|mod)\s+\Z")
_RUBY_SCOPES = ("def.function", "def.class", "def.module", "singleton")


def unmarked_calls(file: SourceFile) -> tuple[tuple[int, int], ...]:
    """Return the ranges of the chains of names that are called, in text order."""
    return file.derived(_find_unmarked_calls)


def _find_unmarked_calls(file: SourceFile) -> tuple[tuple[int, int], ...]:
    if file.language == "rust":
        return tuple(sorted(_rust_calls(file)))
    if file.language == "ruby":
        return tuple((node.start_byte, node.end_byte) for node in _ruby_calls(file))
    return ()


# -- Rust --------------------------------------------------------------------------------------------------------------


def _rust_calls(file: SourceFile) -> Iterator[tuple[int, int]]:
    utf8 = file.utf8
    attributes = [(node.start_byte, node.end_byte) for node in file.captures.get("attribute", ())]
    starts = [start for start, _ in attributes]
    for node in file.captures.get("token_call", ()):
        if not _RUST_ARGUMENTS.match(utf8, node.end_byte):
            continue  # The query ignores tokens such as a comma before the parenthesis.
        end = node.end_byte if node.is_named else _before_generics(utf8, node.end_byte)
        index = bisect_right(starts, end) - 1
        if index >= 0 and end <= attributes[index][1]:
            continue  # The argument of an attribute: `#[cfg(all(unix))]`.
        name = _RUST_NAME.search(utf8, max(end - _CHAIN_BYTES_MAX, 0), end)
        if name is not None and not _RUST_DECLARATION.search(utf8, max(name.start() - 20, 0), name.start()):
            chain = _RUST_CHAIN.search(utf8, max(name.start() - _CHAIN_BYTES_MAX, 0), name.start())
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


# -- Ruby --------------------------------------------------------------------------------------------------------------


def _ruby_calls(file: SourceFile) -> Iterator[Node]:
    """Yield the names that are neither a part of another construct nor a local variable."""
    captures = file.captures
    names = captures.get("plain_name", ())
    if not names:
        return
    taken = {node.start_byte for capture in ("tail", "bound_name", "method_name") for node in captures.get(capture, ())}
    spans = sorted((node.start_byte, -node.end_byte) for capture in _RUBY_SCOPES for node in captures.get(capture, ()))
    scopes = _Scopes([(start, -minus_end) for start, minus_end in spans])
    bound: dict[int, set[bytes]] = defaultdict(set)
    for node in captures.get("bound_name", ()):
        bound[scopes.at(node.start_byte)].add(file.utf8[node.start_byte : node.end_byte].rstrip(b":"))
    for node in names:
        start = node.start_byte
        if start not in taken and file.utf8[start : node.end_byte] not in bound[scopes.at(start)]:
            yield node


class _Scopes:
    """Nested ranges of a text, outer before inner. Each offset has the number of the innermost range around it."""

    def __init__(self, spans: Iterable[tuple[int, int]]) -> None:
        self._starts, self._numbers = [0], [-1]
        open_spans: list[tuple[int, int]] = []
        for number, (start, end) in enumerate(spans):
            self._close(open_spans, start)
            self._starts.append(start)
            self._numbers.append(number)
            open_spans.append((end, number))
        self._close(open_spans, None)

    def _close(self, open_spans: list[tuple[int, int]], until: int | None) -> None:
        """Close the ranges that end before an offset."""
        while open_spans and (until is None or open_spans[-1][0] <= until):
            end, _ = open_spans.pop()
            self._starts.append(end)
            self._numbers.append(open_spans[-1][1] if open_spans else -1)

    def at(self, offset: int) -> int:
        """Return the number of the innermost range that contains an offset, or -1 if none does."""
        return self._numbers[bisect_right(self._starts, offset) - 1]
