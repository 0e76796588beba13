"""Valid Java that the grammar does not support, and the gaps of all languages of the family."""

from __future__ import annotations

from codebatch_workers.languages.jvm.kotlin_gaps import KOTLIN_GAPS
from codebatch_workers.syntax.grammar_gaps.stand_ins import blanks_for, make_gap, make_gaps, name_for
from codebatch_workers.syntax.language_gaps import GapFinder, LanguageGaps

_JAVA_ANNOTATION = rb"@[\w.]+(?:\([^()]*\))?"
_JAVA_PATTERN = rb"[\w.]+(?:\s*\([^;{}:]*?\)(?:\s*\w+)?|\s+\w+)"

_JAVA_GAPS: tuple[GapFinder, ...] = (
    make_gap(rb"(%s)\s*\.\.\." % _JAVA_ANNOTATION),
    *make_gaps(
        blanks_for,
        # `case final T x`, `case @A T x`.
        rb"\bcase\s+((?:(?:final|%s)\s+)+)" % _JAVA_ANNOTATION,
        # `import module a.b;`
        rb"\bimport\s+(module)(?=\s+[\w.]+\s*;)",
        # `case P(_), Q _ ->`: all patterns after the first.
        rb"\bcase\s+%s\s*(,\s*%s[^;{}:]*?)(?=\s*(?:->|:|\bwhen\b))" % (_JAVA_PATTERN, _JAVA_PATTERN),
    ),
    # `o instanceof Q.R(T t)`, `case Q.R(Q.R(T t))`: record patterns with qualified names.
    make_gap(rb"\b((?:\w+\.)+)(?=[A-Z_]\w*\s*\()", preceded_by=rb"\b(?:instanceof|case)\b[^;{}]*"),
    # After other statements, `this(…)` and `super(…)` are parsed as method calls.
    make_gap(rb"\b(this|super)(?=\s*\()", name_for),
    make_gap(rb"\b0(_+)(?=[0-7])", lambda digits: b"0" * len(digits)),
)

GAPS = {
    "java": LanguageGaps(finders=_JAVA_GAPS),
    "kotlin": LanguageGaps(finders=KOTLIN_GAPS),
}
