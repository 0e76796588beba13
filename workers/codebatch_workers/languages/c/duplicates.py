"""Code in C and C++ that is not searched for duplicates."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from tree_sitter import Node

from codebatch_workers.duplicates.excluded_code import enclosing_node
from codebatch_workers.duplicates.language_duplicates import LanguageDuplicates
from codebatch_workers.languages.c.include_spans import include_spans
from codebatch_workers.syntax.source import SourceFile

_TEST_CONDITION = re.compile(rb"^[ \t]*#[ \t]*ifdef[ \t]+(?:\w*_)?(?:UNIT_?|SELF_?)?TESTS?\b", re.MULTILINE)


def _inline_tests(file: SourceFile) -> Iterator[Node]:
    """Yield the groups between `#ifdef TEST` and `#endif`."""
    for match in _TEST_CONDITION.finditer(file.utf8):
        node = enclosing_node(file, match, "preproc_ifdef")
        if node is not None and node.child_by_field_name("alternative") is None:
            yield node


_C = LanguageDuplicates(import_spans=include_spans, inline_tests=_inline_tests)
DUPLICATES: Mapping[str, LanguageDuplicates] = {"c": _C, "cpp": _C}
