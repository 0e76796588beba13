"""Facts about a language that are needed only if a tree has errors."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import ClassVar, NamedTuple

from tree_sitter import Node

from codebatch_workers.syntax.language.parts import LanguagePart


class Replacement(NamedTuple):
    """Bytes that replace an equal number of bytes of a text, from the offset `start`."""

    start: int
    text: bytes

    def moved_by(self, by: int) -> Replacement:
        """Return the same replacement for a text in which it begins `by` bytes later."""
        return Replacement(self.start + by, self.text)


# A function that yields replacements for one kind of unsupported code, at all places of a text.
GapFinder = Callable[[bytes], Iterator[Replacement]]


class LanguageGaps(LanguagePart, frozen=True, kw_only=True):
    """Valid code that the grammar of a language does not support, and errors in a tree that are none in the file.

    - `finders`: the gaps for which replacements are tried (`grammar_gaps/gaps.py`).
    - `is_false_missing`: returns whether a missing node is not an error, given the node and the root. The text near
      such a node must be read from the root.
    - `macro_nodes`: the types of nodes in which errors that consist only of `macro_tokens` are valid.
    - `has_expected_errors`: returns whether a file with errors is valid text of another kind, given its path, text and
      root. For example, it is one part of a program.
    - `accepted_errors`: returns those errors that readers of a file may accept, and whether they certainly do, given
      its path, whether it has comments, and its errors.
    """

    MODULE: ClassVar[str] = "gaps"

    finders: tuple[GapFinder, ...] = ()
    is_false_missing: Callable[[Node, Node], bool] | None = None
    macro_nodes: frozenset[str] = frozenset()
    macro_tokens: re.Pattern[bytes] | None = None
    has_expected_errors: Callable[[bytes, bytes, Node], bool] | None = None
    accepted_errors: Callable[[bytes, bool, Sequence[Node]], tuple[list[Node], bool]] | None = None
