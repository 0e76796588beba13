"""Masking of secret values in the output of an attempt, before the output is written anywhere."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

MASK = b"***"
SECRET_NAME_ENDINGS = ("TOKEN", "KEY", "SECRET", "PASSWORD")
"""The endings of the names of variables whose values are secret by default, in any case of the letters."""
SECRET_CHARACTERS_MIN = 4
"""The minimum length of a masked value. A shorter value occurs in ordinary output too often."""


class SecretMasker:
    """A filter that replaces secret values in a stream of bytes by MASK, across the borders of its chunks.

    Each line of a value with several lines is a value of its own. Occurrences that overlap are replaced by one mask.
    """

    def __init__(self, marked_names: Collection[str] = ()) -> None:
        """`marked_names` are variables that are secret in addition to those with one of SECRET_NAME_ENDINGS."""
        self._marked_names = frozenset(marked_names)
        self._values: set[bytes] = set()
        self._short_names: set[str] = set()
        self._held = b""
        self._masked_bytes = 0
        """The number of bytes at the start of `_held` that belong to an occurrence whose mask was already returned."""

    def add_variables(self, variables: Mapping[str, str]) -> None:
        """Mask the values of those variables that are secret."""
        for name, value in variables.items():
            if name not in self._marked_names and not name.upper().endswith(SECRET_NAME_ENDINGS):
                continue
            lines = {line for line in value.splitlines() if line.strip()}
            long_lines = {line for line in lines if len(line) >= SECRET_CHARACTERS_MIN}
            self._values |= {line.encode("utf-8", "surrogateescape") for line in long_lines}
            if lines and not long_lines:
                self._short_names.add(name)

    def take_short_names(self) -> list[str]:
        """Return the secret variables whose values are too short to be masked. Each is returned once."""
        names, self._short_names = sorted(self._short_names), set()
        return names

    def mask_text(self, text: str) -> str:
        """Return a whole text in which secret values are masked."""
        single = SecretMasker()
        single._values = self._values
        data = single.feed(text.encode("utf-8", "surrogateescape")) + single.flush()
        return data.decode("utf-8", "surrogateescape")

    def feed(self, data: bytes) -> bytes:
        """Add data to the stream. Return the masked data, without an end that may be the beginning of a value."""
        if not self._values:
            return data
        data = self._held + data
        held_bytes = self._partial_bytes(data)
        return self._emit(data, len(data) - held_bytes)

    def flush(self) -> bytes:
        """Return the end of the stream that was held back."""
        return self._emit(self._held, len(self._held))

    def _emit(self, data: bytes, end: int) -> bytes:
        """Return the masked data before `end`, and hold back the rest."""
        parts: list[bytes] = []
        position = masked = self._masked_bytes
        self._masked_bytes = 0
        for start, stop in self._occurrences(data):
            if start >= end:
                break  # The occurrence is found again when the rest is complete.
            if start >= masked:
                parts += (data[position:start], MASK)
            masked = position = max(masked, stop)
        if position < end:
            parts.append(data[position:end])
        self._held, self._masked_bytes = data[end:], max(0, masked - end)
        return b"".join(parts)

    def _occurrences(self, data: bytes) -> Iterator[tuple[int, int]]:
        spans: list[tuple[int, int]] = []
        for value in self._values:
            start = data.find(value)
            while start >= 0:
                spans.append((start, start + len(value)))
                start = data.find(value, start + 1)
        yield from sorted(spans)

    def _partial_bytes(self, data: bytes) -> int:
        """Return the length of the longest end of the data that is the beginning of a value, but not a whole value."""
        return max(
            next((size for size in range(min(len(value) - 1, len(data)), 0, -1) if data.endswith(value[:size])), 0)
            for value in self._values
        )
