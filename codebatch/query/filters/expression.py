"""Conditions on the fields of a record (`--where`), written as Python expressions. No I/O.

A condition is not executed as Python. It is parsed with `ast` and compiled to closures. Only the node types in this
module are allowed.

A field that a record lacks has the value None. For None, only `==` and `!=` can be true. If two values have no common
order, such as a text and a number, `<`, `<=`, `>` and `>=` are false.
"""

from __future__ import annotations

import ast
import itertools
import operator
import warnings
from collections.abc import Callable, Collection, Mapping
from types import MappingProxyType

import msgspec

from codebatch.errors import InvalidInput
from codebatch.model.task import Json
from codebatch.model.text.suggestions import did_you_mean
from codebatch.query.filters.comparability import Values, reject_constant_comparison
from codebatch.query.filters.paths import PathFilter

EXPRESSION_CHARACTERS_MAX = 10_000
EXPRESSION_DEPTH_MAX = 50

ValueOf = Callable[[str], Json]
"""A function that returns the value of a field of the record under test, by field name."""
_Part = Callable[[ValueOf], object]
_Comparison = Callable[[object, object], bool]

_HINT = 'conditions consist of fields, texts, numbers, comparisons, `and`, `or`, `not`, `in` and glob(path, "src/**")'


class Expression(msgspec.Struct, frozen=True):
    """A compiled condition.

    `fields` are the fields that it reads. `holds` evaluates it; its argument is a function that returns the value of a
    field.
    """

    fields: frozenset[str]
    holds: Callable[[ValueOf], bool]


def compile_expression(
    text: str, fields: Collection[str], values: Mapping[str, Values] = MappingProxyType({})
) -> Expression:
    """Compile a condition. `fields` are the allowed fields. `class_` denotes the field `class`, a Python keyword.

    `values` are the possible values of fields. Raises InvalidInput in these cases: the text is not a condition, is too
    long or too deep, or names an unknown field. A comparison with the same result for every record also raises
    InvalidInput.
    """
    compiler = _Compiler(fields, values)
    part = compiler.compile(_parse(text), 0)
    return Expression(frozenset(compiler.named), lambda value_of: bool(part(value_of)))


def _parse(text: str) -> ast.expr:
    if len(text) > EXPRESSION_CHARACTERS_MAX:
        raise InvalidInput(f"the condition has more than {EXPRESSION_CHARACTERS_MAX:,} characters")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError) as error:
        reason = error.msg if isinstance(error, SyntaxError) else "it is not text"
        raise InvalidInput(f"invalid condition: {reason}", hint=_HINT) from error
    except (MemoryError, RecursionError) as error:
        raise _too_deep() from error


def _too_deep() -> InvalidInput:
    return InvalidInput(f"the condition is nested more than {EXPRESSION_DEPTH_MAX} levels deep")


class _Compiler:
    """A compiler from nodes to closures. `named` collects the fields that the compiled closures read."""

    def __init__(self, fields: Collection[str], values: Mapping[str, Values]) -> None:
        self._fields = fields
        self._values = values
        self.named: set[str] = set()

    def compile(self, node: ast.expr, depth: int) -> _Part:
        """Compile a node. Raises InvalidInput."""
        if depth > EXPRESSION_DEPTH_MAX:
            raise _too_deep()
        match node:
            case ast.BoolOp(op=op, values=values):
                return _combine([self.compile(value, depth + 1) for value in values], isinstance(op, ast.And))
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                negated = self.compile(operand, depth + 1)
                return lambda value_of: not negated(value_of)
            case ast.Compare(left=left, ops=ops, comparators=others):
                operands = [self.compile(expression, depth + 1) for expression in (left, *others)]
                comparisons = [self._comparison(op) for op in ops]
                if self._values:
                    reject_constant_comparison(node, self._values)
                return _compare(operands, comparisons)
            case ast.Name(id=name):
                return self._field(name)
            case ast.Call(
                func=ast.Name(id="glob"), args=[ast.Name(id=name), ast.Constant(value=str(pattern))], keywords=[]
            ):
                return _glob(self._field(name), pattern)
            case _:
                value = _literal(node)
                return lambda _: value

    def _field(self, name: str) -> _Part:
        field = "class" if name == "class_" else name
        if field not in self._fields:
            raise InvalidInput(f"unknown field {name!r}", hint=did_you_mean(name, self._fields))
        self.named.add(field)
        return lambda value_of: value_of(field)

    @staticmethod
    def _comparison(node: ast.cmpop) -> _Comparison:
        if type(node) not in _COMPARISONS:
            raise InvalidInput("`is` is not supported in conditions", hint="use == None, or != None")
        return _COMPARISONS[type(node)]


