"""A syntax tree as JSON: every node, in the order in which they begin, parents first.

The list is flat, for trees nest deeper than readers of JSON do: `parent` is the index of the node that holds this one,
absent of the root. `field` is its role there. Lines and columns are 1-based, columns count code points, ends are
exclusive; `start_byte` and `end_byte` count in the file's text in UTF-8, without a byte order mark. Nodes without
children have their `text`. `named`, `extra`, `error` and `missing` are there where they are true.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from codebatch_workers.syntax.source import SourceFile

if TYPE_CHECKING:
    from tree_sitter import Node

TREE_FORMAT = "codebatch-tree-1"


class _Node(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
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
    """The tree of a file that can be parsed: one JSON object, a node on each line of its list `nodes`."""
    encode = msgspec.json.encode
    head = encode({"format": TREE_FORMAT, "language": file.language, "encoding": file.encoding})
    cursor = (file.tree or file.parse()).walk()
    # Without recursion: the parents of the node at hand, by index.
    parents: list[int] = []
    lines: list[bytes] = []
    while True:
        node = cursor.node
        assert node is not None
        field = cursor.field_name
        is_inner = cursor.goto_first_child()
        lines.append(encode(_row(file, node, parents[-1] if parents else None, field, is_leaf=not is_inner)))
        if is_inner:
            parents.append(len(lines) - 1)
            continue
        while not cursor.goto_next_sibling():
            if not parents:
                return head[:-1] + b',"nodes":[\n' + b",\n".join(lines) + b"\n]}\n"
            parents.pop()
            cursor.goto_parent()


def _row(file: SourceFile, node: Node, parent: int | None, field: str | None, *, is_leaf: bool) -> _Node:
    start, end = node.start_byte, node.end_byte
    return _Node(
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
