"""Groups of languages: variants that users mean by another name, and languages of data or prose.

Variants are languages of their own, because they have other grammars. A user who names TypeScript means `.tsx` files
too. The lines of data formats and prose are not code. GitHub's linguist also calls them data and prose, except for
query and schema languages, which people write like code.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping

DATA_LANGUAGES = frozenset(
    (
        *("csv", "diff", "dtd", "gettext", "gitattributes", "gitignore", "gomod", "ini", "json"),
        *("json5", "jsonc", "log", "markdown", "properties", "rst", "svg", "text", "toml", "tsv"),
        *("xml", "yaml"),
    )
)
PROSE_LANGUAGES = frozenset(("markdown", "rst", "text"))
"""The languages of DATA_LANGUAGES that are prose."""
LANGUAGE_VARIANTS: Mapping[str, tuple[str, ...]] = {"bash": ("zsh",), "json": ("jsonc",), "typescript": ("tsx",)}


def with_variants(languages: Iterable[str]) -> tuple[str, ...]:
    """Return languages, each followed by its variants, without repetitions."""
    return tuple(
        dict.fromkeys(name for language in languages for name in (language, *LANGUAGE_VARIANTS.get(language, ())))
    )


def unknown_languages(languages: Collection[str], known: Collection[str]) -> Iterator[str]:
    """Yield the languages that are not known, and have no known variant. Variants of other languages are left out."""
    for language in languages:
        is_variant = any(language in LANGUAGE_VARIANTS.get(other, ()) for other in languages)
        if not is_variant and not any(name in known for name in with_variants((language,))):
            yield language
