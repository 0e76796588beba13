"""Syntax errors that a grammar does not report, because it accepts more code than the language allows.

There are three kinds: control characters in JSON strings, statements outside functions in Go, and unmatched `end` in
Ruby. They are searched only if a file has no other syntax errors.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from codebatch_workers.syntax.broken_trees import iter_broken_nodes
from codebatch_workers.syntax.source import SourceFile

# A control character in a JSON string. Many files are indented by tabs, so the pattern needs another character before
# it on the line.
_CONTROL_CHARACTER = re.compile(rb"(?<=\S) {0,100}([\x00-\t\x0b\x0c\x0e-\x1f])")
_TOP_LEVEL_NODES = frozenset(
    {
        "comment",
        "const_declaration",
        "empty_statement",
        "function_declaration",
        "import_declaration",
        "method_declaration",
        "package_clause",
        "type_declaration",
        "var_declaration",
    }
)


class UnseenError(NamedTuple):
    """A syntax error: its offsets in `utf8`, and its message."""

    start: int
    end: int
    message: str


def unseen_errors(file: SourceFile) -> list[UnseenError]:
    """Return the errors that the grammar does not report, in text order.

    The tree of the file must have no syntax errors. For languages without such a search, the list is empty.
    """
    find = _FINDERS_BY_LANGUAGE.get(file.language)
    return [] if find is None or file.tree is None else list(find(file))


def error_spans(file: SourceFile) -> list[tuple[int, int]]:
    """Return the offsets of each syntax error in a file, also of those that the grammar does not report."""
    if file.tree is None or not file.has_syntax_error:
        return [(error.start, error.end) for error in unseen_errors(file)]
    return [(node.start_byte, node.end_byte) for node in iter_broken_nodes(file.tree.root_node, file.language)]


def _find_control_characters(file: SourceFile) -> Iterator[UnseenError]:
    assert file.tree is not None
    root = file.tree.root_node
    for match in _CONTROL_CHARACTER.finditer(file.utf8):
        start, end = match.span(1)
        node = root.descendant_for_byte_range(start, end)
        if node is not None and node.type == "string_content":
            yield UnseenError(start, end, f"control character in a string, write it as \\u{match[1][0]:04x}")


def _find_code_outside_functions(file: SourceFile) -> Iterator[UnseenError]:
    assert file.tree is not None
    nodes = [node for node in file.tree.root_node.named_children if node.type != "comment"]
    if nodes and nodes[0].type != "package_clause":
        yield UnseenError(nodes[0].start_byte, nodes[0].end_byte, "missing package clause")
        return
    for node in nodes:
        if node.type not in _TOP_LEVEL_NODES:
            yield UnseenError(node.start_byte, node.end_byte, "statement outside of a function")


def _find_unmatched_ends(file: SourceFile) -> Iterator[UnseenError]:
    assert file.tree is not None
    for node in file.tree.root_node.named_children:
        if node.type == "identifier" and node.text == b"end":
            yield UnseenError(node.start_byte, node.end_byte, "unexpected `end`, which ends nothing")


_FINDERS_BY_LANGUAGE: Mapping[str, Callable[[SourceFile], Iterator[UnseenError]]] = {
    "go": _find_code_outside_functions,
    "json": _find_control_characters,
    "jsonc": _find_control_characters,
    "ruby": _find_unmatched_ends,
}
