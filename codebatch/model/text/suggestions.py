"""Suggestions for mistyped words."""

from __future__ import annotations

from collections.abc import Collection

_PREFIX_CHARACTERS_MIN = 3
_CANDIDATES_MAX = 3
_SIMILARITY_MIN = 0.8


def closest_word(word: str, known: Collection[str]) -> str | None:
    """Return the word in `known` that is most similar to `word`, or None if none is similar enough."""
    import difflib  # Deferred: every command imports this module, and only mistyped words need it.

    completions = [
        candidate for candidate in known if len(word) >= _PREFIX_CHARACTERS_MIN and candidate.startswith(word)
    ]
    if len(completions) == 1:
        return completions[0]
    candidates = difflib.get_close_matches(word, known, n=_CANDIDATES_MAX)
    # Typos rarely affect the first letter: `lint` is not a typo of `init`, although three letters match.
    return next(
        (candidate for candidate in candidates if candidate[:1] == word[:1] or _is_similar(candidate, word)), None
    )


def _is_similar(word: str, other: str) -> bool:
    import difflib

    return difflib.SequenceMatcher(None, word, other).ratio() > _SIMILARITY_MIN


def did_you_mean_text(word: str, known: Collection[str]) -> str:
    """Return a hint for a mistyped word: the most similar known word.

    If none is similar, the hint lists all known words.
    """
    if not known:
        return "no values are allowed here"
    suggestion = closest_word(word, known)
    return f"one of: {', '.join(known)}" if suggestion is None else f"did you mean {suggestion!r}?"
