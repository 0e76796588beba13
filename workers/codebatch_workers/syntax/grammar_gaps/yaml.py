"""YAML that the specification forbids but every loader accepts."""

from __future__ import annotations

import re
from collections.abc import Iterator

from codebatch_workers.syntax.grammar_gaps.stand_ins import Gap, Replacement

# A quoted value of a key. Its length is bounded, because an unterminated quote does not begin a value.
_QUOTED = re.compile(
    rb"(?m)^[ \t]*(?:-[ \t]+)*[\w.\"'-]+:[ \t]+"
    rb"(?:\"(?:[^\"\\]|\\.){1,1000}?\"|'(?:[^']|''){1,1000}?')"
    rb"[ \t]*(?:#[^\n]*)?$",
    re.DOTALL,
)


def _unindented(utf8: bytes) -> Iterator[Replacement]:
    """Yield blanks for the line ends in quoted values. Their lines may be indented no deeper than the key."""
    for match in _QUOTED.finditer(utf8):
        for end in re.finditer(rb"\n", match[0]):
            yield Replacement(match.start() + end.start(), b" ")


YAML_GAPS: tuple[Gap, ...] = (_unindented,)
