"""Languages in which a file can use another file without an import. Its known dependents are then incomplete."""

from __future__ import annotations

from collections.abc import Mapping

_JVM_LANGUAGES = ("java", "kotlin", "scala")
USERS_WITHOUT_IMPORT: Mapping[str, tuple[str, ...]] = {
    "c": ("c", "cpp"),
    "cpp": ("c", "cpp"),
    "csharp": ("csharp",),
    "go": ("go",),
    "java": _JVM_LANGUAGES,
    "kotlin": _JVM_LANGUAGES,
    "php": ("php",),
    "ruby": ("ruby",),
    "rust": ("rust",),
    "scala": _JVM_LANGUAGES,
    "swift": ("swift",),
}
"""For the language of a file, the languages from which its definitions can be used without an import."""
_LANGUAGES_IMPORTING_ALL = frozenset(("python", "javascript", "typescript", "tsx", "lua", "bash", "zsh"))
"""Languages in which every use of another file needs an import, and in which imports are resolved."""
HEADER_ENDINGS = (b".h", b".hh", b".hpp", b".hxx", b".inl", b".ipp")


def needs_import(language: str, path: bytes) -> bool:
    """Return whether every use of a file needs an import, so that its known dependents are complete.

    In C and C++, this is true only for headers.
    """
    return language in _LANGUAGES_IMPORTING_ALL or (language in ("c", "cpp") and path.endswith(HEADER_ENDINGS))


def may_be_used_without_import(language: str, path: bytes) -> bool:
    """Return whether other files can use definitions of a file without an import.

    It is false for languages whose files define no names, such as Markdown.
    """
    return language in USERS_WITHOUT_IMPORT and not needs_import(language, path)
