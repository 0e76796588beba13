"""Edits of byte ranges of a file, and the file that results (SPEC.md "Changes")."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple

from tree_sitter import Node

from codebatch_workers.syntax.content_offsets import content_offsets
from codebatch_workers.syntax.language.encodings import UNKNOWN_ENCODING
from codebatch_workers.syntax.source import HUGE_BYTES_MIN, SourceFile

REWRITTEN_BYTES_MAX = HUGE_BYTES_MIN

Span = tuple[int, int]
Part = str | Span
"""A part of the new code: a text, or a range of `utf8` that is copied."""


CodeKind = Literal["expression", "statement", "statements", "unknown"]
"""The new code of an edit by itself: one expression, one statement or declaration, several of them or none, or code
that cannot be parsed by itself.
"""


class Edit(NamedTuple):
    """A range of `utf8` of a file, and the parts of the code that replaces it."""

    start: int
    end: int
    parts: Sequence[Part]
    kind: CodeKind = "expression"


def root_of(file: SourceFile) -> Node:
    """Return the root of the syntax tree of a file."""
    return (file.tree or file.parse()).root_node


def length_of(parts: Sequence[Part]) -> int:
    """Return the number of bytes of some parts in UTF-8."""
    return sum(len(part.encode()) if isinstance(part, str) else part[1] - part[0] for part in parts)


def text_of(file: SourceFile, parts: Sequence[Part]) -> bytes:
    """Return the text of some parts in UTF-8."""
    return b"".join(part.encode() if isinstance(part, str) else file.utf8[part[0] : part[1]] for part in parts)


def new_starts(edits: Sequence[Edit]) -> Iterator[int]:
    """Yield the offset of each edit in the UTF-8 text of the edited file."""
    moved = 0
    for edit in edits:
        yield edit.start + moved
        moved += length_of(edit.parts) - (edit.end - edit.start)


def new_spans(edits: Sequence[Edit]) -> Iterator[Span]:
    """Yield the offsets of the new code of each edit in the UTF-8 text of the edited file."""
    for edit, start in zip(edits, new_starts(edits), strict=True):
        yield start, start + length_of(edit.parts)


def iter_copies(edits: Sequence[Edit]) -> Iterator[tuple[int, Span, Span]]:
    """Yield the range of each piece of copied code before and after some edits, and the number of its edit."""
    for number, (edit, start) in enumerate(zip(edits, new_starts(edits), strict=True)):
        for part in edit.parts:
            end = start + length_of([part])
            if not isinstance(part, str):
                yield number, part, (start, end)
            start = end


def original_offset(offset: int, edits: Sequence[Edit]) -> int | None:
    """Return the offset before some edits of an offset after them, or None for text that the edits have added."""
    moved = 0
    for edit, start in zip(edits, new_starts(edits), strict=True):
        if offset < start:
            break
        for part in edit.parts:
            length = length_of([part])
            if offset < start + length:
                return None if isinstance(part, str) else part[0] + offset - start
            start += length
        moved = edit.end - start
    return offset + moved


def apply_edits(file: SourceFile, edits: Sequence[Edit]) -> SourceFile:
    """Return the file after edits, which are sorted and do not overlap.

    Raises ValueError if the file cannot be edited exactly or would be too long.
    """
    spans = [part for edit in edits for part in edit.parts if not isinstance(part, str)]
    bounds = [bound for edit in edits for bound in (edit.start, edit.end)]
    places = content_offsets(file, [*bounds, *(bound for span in spans for bound in span)])
    codec = "utf-8" if file.encoding == UNKNOWN_ENCODING else file.encoding
    pieces: list[bytes] = []
    done = 0
    for edit in edits:
        pieces.append(file.content[done : places[edit.start]])
        for part in edit.parts:
            if isinstance(part, str):
                pieces.append(part.encode(codec))
            else:
                pieces.append(file.content[places[part[0]] : places[part[1]]])
        done = places[edit.end]
    content = b"".join([*pieces, file.content[done:]])
    if len(content) > REWRITTEN_BYTES_MAX:
        raise ValueError(f"the rewritten file would have more than {REWRITTEN_BYTES_MAX:,} bytes")
    return SourceFile(file.path, content, file.executable, file.contexts)
