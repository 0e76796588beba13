"""The values of expressions in JavaScript and TypeScript: names of types and methods, and loops."""

from __future__ import annotations

from tree_sitter import Node

from codebatch_workers.uses.declarations import Declaration
from codebatch_workers.uses.value_rules import ValueRules

_COLLECTIONS = """
Array AsyncIterable AsyncIterator Generator Iterable IterableIterator Iterator ReadonlyArray ReadonlySet Set
"""
_CALLING_METHODS = "every filter find findIndex findLast flatMap forEach map some"


def _read_loop(_target: Node, loop: Node, _index: int, _utf8: bytes) -> Declaration | None:
    """Return what `for (const x of xs)` states about its variable."""
    values, operator = loop.child_by_field_name("right"), loop.child_by_field_name("operator")
    is_element = loop.type == "for_in_statement" and operator is not None and operator.type == "of"
    return Declaration("element", values) if is_element else None


SCRIPT_VALUES = ValueRules(
    wrappers=frozenset({"Promise", "Readonly"}),
    class_wrappers=frozenset({"Awaited", "InstanceType", "NonNullable", "Omit", "Partial", "Pick", "Required"}),
    own_types=lambda _function, _utf8: frozenset({"this"}),
    collections=frozenset(_COLLECTIONS.split()),
    mappings=frozenset({"Map", "ReadonlyMap", "Record"}),
    calling_methods=frozenset(_CALLING_METHODS.split()),
    read_loop=_read_loop,
)
