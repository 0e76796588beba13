"""The names that a file uses without an import, in languages that make names of other files visible.

Each language finds its names itself. A name is a chain as written (`shop.Price`), or only its first name in languages
in which other files cannot be named by a chain. Names that the file itself defines or imports are left out. The project
task `dependencies` looks the names up in the package, namespace or module of the file.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Collection, Iterable, Iterator, Mapping, Set

from codebatch.model.record import Names, Symbol
from codebatch_workers.symbols.file_outline import FileOutline
from codebatch_workers.symbols.language_symbols import LanguageSymbols
from codebatch_workers.syntax.names import NAME_BYTES_MAX
from codebatch_workers.syntax.source import SourceFile

USING_CAPTURES = ("use", "call", "base")
NAMES_MAX = 10_000
"""Maximum number of names of a file. A file with more names is data, and has no names."""

_FIRST_NAME = re.compile(rb"[\w\x80-\xff]+")


def used_names(file: SourceFile, outline: FileOutline) -> Names | None:
    """Return the record with the names that a file uses without an import, or None if there are none."""
    reader = None if file.tree is None else LanguageSymbols.of(file.language).used_names
    return None if reader is None else reader(file, outline)


def make_names(file: SourceFile, offsets: Mapping[bytes, int], local: Collection[bytes] = ()) -> Names | None:
    """Return the record of names, given the offset of the first use of each. Too long names are left out.

    `local` has the names that local variables of the file have, too.
    """
    names = {name: offset for name, offset in sorted(offsets.items()) if len(name) <= NAME_BYTES_MAX}
    lines = {name: bisect_right(file.line_starts, offset) for name, offset in names.items()}
    return make_record(file, lines, local=as_texts(sorted(names.keys() & set(local))))


def make_record(
    file: SourceFile,
    lines: Mapping[bytes, int],
    *,
    local: tuple[str, ...] = (),
    declared: tuple[str, ...] = (),
) -> Names | None:
    """Return the record of names with their lines. Return None if there are none or too many."""
    if not (lines or declared) or max(len(lines), len(declared)) > NAMES_MAX:
        return None
    path, path_b64 = file.path_fields
    return Names(
        path=path,
        path_b64=path_b64,
        names=as_texts(lines),
        lines=tuple(lines.values()),
        local=local,
        declared=declared,
    )


def without_known(file: SourceFile, offsets: Mapping[bytes, int], known: Set[bytes]) -> dict[bytes, int]:
    """Leave out names whose first part is known, and reserved words."""
    reserved = file.syntax.reserved_words
    return {name: offset for name, offset in offsets.items() if not _is_hidden(name, known, reserved)}


def imported_symbols(symbols: Iterable[Symbol]) -> set[bytes]:
    """Return the names of imports that are symbols."""
    return {symbol.name.encode() for symbol in symbols if symbol.symbol_type == "import"}


def outermost_symbols(symbols: Iterable[Symbol]) -> set[bytes]:
    """Return the names that a file defines at its outermost level.

    A package or namespace is left out, because it can have the name of a type that it contains.
    """
    return {
        symbol.name.encode()
        for symbol in symbols
        if not symbol.scope and symbol.symbol_type not in ("module", "namespace")
    }


def local_variables(file: SourceFile) -> set[bytes]:
    """Return the names of the local variables and type parameters of a file."""
    return {file.utf8[node.start_byte : node.end_byte] for node in file.captures.get("local", ())}


def first_offsets(file: SourceFile, *captures: str) -> Iterator[tuple[bytes, int]]:
    """Yield each text of some captures, with the offset of its first node."""
    for capture in captures:
        # The nodes are in text order, so the first node of each text is kept.
        nodes = reversed(file.captures.get(capture, ()))
        yield from {file.utf8[node.start_byte : node.end_byte]: node.start_byte for node in nodes}.items()


def keep_first(offsets: dict[bytes, int], name: bytes, start: int) -> None:
    """Set the offset of a name, unless the name is empty or an earlier offset is known."""
    if name and start < offsets.get(name, start + 1):
        offsets[name] = start


def as_texts(names: Iterable[bytes]) -> tuple[str, ...]:
    """Return names as texts."""
    return tuple(name.decode("utf-8", "replace") for name in names)


def _is_hidden(name: bytes, known: Set[bytes], reserved: Set[bytes]) -> bool:
    if not known or name in reserved:
        return name in reserved
    first = _FIRST_NAME.search(name)
    return first is not None and first[0] in known
