"""The names that a Go file uses from other files of its package.

An identifier in Go is a local name, a predeclared name, or a name of the file or of its package. So the names of other
files are all names that are left after the others are removed. They are found in the text of the file, because a
capture for each identifier would take as long as parsing. Only the names that are left are checked in the syntax tree.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence

from tree_sitter import Node

from codebatch.model.record import Names
from codebatch_workers.languages.go.syntax import SYNTAX
from codebatch_workers.symbols.file_outline import FileOutline
from codebatch_workers.symbols.outline import scope_definitions
from codebatch_workers.symbols.used_names import make_names
from codebatch_workers.syntax.source import SourceFile

_WORD_BYTES = frozenset(b".:_0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ") | frozenset(
    range(0x80, 0x100)
)
_COMMENTS_AND_LITERALS = re.compile(
    rb"""//[^\n]*|/\*.*?\*/|"[^"\\\n]*(?:\\.[^"\\\n]*)*"|`[^`]*`|'[^'\\\n]*(?:\\.[^'\\\n]*)*'""", re.DOTALL
)
_BLANKS_BETWEEN_WORDS = bytes(byte if byte in _WORD_BYTES else ord(" ") for byte in range(256))
_LAST_DIGIT = ord("9")
_CASE = re.compile(rb"case ([^:{}]*):")
_LETTER = re.compile(rb"[\w\x80-\xff]")
_MAJOR_VERSION = re.compile(r"/v\d+\Z")
_LOCAL_CAPTURES = ("name.field", "local", "name.variable", "name.constant")
_TYPES = frozenset({"interface", "struct", "type"})
_IDENTIFIERS = frozenset({"identifier", "type_identifier"})
# Predeclared names that packages do not define. Some packages define other ones, such as `max`.
_PREDECLARED_NAMES = frozenset(
    b"append bool byte error false float64 int int32 int64 len make nil panic rune string true uint32 uint64".split()
)
_OTHER_NAMES = _PREDECLARED_NAMES | SYNTAX["go"].reserved_words | {b"_", b""}


def _go_package_names(file: SourceFile, outline: FileOutline) -> dict[bytes, int]:
    """Return the names that a file can only use from other files of its package, with the offset of the first use.

    If a function binds a name somewhere, uses of this name in the function are ignored.
    """
    assert file.tree is not None
    known = {symbol.name.encode() for symbol in outline.symbols if not symbol.scope and symbol.symbol_type != "module"}
    # A package cannot define the name of a package that one of its files imports.
    known.update(_package_name(edge.target) for edge in outline.edges if edge.edge_type == "imports")
    known |= _OTHER_NAMES
    functions = file.captures.get("function", ())
    bound_outside, bound_in = _bound_names(file, functions)
    offsets: dict[bytes, int] = {}
    for name in _names_in(_text_outside(file, functions), known, bound_outside):
        _add_first_use(offsets, file.utf8, name, _gaps(file.tree.root_node, functions, len(file.utf8)))
    for function, bound in zip(functions, bound_in, strict=True):
        for name in _names_in(_function_text(function, file.utf8), known, bound):
            if name not in offsets:
                _add_first_use(offsets, file.utf8, name, [(function.start_byte, function.end_byte, function)])
    return offsets


def _package_name(target: str) -> bytes:
    """Return the likely name of an imported package: `b` for `a/b` and for `a/b/v2`."""
    return _MAJOR_VERSION.sub("", target).rpartition("/")[2].encode()


def _bound_names(file: SourceFile, functions: Sequence[Node]) -> tuple[set[bytes], list[set[bytes]]]:
    """Return the names that are bound outside functions, and those in each function."""
    utf8, captures = file.utf8, file.captures
    starts = [node.start_byte for node in functions]
    ends = [0, *(node.end_byte for node in functions)]
    outside, inside = set[bytes](), [set[bytes]() for _ in functions]
    for capture in _LOCAL_CAPTURES:
        end, names = 0, outside
        for node in captures.get(capture, ()):
            start = node.start_byte
            if start >= end:
                index = bisect_right(starts, start)
                is_inside = start < ends[index]
                names = inside[index - 1] if is_inside else outside if capture == "local" else set()
                end = ends[index] if is_inside else start
            names.add(utf8[start : node.end_byte])
    for start, definition in scope_definitions(file).definitions.items():
        if definition.scope and definition.symbol_type in _TYPES:
            inside[max(bisect_right(starts, start) - 1, 0)].add(definition.name.encode())
    return outside, inside


def _text_outside(file: SourceFile, functions: Sequence[Node]) -> bytes:
    """Return the text of a file without functions and names of fields."""
    fields = file.captures.get("name.field", ())
    left_out = sorted((node.start_byte, node.end_byte) for node in (*functions, *fields))
    pieces, position = [], 0
    for start, end in left_out:
        if start >= position:
            pieces.append(file.utf8[position:start])
            position = end
    pieces.append(file.utf8[position:])
    return b" ".join(pieces)


def _gaps(root: Node, functions: Sequence[Node], size: int) -> Iterator[tuple[int, int, Node]]:
    """Yield the start and end of each part of a file that is outside functions, with a node around the part."""
    position = 0
    for function in functions:
        yield position, function.start_byte, root
        position = function.end_byte
    yield position, size, root


def _function_text(function: Node, utf8: bytes) -> bytes:
    """Return the text of a function, and of a method without its name."""
    if function.type == "method_declaration":
        name = function.child_by_field_name("name")
        if name is not None:
            return b"%b %b" % (utf8[function.start_byte : name.start_byte], utf8[name.end_byte : function.end_byte])
    return utf8[function.start_byte : function.end_byte]


def _names_in(text: bytes, known: set[bytes], bound: set[bytes]) -> list[bytes]:
    """Return the names in a text that are neither known nor bound. Some of them are labels or names of fields."""
    text = _COMMENTS_AND_LITERALS.sub(b" ", text)
    if b"case " in text:
        text = b" ".join((text, *_CASE.findall(text)))
    words = (
        text.translate(_BLANKS_BETWEEN_WORDS).replace(b"...", b" ").replace(b".", b" .").replace(b":", b": ").split()
    )
    # A dot precedes the name of a member. A colon follows the key of a composite literal, a label, and the last name of
    # a case.
    return [word for word in set(words) - known - bound if word[0] > _LAST_DIGIT and not word.endswith(b":")]


def _add_first_use(
    offsets: dict[bytes, int], utf8: bytes, name: bytes, places: Iterable[tuple[int, int, Node]]
) -> None:
    """Add the offset of the first use of a name in the given parts of a file, if there is one."""
    for first, last, around in places:
        start = utf8.find(name, first, last)
        while start >= 0:
            end = start + len(name)
            if not _LETTER.match(utf8, start - 1) and not _LETTER.match(utf8, end):
                node = around.descendant_for_byte_range(start, end)
                if node is not None and node.end_byte == end and node.start_byte == start and _is_use(node):
                    offsets[name] = start
                    return
            start = utf8.find(name, end, last)


def _is_use(node: Node) -> bool:
    """Return whether a node is a name of the package: neither of another package, nor the key of a composite literal.

    Such a key is the name of a field, except in literals of maps and arrays.
    """
    parent = node.parent
    if node.type not in _IDENTIFIERS or parent is None or parent.type == "qualified_type":
        return False
    element = parent.parent if parent.type == "literal_element" else None
    return element is None or element.type != "keyed_element" or element.child_by_field_name("key") != parent


def read_names(file: SourceFile, outline: FileOutline) -> Names | None:
    """Return the names of other files of its package that a file uses."""
    return make_names(file, _go_package_names(file, outline))
