"""Metrics of functions, computed from captures of the language's query in one pass over byte ranges.

McCabe's complexity is one plus the number of decision points. Cognitive complexity follows Campbell's paper. A
structure costs one plus its nesting depth. Each `else`, `elif` and jump to a label costs one. A run of equal logical
operators (left to right, through parentheses) also costs one. Recursion costs nothing. Nesting is the largest number of
structures and closures that are within each other. An inner function has its own metrics. Captures:

    function       a function
    nest, block    a closure that counts as part of the enclosing function, and nests its content
    branch         a structure with a decision; `switch` is one without, because its cases have `decision`
    elif, elseif   a decision that continues an `if`; `elseif` marks the inner branch of an `else if`
    else, jump     costs only cognitive complexity
    logical        the token of a logical operator
    parameter      a parameter of the enclosing function
    aside          code that does not count: conditions of the preprocessor
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec
from tree_sitter import Node

from codebatch_workers.symbols.language_symbols import LanguageSymbols

_FUNCTION, _NEST, _BRANCH, _SWITCH, _ELIF, _ELSE, _DECISION, _LOGICAL, _PARAMETER, _ASIDE = range(10)
_CODE_BY_CAPTURE = {
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
# Nodes that can be between two logical operators of one expression. In Swift's grammar, the second operator is within a
# comparison.
_TRANSPARENT_NODES = frozenset(
    {"parenthesized_expression", "parenthesized_statements", "tuple_expression", "comparison_expression"}
)
# If a file has more logical operators, each of them counts as a run. To find runs, the parent of each operator is
# needed, and the time to find a parent grows with the number of its siblings.
_LOGICAL_OPERATORS_MAX = 2_000


class FunctionMetrics(msgspec.Struct, gc=False):
    """The metrics of one function, or of the code outside functions. `start` and `end` are the offsets of its node."""

    start: int
    end: int
    complexity: int
    cognitive: int = 0
    nesting: int = 0
    parameters: int = 0


def function_metrics(
    captures: Mapping[str, Sequence[Node]], utf8: bytes, language: str
) -> tuple[FunctionMetrics, list[FunctionMetrics]]:
    """Return the metrics of the code outside functions, and the metrics of each function by position.

    The complexity of the code outside functions is its number of decisions. C has no nested functions. If the tree
    contains one, it is an `if` after a macro, and does not count as a function.
    """
    rules = LanguageSymbols.of(language)
    are_nested, placeholder = rules.has_nested_functions, rules.parameters.placeholder
    outside = FunctionMetrics(0, len(utf8), 0)
    functions: list[FunctionMetrics] = []
    runs = _run_starts(captures.get("logical", ()), utf8)
    continued = {node.start_byte for node in captures.get("elseif", ())}
    # An entry for each node that is not yet closed: the end of the node, and the function and depth to restore there.
    stack: list[tuple[int, FunctionMetrics, int]] = []
    function, depth = outside, 0
    for start, minus_end, code in _capture_spans(captures):
        while stack and stack[-1][0] <= start:
            _, function, depth = stack.pop()
        if code == _PARAMETER:
            function.parameters += placeholder is None or not placeholder.match(utf8, start, -minus_end)
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
            function.complexity += 1  # The `else` before this branch has already counted its cognitive cost.
        else:
            stack.append((-minus_end, function, depth))
            if code != _NEST:
                function.complexity += code != _SWITCH
                function.cognitive += 1 + depth
                function.nesting = max(function.nesting, depth + 1)
            depth += 1
    return outside, functions


def _capture_spans(captures: Mapping[str, Sequence[Node]]) -> list[tuple[int, int, int]]:
    """Return start, negative end and code of all captures. They are sorted, so that outer nodes precede inner ones."""
    spans = [
        (node.start_byte, -node.end_byte, code)
        for capture, code in _CODE_BY_CAPTURE.items()
        for node in captures.get(capture, ())
    ]
    spans.sort()
    return spans


def _run_starts(tokens: Sequence[Node], utf8: bytes) -> set[int]:
    """Return the offsets of logical operators that begin a run of equal operators in their expression."""
    if len(tokens) > _LOGICAL_OPERATORS_MAX:
        return {token.start_byte for token in tokens}
    parents = [token.parent or token for token in tokens]
    logical = {parent.id for parent in parents}
    roots: dict[int, int] = {}
    run_starts = set()
    last: dict[int, bytes] = {}
    end = 0
    # Outer expressions come first, because the root of an inner expression is taken from the expressions around it.
    for parent in sorted(parents, key=_outer_first):
        if parent.start_byte >= end:
            roots[parent.id], end = parent.id, parent.end_byte
            continue
        outer = parent.parent
        while outer is not None and outer.type in _TRANSPARENT_NODES:
            outer = outer.parent
        roots[parent.id] = roots[outer.id] if outer is not None and outer.id in logical else parent.id
    for token, parent in zip(tokens, parents, strict=True):
        root = roots[parent.id]
        operator = utf8[token.start_byte : token.end_byte]
        if last.get(root) != operator:
            run_starts.add(token.start_byte)
        last[root] = operator
    return run_starts


def _outer_first(node: Node) -> tuple[int, int]:
    return node.start_byte, -node.end_byte
