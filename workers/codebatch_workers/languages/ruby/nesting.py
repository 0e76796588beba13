"""The nesting of Ruby classes and modules as text, and the full names of constants.

A nesting is the names of the classes and modules around a use, as written and separated by blanks, outermost first.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

INHERITS_MARK = "<"
"""The mark after a nesting whose innermost class or module can inherit constants."""


def namespaces(nesting: Sequence[str]) -> Iterator[str]:
    """Yield the full names of the classes and modules around a use, innermost first. The last one is empty."""
    names = [""]
    for name in nesting:
        is_absolute = name.startswith("::") or not names[-1]
        names.append(name.removeprefix("::") if is_absolute else f"{names[-1]}::{name}")
    yield from reversed(names)


def constant_name(qualified: str) -> str:
    """Return the full name of a constant from the qualified name of its symbol."""
    absolute = qualified.rpartition(".::")[2] if ".::" in qualified else qualified
    return absolute.replace(".", "::").removeprefix("::")
