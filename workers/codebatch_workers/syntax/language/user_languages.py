"""Names of languages as users write them."""

from __future__ import annotations

from codebatch_workers.syntax.language.languages import path_language
from codebatch_workers.syntax.language.linguist_names import language_named


def resolve_language(name: str) -> str:
    """Return the language that a user means by `name`: a name of codebatch, a name of linguist, or a file extension."""
    known = language_named(name)
    return path_language(b"x." + name.lower().encode("utf-8", "replace")) or known
