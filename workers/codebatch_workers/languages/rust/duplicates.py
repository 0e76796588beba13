"""Code in Rust that is not searched for duplicates."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tree_sitter import Node

from codebatch_workers.duplicates.excluded_code import enclosing_node
from codebatch_workers.duplicates.language_duplicates import LanguageDuplicates
from codebatch_workers.syntax.source import SourceFile

_TEST_ATTRIBUTE = re.compile(rb"#\s*\[\s*cfg\s*\(\s*(?:test\s*\)|all\s*\(\s*test\b)")


def _inline_tests(file: SourceFile) -> Iterator[Node]:
    """Yield the modules that are compiled only for tests."""
    for match in _TEST_ATTRIBUTE.finditer(file.utf8):
        node = _attribute_target(enclosing_node(file, match, "attribute_item"))
        if node is not None and node.type == "mod_item":
            yield node


def _attribute_target(node: Node | None) -> Node | None:
    """Return the node to which an attribute applies: the next one that is neither attribute nor comment."""
    while node is not None and node.type in ("attribute_item", "line_comment", "block_comment"):
        node = node.next_named_sibling
    return node


DUPLICATES = {"rust": LanguageDuplicates(inline_tests=_inline_tests)}
