"""What the grammar of YAML does not know, for the letter of YAML forbids it and every loader takes it."""

from __future__ import annotations

import re
from collections.abc import Iterator

from codebatch_workers.syntax.grammar_gaps.stand_ins import Gap, StandIn

# A value in quotes. What has no end soon is none.
_QUOTED = re.compile(
    rb"(?m)^[ \t]*(?:-[ \t]+)*[\w.\"'-]+:[ \t]+"
    rb"(?:\"(?:[^\"\\]|\\.){1,1000}?\"|'(?:[^']|''){1,1000}?')"
    rb"[ \t]*(?:#[^\n]*)?$",
    re.DOTALL,
)


def _unindented(utf8: bytes) -> Iterator[StandIn]:
    """The ends of lines in a quoted value, which goes on without being indented deeper than its key."""
    for match in _QUOTED.finditer(utf8):
        for end in re.finditer(rb"\n", match[0]):
            yield StandIn(match.start() + end.start(), b" ")


YAML_GAPS: tuple[Gap, ...] = (_unindented,)