def _literal(node: ast.expr) -> object:
    """Return the value of a literal or of a list of literals. Raises InvalidInput if the node is anything else."""
    match node:
        case ast.Constant(value=str() | int() | float() | None as value):
            return value
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float() as value)):
            return -value
        case ast.Tuple(elts=elements) | ast.List(elts=elements) | ast.Set(elts=elements):
            return [_literal(_reject_nested_list(element)) for element in elements]
        case _:
            name = type(node).__name__
            raise InvalidInput(f"{_NAMES.get(name, name)} are not supported in conditions", hint=_HINT)


_NAMES = {
    "Attribute": "attributes",
    "BinOp": "arithmetic",
    "Call": 'calls except glob(FIELD, "PATTERN")',
    "JoinedStr": "f-strings",
    "Lambda": "functions",
    "Subscript": "subscripts",
}
"""Names of node types for error messages."""


def _reject_nested_list(node: ast.expr) -> ast.expr:
    if isinstance(node, ast.Tuple | ast.List | ast.Set):
        raise InvalidInput("nested lists are not supported in conditions", hint=_HINT)
    return node


def _combine(parts: list[_Part], is_and: bool) -> _Part:
    if is_and:
        return lambda value_of: all(part(value_of) for part in parts)
    return lambda value_of: any(part(value_of) for part in parts)


def _compare(operands: list[_Part], comparisons: list[_Comparison]) -> _Part:
    if len(comparisons) == 1:
        left, right, holds = *operands, comparisons[0]
        return lambda value_of: holds(left(value_of), right(value_of))

    def hold(value_of: ValueOf) -> bool:
        values = [operand(value_of) for operand in operands]
        return all(holds(*pair) for holds, pair in zip(comparisons, itertools.pairwise(values), strict=True))

    return hold


def _glob(field: _Part, pattern: str) -> _Part:
    paths = PathFilter(pattern)

    def matches(value_of: ValueOf) -> bool:
        path = field(value_of)
        return isinstance(path, str) and paths.matches(path.encode("utf-8", "surrogateescape"))

    return matches


# If values have no common order, Python raises TypeError. The comparisons below return False instead.
def _ordered(compare: Callable[[object, object], bool]) -> _Comparison:
    def holds(left: object, right: object) -> bool:
        if left is None or right is None:
            return False
        try:
            return compare(left, right)
        except TypeError:
            return False

    return holds


def _contains(left: object, right: object) -> bool:
    return bool(operator.contains(right, left))  # type: ignore[arg-type]


def _lacks(left: object, right: object) -> bool:
    return not _contains(left, right)


_COMPARISONS: dict[type[ast.cmpop], _Comparison] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: _ordered(operator.lt),  # type: ignore[arg-type]
    ast.LtE: _ordered(operator.le),  # type: ignore[arg-type]
    ast.Gt: _ordered(operator.gt),  # type: ignore[arg-type]
    ast.GtE: _ordered(operator.ge),  # type: ignore[arg-type]
    ast.In: _ordered(_contains),
    ast.NotIn: _ordered(_lacks),
}
