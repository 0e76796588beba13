"""Matching of gitignore(5) globs: one automaton for all globs of a file, so that no pattern and no path is slow.

A glob is a sequence of tokens. The state of a set of globs is a bit vector. It has one bit for each token, and one for
the end of each glob. Each byte of a path advances all bits at once (Shift-And: Baeza-Yates and Gonnet 1992). There is
no backtracking, unlike in regular expressions. So the time for a path is at most proportional to its length times the
total length of the globs. Transitions between states are cached, up to a memory limit. So in most trees, each byte
takes one dictionary lookup.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Generic, TypeVar

T = TypeVar("T")

STAR_TOKEN = -1
"""Any bytes except slashes (`*`)."""
PARENTS_TOKEN = -2
"""Nothing, or whole directories including the slash after them (`**/`)."""
REST_TOKEN = -3
"""Any bytes, including slashes (`**` at the end)."""

GlobToken = int | frozenset[int]
"""A byte, one of a set of bytes, or one of the constants above.

Two tokens that may both match nothing are adjacent only if the first is PARENTS.
"""

_SLASH = ord("/")
_NONZERO_BYTE = re.compile(rb"[^\0]")
_CACHED_BYTES_MAX = 16 << 20
_STATE_BYTES = 500


class GlobSet(Generic[T]):
    """A set of globs, and a function `answer` that computes a value for a path from the globs that match the path."""

    def __init__(self, globs: Sequence[Sequence[GlobToken]], answer: Callable[[Iterator[int]], T]) -> None:
        """Build the automaton.

        `answer` gets the indexes of the matching globs, last first. It is called at most once for each state.
        """
        self._answer = answer
        self._number_tokens(globs)
        self._accepted: dict[int, int] = {}
        self._states: dict[int, _GlobState[T]] = {}
        self.cached_bytes = 0
        self._start = _GlobState(self, self._initial)
        self._last_entered = (b"", self._start)

    def _number_tokens(self, globs: Sequence[Sequence[GlobToken]]) -> None:
        """Give each token a bit.

        PARENTS at the start of a glob gets no bit. Instead, its glob starts again after every slash.
        """
        places: dict[GlobToken, list[int]] = {STAR_TOKEN: [], PARENTS_TOKEN: [], REST_TOKEN: []}
        starts: list[int] = []
        anywhere: list[int] = []
        self._ends: dict[int, int] = {}
        at = 0
        for index, glob in enumerate(globs):
            is_anywhere = bool(glob) and glob[0] == PARENTS_TOKEN
            (anywhere if is_anywhere else starts).append(at)
            for token in glob[is_anywhere:]:
                places.setdefault(token, []).append(at)
                at += 1
            self._ends[at] = index
            at += 1
        stars, self._parents, rest_bits = (
            _bits_at(places.pop(token), at) for token in (STAR_TOKEN, PARENTS_TOKEN, REST_TOKEN)
        )
        self._literals = {
            token: _bits_at(positions, at) for token, positions in places.items() if isinstance(token, int)
        }
        self._sets = [
            (token, _bits_at(positions, at)) for token, positions in places.items() if not isinstance(token, int)
        ]
        self._loops_in_name = stars | self._parents | rest_bits
        self._loops_at_slash = self._parents | rest_bits
        # Tokens that may end after any byte. PARENTS may end only after a slash.
        self._may_leave = stars | rest_bits
        self._anywhere = self._with_skipped_stars(_bits_at(anywhere, at))
        self._initial = self._with_skipped_stars(_bits_at(starts, at)) | self._anywhere
        self._all_ends = _bits_at(list(self._ends), at)
        self._state_bytes = _STATE_BYTES + at // 8

    def find(self, path: bytes) -> T:
        """Return the value that `answer` computes for a path. The path has no slash at its beginning or end."""
        cut = path.rfind(b"/") + 1
        state = self._enter_directory(path[:cut])
        for byte in path[cut:]:
            state = state[byte]
        return state.answer

    def _enter_directory(self, directory: bytes) -> _GlobState[T]:
        """Return the state after a directory and its slash.

        The state of the last directory is cached, because callers request the files of a directory one after the other.
        """
        entered, state = self._last_entered
        if entered != directory:
            if not directory.startswith(entered):
                entered, state = b"", self._start
            for byte in directory[len(entered) :]:
                state = state[byte]
            self._last_entered = (directory, state)
        return state

    def next_state(self, bits: int, byte: int) -> _GlobState[T]:
        """Return the state that follows the state `bits` after one more byte."""
        state_bits = self._advance_bits(bits, byte)
        state = self._states.get(state_bits)
        if state is None:
            self.cached_bytes += self._state_bytes
            if self.cached_bytes > _CACHED_BYTES_MAX:
                self._clear_states()
            state = self._states[state_bits] = _GlobState(self, state_bits)
        self.cached_bytes += 100  # An estimate for the entry in the previous state.
        return state

    def accepted_value(self, bits: int) -> T:
        """Return the value for a path that ends in the state `bits`."""
        return self._answer(self._ends[place] for place in _iter_bits_from_last(bits & self._all_ends))

    def _advance_bits(self, bits: int, byte: int) -> int:
        stay = bits & (self._loops_at_slash if byte == _SLASH else self._loops_in_name)
        moved = self._with_skipped_stars((bits & self._token_bits_matching(byte) | stay & self._may_leave) << 1) | stay
        return moved | self._anywhere if byte == _SLASH else moved

    def _with_skipped_stars(self, bits: int) -> int:
        """Return `bits` with additional positions: those behind tokens that may match nothing.

        At most two such tokens are adjacent.
        """
        bits |= (bits & self._loops_in_name) << 1
        return bits | (bits & self._loops_in_name) << 1

    def _token_bits_matching(self, byte: int) -> int:
        accepted = self._accepted.get(byte)
        if accepted is None:
            accepted = self._literals.get(byte, 0) | (self._parents if byte == _SLASH else 0)
            for members, places in self._sets:
                if byte in members:
                    accepted |= places
            self._accepted[byte] = accepted
        return accepted

    def _clear_states(self) -> None:
        for state in self._states.values():
            state.clear()
        self._start.clear()
        self._states = {}
        self.cached_bytes = 0


class _GlobState(dict[int, "_GlobState[T]"], Generic[T]):
    """A state of the automaton: its bit vector, and the next state for each byte, created on first use."""

    __slots__ = ("_answer", "_bits", "_globs")

    def __init__(self, globs: GlobSet[T], bits: int) -> None:
        super().__init__()
        self._globs = globs
        self._bits = bits

    def __missing__(self, byte: int) -> _GlobState[T]:
        after = self._globs.next_state(self._bits, byte)
        self[byte] = after
        return after

    def __bool__(self) -> bool:
        return True

    @property
    def answer(self) -> T:
        """The value for a path that ends in this state, computed on first use."""
        try:
            return self._answer
        except AttributeError:
            self._answer: T = self._globs.accepted_value(self._bits)
            return self._answer


def _bits_at(places: Iterable[int], width: int) -> int:
    row = bytearray(width // 8 + 1)
    for place in places:
        row[place >> 3] |= 1 << (place & 7)
    return int.from_bytes(row, "little")


def _iter_bits_from_last(bits: int) -> Iterator[int]:
    row = bits.to_bytes(bits.bit_length() // 8 + 1, "big")
    for match in _NONZERO_BYTE.finditer(row):
        place = (len(row) - 1 - match.start()) * 8
        yield from (place + bit for bit in range(7, -1, -1) if match[0][0] >> bit & 1)
