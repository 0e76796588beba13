"""Marks of definitions with which other code can find and call them: decorators, annotations and attributes.

Examples are `@app.route("/")`, `@GetMapping`, `[Fact]`, `#[test]`, `__attribute__((constructor))`, `//export name` in
Go, and `implicit` in Scala. Marks that only describe a definition do not count.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from tree_sitter import Node

from codebatch_workers.symbols.language_symbols import MarkRules, language_symbols
from codebatch_workers.syntax.source import SourceFile

_LISTS_OF_MARKS = frozenset({"attribute_group", "attribute_item", "attribute_list", "modifiers"})
_MARKS = frozenset({"annotation", "attribute", "attribute_specifier", "decorator", "marker_annotation"})
# Nodes with many definitions. A mark there belongs to the next definition.
_CONTAINER = re.compile(r"body|block|program|source_file|unit|declaration_list|\Amodule\Z")
_MARK_NAME = re.compile(rb"(?:__attribute__|[@#\[(\s])*(?:\w+:(?!:))?([A-Za-z_][\w.:]*)")
# The last parts of the names of marks that only describe a definition, in lower case.
_DESCRIPTIONS = frozenset(
    # Python.
    b"abstractmethod asynccontextmanager cache cached_property classmethod contextmanager dataclass define deleter "
    b"final "
    b"frozen getter lru_cache no_type_check overload override property reify runtime_checkable setter staticmethod "
    b"total_ordering unique wraps "
    # JVM.
    b"allargsconstructor builder canignorereturnvalue checkreturnvalue composable contract data deprecated documented "
    b"equalsandhashcode functionalinterface generated inherited jvmfield jvminline jvmname jvmoverloads jvmstatic "
    b"noargsconstructor nonnull notnull nullable optin parcelize requiredargsconstructor retention safevarargs "
    b"serializable slf4j suppress suppresswarnings tailrec target throws tostring value visiblefortesting "
    # C#, PHP.
    b"allownull attributeusage conditional debuggerdisplay debuggerstepthrough editorbrowsable excludefromcodecoverage "
    b"flags maybenull methodimpl notnullwhen obsolete pure returntypewillchange structlayout suppressmessage "
    # Rust.
    b"allow automatically_derived cfg cfg_attr cold deny derive doc expect inline macro_export must_use non_exhaustive "
    b"repr skip target_feature track_caller warn "
    # Swift.
    b"available discardableresult frozen inlinable mainactor usablefrominline".split()
)


def find_marks(file: SourceFile, offset: int) -> Iterator[str]:
    """Yield the marks of the definition whose name begins at an offset."""
    rules = language_symbols(file.language).marks
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
        is_description = last not in rules.counted if rules.counted else last.encode() in _DESCRIPTIONS
        if name and not is_description:
            yield name
