"""The decision whether an occurrence of a name is a use of certain symbols."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence

import msgspec

from codebatch.model.analysis.uses import Certainty, NameUse
from codebatch.model.entry import path_row
from codebatch.query.fields import JsonRecord
from codebatch.query.filters.filters import path_bytes

SymbolKey = tuple[str, str]
"""A symbol: the path of its file and its qualified name."""

_TYPES_WITHOUT_LABELS = frozenset(
    {
        "class",
        "constructor",
        "enum",
        "function",
        "interface",
        "macro",
        "method",
        "module",
        "namespace",
        "struct",
        "trait",
    }
)
"""Types of definitions that neither the name of an argument nor the key of a literal can mean."""
_SCRIPT = re.compile(rb"\.[cm]?[jt]sx?\Z")
_BASE_OBJECTS = frozenset({"base", "parent", "super"})
_ENDINGS_WITH_BOUND_RECEIVERS = (b".go", b".rs")  # There, `Base.f(x)` and `Base::f(x)` call the method of `x`.


class SymbolUse(msgspec.Struct, frozen=True):
    """A use of a symbol. `candidates` is the number of definitions to which it can refer; 1 if it is resolved.

    If the use refers to a method that the symbol overrides, `through` is the qualified name of this method.
    """

    path: bytes
    use: NameUse
    certainty: Certainty
    candidates: int
    through: str = ""

    @property
    def row(self) -> JsonRecord:
        """The use as a dictionary."""
        place: JsonRecord = {"line": self.use.line, "column": self.use.column}
        end: JsonRecord = {"end_line": self.use.end_line, "end_column": self.use.end_column}
        kind: JsonRecord = {"role": self.use.role, "scope": self.use.scope, "target": self.use.target}
        return {
            **path_row(self.path), **place, **end, **kind, "resolution": self.certainty, "candidates": self.candidates,
            "through": self.through,
        }  # fmt: skip


def is_other(use: NameUse, definitions: Sequence[JsonRecord]) -> bool:
    """Return whether an unresolved reference does not mean the definitions: it is a local variable, or a label.

    In JavaScript, the key of a literal can be a method, because classes and interfaces are compared by their members.
    A framework can pass the result of a decorated function as the argument with its name, as pytest does.
    """
    if use.meaning == "label":
        return bool(definitions) and not any(map(_has_labels, definitions))
    return use.meaning == "local" and not any(record.get("decorators") for record in definitions)


def _has_labels(definition: JsonRecord) -> bool:
    is_script = _SCRIPT.search(path_bytes(definition)) is not None
    return definition["symbol_type"] not in _TYPES_WITHOUT_LABELS or (
        is_script and definition["symbol_type"] == "method"
    )


def classify(path: bytes, use: NameUse, symbols: Collection[SymbolKey], candidates: int) -> SymbolUse | None:
    """Return a use of one of the symbols, or None if the use refers to something else.

    A use that is not resolved can refer to any of `candidates` symbols. If this is 0, it is taken to refer to others.
    """
    resolved = use.resolved
    places = {(found.path, found.qualified) for found in resolved.definitions}
    if not places.isdisjoint(symbols):
        return SymbolUse(path, use, resolved.certainty, len(places))
    if resolved.certainty != "name" or places or not candidates or use.role == "definition":
        return None
    return SymbolUse(path, use, "name", candidates)


def classify_through(path: bytes, use: NameUse, overridden: Mapping[SymbolKey, str]) -> SymbolUse | None:
    """Return the use of a method that the requested one overrides, or None if the call is bound to the former."""
    places = [(found.path, found.qualified) for found in use.resolved.definitions]
    through = next((overridden[place] for place in places if place in overridden), "")
    if not through or use.role not in ("call", "reference") or _is_bound_to_base(path, use.target, through):
        return None
    return SymbolUse(path, use, "name", len(places), through)


def _is_bound_to_base(path: bytes, target: str, method: str) -> bool:
    """Return whether a call as written names the base, and so calls its method: `super().f`, `parent::f`, `Base.f`."""
    owner, base = (["", *re.findall(r"\w+", text)][-2] for text in (target, method))
    return owner in _BASE_OBJECTS or (owner == base and not path.endswith(_ENDINGS_WITH_BOUND_RECEIVERS))
