"""Facts about languages, in parts: one for each mechanism that needs such facts.

A mechanism defines the part that it needs, as a class. A family of languages defines values of it, in one module of its
folder (`codebatch_workers.languages`). The module is imported by its name when a file of one of the languages needs it.
So mechanisms can use values that are defined above them, and a worker imports only the families that it meets.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import ClassVar, TypeVar, cast

import msgspec

from codebatch_workers.syntax.language.languages import family_of

_FAMILIES_PACKAGE = "codebatch_workers.languages"

PartT = TypeVar("PartT", bound="LanguagePart")


class LanguagePart(msgspec.Struct, frozen=True, kw_only=True):
    """Base of the parts. The default of each field is what most languages have, or "not supported".

    `MODULE` names the module of a family with its values of the part. The module has one constant, named like it in
    upper case: a mapping from languages to values.
    """

    MODULE: ClassVar[str]

    @classmethod
    def of(cls: type[PartT], language: str) -> PartT:
        """Return the part of a language. If its family does not define the part, all fields have their defaults."""
        return cast("PartT", _find_part(language, cls))


@cache
def _find_part(language: str, kind: type[LanguagePart]) -> object:
    return find_value(language, kind.MODULE) or kind()


@cache
def find_value(language: str, module: str) -> object | None:
    """Return the value of a language in a module of its family, or None if there is no such module or value."""
    family = family_of(language)
    full_name = f"{_FAMILIES_PACKAGE}.{family}.{module}"
    if family is None or find_spec(full_name) is None:
        return None
    values: Mapping[str, object] = getattr(import_module(full_name), module.upper())
    return values.get(language)
