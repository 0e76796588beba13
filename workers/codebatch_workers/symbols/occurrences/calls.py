"""Occurrences of a name, derived from stored records of calls. If this succeeds, the file need not be parsed.

The record of a call contains the line of the name, the target as written, and the scope. The derivation needs two
conditions. The name occurs in the text exactly as often as there are calls. The text at each occurrence agrees with the
line and target of one call. Then parsing could find no other occurrence.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from codebatch_workers.symbols.language_symbols import LanguageSymbols
from codebatch_workers.syntax.source import SourceFile

_CALL_START = re.compile(rb"[ \t]*\(")
_NAME_START = re.compile(rb"[A-Za-z_\x80-\xff]")
# If one of these bytes precedes a name, the name continues a chain such as `a.b`.
_CHAIN_CONTINUATION = re.compile(rb"[\w$.:>)\]}\x80-\xff-]")
# A line continuation within a name. The search for names in the text does not find such a name.
_SPLIT_NAME = re.compile(rb"\w\\\r?\n\w")


class NameReference(NamedTuple):
    """An occurrence of a name: its offsets in the UTF-8 text, its role, and the qualified name of its scope."""

    start: int
    end: int
    role: str
    scope: str


def call_references(
    file: SourceFile, spans: Sequence[tuple[int, int]], calls: Sequence[tuple[int, str, str]]
) -> list[NameReference] | None:
    """Return the occurrences of a name if all of them are calls. Return None if only the tree can show this.

    `spans` are the occurrences of the name in the text. `calls` are line, target and source of each recorded call of
    the name. The file must not define the name.
    """
    if not LanguageSymbols.of(file.language).has_imports_without_calls or len(spans) != len(calls):
        return None
    if _SPLIT_NAME.search(file.utf8):
        return None
    if file.utf8[slice(*spans[0])] in file.syntax.reserved_words:
        return None
    references: list[NameReference] = []
    previous = (0, "", "")
    for (start, end), call in zip(spans, sorted(calls), strict=True):
        line, target, source = call
        is_unambiguous = line != previous[0] or call == previous
        if not is_unambiguous or file.position(start)[0] != line or not _is_written(file.utf8, end, target.encode()):
            return None
        references.append(NameReference(start, end, "call", source))
        previous = call
    return references


def _is_written(utf8: bytes, end: int, target: bytes) -> bool:
    """Return whether the text up to `end` is a complete chain of names equal to `target`, and `(` follows."""
    start = end - len(target)
    return (
        start >= 0
        and utf8[start:end] == target
        and _NAME_START.match(target) is not None
        and _CALL_START.match(utf8, end) is not None
        and _CHAIN_CONTINUATION.match(utf8, max(start - 1, 0), start) is None
    )
