"""Tests of incremental parsing: the tree equals that of a fresh parse."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tree_sitter import Tree

from codebatch_workers.syntax.grammar_gaps.reparsing import reparse
from codebatch_workers.syntax.language.languages import load_parser
from tests.tasks.syntax.test_grammar_gaps import GAPS

_LANGUAGES = {"js": "javascript", "ts": "typescript", "rs": "rust", "go": "go", "java": "java", "py": "python"}
_TEXTS = [("py", "type(a).b = 3\n"), ("py", "class A:\n  type (b)[0]\n"), ("py", "if a:\n\tpass\n'''\ntype(a)\n'''\n")]
_TEXTS += [(path.rpartition(".")[2], content) for path, content, _ in GAPS]


def _nodes(tree: Tree) -> list[tuple[object, ...]]:
    nodes: list[tuple[object, ...]] = []
    cursor = tree.walk()
    while True:
        node = cursor.node
        assert node is not None
        nodes.append((node.kind_id, node.range, node.is_missing, node.is_error, node.has_error))
        while not cursor.goto_first_child() and not cursor.goto_next_sibling():
            while cursor.goto_parent():
                if cursor.goto_next_sibling():
                    break
            else:
                return nodes
            break


@st.composite
def _edits(draw: st.DrawFn) -> tuple[str, bytes, bytes]:
    ending = draw(st.sampled_from(sorted(_LANGUAGES)))
    pieces = draw(st.lists(st.sampled_from([text for end, text in _TEXTS if end == ending]), min_size=1, max_size=6))
    before = "".join(pieces).encode()
    after = bytearray(before)
    for place in draw(st.lists(st.integers(0, len(before) - 1), min_size=1, max_size=8)):
        if after[place] != ord("\n"):
            after[place] = draw(st.sampled_from(b" _x{}();,"))
    return _LANGUAGES[ending], before, bytes(after)


@given(_edits())
def test_reparsed_tree_matches_a_fresh_parse(edit: tuple[str, bytes, bytes]) -> None:
    language, before, after = edit
    parser = load_parser(language)
    old = parser.parse(before)
    nodes = _nodes(old)
    assert _nodes(reparse(parser, old, before, after)) == _nodes(parser.parse(after))
    assert _nodes(old) == nodes


@pytest.mark.parametrize("after", [b"let a = [1,    2];\n", b"let a\n= [1,2]\n\n;", b"\n" * 15])
def test_changed_line_ends_are_parsed_again(after: bytes) -> None:
    parser = load_parser("javascript")
    before = b"let a = [1,\n2];\n"
    assert _nodes(reparse(parser, parser.parse(before), before, after)) == _nodes(parser.parse(after))
