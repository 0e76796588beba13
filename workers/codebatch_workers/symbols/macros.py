"""The macros of a language with a preprocessor, which the grammar misparses.

The nodes that a tree has in a macro body are unreliable. So `outline` drops definitions in macro bodies, and finds
calls in them by their text.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import msgspec
from tree_sitter import Node


class MacroWord(NamedTuple):
    """A name in the body of a macro. `is_called` is true if `(` follows it, also after brackets: `(f)(x)`."""

    start: int
    end: int
    is_called: bool


class MacroDefinition(msgspec.Struct, frozen=True):
    """A `#define`, from its name to the end of its last line. `parameters` is None for an object-like macro."""

    start: int
    name_end: int
    end: int
    parameters: list[str] | None


class MacroRules(NamedTuple):
    """The functions that read the macros of a language.

    - `find_macros`: returns the macros that a text defines outside of comments, in text order.
    - `iter_words`: yields the names in the parameter list and the body of a macro, in text order.
    - `iter_calls`: yields the end offset and the chain of names of each call in the body of a macro. Calls of its
      parameters and of reserved words are left out.
    - `is_block`: returns whether a function definition can be the call of a macro with a block: `MACRO(name) {`.
    """

    find_macros: Callable[[bytes, Sequence[Node]], list[MacroDefinition]]
    iter_words: Callable[[MacroDefinition, bytes], Iterator[MacroWord]]
    iter_calls: Callable[[MacroDefinition, bytes, frozenset[bytes]], Iterator[tuple[int, str]]]
    is_block: Callable[[Node], bool]


class MacroBodies:
    """The ranges of macro bodies: from the end of each name to the end of the macro.

    `offset in bodies` tests an offset.
    """

    def __init__(self, definitions: Sequence[MacroDefinition]) -> None:
        self._starts = [macro.name_end for macro in definitions]
        self._ends = [macro.end for macro in definitions]

    def __bool__(self) -> bool:
        return bool(self._starts)

    def __contains__(self, offset: int) -> bool:
        index = bisect_right(self._starts, offset) - 1
        return index >= 0 and offset < self._ends[index]
