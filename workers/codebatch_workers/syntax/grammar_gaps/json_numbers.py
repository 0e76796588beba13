"""Valid JSON that the grammar does not support: the plus sign of an exponent."""

from __future__ import annotations

from codebatch_workers.syntax.grammar_gaps.stand_ins import GapFinder, make_gap

JSON_GAPS: tuple[GapFinder, ...] = (make_gap(rb"[0-9][eE](\+)(?=[0-9])", lambda _: b"0", needs=(b"e+", b"E+")),)
