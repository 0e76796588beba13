"""Uses of names, the definitions to which they refer, and how certain this is."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Literal

import msgspec

from codebatch.model.record import SymbolType

Certainty = Literal["exact", "inferred", "name", "external"]
"""How certain it is that a use refers to a definition.

- `exact`: it follows only from scope, imports and the rules of the language.
- `inferred`: one more step of knowledge is needed: the type of a variable, parameter, field or `self`.
- `name`: only the name is known to be equal, or there are several candidates.
- `external`: the use refers to code outside the snapshot.
"""

SourceReader = Callable[[str], "tuple[bytes, Mapping[str, bytes]] | None"]
"""A function that returns the content and the contexts of the file at a path, or None if it is not available."""

_REOPENED_TYPES = frozenset({"class", "module"})
ANONYMOUS_MARK = "new "
"""The beginning of the mark of a method of an anonymous class. The name of a base follows."""
MODULE_MARK = "module"
"""The mark of a method that classes get when they include its module, or objects when they are extended by it."""
CERTAINTIES: tuple[Certainty, ...] = ("exact", "inferred", "name", "external")
"""The values of Certainty, the most certain first."""


class Definition(msgspec.Struct, frozen=True, order=True):
    """A definition in a file of the snapshot.

    `is_signature` is set if it only declares a function whose code another definition has, or if it is the setter of a
    property whose getter is another definition.
    """

    path: str
    line: int
    column: int
    qualified: str
    name: str
    symbol_type: SymbolType
    is_signature: bool = False


class Resolved(msgspec.Struct, frozen=True):
    """The definitions to which a use refers. There are none if they are external or unknown."""

    certainty: Certainty
    definitions: tuple[Definition, ...] = ()


class NameUse(msgspec.Struct, frozen=True):
    """An occurrence of a name. `role` is definition, import, call, reference or string.

    `scope` is the definition around it. `target` is the chain of names that ends with the name, as written:
    `shop.prices.total`. `meaning` is set if an unresolved reference is a local variable without a definition, or a
    label: the name of an argument or a key.
    """

    line: int
    column: int
    end_line: int
    end_column: int
    role: str
    scope: str
    target: str
    resolved: Resolved
    meaning: Literal["", "local", "label"] = ""


UNKNOWN = Resolved("name")
EXTERNAL = Resolved("external")


def resolve_to(certainty: Certainty, definitions: Iterable[Definition]) -> Resolved:
    """Return the definitions to which a use refers, or UNKNOWN. If there are several, only their name is known.

    Several declarations of a class or module in one file are one.
    """
    distinct = tuple(sorted(set(definitions)))
    parts = {(each.path, each.qualified) if each.symbol_type in _REOPENED_TYPES else each for each in distinct}
    return Resolved(certainty if len(parts) == 1 else "name", distinct) if distinct else UNKNOWN


def least_certain(one: Certainty, other: Certainty) -> Certainty:
    """Return the less certain of two values."""
    return max(one, other, key=CERTAINTIES.index)
