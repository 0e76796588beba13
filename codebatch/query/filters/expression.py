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
from codebatch.model.task import JsonValue
from codebatch.model.text.suggestions import did_you_mean_text
from codebatch.query.filters.comparability import PossibleValues, reject_constant_comparison
from codebatch.query.filters.paths import PathFilter

EXPRESSION_CHARACTERS_MAX = 10_000
EXPRESSION_DEPTH_MAX = 50

FieldReader = Callable[[str], JsonValue]
"""A function that returns the value of a field of the record under test, by field name."""
_CompiledPart = Callable[[FieldReader], object]
_ComparisonFunction = Callable[[object, object], bool]

_SYNTAX_HINT = (
    'conditions consist of fields, texts, numbers, comparisons, `and`, `or`, `not`, `in` and glob(path, "src/**")'
)


class Expression(msgspec.Struct, frozen=True):
    """A compiled condition.

    `fields` are the fields that it reads. `holds` evaluates it; its argument is a function that returns the value of a
    field.
    """

    fields: frozenset[str]
    holds: Callable[[FieldReader], bool]


def compile_expression(
    text: str, fields: Collection[str], values: Mapping[str, PossibleValues] = MappingProxyType({})
) -> Expression:
    """Compile a condition. `fields` are the allowed fields. `class_` denotes the field `class`, a Python keyword.

    `values` are the possible values of fields. Raises InvalidInput in these cases: the text is not a condition, is too
    long or too deep, or names an unknown field. A comparison with the same result for every record also raises
    InvalidInput.
    """
    compiler = _ExpressionCompiler(fields, values)
    part = compiler.compile(_parse_expression(text), 0)
    return Expression(frozenset(compiler.used_fields), lambda value_of: bool(part(value_of)))


def _parse_expression(text: str) -> ast.expr:
    if len(text) > EXPRESSION_CHARACTERS_MAX:
        raise InvalidInput(f"the condition has more than {EXPRESSION_CHARACTERS_MAX:,} characters")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError) as error:
        reason = error.msg if isinstance(error, SyntaxError) else "it is not text"
        raise InvalidInput(f"invalid condition: {reason}", hint=_SYNTAX_HINT) from error
    except (MemoryError, RecursionError) as error:
        raise _too_deep_error() from error


def _too_deep_error() -> InvalidInput:
    return InvalidInput(f"the condition is nested more than {EXPRESSION_DEPTH_MAX} levels deep")


class _ExpressionCompiler:
    """A compiler from nodes to closures. `used_fields` collects the fields that the compiled closures read."""

    def __init__(self, fields: Collection[str], values: Mapping[str, PossibleValues]) -> None:
        self._fields = fields
        self._values = values
        self.used_fields: set[str] = set()

    def compile(self, node: ast.expr, depth: int) -> _CompiledPart:
        """Compile a node. Raises InvalidInput."""
        if depth > EXPRESSION_DEPTH_MAX:
            raise _too_deep_error()
        match node:
            case ast.BoolOp(op=op, values=values):
                return _combine_parts([self.compile(value, depth + 1) for value in values], isinstance(op, ast.And))
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                negated = self.compile(operand, depth + 1)
                return lambda value_of: not negated(value_of)
            case ast.Compare(left=left, ops=ops, comparators=others):
                operands = [self.compile(expression, depth + 1) for expression in (left, *others)]
                comparisons = [self._comparison_function(op) for op in ops]
                if self._values:
                    reject_constant_comparison(node, self._values)
                return _compile_comparison(operands, comparisons)
            case ast.Name(id=name):
                return self._compile_field(name)
            case ast.Call(
                func=ast.Name(id="glob"), args=[ast.Name(id=name), ast.Constant(value=str(pattern))], keywords=[]
            ):
                return _compile_path_pattern(self._compile_field(name), pattern)
            case _:
                value = _literal_value(node)
                return lambda _: value

    def _compile_field(self, name: str) -> _CompiledPart:
        field = "class" if name == "class_" else name
        if field not in self._fields:
            raise InvalidInput(f"unknown field {name!r}", hint=did_you_mean_text(name, self._fields))
        self.used_fields.add(field)
        return lambda value_of: value_of(field)

    @staticmethod
    def _comparison_function(node: ast.cmpop) -> _ComparisonFunction:
        if type(node) not in _COMPARISON_FUNCTIONS:
            raise InvalidInput("`is` is not supported in conditions", hint="use == None, or != None")
        return _COMPARISON_FUNCTIONS[type(node)]


def _literal_value(node: ast.expr) -> object:
    """Return the value of a literal or of a list of literals. Raises InvalidInput if the node is anything else."""
    match node:
        case ast.Constant(value=str() | int() | float() | None as value):
            return value
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float() as value)):
            return -value
        case ast.Tuple(elts=elements) | ast.List(elts=elements) | ast.Set(elts=elements):
            return [_literal_value(_reject_nested_list(element)) for element in elements]
        case _:
            name = type(node).__name__
            raise InvalidInput(
                f"{_NODE_DESCRIPTIONS.get(name, name)} are not supported in conditions", hint=_SYNTAX_HINT
            )


_NODE_DESCRIPTIONS = {
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
        raise InvalidInput("nested lists are not supported in conditions", hint=_SYNTAX_HINT)
    return node


def _combine_parts(parts: list[_CompiledPart], is_and: bool) -> _CompiledPart:
    if is_and:
        return lambda value_of: all(part(value_of) for part in parts)
    return lambda value_of: any(part(value_of) for part in parts)


def _compile_comparison(operands: list[_CompiledPart], comparisons: list[_ComparisonFunction]) -> _CompiledPart:
    if len(comparisons) == 1:
        left, right, holds = *operands, comparisons[0]
        return lambda value_of: holds(left(value_of), right(value_of))

    def hold(value_of: FieldReader) -> bool:
        values = [operand(value_of) for operand in operands]
        return all(holds(*pair) for holds, pair in zip(comparisons, itertools.pairwise(values), strict=True))

    return hold


def _compile_path_pattern(field: _CompiledPart, pattern: str) -> _CompiledPart:
    paths = PathFilter(pattern)

    def matches(value_of: FieldReader) -> bool:
        path = field(value_of)
        return isinstance(path, str) and paths.matches(path.encode("utf-8", "surrogateescape"))

    return matches


# If values have no common order, Python raises TypeError. The comparisons below return False instead.
def _refuse_type_error(compare: Callable[[object, object], bool]) -> _ComparisonFunction:
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


def _does_not_contain(left: object, right: object) -> bool:
    return not _contains(left, right)


_COMPARISON_FUNCTIONS: dict[type[ast.cmpop], _ComparisonFunction] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: _refuse_type_error(operator.lt),  # type: ignore[arg-type]
    ast.LtE: _refuse_type_error(operator.le),  # type: ignore[arg-type]
    ast.Gt: _refuse_type_error(operator.gt),  # type: ignore[arg-type]
    ast.GtE: _refuse_type_error(operator.ge),  # type: ignore[arg-type]
    ast.In: _refuse_type_error(_contains),
    ast.NotIn: _refuse_type_error(_does_not_contain),
}
