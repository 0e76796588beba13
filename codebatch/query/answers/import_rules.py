"""Languages in which uses of other files are resolved, and in which the known dependents of a file are complete."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from codebatch.query.sources.parsed_files import ParsedFile

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


_HOST_LANGUAGES: Mapping[str, frozenset[str]] = {
    **dict.fromkeys(("astro", "svelte", "vue"), frozenset({"javascript", "tsx", "typescript"})),
    **dict.fromkeys(("groovy", "clojure"), frozenset({"java", "kotlin", "scala"})),
    **dict.fromkeys(("objective-c", "objective-cpp"), frozenset({"c", "cpp", "swift"})),
    **dict.fromkeys(("fsharp", "vb"), frozenset({"csharp"})),
    "cython": frozenset({"c", "python"}),
    "erb": frozenset({"ruby"}),
}
"""Languages without a grammar, and the languages whose files they can import or use."""


def has_all_dependents(language: str, unparsed: Iterable[str]) -> bool:
    """Return whether the known dependents of a file are complete, because all uses of other files are resolved.

    `unparsed` are the languages of the batch's files without a grammar.
    """
    return language in _LANGUAGES_WITH_ALL_LINKS and not has_hidden_dependents(language, unparsed)


def has_hidden_dependents(language: str, unparsed: Iterable[str]) -> bool:
    """Return whether files without a grammar can use a file in a language, or uses of such files are not resolved."""
    return language in UNRESOLVED_LANGUAGES or any(language in _HOST_LANGUAGES.get(other, ()) for other in unparsed)


def unparsed_languages(files: Iterable[ParsedFile]) -> frozenset[str]:
    """Return the languages of files without a grammar."""
    return frozenset(file.lang for file in files if file.parse == "unsupported")
