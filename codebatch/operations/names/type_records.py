"""Records about types: their definitions, members and bases."""

from __future__ import annotations

import os
import re

from codebatch.model.analysis.uses import NameUse
from codebatch.model.record import ANONYMOUS
from codebatch.operations.names.symbol_use import SymbolKey
from codebatch.query.fields import JsonRecord
from codebatch.query.filters.filters import path_bytes

_METHOD_TYPES = frozenset({"method", "property", "function"})
CLASS_TYPES = frozenset({"class", "struct", "interface", "trait", "type", "enum", "module"})
_SEPARATORS = re.compile(r"[.:\\]+")


def is_type(record: JsonRecord) -> bool:
    """Return whether a record is the definition of a type."""
    return record["kind"] == "symbol" and record["symbol_type"] in CLASS_TYPES


def is_method(record: JsonRecord) -> bool:
    """Return whether a definition is a method of a class."""
    return record["kind"] == "symbol" and record["symbol_type"] in _METHOD_TYPES and bool(record.get("scope"))


def owner_of(method: JsonRecord) -> SymbolKey:
    """Return the class of a method, as a symbol in the file of the method."""
    return os.fsdecode(path_bytes(method)), str(method["scope"])


def symbol_key(record: JsonRecord) -> SymbolKey:
    """Return the key of a definition."""
    return os.fsdecode(path_bytes(record)), str(record["qualified"])


def anonymous_class(scope: str) -> str:
    """Return the qualified name of anonymous classes in a scope. Its methods are symbols of the scope itself."""
    return f"{scope}.{ANONYMOUS}" if scope else ANONYMOUS


def names_base(use: NameUse, edge: JsonRecord) -> bool:
    """Return whether a use is the name of a base in an `inherits` edge of its file."""
    return (
        use.line == edge["line"]
        and use.role in ("call", "reference")
        and name_parts(use.target) == name_parts(str(edge["target"]))
    )


def name_parts(written: str) -> list[str]:
    """Return the parts of a qualified name as written in any language."""
    return _SEPARATORS.split(written.strip(".:\\"))


def in_package(type_: SymbolKey) -> SymbolKey:
    """Return the key of a type in its package: all files of its directory."""
    return os.path.dirname(type_[0]), type_[1]
