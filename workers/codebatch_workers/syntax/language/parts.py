"""Facts about languages, in parts: one for each mechanism that needs such facts.

A mechanism defines the part that it needs, as a class. A family of languages defines values of it, in one module of its
folder (`codebatch_workers.languages`). The module is imported when a file of one of the languages is met. No mechanism
imports a family otherwise.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import ClassVar, TypeVar, cast

import msgspec

from codebatch_workers.syntax.language.languages import family_of

_FAMILIES_PACKAGE = "codebatch_workers.languages"


class LanguagePart(msgspec.Struct, frozen=True, kw_only=True):
    """Base of the parts. The default value of each field means that a language does not have or support it.

    `MODULE` names the module of a family with its values of the part. The module has one constant, named like it in
    upper case: a mapping from languages to values.
    """

    MODULE: ClassVar[str]


PartT = TypeVar("PartT", bound=LanguagePart)


def language_part(language: str, kind: type[PartT]) -> PartT:
    """Return a part of a language. If its family does not define the part, all fields have their defaults."""
    return cast("PartT", _find_part(language, kind))


@cache
def _find_part(language: str, kind: type[LanguagePart]) -> LanguagePart:
    module = part_module(language, kind.MODULE)
    values: Mapping[str, LanguagePart] = {} if module is None else getattr(module, kind.MODULE.upper())
    return values.get(language) or kind()


@cache
def part_module(language: str, name: str) -> ModuleType | None:
    """Return a module of the family of a language, or None if the family has none with this name."""
    family = family_of(language)
    module = f"{_FAMILIES_PACKAGE}.{family}.{name}"
    return None if family is None or find_spec(module) is None else import_module(module)
