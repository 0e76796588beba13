"""Definitions and names of Ruby."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator

from tree_sitter import Node

from codebatch.model.analysis.uses import MODULE_MARK
from codebatch_workers.languages.ruby.names import read_names
from codebatch_workers.symbols.imported_names import ImportedName, call_arguments, literal_text, node_text
from codebatch_workers.symbols.language_symbols import LanguageSymbols, LoadTime, MarkRules
from codebatch_workers.syntax.source import SourceFile

_SCOPE_CAPTURES = ("def.function", "def.class", "def.module", "singleton")


def _unmarked_calls(file: SourceFile) -> tuple[tuple[int, int], ...]:
    """Return the ranges of the methods that are called by their names only, in text order.

    The grammar parses them as variables. A name is a call unless the enclosing method, class or file binds a local
    variable with this name.
    """
    return tuple((node.start_byte, node.end_byte) for node in _called_names(file))


def _called_names(file: SourceFile) -> Iterator[Node]:
    """Yield the names that are neither a part of another construct nor a local variable."""
    captures = file.captures
    names = captures.get("plain_name", ())
    if not names:
        return
    taken = {node.start_byte for capture in ("tail", "bound_name", "method_name") for node in captures.get(capture, ())}
    spans = sorted(
        (node.start_byte, -node.end_byte) for capture in _SCOPE_CAPTURES for node in captures.get(capture, ())
    )
    scopes = _Scopes([(start, -minus_end) for start, minus_end in spans])
    bound: dict[int, set[bytes]] = defaultdict(set)
    for node in captures.get("bound_name", ()):
        bound[scopes.at(node.start_byte)].add(file.utf8[node.start_byte : node.end_byte].rstrip(b":"))
    for node in names:
        start = node.start_byte
        if start not in taken and file.utf8[start : node.end_byte] not in bound[scopes.at(start)]:
            yield node


class _Scopes:
    """Nested ranges of a text, outer before inner. Each offset has the number of the innermost range around it."""

    def __init__(self, spans: Iterable[tuple[int, int]]) -> None:
        self._starts, self._numbers = [0], [-1]
        open_spans: list[tuple[int, int]] = []
        for number, (start, end) in enumerate(spans):
            self._close(open_spans, start)
            self._starts.append(start)
            self._numbers.append(number)
            open_spans.append((end, number))
        self._close(open_spans, None)

    def _close(self, open_spans: list[tuple[int, int]], until: int | None) -> None:
        """Close the ranges that end before an offset."""
        while open_spans and (until is None or open_spans[-1][0] <= until):
            end, _ = open_spans.pop()
            self._starts.append(end)
            self._numbers.append(open_spans[-1][1] if open_spans else -1)

    def at(self, offset: int) -> int:
        """Return the number of the innermost range that contains an offset, or -1 if none does."""
        return self._numbers[bisect_right(self._starts, offset) - 1]


_SYMBOL_MARKS = b":?!="


def _is_symbol(node: Node, utf8: bytes, start: int, end: int) -> bool:
    """Return whether the part is the name in `:name`, `:name=` or `name:`.

    `name:` is a key, or short for `name: name`.
    """
    return utf8[node.start_byte : node.end_byte].strip(_SYMBOL_MARKS) == utf8[start:end].strip(_SYMBOL_MARKS)


def _is_listed_symbol(node: Node, _utf8: bytes, start: int, end: int) -> bool:
    """Return whether the part is the whole text of a symbol: in `%i[…]` or in quotes."""
    parent = node.parent
    is_whole = (node.start_byte, node.end_byte) == (start, end)
    return is_whole and parent is not None and parent.type in ("bare_symbol", "delimited_symbol")


_FILE_DIRECTORY = r"(?:__dir__|File\.dirname\s*\(?\s*__FILE__\s*\)?)"
# Patterns for expressions that are a path relative to the directory of the source file. The group is this path.
_FILES = (
    re.compile(rf'"#\{{\s*{_FILE_DIRECTORY}\s*\}}/([^"#]+)"'),
    re.compile(rf'{_FILE_DIRECTORY}\s*\+\s*["\']/([^"\'#]+)["\']'),
    re.compile(rf'File\.expand_path\s*\(?\s*["\']([^"\'#]+)["\']\s*,\s*{_FILE_DIRECTORY}\s*\)?'),
    re.compile(r'File\.expand_path\s*\(?\s*["\']\.\./([^"\'#]+)["\']\s*,\s*__FILE__\s*\)?'),
)
_JOINED = re.compile(rf'File\.join\s*\(?\s*{_FILE_DIRECTORY}((?:\s*,\s*(?:"[^"#]*"|\'[^\']*\'))+)\s*\)?')
_PART = re.compile(r'"([^"]*)"|\'([^\']*)\'')
_FILE_BYTES_MAX = 1024


def _read_imports(node: Node, utf8: bytes) -> list[ImportedName]:
    """Return the path in Ruby's `require`, `load` or `autoload` if the path is a plain string.

    For `require_relative`, the returned path begins with `./`. The same applies to a path that is built from the source
    file's own directory (`__dir__`, `__FILE__`).
    """
    method = node.child_by_field_name("method")
    if method is None:
        return []
    arguments = call_arguments(node)
    path_nodes = arguments[1:2] if node_text(method, utf8) == "autoload" else arguments[:1]
    if not path_nodes:
        return []
    if path_nodes[0].type != "string" or [child.type for child in path_nodes[0].named_children] != ["string_content"]:
        place = _find_place(utf8[path_nodes[0].start_byte : path_nodes[0].end_byte][:_FILE_BYTES_MAX])
        return [] if place is None else [ImportedName(f"./{place}", path_nodes[0], None)]
    target = literal_text(path_nodes[0], utf8)
    if node_text(method, utf8) == "require_relative" and not target.startswith((".", "/")):
        target = f"./{target}"
    return [ImportedName(target, path_nodes[0], None)]


def _find_place(written: bytes) -> str | None:
    """Return the path in an expression like `File.join(__dir__, "a")`, relative to the file's directory, or None."""
    text = written.decode("utf-8", "replace")
    for pattern in _FILES:
        match = pattern.fullmatch(text)
        if match is not None:
            return match[1]
    parts_match = _JOINED.fullmatch(text)
    if parts_match is None:
        return None
    parts = (part[1] or part[2] or "" for part in _PART.finditer(parts_match[1]))
    return "/".join(part.strip("/") for part in parts)


