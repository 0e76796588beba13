"""Valid Go that the grammar does not support."""

from __future__ import annotations

from codebatch_workers.syntax.grammar_gaps.stand_ins import make_gap, name_for
from codebatch_workers.syntax.language_gaps import GapFinder, LanguageGaps

# The argument of `new` can also be a value (Go 1.26).
_GAPS: tuple[GapFinder, ...] = (
    make_gap(rb"\b(new)(?=\()", name_for),
    # A built-in function in parentheses, before a type: `(make)([]int, 0)`.
    make_gap(rb"(\()(?:make|new)(\))(?=\()", needs=(b"(make)", b"(new)")),
)

GAPS = {"go": LanguageGaps(finders=_GAPS)}
