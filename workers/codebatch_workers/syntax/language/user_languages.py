"""Names of languages as users write them."""

from __future__ import annotations

from codebatch.model.text.suggestions import closest_word
from codebatch_workers.syntax.language.languages import detected_languages, path_language
from codebatch_workers.syntax.language.linguist_names import language_named


def resolve_language(name: str) -> str:
    """Return the language that a user means by `name`: a name of codebatch, a name of linguist, or a file extension."""
    known = language_named(name)
    return path_language(b"x." + name.lower().encode("utf-8", "replace")) or known


def resolve_spelled_language(name: str) -> str:
    """Return the language that a user means by `name`, as `resolve_language`.

    Raises ValueError for a probable typo. Other unknown names are accepted: `.gitattributes` can define any language.
    """
    language = resolve_language(name)
    known = detected_languages()
    if language not in known and (similar := closest_word(language, known)) is not None:
        raise ValueError(f"unknown language {name!r}: did you mean {similar!r}?")
    return language
