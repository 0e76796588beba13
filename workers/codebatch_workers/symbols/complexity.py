"""What a file's functions are like, from captures of its language's query: one pass over their byte ranges.

McCabe's complexity is one and the decision points. Cognitive complexity follows Campbell's paper: a structure costs one
and as many more as structures and closures it stands in; an `else`, an `elif`, a jump to a label and a run of like
logical operators (left to right, through parentheses) cost one each; recursion costs nothing. Nesting is how deep
structures and closures stand in each other. What a function inside a function has is its own. Captures:

    function       what counts as a function
    nest, block    a closure that is part of the function around it, and makes what it holds nested
    branch         a structure that is a decision; switch, one that is none, for its cases (`decision`) are
    elif, elseif   a decision that continues an `if`; the latter marks a branch that is one (`else if`)
    else, jump     cost cognitive complexity alone
    logical        a logical operator's token
    parameter      a parameter of the function around it
    aside          what does not count: conditions of the preprocessor
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from tree_sitter import Node

_FUNCTION, _NEST, _BRANCH, _SWITCH, _ELIF, _ELSE, _DECISION, _LOGICAL, _PARAMETER, _ASIDE = range(10)
_CODES = {
    "function": _FUNCTION,
    "nest": _NEST,
    "block": _NEST,
    "branch": _BRANCH,
    "switch": _SWITCH,
    "elif": _ELIF,
    "else": _ELSE,
    "jump": _ELSE,
    "decision": _DECISION,
    "logical": _LOGICAL,
    "parameter": _PARAMETER,
    "aside": _ASIDE,
}
# What stands between logical operators of one expression; Swift's grammar puts the second below a comparison.
_BETWEEN = frozenset(
    {"parenthesized_expression", "parenthesized_statements", "tuple_expression", "comparison_expression"}
)
# To ask a node for its parent takes longer the more siblings it has. With more operators each counts as a run.
_LOGICAL_MAX = 2_000


class FunctionMetrics(msgspec.Struct, gc=False):
    """The numbers of one function, or of what is outside of all. Offsets are of its node."""

    start: int
    end: int
    complexity: int
    cognitive: int = 0
    nesting: int = 0
    parameters: int = 0


def functions_of(
    captures: Mapping[str, Sequence[Node]], utf8: bytes, language: str
) -> tuple[FunctionMetrics, list[FunctionMetrics]]:
    """What is outside of all functions, of complexity 0 where it decides nothing; and the functions, by position.

    In C, where functions cannot be nested, one in another is an `if` that a macro before it made look like one.
    """
    are_nested = language != "c"
    are_all_named = language not in ("c", "cpp")
    outside = FunctionMetrics(0, len(utf8), 0)
    functions: list[FunctionMetrics] = []
    runs = _run_starts(captures.get("logical", ()), utf8)
    continued = {node.start_byte for node in captures.get("elseif", ())}
    # Ends of what is open, with the function that is then in force and the depth in it.
    stack: list[tuple[int, FunctionMetrics, int]] = []
    function, depth = outside, 0
    for start, minus_end, code in _spans(captures):
        while stack and stack[-1][0] <= start:
            _, function, depth = stack.pop()
        if code == _PARAMETER:
            function.parameters += are_all_named or not _is_no_parameter(utf8[start:-minus_end])
        elif code == _DECISION:
            function.complexity += 1
        elif code == _LOGICAL:
            function.complexity += 1
            function.cognitive += start in runs
        elif code == _ELSE:
            function.cognitive += 1
        elif code == _ELIF:
            function.complexity += 1
            function.cognitive += 1
        elif code == _FUNCTION and (are_nested or function is outside):
            stack.append((-minus_end, function, depth))
            function, depth = FunctionMetrics(start, -minus_end, 1), 0
            functions.append(function)
        elif code == _ASIDE:
            stack.append((-minus_end, function, depth))
            function = FunctionMetrics(start, -minus_end, 0)
        elif code == _BRANCH and start in continued:
            function.complexity += 1  # Its `else` has cost what it costs the reader.
        else:
            stack.append((-minus_end, function, depth))
            if code != _NEST:
                function.complexity += code != _SWITCH
                function.cognitive += 1 + depth
                function.nesting = max(function.nesting, depth + 1)
            depth += 1
    return outside, functions


def _spans(captures: Mapping[str, Sequence[Node]]) -> list[tuple[int, int, int]]:
    """Start, minus end and code of every capture that counts: outer before inner."""
    spans = [
        (node.start_byte, -node.end_byte, code)
        for capture, code in _CODES.items()
        for node in captures.get(capture, ())
    ]
    spans.sort()
    return spans


def _is_no_parameter(text: bytes) -> bool:
    """C's `f(void)`, and a comment between parameters."""
    return text == b"void" or text.startswith((b"/*", b"//"))


def _run_starts(tokens: Sequence[Node], utf8: bytes) -> set[int]:
    """Where the runs of like operators begin in each expression, read from left to right."""
    if len(tokens) > _LOGICAL_MAX:
        return {token.start_byte for token in tokens}
    parents = [token.parent or token for token in tokens]
    logical = {parent.id for parent in parents}
    roots: dict[int, int] = {}
    found = set()
    last: dict[int, bytes] = {}
    end = 0
    # Outer before inner, for an expression's root is known by what is around it.
    for parent in sorted(parents, key=_outer_first):
        if parent.start_byte >= end:
            roots[parent.id], end = parent.id, parent.end_byte
            continue
        outer = parent.parent
        while outer is not None and outer.type in _BETWEEN:
            outer = outer.parent
        roots[parent.id] = roots[outer.id] if outer is not None and outer.id in logical else parent.id
    for token, parent in zip(tokens, parents, strict=True):
        root = roots[parent.id]
        operator = utf8[token.start_byte : token.end_byte]
        if last.get(root) != operator:
            found.add(token.start_byte)
        last[root] = operator
    return found


def _outer_first(node: Node) -> tuple[int, int]:
    return node.start_byte, -node.end_byte
