"""Properties of C# type declarations that decide which declaration a name in another file means."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import pairwise

from tree_sitter import Node

from codebatch_workers.symbols.language_symbols import OTHER_DECLARATION, TypeDeclaration

_MODIFIERS_BYTES_MAX = 64
_PARTIAL_TYPE = re.compile(rb"\bpartial\s+(?:class|interface|(?:ref\s+)?struct|record(?:\s+(?:class|struct))?)\s+@?\Z")


def type_declarations(
    captures: Mapping[str, Sequence[Node]], utf8: bytes, starts: Sequence[int]
) -> dict[int, TypeDeclaration]:
    """Map the offset of each name to the properties of its declaration. Names without such properties are left out.

    `starts` are the offsets of all names, ascending.
    """
    generic = {node.start_byte: node for node in captures.get("type_parameters", ())}
    branches = [(node.start_byte, node.end_byte) for node in captures.get("conditional", ())]
    declarations: dict[int, TypeDeclaration] = {}
    if not generic and not branches and b"partial" not in utf8:
        return declarations
    lists = sorted(generic)
    following = 0
    for start, next_start in pairwise((*starts, len(utf8) + 1)):
        while following < len(lists) and lists[following] < start:
            following += 1
        parameters = 0
        if following < len(lists) and lists[following] < next_start:
            parameters = sum(child.type == "type_parameter" for child in generic[lists[following]].named_children)
        declaration = TypeDeclaration(
            parameters,
            _PARTIAL_TYPE.search(utf8, max(start - _MODIFIERS_BYTES_MAX, 0), start) is not None,
            any(first <= start < end for first, end in branches),
        )
        if declaration != OTHER_DECLARATION:
            declarations[start] = declaration
    return declarations
