"""The paths that a Rust file uses outside `use`: `crate::a::f`, `self::a`, `super::a`, `module::f` and `macro!`.

The paths are found in the text of the file, because the grammar does not parse the arguments of macros. Only paths that
begin with a small letter are returned. A capital letter begins the name of a type, and files use types of other files
by `use`, or by a longer path.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator

from tree_sitter import Node

from codebatch.model.record import Names
from codebatch_workers.languages.rust.imported_names import modules_around, path_from_file
from codebatch_workers.languages.rust.syntax import SYNTAX
from codebatch_workers.symbols.file_outline import FileOutline
from codebatch_workers.symbols.used_names import make_names
from codebatch_workers.syntax.source import SourceFile

_WORD_BYTES = frozenset(b"!:_0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ") | frozenset(
    range(0x80, 0x100)
)
_BLANKS_BETWEEN_WORDS = bytes(byte if byte in _WORD_BYTES else ord(" ") for byte in range(256))
_PATH = re.compile(rb"!*([a-z_][\w\x80-\xff]*(?:!|(?:::[\w\x80-\xff]+)+!?))")
_LETTER = re.compile(rb"[\w:\x80-\xff]")
_NAME_NODES = frozenset({"identifier", "type_identifier", "crate", "self", "super", "primitive_type"})
_RELATIVE = frozenset({b"self", b"super"})
# First names of paths that never lead to another file of the tree: primitive types, and the standard library.
_STANDARD_NAMES = frozenset(
    b"alloc bool char core f32 f64 i128 i16 i32 i64 i8 isize proc_macro std str u128 u16 u32 u64 u8 usize".split()
)
_OTHER_NAMES = SYNTAX["rust"].reserved_words | _STANDARD_NAMES
_STANDARD_MACROS = frozenset(
    b"assert! assert_eq! assert_ne! cfg! concat! debug_assert! debug_assert_eq! debug_assert_ne! env! eprint! "
    b"eprintln! format! format_args! include! include_bytes! include_str! line! macro_rules! matches! option_env! "
    b"panic! print! println! stringify! thread_local! todo! unimplemented! unreachable! vec! write! writeln!".split()
)


def _rust_paths(file: SourceFile, outline: FileOutline) -> dict[bytes, int]:
    """Return the paths that a file uses outside `use`, with the offset of their first use.

    Paths with `self` and `super` are relative to the file's own module, even if they are in an inner module.
    """
    assert file.tree is not None
    utf8 = file.utf8
    imports = [(node.start_byte, node.end_byte) for node in file.captures.get("import", ())]
    hidden = _own_names(outline)
    offsets: dict[bytes, int] = {}
    for path in _paths_in(_without(utf8, imports)):
        first = path.partition(b"::")[0]
        if first in hidden:
            continue
        for start, node in _uses(file.tree.root_node, utf8, path, imports):
            if first not in _RELATIVE:
                offsets[path] = start
                break
            name = _path_from_file(path, node, utf8)
            if name:
                offsets[name] = min(start, offsets.get(name, start))
    return offsets


def _own_names(outline: FileOutline) -> set[bytes]:
    """Return first names of paths that do not lead to other files, or to unknown ones.

    The names are those of modules and macros in the file. The target of a renamed import is unknown here.
    """
    targets = {edge.target.rpartition("::")[2] for edge in outline.edges if edge.edge_type == "imports"}
    names = set[bytes]()
    for symbol in outline.symbols:
        if symbol.symbol_type == "macro":
            names.add(f"{symbol.name}!".encode())
        elif symbol.symbol_type in ("import", "module") and symbol.name not in targets:
            names.add(symbol.name.encode())
    return names


def _path_from_file(path: bytes, node: Node, utf8: bytes) -> bytes:
    """Convert a path with `self` or `super` at a node to a path from the file's own module.

    Return an empty path if it is unknown in which module the node is, or if the path is a module around the file.
    """
    for tree in _token_trees_around(node):
        if b"mod " in utf8[tree.start_byte : node.start_byte]:
            return b""
    inner = modules_around(node, utf8)
    name = path_from_file(path.decode("utf-8", "replace"), inner).encode() if inner else path
    return name if b"::" in name else b""


def _token_trees_around(node: Node) -> Iterator[Node]:
    """Yield the arguments of macros that contain a node. The grammar does not parse them."""
    above = node.parent
    while above is not None and above.type == "token_tree":
        yield above
        above = above.parent


def _without(utf8: bytes, ranges: list[tuple[int, int]]) -> bytes:
    pieces, position = [], 0
    for start, end in ranges:
        if start >= position:
            pieces.append(utf8[position:start])
            position = end
    pieces.append(utf8[position:])
    return b" ".join(pieces)


def _paths_in(text: bytes) -> set[bytes]:
    """Return the paths in a text. Some of them are in comments and literals."""
    lines = [
        line for line in text.split(b"\n") if (b"::" in line or b"!" in line) and not line.lstrip().startswith(b"//")
    ]
    words = set(b" ".join(lines).translate(_BLANKS_BETWEEN_WORDS).split())
    matches = [_PATH.match(word) for word in words if b"::" in word or b"!" in word]
    paths = {match[1] for match in matches if match is not None}
    return {path for path in paths - _STANDARD_MACROS if path.partition(b"::")[0] not in _OTHER_NAMES}


def _uses(root: Node, utf8: bytes, path: bytes, imports: list[tuple[int, int]]) -> Iterator[tuple[int, Node]]:
    """Yield the offset of each use of a path that is in no import, comment or literal, and a node at the offset."""
    import_starts = [start for start, _ in imports]
    start = utf8.find(path)
    while start >= 0:
        end = start + len(path)
        is_start = start == 0 or not _LETTER.match(utf8, start - 1)
        is_word = is_start and (path.endswith(b"!") or not _LETTER.match(utf8, end))
        index = bisect_right(import_starts, start) - 1
        if is_word and not (index >= 0 and start < imports[index][1]):
            node = root.descendant_for_byte_range(start, start + 1)
            if node is not None and node.start_byte == start and node.type in _NAME_NODES:
                yield start, node
        start = utf8.find(path, end)


def read_names(file: SourceFile, outline: FileOutline) -> Names | None:
    """Return the paths that a file uses."""
    return make_names(file, _rust_paths(file, outline))
