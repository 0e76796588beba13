"""The result of a rule for implicit imports."""

from __future__ import annotations

import msgspec

from codebatch.model.record import Resolution


class ImplicitImport(msgspec.Struct, frozen=True):
    """The files that define a name which another file uses without an import.

    `name` is the leading part of the name as written that names the definition: `Price` of `Price.of`.
    """

    resolution: Resolution
    paths: tuple[str, ...]
    name: str


def found_in(paths: tuple[str, ...], name: str, *, is_certain: bool = True) -> ImplicitImport | None:
    """Return the implicit import of a name that the files `paths` define, or None if there are none.

    One file is `exact` if `is_certain` is set, and otherwise `file`. Several files are `name`.
    """
    if not paths:
        return None
    return ImplicitImport("name" if len(paths) > 1 else "exact" if is_certain else "file", paths, name)
