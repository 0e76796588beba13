"""Variables in values of `env` and of env files (SPEC.md "Work files").

In `env`, only `${NAME}` and `${NAME:-default}` are references. In env files, all references of Docker Compose are.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

_NAME_PATTERN = "[A-Za-z_][A-Za-z0-9_]*"
_VARIABLE_REFERENCE = re.compile(rf"\$\$\{{|\$\{{({_NAME_PATTERN})(?::-([^{{}}]*))?\}}|\$\{{")
_WHOLE_VALUE_VARIABLE = re.compile(rf"\$({_NAME_PATTERN})\Z")
_BARE_VARIABLE = re.compile(rf"(?<!\$)\$({_NAME_PATTERN})")
_NAME = re.compile(_NAME_PATTERN)
_OPERATOR = re.compile(r":?[-?+]")
_TEXT = re.compile(r"[^$}]+")
_NESTED_MAX = 20


class VariableError(ValueError):
    """The error that a value cannot be expanded: a variable is not set, or `${` does not begin a valid reference."""


def expand_value(value: str, scope: Mapping[str, str], between: Callable[[str], str] = str) -> str:
    """Expand the variables in a value like `expand_variables`, and also a value that consists of `$NAME`.

    Raises VariableError.
    """
    full_match = _WHOLE_VALUE_VARIABLE.match(value)
    return expand_variables(value if full_match is None else f"${{{full_match[1]}}}", scope, between)


def expand_variables(value: str, scope: Mapping[str, str], between: Callable[[str], str] = str) -> str:
    """Return a value in which each `${NAME}` is replaced by the variable's value in `scope`. Raises VariableError.

    `between` is applied to the texts between variables. `$${` becomes `${`. If the value of a variable contains another
    `${NAME}`, that is not expanded.
    """
    pieces: list[str] = []
    at = 0
    for match in _VARIABLE_REFERENCE.finditer(value):
        pieces.append(between(value[at : match.start()]))
        at = match.end()
        if match[0] == "$${":
            pieces.append("${")
        elif match[1] is None:
            raise VariableError("${ without a name and }")
        else:
            pieces.append(_lookup_value(match[1], match[2], scope))
    return "".join([*pieces, between(value[at:])])


def bare_variables(value: str) -> list[str]:
    """Return the names of variables in a value that are not expanded, because they have no braces.

    They have the form `$NAME`, beside other text.
    """
    return [] if _WHOLE_VALUE_VARIABLE.match(value) else [match[1] for match in _BARE_VARIABLE.finditer(value)]


def _lookup_value(name: str, default: str | None, scope: Mapping[str, str]) -> str:
    value = scope.get(name)
    if value is None and default is None:
        raise VariableError(f"${{{name}}} is not set")
    return value or default or ""  # The default also replaces an empty value, as in a shell.


def interpolate(text: str, scope: Mapping[str, str]) -> str:
    """Return a value of an env file with the values of its variables, as Docker Compose writes references.

    These are `$NAME`, `${NAME}`, `${NAME:-default}`, `${NAME:?message}` and `${NAME:+other}`. Without `:`, an empty
    value counts as set. The texts may have references too. `$$` becomes `$`. The values are not expanded again.

    Raises VariableError, also for a variable that is not set and has no default.
    """
    return _interpolate(text, 0, scope, depth=0)[0]


def _interpolate(text: str, at: int, scope: Mapping[str, str] | None, *, depth: int) -> tuple[str, int]:
    """Expand a text from a position, in braces up to the closing one. Return the result and the position after it.

    If `scope` is None, no variable is looked up.
    """
    pieces: list[str] = []
    while at < len(text):
        if text[at] == "}" and depth:
            return "".join(pieces), at + 1
        if text.startswith("${", at):
            piece, at = _expand_braces(text, at + 2, scope, depth=depth + 1)
        elif text.startswith("$$", at):
            piece, at = "$", at + 2
        elif text[at] == "$" and (name := _NAME.match(text, at + 1)) is not None:
            piece, at = "" if scope is None else _lookup_value(name[0], None, scope), name.end()
        else:
            match = _TEXT.match(text, at)
            piece = match[0] if match is not None else text[at]
            at += len(piece)
        pieces.append(piece)
    if depth:
        raise VariableError("${ without }")
    return "".join(pieces), at


def _expand_braces(text: str, at: int, scope: Mapping[str, str] | None, *, depth: int) -> tuple[str, int]:
    """Expand a reference whose name is at a position. Return the result and the position after the closing brace."""
    name = _NAME.match(text, at)
    if name is None or depth > _NESTED_MAX:
        raise VariableError("${ without a name and }" if name is None else f"more than {_NESTED_MAX} nested references")
    if text.startswith("}", name.end()):
        return "" if scope is None else _lookup_value(name[0], None, scope), name.end() + 1
    operator = _OPERATOR.match(text, name.end())
    if operator is None:
        raise VariableError(f"${{{name[0]} is not followed by }}, :-, :? or :+")
    kind = operator[0][-1]
    if scope is None:
        return _interpolate(text, operator.end(), None, depth=depth)
    value = scope.get(name[0])
    is_set = bool(value) if operator[0].startswith(":") else value is not None
    is_word_used = is_set == (kind == "+")
    word, at = _interpolate(text, operator.end(), scope if is_word_used else None, depth=depth)
    if kind == "?" and not is_set:
        raise VariableError(f"{name[0]}: {word or 'it is not set'}")
    if is_word_used:
        return word, at
    return "" if kind == "+" else value or "", at
