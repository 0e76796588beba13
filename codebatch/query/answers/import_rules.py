"""Which languages let a file use another one without an import of it: there the imports are not all of its users."""

from __future__ import annotations

from collections.abc import Mapping

_JVM = ("java", "kotlin", "scala")
USERS_WITHOUT_IMPORT: Mapping[str, tuple[str, ...]] = {
    "c": ("c", "cpp"),
    "cpp": ("c", "cpp"),
    "csharp": ("csharp",),
    "go": ("go",),
    "java": _JVM,
    "kotlin": _JVM,
    "php": ("php",),
    "ruby": ("ruby",),
    "rust": ("rust",),
    "scala": _JVM,
    "swift": ("swift",),
}
"""Languages of files that may use what a file in a language defines, while no import says so."""
_IMPORT_ALL = frozenset(("python", "javascript", "typescript", "tsx", "lua", "bash", "zsh"))
"""Languages in which a file that uses another imports it, and these imports are followed."""
HEADER_ENDINGS = (b".h", b".hh", b".hpp", b".hxx", b".inl", b".ipp")


def needs_import(language: str, path: bytes) -> bool:
    """Return whether all users of a file import it, so that its dependents are known. C includes headers alone."""
    return language in _IMPORT_ALL or (language in ("c", "cpp") and path.endswith(HEADER_ENDINGS))


def may_be_used_without_import(language: str, path: bytes) -> bool:
    """Return whether others may use what a file defines without an import of it; false if it defines no names."""
    return language in USERS_WITHOUT_IMPORT and not needs_import(language, path)
