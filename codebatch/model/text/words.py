"""Search for a word in bytes of unknown encoding.

A word is bounded by bytes other than ASCII letters, digits and underscores. In UTF-16 and UTF-32, with or without a
byte order mark, it is bounded by such characters. At the start and the end of a text in UTF-16 or UTF-32, a longer word
may match too. So the search may find too much, but it misses nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

_ENCODINGS = (("utf-8", 1), ("utf-16-le", 2), ("utf-16-be", 2), ("utf-32-le", 4), ("utf-32-be", 4))
"""The searched encodings, with the number of bytes of an ASCII character."""
_UNIT_BYTES_MAX = 4
_WORD_CHARACTERS = "A-Za-z0-9_"
_PUNCTUATION = re.compile(r"[!-#%-/:-@\[-^`{-~]")


_SETTER = re.compile(r"\w+=\Z")


def searched_word(name: str) -> str:
    """Return the text by which uses of a definition are found: its name, or `a` for the setter `a=` in Ruby."""
    return name[:-1] if _SETTER.match(name) else name


class WordFinder:
    """A search for a few words. It finds a content in which at least one of them occurs."""

    def __init__(self, words: Iterable[str]) -> None:
        """Compile the search. Words without characters are ignored."""
        self._patterns: list[tuple[bytes, re.Pattern[bytes]]] = []
        for word in filter(None, words):
            for encoding, unit in _ENCODINGS:
                encoded = word.encode(encoding, "surrogateescape" if unit == 1 else "replace")
                self._patterns.append((encoded, _bounded_pattern(word, encoded, encoding, unit)))
        self._narrow_patterns = self._patterns[:: len(_ENCODINGS)]
        self._has_wide_words = not all(encoded.isascii() for encoded, _ in self._narrow_patterns)
        self._overlap = max((len(encoded) for encoded, _ in self._patterns), default=0) + 2 * _UNIT_BYTES_MAX

    def is_in(self, content: bytes) -> bool:
        """Return whether one of the words occurs in a content."""
        return self._find(content, 0, len(content))

    def count_in(self, content: bytes) -> int:
        """Return how often the words occur in a content."""
        patterns = self._patterns_for(content, 0, len(content))
        return sum(
            sum(1 for _ in pattern.finditer(content)) for encoded, pattern in patterns if content.find(encoded) >= 0
        )

    def is_in_any(self, chunks: Iterable[bytes]) -> bool:
        """Return whether one of the words occurs in a content that is read chunk by chunk. No chunk may be empty.

        At most two chunks are kept in memory.
        """
        before, start = b"", 0
        for chunk in chunks:
            buffer = before + chunk
            # A word at the end may continue in the next chunk, so it is not yet a match.
            if self._find(buffer, start, len(buffer) - _UNIT_BYTES_MAX):
                return True
            before = buffer[-self._overlap :]
            # Matches that begin earlier were found in the buffer before. The skipped bytes bound the first word.
            start = min(_UNIT_BYTES_MAX, len(before)) if len(buffer) > self._overlap else 0
        return self._find(before, start, len(before))

    def _find(self, content: bytes, start: int, end: int) -> bool:
        """Return whether a match begins at or after `start` and ends at or before `end`."""
        for encoded, pattern in self._patterns_for(content, start, end):
            # The search for literal bytes is much faster than the pattern, and most contents lack the word.
            if content.find(encoded, start, end) < 0:
                continue
            match = pattern.search(content, start)
            if match is not None and match.end() <= end:
                return True
        return False

    def _patterns_for(self, content: bytes, start: int, end: int) -> list[tuple[bytes, re.Pattern[bytes]]]:
        # Without a NUL, a content is not in UTF-16 or UTF-32, except for text without any ASCII character.
        is_wide = self._has_wide_words or content.find(0, start, end) >= 0
        return self._patterns if is_wide else self._narrow_patterns


def _bounded_pattern(word: str, encoded: bytes, encoding: str, unit: int) -> re.Pattern[bytes]:
    """Return a pattern for an encoded word between characters that do not belong to a word.

    On a side with a punctuation mark, as in `operator+`, the word is not bounded.
    """
    zeros = rb"\x00" * (unit - 1)
    character = f"[{_WORD_CHARACTERS}]".encode()
    word_character = zeros + character if encoding.endswith("be") else character + zeros
    before = b"" if _PUNCTUATION.match(word[0]) else rb"(?<!%b)" % word_character
    after = b"" if _PUNCTUATION.match(word[-1]) else rb"(?!%b)" % word_character
    return re.compile(before + re.escape(encoded) + after)
