"""Valid Swift that the grammar does not support."""

from __future__ import annotations

from codebatch_workers.syntax.grammar_gaps.stand_ins import blanks_for, make_gap, make_gaps, padded_text
from codebatch_workers.syntax.language_gaps import GapFinder, LanguageGaps

_GAPS: tuple[GapFinder, ...] = (
    *make_gaps(
        blanks_for,
        # Lifetimes, and modifiers of parameters and methods whose names still begin with an underscore.
        rb"(@_?lifetime\((?:[^()\n]|\([^()\n]*\))*\))",
        rb"\b(__owned|__shared|__consuming)(?=\s)",
        rb"(?:->|:)\s*(sending)(?=\s+\w)",
        rb"(@_specialize\((?:[^()\n]|\([^()\n]*\))*\))",
        rb"\b(consume|copy)(?=[ \t]+[A-Za-z_]\w*\s*[{).,\n])",
        rb"\b(borrowing)(?=\s+get\b)",
        rb"\b(nonisolated\(unsafe\))(?=\s+(?:let|var)\b)",
        # A constraint on a type alias; an enum case with empty parentheses.
        rb"\btypealias\b[^\n{]*?\s(where\b[^\n{]*)$",
        rb"\bcase\s+\.\w+(\(\))(?=\s*[:,])",
        needs=(
            b"lifetime",
            b"__",
            b"sending",
            b"@_spec",
            b"consume",
            b"copy",
            b"typealias",
            b"()",
            b"borrowing",
            b"nonisolated(",
        ),
    ),
    make_gap(rb"\b(_(?:runtime|pointerBitWidth)\(\w+\))", padded_text(b"os(A)"), needs=(b"_runtime(", b"BitWidth(")),
    make_gap(rb"\bassociatedtype\s+\w+\s*:\s*[\w.]+\s*(,)(?=\s*\w)", lambda _: b"&", needs=(b"associatedtype",)),
    # The two kinds of accessors of Swift 6: for reading, and for writing.
    make_gap(rb"(?:^|[{}])[ \t]*(unsafeAddress|borrow)(?=\s*[{}]|\s+mutate\b)", padded_text(b"get")),
    make_gap(rb"(?:^|[{}]|\bborrow)[ \t]*(unsafeMutableAddress|mutate)(?=\s*[{}])", padded_text(b"set")),
    make_gap(rb"[)}\w]([ \t]+;)", lambda text: b";".ljust(len(text))),
    # The empty tuple as a value: `.success(())`.
    make_gap(rb"[(:,]\s*(\(\))(?=\s*[,)])", lambda _: b"00"),
    make_gap(rb"(?:^|\b(?:return|in)\b|[=:{])[ \t]*(\(\))(?=[ \t]*(?:$|//|[};)]))", lambda _: b"00"),
    make_gap(rb"^[ \t]*(#(?:error|warning)\([^\n]*\))"),
)

GAPS = {"swift": LanguageGaps(finders=_GAPS)}
