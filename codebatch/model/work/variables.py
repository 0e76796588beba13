"""Variables in values of `env` and of env files: `${NAME}` and `${NAME:-default}` (SPEC.md "Work files")."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from codebatch.model.text.lazy_patterns import LatePattern

_NAME = "[A-Za-z_][A-Za-z0-9_]*"
_REFERENCE = LatePattern(rf"\$\$\{{|\$\{{({_NAME})(?::-([^{{}}]*))?\}}|\$\{{")
_WHOLE = LatePattern(rf"\$({_NAME})\Z")
_BARE = LatePattern(rf"(?<!\$)\$({_NAME})")


class VariableError(ValueError):
    """A value that cannot be expanded: a variable that is not set, or `${` that begins no reference."""


def expand_value(value: str, scope: Mapping[str, str], between: Callable[[str], str] = str) -> str:
    """Like `expand_variables`, but a value that is `$NAME` as a whole is that variable. Raises VariableError."""
    whole = _WHOLE.match(value)
    return expand_variables(value if whole is None else f"${{{whole[1]}}}", scope, between)


def expand_variables(value: str, scope: Mapping[str, str], between: Callable[[str], str] = str) -> str:
    """Return a value with its variables replaced by those of a scope. `between` is applied to the text between them.

    `$${` is `${`. What a variable holds is not expanded again. Raises VariableError.
    """
    pieces: list[str] = []
    at = 0
    for found in _REFERENCE.finditer(value):
        pieces.append(between(value[at : found.start()]))
        at = found.end()
        if found[0] == "$${":
            pieces.append("${")
        elif found[1] is None:
            raise VariableError("${ without a name and }")
        else:
            pieces.append(_value_of(found[1], found[2], scope))
    return "".join([*pieces, between(value[at:])])


def bare_variables(value: str) -> list[str]:
    """Return the names in a value that look like variables but are none: `$NAME` beside other text."""
    return [] if _WHOLE.match(value) else [found[1] for found in _BARE.finditer(value)]


def _value_of(name: str, default: str | None, scope: Mapping[str, str]) -> str:
    value = scope.get(name)
    if value is None and default is None:
        raise VariableError(f"${{{name}}} is not set")
    return value or default or ""  # As in a shell, a variable that is empty has the default too.
