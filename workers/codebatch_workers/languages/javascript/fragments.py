"""Fragments: parts of a script that a build concatenates. A bracket opened in one part can be closed in another.

The name of a part shows its position: `intro.js` and `outro.js`, `wrapper.start.js`. A file with such a name is a
fragment if it has no syntax errors once its unmatched brackets are completed.
"""

from __future__ import annotations

import re

from tree_sitter import Node

from codebatch_workers.syntax.broken_trees import iter_broken_nodes
from codebatch_workers.syntax.source import SourceFile

_BEGINNING_FILE_NAME = re.compile(
    rb"(?:[^/]*[-_.])?(?:banner|before|begin|head|header|intro|open|pre|prefix|prelude|start|top)\.js"
)
_END_FILE_NAME = re.compile(
    rb"(?:[^/]*[-_.])?(?:after|bottom|close|end|finish|foot|footer|outro|post|postfix|postlude|suffix|tail)\.js"
)
_CLOSING_BRACKETS = {b"(": b")", b"[": b"]", b"{": b"}", b"${": b"}"}
# The text that completes an unopened bracket. For a brace, this is the head of a function. Otherwise, `return` before
# the brace would be an error.
_OPENING_BRACKETS = {b")": b"(", b"]": b"[", b"}": b"function () {"}
_FRAGMENT_BYTES_MAX = 100_000


def is_fragment(path: bytes, utf8: bytes, root: Node) -> bool:
    """Return whether a file with errors is the first or last part of a script that a build concatenates.

    The name of the file must be that of such a part, and completing the unmatched brackets must remove all errors.
    """
    if len(utf8) > _FRAGMENT_BYTES_MAX:
        return False
    name = path.rpartition(b"/")[2].lower()
    is_beginning, is_end = _BEGINNING_FILE_NAME.fullmatch(name) is not None, _END_FILE_NAME.fullmatch(name) is not None
    if not is_beginning and not is_end:
        return False
    opened, closed = _unmatched_brackets(root)
    if bool(opened) == bool(closed) or (opened and not is_beginning) or (closed and not is_end):
        return False
    prefix = b"".join(_OPENING_BRACKETS[bracket] for bracket in reversed(closed))
    suffix = b"".join(_CLOSING_BRACKETS[bracket] for bracket in reversed(opened))
    # The next part can begin with the value of an assignment, so `0` is added as this value.
    return not _has_errors(path, prefix + utf8 + (b"\n0" if opened else b"") + suffix)


def _unmatched_brackets(root: Node) -> tuple[list[bytes], list[bytes]]:
    """Return the brackets that are never closed, and the brackets that were never opened, both in text order."""
    opened: list[bytes] = []
    closed: list[bytes] = []
    pending = [root]
    while pending:
        node = pending.pop()
        token = node.type.encode()
        if node.child_count:
            pending += reversed(node.children)
        elif node.is_missing:
            continue
        elif token in _CLOSING_BRACKETS:
            opened.append(token)
        elif token in _OPENING_BRACKETS:
            if opened and _CLOSING_BRACKETS[opened[-1]] == token:
                opened.pop()
            else:
                closed.append(token)
    return opened, closed


def _has_errors(path: bytes, utf8: bytes) -> bool:
    file = SourceFile(path, utf8, executable=False, contexts={})
    return next(iter_broken_nodes(file.parse().root_node, file.language), None) is not None
