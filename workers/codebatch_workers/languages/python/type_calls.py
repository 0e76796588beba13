"""Valid Python that the grammar misreads: it takes `type(x).y = z` for a type alias.

During parsing, a plain name of the same length replaces the word `type`, so offsets stay valid.
"""

from __future__ import annotations

import re
from functools import cache

from tree_sitter import Query, QueryCursor, Tree

from codebatch_workers.syntax.broken_trees import QUERY_DEPTH_MAX
from codebatch_workers.syntax.language.languages import load_language

# The word `type` before a bracket. The name of a type alias never begins with a bracket. The pattern begins with the
# literal `type`, because `re` searches for literal text fast.
_TYPE_CALL = re.compile(rb"type(?<![^\s;:]type)(?=(?:[ \t\f]|\\\r?\n)*[(\[])")


def replace_type_calls(utf8: bytes, tree: Tree) -> bytes:
    """Return a Python text in which a plain name replaces `type` in calls that the tree contains as type aliases."""
    if not any(_begins_a_statement(utf8, match.start()) for match in _TYPE_CALL.finditer(utf8)):
        return utf8
    text = bytearray(utf8)
    for word in _alias_query_cursor().captures(tree.root_node).get("word", ()):
        if _TYPE_CALL.match(utf8, word.start_byte):
            text[word.start_byte : word.end_byte] = b"_ype"
    return bytes(text)


def _begins_a_statement(utf8: bytes, offset: int) -> bool:
    before = utf8[utf8.rfind(b"\n", 0, offset) + 1 : offset].rstrip()
    return not before or before.endswith((b";", b":"))


@cache
def _alias_query_cursor() -> QueryCursor:
    cursor = QueryCursor(Query(load_language("python"), '(type_alias_statement "type" @word)'))
    cursor.set_max_start_depth(QUERY_DEPTH_MAX)
    return cursor
