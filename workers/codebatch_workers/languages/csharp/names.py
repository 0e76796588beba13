"""The names of types that a C# file uses.

A type is named as in `shop.Price`. With type arguments, their number follows: ``List`1``. An attribute is in brackets:
`[Route]`. A chain that can begin with a type lacks its last name: `Color.` for `Color.Red`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from codebatch.model.record import Names, Symbol
from codebatch_workers.symbols.file_outline import FileOutline
from codebatch_workers.symbols.used_names import (
    first_offsets,
    imported_symbols,
    keep_first,
    local_variables,
    make_names,
    without_known,
)
from codebatch_workers.syntax.source import SourceFile

_NAME = rb"@?[A-Za-z_\x80-\xff][\w\x80-\xff]*"
_TYPE = re.compile(rb"(?:global::)?(" + _NAME + rb"(?:\." + _NAME + rb"){0,9})\s*(<)?")
_OWNER = re.compile(rb"((?:[A-Z_@\x80-\xff][\w\x80-\xff]*\s*\.\s*){1,9})(?=[A-Za-z_@\x80-\xff])")
_SMALL_LETTERS = frozenset(b"abcdefghijklmnopqrstuvwxyz_")
_MEMBER_TYPES = frozenset({"constructor", "enum_member", "field", "method", "property"})


def read_names(file: SourceFile, outline: FileOutline) -> Names | None:
    """Return the types that a file uses."""
    offsets, local = _used_types(file, outline.symbols)
    # A type of the file does not hide another file, because several files can define one type.
    return make_names(file, without_known(file, offsets, imported_symbols(outline.symbols)), local)


def _used_types(file: SourceFile, symbols: Iterable[Symbol]) -> tuple[dict[bytes, int], set[bytes]]:
    """Return the used names of a C# file with the offset of the first use, and those that can also be members.

    An inherited member hides a type at the beginning of a chain. The members of base classes are unknown here.
    """
    utf8, offsets = file.utf8, dict[bytes, int]()
    for text, start in first_offsets(file, "use", "base"):
        keep_first(offsets, _type_name(text), start)
    for text, start in first_offsets(file, "attribute"):
        match = _TYPE.match(text)
        if match is not None:
            keep_first(offsets, b"[" + match[1].replace(b"@", b"") + b"]", start)
    local = local_variables(file)
    owners: dict[bytes, int] = {}
    for node in file.captures.get("owner", ()):
        start = node.start_byte
        # Most chains begin with a local variable, whose first letter is small.
        if utf8[start] not in _SMALL_LETTERS:
            match = _OWNER.match(utf8, start)
            owners.setdefault(utf8[start : node.end_byte] if match is None else match[1], start)
    has_bases = bool(file.captures.get("base"))
    members = {symbol.name.encode() for symbol in symbols if symbol.symbol_type in _MEMBER_TYPES}
    for text, start in owners.items():
        name = _type_name(text) + b"." if text[-1:] != b"." else b"".join(text.split())
        keep_first(offsets, name, start)
        if has_bases or name.partition(b".")[0] in members:
            local.add(name)
    return offsets, local


def _type_name(text: bytes) -> bytes:
    """Return a type as written, with the number of its type arguments instead of these. Return nothing if invalid."""
    match = _TYPE.match(text)
    if match is None:
        return b""
    name = match[1].replace(b"@", b"")
    if match[2] is None:
        return name
    depth, count = 0, 1
    for byte in text[match.end(1) :]:
        depth += (byte in b"<[(") - (byte in b">])")
        count += byte == ord(",") and depth == 1
        if depth == 0 and byte == ord(">"):
            break
    return name + b"`%d" % count
