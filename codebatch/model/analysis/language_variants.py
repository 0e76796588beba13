"""Variants of languages: languages of their own, because they have other grammars, that users mean by another name.

A user who names TypeScript means `.tsx` files too.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping

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
