"""Marks of definitions with which other code can find and call them: decorators, annotations and attributes.

Examples are `@app.route("/")`, `@GetMapping`, `[Fact]`, `#[test]`, `__attribute__((constructor))`, `//export name` in
Go, and `implicit` in Scala. Marks that only describe a definition do not count.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from tree_sitter import Node

from codebatch_workers.symbols.language_symbols import LanguageSymbols, MarkRules
from codebatch_workers.syntax.source import SourceFile

_LISTS_OF_MARKS = frozenset({"attribute_group", "attribute_item", "attribute_list", "modifiers"})
_MARKS = frozenset({"annotation", "attribute", "attribute_specifier", "decorator", "marker_annotation"})
# Nodes with many definitions. A mark there belongs to the next definition.
_CONTAINER = re.compile(r"body|block|program|source_file|unit|declaration_list|\Amodule\Z")
_MARK_NAME = re.compile(rb"(?:__attribute__|[@#\[(\s])*(?:\w+:(?!:))?([A-Za-z_][\w.:]*)")


def find_marks(file: SourceFile, offset: int) -> Iterator[str]:
    """Yield the marks of the definition whose name begins at an offset."""
    rules = LanguageSymbols.of(file.language).marks
    node = None if file.tree is None else file.tree.root_node.named_descendant_for_byte_range(offset, offset + 1)
    while node is not None and node.parent is not None and not _CONTAINER.search(node.type):
        parent = node.parent
        is_contained = _CONTAINER.search(parent.type) is not None
        sibling = node.prev_named_sibling
        while sibling is not None:
            yield from _marks_in(sibling, rules)
            is_mark = sibling.type in _MARKS | _LISTS_OF_MARKS or "comment" in sibling.type
            sibling = sibling.prev_named_sibling if is_mark or not is_contained else None
        if rules.read_around is not None:
            yield from rules.read_around(node)
        node = parent


def _marks_in(node: Node, rules: MarkRules) -> Iterator[str]:
    if rules.read_before is not None:
        yield from rules.read_before(node)
    if node.type in _LISTS_OF_MARKS:
        for child in node.named_children:
            yield from _marks_in(child, rules)
    elif node.type in _MARKS:
        match = _MARK_NAME.match(node.text or b"")
        name = "" if match is None else match[1].decode("utf-8", "replace")
        last = re.split(r"[.:]+", name.lower())[-1].strip("_")
        is_description = last not in rules.counted if rules.counted else last.encode() in rules.descriptions
        if name and not is_description:
            yield name
