"""Languages in which uses of other files are resolved, and in which the known dependents of a file are complete."""

from __future__ import annotations

from collections.abc import Mapping

_LANGUAGES_WITH_ALL_LINKS = frozenset(
    (
        *("bash", "c", "cpp", "csharp", "go", "java", "javascript", "kotlin", "lua", "php", "python", "ruby", "rust"),
        *("scala", "swift", "tsx", "typescript", "zsh"),
    )
)
"""Languages in which imports are resolved, and in which uses without an import are resolved too, or do not exist."""
LANGUAGES_WITH_IMPLICIT_IMPORTS = frozenset(
    ("c", "cpp", "csharp", "go", "java", "kotlin", "php", "ruby", "rust", "scala", "swift")
)
"""Languages in which a file can use names of other files without an import."""
UNRESOLVED_LANGUAGES: Mapping[str, str] = {"sql": "SQL"}
"""Languages whose files define names, but whose uses of other files are not resolved, with their displayed names."""


def has_all_dependents(language: str) -> bool:
    """Return whether the known dependents of a file are complete, because all uses of other files are resolved."""
    return language in _LANGUAGES_WITH_ALL_LINKS
