"""Parameters of functions. They are derived from the captures of the functions.

A query could find them, too. But such patterns run slowly in Python. The functions are few.
"""

from __future__ import annotations

from collections.abc import Mapping
from operator import attrgetter

from tree_sitter import Node

from codebatch_workers.syntax.language_syntax import LanguageSyntax

_start_byte = attrgetter("start_byte")


def extended_captures(captures: dict[str, list[Node]], utf8: bytes, syntax: LanguageSyntax) -> Mapping[str, list[Node]]:
    """Return the captures of a query, with those added that are derived from them."""
    if syntax.extend_captures is not None:
        return syntax.extend_captures(captures, utf8)
    functions = captures.get("function")
    types = syntax.parameter_nodes
    if not types or functions is None:
        return captures
    parameters = captures.get("parameter", [])
    for function in functions:
        declared = function.child_by_field_name("parameters")
        if declared is not None:
            parameters += [node for node in declared.named_children if node.type in types]
    if syntax.has_nested_parameters:
        parameters.sort(key=_start_byte)
    return {**captures, "parameter": parameters} if parameters else captures
