"""YAML that the specification forbids, but that every loader accepts."""

from __future__ import annotations

import re
from collections.abc import Iterator

from codebatch_workers.syntax.grammar_gaps.stand_ins import GapFinder, Replacement

# A quoted value of a key. The length of the value is bounded, because an unterminated quote does not begin a value.
_QUOTED_VALUE = re.compile(
    rb"(?m)^[ \t]*(?:-[ \t]+)*[\w.\"'-]+:[ \t]+"
    rb"(?:\"(?:[^\"\\]|\\.){1,1000}?\"|'(?:[^']|''){1,1000}?')"
    rb"[ \t]*(?:#[^\n]*)?$",
    re.DOTALL,
)


def _unindented_quote_replacements(utf8: bytes) -> Iterator[Replacement]:
    """Yield replacements for line ends in quoted values: blanks.

    In such a value, lines after the first can be indented no deeper than the key, which the specification forbids.
    """
    for match in _QUOTED_VALUE.finditer(utf8):
        for end in re.finditer(rb"\n", match[0]):
            yield Replacement(match.start() + end.start(), b" ")


YAML_GAPS: tuple[GapFinder, ...] = (_unindented_quote_replacements,)
