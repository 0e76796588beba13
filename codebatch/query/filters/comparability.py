"""Detection of comparisons in a `--where` condition that have the same result for every record. No I/O.

For example, `name > 3` matches no record, because names are text. Such a condition is a mistake and is refused. The
possible values of a field are known from the record types. If the possible values of an operand are unknown, the
comparison is accepted.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping
from types import UnionType
from typing import Literal, Union, get_args, get_origin

import msgspec
from msgspec import UnsetType

from codebatch.errors import InvalidInput
from codebatch.model.record import RECORD_KINDS, RECORD_TYPES, TAG_BY_TYPE
from codebatch.model.text.suggestions import did_you_mean_text
from codebatch.query.fields import DERIVED_FIELDS

ValueSort = Literal["text", "number", "row", "nothing"]
_SORT_NAMES: dict[ValueSort, str] = {"text": "text", "number": "a number", "row": "a list of texts", "nothing": "None"}
_EXPRESSION_CHARACTERS_SHOWN = 80


class PossibleValues(msgspec.Struct, frozen=True):
    """The possible values of an operand of a comparison.

    `sorts` are their types. `words` are the possible texts, or None if any text is possible.
    """

    sorts: frozenset[ValueSort]
    words: frozenset[str] | None = None


_TEXT_VALUES = PossibleValues(frozenset(("text",)))
_NUMBER_VALUES = PossibleValues(frozenset(("number",)))
_LIST_VALUES = PossibleValues(frozenset(("row",)))
_NO_VALUE = PossibleValues(frozenset(("nothing",)))


def possible_field_values(kinds: Iterable[str]) -> dict[str, PossibleValues]:
    """Return the possible values of each field of records of some kinds."""
    values_by_field = {
        **dict.fromkeys(DERIVED_FIELDS, _TEXT_VALUES),
        "kind": PossibleValues(_TEXT_VALUES.sorts, frozenset(RECORD_KINDS)),
    }
    for type_ in (record_type for record_type in RECORD_TYPES if TAG_BY_TYPE[record_type] in kinds):
        for field in msgspec.structs.fields(type_):
            values = _type_values(field.type)
            known = values_by_field.get(field.encode_name)
            values_by_field[field.encode_name] = values if known is None else _union_of_values(known, values)
    return values_by_field


def reject_constant_comparison(node: ast.Compare, fields: Mapping[str, PossibleValues]) -> None:
    """Raise InvalidInput if a comparison of a condition has the same result for every record.

    `fields` maps each field to its possible values.
    """
    operands = [node.left, *node.comparators]
    for op, left, right in zip(node.ops, operands, operands[1:], strict=False):
        if not _can_be_both(op, _operand_values(left, fields), right, fields):
            raise _constant_comparison(op, left, right, fields)


def _type_values(type_: object) -> PossibleValues:
    origin = get_origin(type_)
    if origin is Literal:
        return PossibleValues(_TEXT_VALUES.sorts, frozenset(map(str, get_args(type_))))
    if origin in (Union, UnionType):
        values, *other_values = (
            _type_values(member_type) for member_type in get_args(type_) if member_type is not UnsetType
        )
        for other in other_values:
            values = _union_of_values(values, other)
        return values
    if origin is tuple:
        return _LIST_VALUES
    return _NUMBER_VALUES if type_ in (int, float, bool) else _TEXT_VALUES


def _union_of_values(left: PossibleValues, right: PossibleValues) -> PossibleValues:
    words = None if left.words is None or right.words is None else left.words | right.words
    return PossibleValues(left.sorts | right.sorts, words)


def _operand_values(node: ast.expr, fields: Mapping[str, PossibleValues]) -> PossibleValues | None:
    """Return the possible values of an operand, or None if they are unknown."""
    match node:
        case ast.Name(id=name):
            return fields.get("class" if name == "class_" else name)
        case ast.Constant(value=None):
            return _NO_VALUE
        case ast.Constant(value=str(text)):
            return PossibleValues(_TEXT_VALUES.sorts, frozenset((text,)))
        case ast.Constant(value=int() | float()) | ast.UnaryOp() | ast.Compare() | ast.BoolOp() | ast.Call():
            return _NUMBER_VALUES
        case ast.Tuple() | ast.List() | ast.Set():
            return _LIST_VALUES
        case _:
            return None


def _can_be_both(
    op: ast.cmpop, left: PossibleValues | None, node: ast.expr, fields: Mapping[str, PossibleValues]
) -> bool:
    right = _operand_values(node, fields)
    if left is None or right is None:
        return True
    match op:
        case ast.Eq() | ast.NotEq():
            return "nothing" in left.sorts | right.sorts or _can_be_equal(left, right)
        case ast.In() | ast.NotIn():
            return _can_be_in(left, right, node, fields)
        case _:
            return bool(left.sorts & right.sorts - _NO_VALUE.sorts)


def _can_be_equal(left: PossibleValues, right: PossibleValues) -> bool:
    common = left.sorts & right.sorts - _NO_VALUE.sorts
    if common != _TEXT_VALUES.sorts or left.words is None or right.words is None:
        return bool(common)
    return bool(left.words & right.words)


def _can_be_in(
    left: PossibleValues, right: PossibleValues, node: ast.expr, fields: Mapping[str, PossibleValues]
) -> bool:
    if isinstance(node, ast.Tuple | ast.List | ast.Set):
        among = [_operand_values(element, fields) for element in node.elts]
        return any(element is None or _can_be_equal(left, element) for element in among)
    return "text" in left.sorts and not right.sorts.isdisjoint(("text", "row"))


def _constant_comparison(
    op: ast.cmpop, left: ast.expr, right: ast.expr, fields: Mapping[str, PossibleValues]
) -> InvalidInput:
    comparison = _expression_text(ast.Compare(left=left, ops=[op], comparators=[right]))
    outcome = "every record matches" if isinstance(op, ast.NotEq | ast.NotIn) else "no record can match"
    return InvalidInput(f"{outcome} `{comparison}`", hint=_comparison_hint(left, right, fields))


def _comparison_hint(left: ast.expr, right: ast.expr, fields: Mapping[str, PossibleValues]) -> str:
    for field, other in ((left, right), (right, left)):
        values = _operand_values(field, fields)
        if not isinstance(field, ast.Name) or values is None:
            continue
        match other:
            case ast.Constant(value=None):
                return f"to find records without this field: {field.id} == None; with it: {field.id} != None"
            case ast.Constant(value=str(text)) if values.words is not None:
                return did_you_mean_text(text, sorted(values.words))
            case ast.Tuple(elts=elts) | ast.List(elts=elts) | ast.Set(elts=elts) if values.words is not None:
                first = next((element.value for element in elts if isinstance(element, ast.Constant)), "")
                return did_you_mean_text(str(first), sorted(values.words))
            case ast.Constant(value=int() | float() as number) if values.sorts == _TEXT_VALUES.sorts:
                return f"{field.id} is text: quote the number ({field.id} == '{number}'), or use another field"
            case ast.Constant(value=str()) if values.sorts == _NUMBER_VALUES.sorts:
                return f"{field.id} is a number: remove the quotes, or use another field"
        sort_names = " or ".join(_SORT_NAMES[sort] for sort in _SORT_NAMES if sort in values.sorts)
        return f"{field.id} is {sort_names}"
    return "one side must be a field"


def _expression_text(node: ast.expr) -> str:
    text = ast.unparse(node)
    return text if len(text) <= _EXPRESSION_CHARACTERS_SHOWN else f"{text[:_EXPRESSION_CHARACTERS_SHOWN]}…"
