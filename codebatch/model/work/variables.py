"""Variables in values of `env` and of env files: `${NAME}` and `${NAME:-default}` (SPEC.md "Work files")."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

_NAME_PATTERN = "[A-Za-z_][A-Za-z0-9_]*"
_VARIABLE_REFERENCE = re.compile(rf"\$\$\{{|\$\{{({_NAME_PATTERN})(?::-([^{{}}]*))?\}}|\$\{{")
_WHOLE_VALUE_VARIABLE = re.compile(rf"\$({_NAME_PATTERN})\Z")
_BARE_VARIABLE = re.compile(rf"(?<!\$)\$({_NAME_PATTERN})")


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
