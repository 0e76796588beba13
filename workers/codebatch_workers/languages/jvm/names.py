"""The names that a file in Java, Kotlin or Scala uses.

A name ends with the first name that has a capital letter: `shop.Price` of `shop.Price.of`. In Kotlin and Scala,
`.total` is a name for the call `x.total()`, which can call an extension function. A local variable or type parameter
hides a name of another file, unless the name is called.
"""

from __future__ import annotations

import re
from collections.abc import Sequence, Set

from codebatch.model.record import Names, Symbol
from codebatch_workers.symbols.file_outline import FileOutline
from codebatch_workers.symbols.used_names import (
    USING_CAPTURES,
    imported_symbols,
    local_variables,
    make_names,
    outermost_symbols,
    without_known,
)
from codebatch_workers.syntax.source import SourceFile

_NAMES_BEFORE_CAPITAL = rb"(?:[a-z_\x80-\xff][\w\x80-\xff]*\.)*[A-Z][\w$\x80-\xff]*"
_JAVA_NAME = re.compile(_NAMES_BEFORE_CAPITAL)
_NAME = re.compile(_NAMES_BEFORE_CAPITAL + rb"|[\w\x80-\xff]+")
# The names that an import in Kotlin or Scala binds: `C` and `E` of `a.b.{C, D => E}`.
_IMPORTED_NAME = re.compile(rb"([\w$\x80-\xff]+)[`\s;]*(?:[,}]|\Z)")
_MEMBER_NAME = re.compile(rb"\.[a-z_]\w*\Z")


def read_java_names(file: SourceFile, outline: FileOutline) -> Names | None:
    """Return the types that a Java file uses."""
    local = local_variables(file)
    known = imported_symbols(outline.symbols) | outermost_symbols(outline.symbols)
    offsets = _first_uses(file, _JAVA_NAME, local, has_extensions=False)
    return make_names(file, without_known(file, offsets, known), local)


def read_kotlin_names(file: SourceFile, outline: FileOutline) -> Names | None:
    """Return the types and functions that a Kotlin file uses."""
    # A function can have the name of a class in another file, so that the file uses both.
    factories = {symbol.name.encode() for symbol in outline.symbols if _is_factory(symbol)}
    return _read_with_extensions(file, outline, factories)


def read_scala_names(file: SourceFile, outline: FileOutline) -> Names | None:
    """Return the types and functions that a Scala file uses."""
    return _read_with_extensions(file, outline, frozenset())


def _read_with_extensions(file: SourceFile, outline: FileOutline, factories: Set[bytes]) -> Names | None:
    local = local_variables(file)
    offsets = _first_uses(file, _NAME, local, has_extensions=True)
    known = imported_symbols(outline.symbols) | outermost_symbols(outline.symbols)
    for node in file.captures.get("import", ()):  # Imports of these languages are not symbols.
        known.update(_imported_names(file.utf8[node.start_byte : node.end_byte]))
    return make_names(file, without_known(file, offsets, known - factories), local | factories)


def _first_uses(
    file: SourceFile, pattern: re.Pattern[bytes], hiding: Set[bytes], *, has_extensions: bool
) -> dict[bytes, int]:
    """Return the offset of the first use of each name. Names in `hiding` count only if they are called directly."""
    utf8, offsets = file.utf8, dict[bytes, int]()
    for capture in USING_CAPTURES:
        # Most texts occur several times. The nodes are in text order, so the first node of each text is kept.
        nodes = reversed(file.captures.get(capture, ()))
        for text, start in {utf8[node.start_byte : node.end_byte]: node.start_byte for node in nodes}.items():
            match = pattern.match(text)
            is_hidden = match is None or (match[0] in hiding and (capture != "call" or len(match[0]) != len(text)))
            if match is not None and not is_hidden:
                offsets[match[0]] = min(offsets.get(match[0], start), start)
            if has_extensions and capture == "call" and (member := _MEMBER_NAME.search(text)) is not None:
                offsets[member[0]] = min(offsets.get(member[0], start), start)
    return offsets


def _imported_names(statement: bytes) -> Sequence[bytes]:
    """Return the names that an import in Kotlin or Scala binds."""
    if b"," in statement or b"{" in statement or b"`" in statement:
        return _IMPORTED_NAME.findall(statement)
    return (statement.rstrip(b" \t\r\n;").rpartition(b".")[2].rpartition(b" ")[2],)


def _is_factory(symbol: Symbol) -> bool:
    return not symbol.scope and symbol.symbol_type == "function" and symbol.name[0].isupper()
