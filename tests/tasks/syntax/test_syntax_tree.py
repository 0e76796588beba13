"""Tests of syntax trees as JSON: complete, readable at any depth, with the usual positions."""

from __future__ import annotations

import json
from typing import Any

import pytest

from codebatch_workers.syntax.syntax_tree import encode_tree
from tests.support.source_files import source


def decoded_tree(path: str, content: str | bytes) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(encode_tree(source(path, content)))
    return document


def test_tree_contains_every_node_with_its_position() -> None:
    document = decoded_tree("a.py", "\ufeff# c\r\ns = 'a𐐀b'; é = 1\n")
    assert (document["format"], document["language"], document["encoding"]) == ("codebatch-tree-1", "python", "utf-8")
    nodes = document["nodes"]
    assert [(n["type"], n.get("parent"), n.get("field")) for n in nodes[:6]] == [
        ("module", None, None),
        ("comment", 0, None),
        ("expression_statement", 0, None),
        ("assignment", 2, None),
        ("identifier", 3, "left"),
        ("=", 3, None),
    ]
    (accented,) = (node for node in nodes if node.get("text") == "é")
    assert (accented["start"], accented["end"], accented["start_byte"]) == ([2, 12], [2, 13], 19)
    assert nodes[1]["extra"] is True


@pytest.mark.parametrize(
    ("path", "content"),
    [
        ("a.json", "[" * 50_000 + "]" * 50_000),
        ("a.js", "x = (((;\nfunction f( {}\n"),
        ("a.c", "#define A(x) x\nint f(void) { return A(1); }\n"),
        ("a.md", "# a\n\ntext\n"),
        ("a.py", ""),
    ],
)
def test_leaves_contain_the_text_and_parents_precede_children(path: str, content: str) -> None:
    nodes = decoded_tree(path, content)["nodes"]
    assert all(node.get("parent", -1) < index for index, node in enumerate(nodes))
    leaves = [node for node in nodes if node.get("text") is not None]
    assert all(content.encode()[node["start_byte"] : node["end_byte"]].decode() == node["text"] for node in leaves)
    # The text outside of leaves is white space.
    covered = bytearray(content.encode())
    for node in leaves:
        covered[node["start_byte"] : node["end_byte"]] = b" " * (node["end_byte"] - node["start_byte"])
    assert not covered.strip()
    file = source(path, content)
    root = (file.tree or file.parse()).root_node if content else None
    assert root is None or len(nodes) == root.descendant_count
