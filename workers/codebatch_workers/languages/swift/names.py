"""The types and functions that a Swift file uses."""

from __future__ import annotations

import re

from codebatch.model.record import Names
from codebatch_workers.symbols.file_outline import FileOutline
from codebatch_workers.symbols.used_names import (
    USING_CAPTURES,
    imported_symbols,
    keep_first,
    local_variables,
    make_names,
    without_known,
)
from codebatch_workers.syntax.source import SourceFile

_CAPITALS = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZ")
_CAPITAL_CHAIN = re.compile(rb"[A-Z]\w*(?:\s*\.\s*[A-Z]\w*){0,9}")
_PLAIN_NAME = re.compile(rb"[a-z_]\w*\Z")


def read_names(file: SourceFile, outline: FileOutline) -> Names | None:
    """Return the types and functions that a file uses."""
    # A type of the file does not hide another file, because several files can define one type.
    names = without_known(file, _first_uses(file), imported_symbols(outline.symbols))
    return make_names(file, names, local_variables(file))


def _first_uses(file: SourceFile) -> dict[bytes, int]:
    """Return the offset of the first use of each type and each function. By convention, types begin with a capital."""
    utf8, offsets = file.utf8, dict[bytes, int]()
    for capture in USING_CAPTURES:
        for node in file.captures.get(capture, ()):
            start = node.start_byte
            # Most nodes are lower-case names of variables, and the pattern need not be tried for them.
            if utf8[start] in _CAPITALS:
                chain = _CAPITAL_CHAIN.match(utf8, start)
            else:
                chain = _PLAIN_NAME.match(utf8, start, node.end_byte) if capture == "call" else None
            if chain is not None:
                keep_first(offsets, b"".join(chain[0].split()), start)
    return offsets
