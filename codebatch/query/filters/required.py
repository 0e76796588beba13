"""Comparisons of a field with a literal that must be true if a condition is true. No I/O."""

from __future__ import annotations

import ast
import math
import warnings
from collections.abc import Iterator
from typing import Literal

import msgspec

Comparison = Literal["==", "<", "<=", ">", ">="]

_OPERATORS_BY_NODE: dict[type[ast.cmpop], Comparison] = {
    ast.Eq: "==",
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
}


class RequiredComparison(msgspec.Struct, frozen=True):
    """A comparison of a field with a text or a finite number, which must be true if the condition is true."""

    field: str
    comparison: Comparison
    value: str | int | float


def required_comparisons(condition: str) -> tuple[RequiredComparison, ...]:
    """Return the comparisons that must all be true if a condition is true.

    For a condition with `and`, these are the comparisons that `and` joins. For a single comparison, it is the
    comparison itself. For a condition that cannot be parsed, return nothing.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return tuple(_iter_required(ast.parse(condition.strip(), mode="eval").body))
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        return ()


def _iter_required(node: ast.expr) -> Iterator[RequiredComparison]:
    match node:
        case ast.BoolOp(op=ast.And(), values=values):
            for value in values:
                yield from _iter_required(value)
        case ast.Compare(left=ast.Name(id=field), ops=[op], comparators=[ast.Constant(value=value)]):
            is_plain = isinstance(value, str | int) or (isinstance(value, float) and math.isfinite(value))
            if type(op) in _OPERATORS_BY_NODE and is_plain:
                assert isinstance(value, str | int | float), "it is plain"
                yield RequiredComparison(field, _OPERATORS_BY_NODE[type(op)], value)
        case _:
            pass
