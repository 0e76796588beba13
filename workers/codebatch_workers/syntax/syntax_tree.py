"""A syntax tree as JSON: a list of all nodes, ordered by their start, parents before children.

The list is flat, because trees can be nested deeper than JSON parsers allow. `parent` is the index of the parent node;
the root has none. `field` is the name of the field of the parent that contains the node. Lines and columns count from
1, columns are code points, and ends are exclusive. `start_byte` and `end_byte` are offsets in the text in UTF-8 without
byte order mark. Nodes without children have `text`. `named`, `extra`, `error` and `missing` are present only if true.
"""

from __future__ import annotations

import msgspec
from tree_sitter import Node

from codebatch_workers.syntax.source import SourceFile

TREE_FORMAT = "codebatch-tree-1"


class _TreeNode(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    type: str
    parent: int | None = None
    field: str | None = None
    named: bool = False
    extra: bool = False
    error: bool = False
    missing: bool = False
    start: tuple[int, int]
    end: tuple[int, int]
    start_byte: int
    end_byte: int
    text: str | None = None


def encode_tree(file: SourceFile) -> bytes:
    """Return the tree of a file that can be parsed, as a JSON object. Each node in `nodes` is on its own line."""
    encode = msgspec.json.encode
    head = encode({"format": TREE_FORMAT, "language": file.language, "encoding": file.encoding})
    cursor = (file.tree or file.parse()).walk()
    # The indexes of the current node's ancestors. A recursive function is not possible, because trees can be deeply
    # nested.
    parents: list[int] = []
    lines: list[bytes] = []
    while True:
        node = cursor.node
        assert node is not None
        field = cursor.field_name
        is_inner = cursor.goto_first_child()
        lines.append(encode(_node_row(file, node, parents[-1] if parents else None, field, is_leaf=not is_inner)))
        if is_inner:
            parents.append(len(lines) - 1)
            continue
        while not cursor.goto_next_sibling():
            if not parents:
                return head[:-1] + b',"nodes":[\n' + b",\n".join(lines) + b"\n]}\n"
            parents.pop()
            cursor.goto_parent()


def _node_row(file: SourceFile, node: Node, parent: int | None, field: str | None, *, is_leaf: bool) -> _TreeNode:
    start, end = node.start_byte, node.end_byte
    return _TreeNode(
        type=node.type,
        parent=parent,
        field=field,
        named=node.is_named,
        extra=node.is_extra,
        error=node.is_error,
        missing=node.is_missing,
        start=file.position(start),
        end=file.position(end),
        start_byte=start,
        end_byte=end,
        text=file.utf8[start:end].decode("utf-8", "replace") if is_leaf else None,
    )
