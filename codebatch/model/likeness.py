"""Words that are like one that there is not."""

from __future__ import annotations

from collections.abc import Collection


def closest(word: str, known: Collection[str]) -> str | None:
    """The one of the known words that is most like another, None where none is."""
    import difflib  # only those who mistype pay for it

    return next(iter(difflib.get_close_matches(word, known, n=1)), None)


def did_you_mean(word: str, known: Collection[str]) -> str:
    """A hint for who mistyped a word: the one that was meant, or all that there are."""
    meant = closest(word, known)
    return f"one of: {', '.join(known)}" if meant is None else f"did you mean {meant!r}?"
