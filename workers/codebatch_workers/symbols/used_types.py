r"""The names of types and functions that C# and PHP files use, in the forms that their rules for implicit imports read.

C#: a type as `shop.Price`. With type arguments, their number follows: ``List`1``. An attribute is in brackets:
`[Route]`. A chain that can begin with a type lacks its last name: `Color.` for `Color.Red`.

PHP: a class as `Price`, `Shop\Price`, `\Shop\Price` or `namespace\Price`. A function is followed by `()`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from tree_sitter import Node

from codebatch.model.record import Symbol
from codebatch_workers.symbols.imported_names import node_text
from codebatch_workers.syntax.source import SourceFile

_CSHARP_NAME = rb"@?[A-Za-z_\x80-\xff][\w\x80-\xff]*"
_CSHARP_TYPE = re.compile(rb"(?:global::)?(" + _CSHARP_NAME + rb"(?:\." + _CSHARP_NAME + rb"){0,9})\s*(<)?")
_CSHARP_OWNER = re.compile(rb"((?:[A-Z_@\x80-\xff][\w\x80-\xff]*\s*\.\s*){1,9})(?=[A-Za-z_@\x80-\xff])")
_PHP_NAME = re.compile(rb"\\?[A-Za-z_\x80-\xff][\w\x80-\xff]*(?:\\[A-Za-z_\x80-\xff][\w\x80-\xff]*){0,15}\Z")
_PHP_CLASSES = frozenset({"class", "enum", "interface", "trait"})
_PHP_OWN_CLASS = frozenset({b"parent", b"self", b"static"})
_SMALL_LETTERS = frozenset(b"abcdefghijklmnopqrstuvwxyz_")
_MEMBER_TYPES = frozenset({"constructor", "enum_member", "field", "method", "property"})


def csharp_names(file: SourceFile, symbols: Iterable[Symbol]) -> tuple[dict[bytes, int], set[bytes]]:
    """Return the used names of a C# file with the offset of the first use, and those that can also be members.

    An inherited member hides a type at the beginning of a chain. The members of base classes are unknown here.
    """
    utf8, offsets = file.utf8, dict[bytes, int]()
    for text, start in _first_offsets(file, "use", "base"):
        _keep_first(offsets, _csharp_type(text), start)
    for text, start in _first_offsets(file, "attribute"):
        match = _CSHARP_TYPE.match(text)
        if match is not None:
            _keep_first(offsets, b"[" + match[1].replace(b"@", b"") + b"]", start)
    local = {utf8[node.start_byte : node.end_byte] for node in file.captures.get("local", ())}
    owners: dict[bytes, int] = {}
    for node in file.captures.get("owner", ()):
        start = node.start_byte
        # Most chains begin with a local variable, whose first letter is small.
        if utf8[start] not in _SMALL_LETTERS:
            match = _CSHARP_OWNER.match(utf8, start)
            owners.setdefault(utf8[start : node.end_byte] if match is None else match[1], start)
    has_bases = bool(file.captures.get("base"))
    members = {symbol.name.encode() for symbol in symbols if symbol.symbol_type in _MEMBER_TYPES}
    for text, start in owners.items():
        name = _csharp_type(text) + b"." if text[-1:] != b"." else b"".join(text.split())
        _keep_first(offsets, name, start)
        if has_bases or name.partition(b".")[0] in members:
            local.add(name)
    return offsets, local


def _csharp_type(text: bytes) -> bytes:
    """Return a type as written, with the number of its type arguments instead of these. Return nothing if invalid."""
    match = _CSHARP_TYPE.match(text)
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


def php_names(file: SourceFile, symbols: Iterable[Symbol]) -> dict[bytes, int]:
    """Return the classes and functions that a PHP file uses, with the offset of the first use.

    Names that the file imports or defines are left out.
    """
    outermost = [symbol for symbol in symbols if not symbol.scope]
    functions = {symbol.name.lower().encode() for symbol in outermost if symbol.symbol_type == "function"}
    classes = {symbol.name.lower().encode() for symbol in outermost if symbol.symbol_type in _PHP_CLASSES}
    for statement in file.captures.get("import", ()):
        for kind, name in php_imported_names(statement, file.utf8):
            (functions if kind == "function" else classes).add(name)
    offsets: dict[bytes, int] = {}
    for text, start in _first_offsets(file, "use", "base"):
        name = b"".join(text.split())
        if _PHP_NAME.match(name) and name.lower() not in classes and name.lower() not in _PHP_OWN_CLASS:
            _keep_first(offsets, name, start)
    constructions = {node.start_byte for node in file.captures.get("use", ())}
    for node in file.captures.get("call", ()):
        if node.start_byte not in constructions:
            name = b"".join(file.utf8[node.start_byte : node.end_byte].split())
            if _PHP_NAME.match(name) and name.lower() not in functions:
                _keep_first(offsets, name + b"()", node.start_byte)
    return offsets


def php_imported_names(statement: Node, utf8: bytes) -> Iterator[tuple[str, bytes]]:
    """Yield each local name of a `use` statement in lower case, with `function`, `const` or nothing for a class."""
    if statement.type != "namespace_use_declaration":
        return
    kind = _php_import_kind(statement)
    for clause in (statement.child_by_field_name("body") or statement).named_children:
        if clause.type == "namespace_use_clause" and clause.named_child_count:
            alias = clause.child_by_field_name("alias") or clause.named_children[0]
            local = node_text(alias, utf8).rpartition("\\")[2].lower()
            yield kind or _php_import_kind(clause), local.encode()


def _php_import_kind(node: Node) -> str:
    return next((child.type for child in node.children if child.type in ("function", "const")), "")


def _first_offsets(file: SourceFile, *captures: str) -> Iterator[tuple[bytes, int]]:
    """Yield each text of some captures, with the offset of its first node."""
    for capture in captures:
        # The nodes are in text order, so the first node of each text is kept.
        nodes = reversed(file.captures.get(capture, ()))
        yield from {file.utf8[node.start_byte : node.end_byte]: node.start_byte for node in nodes}.items()


def _keep_first(offsets: dict[bytes, int], name: bytes, start: int) -> None:
    if name and start < offsets.get(name, start + 1):
        offsets[name] = start
