"""Syntax errors that a grammar does not report, because it accepts more code than the language allows.

An example is a control character in a string of JSON. They are searched only if a file has no other syntax errors.
"""

from __future__ import annotations

from codebatch_workers.syntax.broken_trees import iter_broken_nodes
from codebatch_workers.syntax.language_syntax import UnseenError
from codebatch_workers.syntax.source import SourceFile


def unseen_errors(file: SourceFile) -> list[UnseenError]:
    """Return the errors that the grammar does not report, in text order.

    The tree of the file must have no syntax errors. For languages without such a search, the list is empty.
    """
    find = file.syntax.unseen_errors
    return [] if find is None or file.tree is None else list(find(file.tree.root_node, file.utf8))


def error_spans(file: SourceFile) -> list[tuple[int, int]]:
    """Return the offsets of each syntax error in a file, also of those that the grammar does not report."""
    if file.tree is None or not file.has_syntax_error:
        return [(error.start, error.end) for error in unseen_errors(file)]
    return [(node.start_byte, node.end_byte) for node in iter_broken_nodes(file.tree.root_node, file.language)]
