"""Words that are like one that there is not."""

from __future__ import annotations

from collections.abc import Collection

_BEGUN_CHARACTERS = 3
_LOOKED_AT = 3
_VERY_LIKE = 0.8


def closest(word: str, known: Collection[str]) -> str | None:
    """The one of the known words that is most like another, None where none is."""
    import difflib  # only those who mistype pay for it

    begun = [each for each in known if len(word) >= _BEGUN_CHARACTERS and each.startswith(word)]
    if len(begun) == 1:
        return begun[0]
    found = difflib.get_close_matches(word, known, n=_LOOKED_AT)
    # Who mistypes begins right: `lint` is not `init`, of which it has three letters.
    return next((each for each in found if each[:1] == word[:1] or _is_very_like(each, word)), None)


def _is_very_like(word: str, other: str) -> bool:
    import difflib

    return difflib.SequenceMatcher(None, word, other).ratio() > _VERY_LIKE


def did_you_mean(word: str, known: Collection[str]) -> str:
    """A hint for who mistyped a word: the one that was meant, or all that there are."""
    if not known:
        return "no values are allowed here"
    meant = closest(word, known)
    return f"one of: {', '.join(known)}" if meant is None else f"did you mean {meant!r}?"
