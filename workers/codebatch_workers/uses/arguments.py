"""Arguments of calls and parameters of functions: whether a call can mean a function, by number and by literals.

Spread arguments, repeated parameters and defaults exclude nothing. A call whose arguments are not understood fits every
function, and so does a call in another language.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

from tree_sitter import Node

from codebatch.model.analysis.uses import Resolved
from codebatch_workers.uses.file_facts import SourceFacts
from codebatch_workers.uses.language_rules import FUNCTION_TYPES, ArgumentRules

_PARENTS_MAX = 5
_ARGUMENT_LISTS = frozenset({"argument_list", "arguments", "value_arguments"})
_OPEN_ARGUMENTS = (
    "block_argument", "hash_splat_argument", "pair", "parameter_pack_expansion", "splat_argument", "spread",
    "vararg", "variadic",
)  # fmt: skip
_STRING = re.compile(rb"\"[^\"]*\"|'[^']*'")
_REPEATED_PARAMETERS = ("hash_splat", "keyword_parameter", "repeated", "rest", "splat", "spread", "variadic")
_REPEATED = re.compile(rb"\.\.\.|\b(?:params|vararg)\b")
_UNCOUNTED = re.compile(rb"void\Z|&(?![^:]*:)|(?:&\s*)?(?:'\w+\s+)?(?:mut\s+)?self\b|this\s*:|.*\bthis\Z", re.DOTALL)
_VALUE_OWNERS = frozenset({"argument", "value_argument"})
_LITERALS = {
    "text": re.compile(r"(?:\w+_)?string(?:_literal)?\Z"),
    "number": re.compile(r"(?:decimal_)?(?:float|floating_point|int|integer|number|real)(?:_literal)?\Z"),
    "truth": re.compile(r"boolean_literal|boolean|true|false\Z"),
}
_TYPES = {
    "text": re.compile(r"&?(?:'\w+ )?(?:CharSequence|String|str|string|std::string(?:_view)?)\??\Z"),
    "number": re.compile(
        r"(?:[iu](?:8|16|32|64|128|size)|f32|f64|u?int(?:\d+)?|float(?:\d+)?|[us]?byte|u?short|u?long|double|decimal"
        r"|number|U?Int(?:\d+)?|Integer|U?Byte|U?Short|U?Long|Double|Float)\??\Z"
    ),
    "truth": re.compile(r"(?:[Bb]ool|[Bb]oolean)\??\Z"),
}


class _Parameters(NamedTuple):
    """The least and the largest number of arguments of a function, and the kinds of literals that it takes."""

    least: int
    most: int | None
    kinds: Sequence[str]


def select_overloads(
    resolved: Resolved, facts: SourceFacts, name: Node, facts_of: Callable[[str], SourceFacts | None]
) -> Resolved:
    """Return the definitions that the call of a name can mean. If none fits, return all."""
    found, rules = resolved.definitions, facts.rules.arguments
    kinds = _argument_kinds(facts, name, rules) if rules is not None and len(found) > 1 else None
    if rules is None or kinds is None:
        return resolved
    fitting = [one for one in found if _fits(kinds, facts, facts_of(one.path), (one.line, one.column), rules)]
    if any(one.is_signature for one in fitting):
        # The code of a function with several signatures is called through each of them.
        fitting = [one for one in found if one in fitting or not one.is_signature]
    if not fitting or len(fitting) == len(found):
        return resolved
    is_decided = len({(one.path, one.qualified) for one in found}) == 1 and len(fitting) == 1
    return Resolved("inferred" if is_decided and resolved.certainty == "name" else resolved.certainty, tuple(fitting))


def select_callable(
    facts: SourceFacts,
    start: int,
    definitions: Sequence[tuple[str, int, int]],
    facts_of: Callable[[str], SourceFacts | None],
) -> list[tuple[str, int, int]]:
    """Return the definitions, by path, line and column, that the call of a name at an offset can mean.

    A definition is excluded if the compiler checks the number of arguments, or if another one fits.
    """
    rules, name = facts.rules.arguments, facts.node_at(start)
    kinds = None if rules is None or name is None else _argument_kinds(facts, name, rules)
    if rules is None or kinds is None:
        return [*definitions]
    fitting = [one for one in definitions if _fits(kinds, facts, facts_of(one[0]), one[1:], rules)]
    if fitting or not rules.are_checked:
        return fitting or [*definitions]
    unknown = [""] * len(kinds)
    return [one for one in definitions if _fits(unknown, facts, facts_of(one[0]), one[1:], rules, with_inherited=True)]


def can_override(facts: SourceFacts, start: int, base_facts: SourceFacts, base_start: int) -> bool:
    """Return whether the method with its name at an offset can override another, by their modifiers and parameters."""
    name, rules = base_facts.node_at(base_start), base_facts.rules
    function = None if name is None else base_facts.function_at(name)
    if facts.language != base_facts.language or name is None or function is None:
        return True
    if rules.not_overridable is not None and not _is_of_interface(function):
        declaration = function.parent if function.type.endswith("_declarator") else None
        text = base_facts.file.utf8[(declaration or function).start_byte : name.end_byte]
        if rules.not_overridable.search(_STRING.sub(b"", text)):
            return False
    if rules.arguments is None or not rules.arguments.are_checked:
        return True
    own, other = _parameters(facts, start), _parameters(base_facts, base_start)
    if own is None or other is None or own.most is None or other.most is None:
        return True
    pairs = zip(own.kinds, other.kinds, strict=False)
    return own.most == other.most and all(one == wanted or not one or not wanted for one, wanted in pairs)


def _is_of_interface(method: Node) -> bool:
    owner = None if method.parent is None else method.parent.parent
    return owner is not None and owner.type.startswith(("interface", "protocol", "trait"))


def _fits(
    kinds: Sequence[str],
    facts: SourceFacts,
    target: SourceFacts | None,
    place: tuple[int, int],
    rules: ArgumentRules,
    *,
    with_inherited: bool = False,
) -> bool:
    """Return whether a function takes arguments of some kinds. `with_inherited` allows for defaults of a base."""
    parameters = None
    if target is not None and target.language == facts.language:
        parameters = _parameters(target, target.offset_at(*place))
    if parameters is None:
        return True
    least = 0 if with_inherited and rules.inherits_defaults else parameters.least
    if len(kinds) < least or (parameters.most is not None and len(kinds) > parameters.most):
        return False
    pairs = zip(kinds, parameters.kinds, strict=False)
    return all(given == wanted or not given or not wanted for given, wanted in pairs)


# -- Calls -------------------------------------------------------------------------------------------------------------


def _argument_kinds(facts: SourceFacts, name: Node, rules: ArgumentRules) -> list[str] | None:
    """Return the kind of each argument if it is a literal, otherwise an empty text. Return None if not known."""
    arguments, utf8 = _argument_list(name), facts.file.utf8
    if arguments is None:
        return None
    if rules.object_is_argument is not None and rules.object_is_argument.search(utf8, 0, name.start_byte):
        return None
    slots = list(_slots(arguments.children))
    if rules.spreads_results and len(slots) == 1 and slots[0][0].type == "call_expression":
        return None
    kinds: list[str] = []
    are_named = False
    for slot in slots:
        value = slot[0]
        while value.type in _VALUE_OWNERS and value.named_children:
            are_named = are_named or value.named_child_count > 1
            value = value.named_children[-1]
        parts = [slot[0], value, *value.children]
        if any(part.type.startswith(_OPEN_ARGUMENTS) for part in parts):
            return None
        are_named = are_named or value.type == "assignment_expression"
        is_null = utf8[value.start_byte : value.end_byte] == b"0"  # In C++, `0` is a pointer too.
        kinds.append("" if is_null else _kind(value.type, _LITERALS, rules))
    return [""] * len(kinds) if are_named else kinds


def _argument_list(name: Node) -> Node | None:
    """Return the list of the arguments of the call of a name, or None if there are others behind it."""
    callee, end = name, name.end_byte
    for _ in range(_PARENTS_MAX):
        around = callee.parent
        if around is None or callee.end_byte > end:
            return None
        after = [child for child in around.named_children if child.start_byte >= end]
        if after and after[0].type.startswith("type_argument"):
            end = after.pop(0).end_byte
        if after and after[0].type == "call_suffix":
            after = after[0].named_children
        if after:
            has_block = around.parent is not None and any(
                child.type == "annotated_lambda" for child in around.parent.children
            )
            return after[0] if len(after) == 1 and after[0].type in _ARGUMENT_LISTS and not has_block else None
        callee = around
    return None


def _slots(children: Sequence[Node]) -> Iterator[list[Node]]:
    """Yield the nodes between the commas of a list."""
    slot: list[Node] = []
    for child in children:
        if child.type == ",":
            if slot:
                yield slot
            slot = []
        elif child.type not in ("(", ")") and "comment" not in child.type:
            slot.append(child)
    if slot:
        yield slot


def _kind(text: str, kinds: Mapping[str, re.Pattern[str]], rules: ArgumentRules | None) -> str:
    found = next((kind for kind, pattern in kinds.items() if pattern.match(text)), "")
    return "" if found == "truth" and rules is not None and rules.converts_truth else found


# -- Functions ---------------------------------------------------------------------------------------------------------


def _parameters(facts: SourceFacts, start: int) -> _Parameters | None:
    """Return the parameters of the function whose name is at an offset, or None if they are not known."""
    symbol, name = facts.symbol_at(start), facts.node_at(start)
    function = None if name is None else facts.function_at(name)
    if symbol is None or function is None or symbol.symbol_type not in FUNCTION_TYPES:
        return None
    slots = _parameter_slots(function)
    if slots is None:
        return None
    utf8 = facts.file.utf8
    least, most, is_open = 0, 0, False
    kinds: list[str] = []
    for slot in slots:
        text = utf8[slot[0].start_byte : slot[-1].end_byte]
        nodes = [part for child in slot for part in (child, *child.children)]
        if _UNCOUNTED.match(text) or slot[0].type in ("receiver_parameter", "self_parameter", "block_parameter"):
            continue
        if any(node.type.startswith(_REPEATED_PARAMETERS) for node in nodes) or _REPEATED.search(text):
            is_open = True
            continue
        names = max(len(slot[0].children_by_field_name("name")), 1) if facts.rules.groups_parameters else 1
        is_optional = slot[0].type.startswith("optional") or any(node.type == "=" for node in nodes)
        is_extended = text.startswith(b"this ") or b"Optional" in text
        least += 0 if is_optional or is_extended else names
        most += names
        kinds += [_kind_of_parameter(facts, slot)] * names
    rules = facts.rules.arguments
    if rules is not None and rules.separates_defaults and not _is_in_class(function):
        least = 0
    return _Parameters(least, None if is_open else most, () if _has_receiver(slots, utf8) else kinds)


def _is_in_class(function: Node) -> bool:
    definition = function.parent
    around = None if definition is None else definition.parent
    return any(node is not None and node.type == "field_declaration_list" for node in (definition, around))


def _parameter_slots(function: Node) -> list[list[Node]] | None:
    listed = function.child_by_field_name("parameters")
    types = ("function_value_parameters", "parameter_list")
    listed = listed or next((child for child in function.children if child.type in types), None)
    if listed is not None:
        return list(_slots(listed.children))
    opening = next((i for i, child in enumerate(function.children) if child.type == "("), None)
    if opening is None:
        return None
    closing = next(i for i, child in enumerate(function.children) if child.type == ")")
    return list(_slots(function.children[opening:closing]))


def _has_receiver(slots: Sequence[Sequence[Node]], utf8: bytes) -> bool:
    """Return whether the first parameter is the object of a C# extension method."""
    return bool(slots) and utf8.startswith(b"this ", slots[0][0].start_byte)


def _kind_of_parameter(facts: SourceFacts, slot: Sequence[Node]) -> str:
    """Return the kind of literals that a parameter takes, or an empty text if its type does not show it."""
    main = next((child for child in slot if child.type.endswith(("parameter", "parameter_declaration"))), slot[0])
    declared = main.child_by_field_name("type") or (main.named_children[-1] if main.named_child_count > 1 else None)
    if declared is None:
        return ""
    text = facts.text(declared).lstrip(": ")
    declarator = main.child_by_field_name("declarator")
    if declarator is not None and declarator.type == "pointer_declarator":
        return "text" if text == "char" else ""
    return _kind(text, _TYPES, facts.rules.arguments)