_ACCESS = frozenset({"module_function", "private", "private_class_method", "protected", "public"})


def _is_autoload(node: Node, utf8: bytes) -> bool:
    method = node.child_by_field_name("method")
    return method is not None and utf8[method.start_byte : method.end_byte] == b"autoload"


def _read_around(node: Node) -> Iterator[str]:
    """Yield the method that gets a definition as its argument, as in `memoize def name`.

    Yield `module` for a method of a module.
    """
    body = node.parent if node.type == "method" else None
    if body is not None and body.parent is not None and body.parent.type == "module":
        yield MODULE_MARK
    call = node.parent if node.type == "argument_list" else None
    if call is not None and (call.text or b"").isascii():
        method = call.child_by_field_name("method")
        name = "" if method is None else (method.text or b"").decode("utf-8", "replace")
        if method is not None and name not in _ACCESS:
            yield name


SYMBOLS = {
    "ruby": LanguageSymbols(
        imports=_read_imports,
        load_time=LoadTime(function_nodes=frozenset({"method", "singleton_method"}), is_deferred=_is_autoload),
        inner_names={
            "hash_key_symbol": _is_symbol,
            "simple_symbol": _is_symbol,
            "string_content": _is_listed_symbol,
        },
        name_ends=b"?!",
        marks=MarkRules(read_around=_read_around),
        unmarked_calls=_unmarked_calls,
        used_names=read_names,
    ),
}
