"""Names in C and C++ that lead to other files: called and declared functions, and classes with members elsewhere.

The captures of the outline suffice, because they include every declarator.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator

from codebatch.model.record import Names
from codebatch_workers.languages.c.header_files import is_header
from codebatch_workers.symbols.file_outline import FileOutline
from codebatch_workers.symbols.used_names import as_texts, make_record
from codebatch_workers.syntax.names import NAME_BYTES_MAX
from codebatch_workers.syntax.source import SourceFile

_FUNCTION_NAME = re.compile(rb"(?:::)?[A-Za-z_]\w*(?:::[A-Za-z_]\w*)*(?=<|\Z)")
# A declarator, up to its name. `(*name)(…)` is a pointer to a function, which is a variable.
_DECLARATOR = re.compile(rb"[\s*&]*(?P<pointer>\(\s*[*^&][\s*&]*)?(?P<name>[A-Za-z_]\w*)\s*(?P<call>\()?")
_FUNCTION_DECLARATORS = frozenset({"function_declarator", "pointer_declarator"})
_CLASS_TYPES = frozenset({"class", "struct"})
_MEMBER_TYPES = frozenset({"constructor", "method"})


class DeclaredNames:
    """The declarators of a file. `functions` has the functions that it declares without a body."""

    def __init__(self, file: SourceFile, outline: FileOutline) -> None:
        utf8 = file.utf8
        self.functions: set[bytes] = set()
        self.variables = {name.encode() for symbol in outline.symbols for name in symbol.parameters}
        external = {node.start_byte for node in file.captures.get("declared", ())}
        for node in file.captures.get("leaf.variable", ()):
            if node.start_byte in external and node.type not in _FUNCTION_DECLARATORS:
                continue
            match = _DECLARATOR.match(utf8, node.start_byte, min(node.end_byte, node.start_byte + NAME_BYTES_MAX))
            if match is not None:
                is_function = match["call"] and not match["pointer"] and node.type != "init_declarator"
                (self.functions if is_function else self.variables).add(match["name"])


def external_uses(file: SourceFile, declared: DeclaredNames) -> dict[bytes, int]:
    """Return the offset of the first use of each name that is called, passed as an argument, or in an initializer.

    Names of local variables are left out, except if they are called.
    """
    utf8, offsets = file.utf8, dict[bytes, int]()
    for capture in ("call", "use"):
        nodes = reversed(file.captures.get(capture, ()))
        for text, start in {utf8[node.start_byte : node.end_byte]: node.start_byte for node in nodes}.items():
            match = _FUNCTION_NAME.match(text)
            if match is None or (capture == "use" and match[0] in declared.variables):
                continue
            if start < offsets.get(match[0], start + 1):
                offsets[match[0]] = start
    return offsets


def classes_with_bodies(file: SourceFile, outline: FileOutline) -> Iterator[tuple[bytes, int]]:
    """Yield the qualified name and the line of each class in a header that declares functions."""
    if not is_header(file.path):
        return
    owners = {symbol.scope for symbol in outline.symbols if symbol.symbol_type in _MEMBER_TYPES}
    for symbol in outline.symbols:
        if symbol.symbol_type in _CLASS_TYPES and symbol.qualified in owners:
            yield symbol.qualified.encode(), symbol.line


def read_names(file: SourceFile, outline: FileOutline) -> Names | None:
    """Return the functions and classes of other files that a file uses or declares."""
    known = {symbol.name.encode() for symbol in outline.symbols if not symbol.scope}
    known |= file.syntax.reserved_words
    lines, declared = file.line_starts, DeclaredNames(file, outline)
    uses = {
        name: bisect_right(lines, offset)
        for name, offset in external_uses(file, declared).items()
        if name not in known and len(name) <= NAME_BYTES_MAX
    }
    uses.update(classes_with_bodies(file, outline))
    functions = declared.functions - known if is_header(file.path) else set()
    return make_record(
        file,
        dict(sorted(uses.items())),
        local=as_texts(sorted(declared.variables & uses.keys())),
        declared=as_texts(sorted(functions)),
    )
