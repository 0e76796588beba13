"""Languages whose code can call each other by name."""

from __future__ import annotations

from collections.abc import Mapping

_FAMILIES: Mapping[str, str] = {
    **dict.fromkeys(("c", "cpp", "rust", "go", "swift", "sql"), "native"),
    **dict.fromkeys(("java", "kotlin", "scala"), "jvm"),
    **dict.fromkeys(("javascript", "typescript", "tsx"), "javascript"),
    **dict.fromkeys(("bash", "zsh"), "shell"),
}
"""Languages with a family of several languages. Native code can be called from, and call, every other language."""


def language_family(language: str) -> str:
    """Return the family of a language. Code can call by name only code of its family, and native code."""
    return _FAMILIES.get(language, language)
