"""Valid C and C++ that the grammars do not support: C23, GNU C, C++20 to C++26, and macros outside function heads."""

from __future__ import annotations

from codebatch_workers.syntax.grammar_gaps.stand_ins import blanks_for, make_gap, make_gaps, padded_text
from codebatch_workers.syntax.language_gaps import GapFinder, LanguageGaps

_MACRO_NAME = rb"[A-Z_][A-Z0-9_]{2,}"
_FIELD_TYPE = rb"(?:bool|char|int|long|short|signed|unsigned|\w+_t)"

_COMMON_GAPS: tuple[GapFinder, ...] = (
    *make_gaps(
        blanks_for,
        # Unnamed bit-fields.
        rb"(,\s*:\s*\w+)(?=\s*[,;])",
        rb"\b%s\s*(:\s*\w+)(?=\s*;)" % _FIELD_TYPE,
        rb"\b(_Complex|_Thread_local|_Imaginary)\b",
        rb"\b(_Atomic\s*\()[^()]*(\))",
        rb"\b(?:struct|union|enum)\s*(\[\[[^\[\]]*\]\])",
        rb"\benum(?:\s+\w+)?\s*(:\s*[\w ]+?)(?=\s*[{;])",
        # A label at the end of a block, a range of cases, a computed goto.
        rb"[;{}]\s*([A-Za-z_]\w*\s*:)(?=\s*\})",
        rb"\bcase\s+[^:;\n]+?(\.\.\.\s*[^:;\n]+?)(?=\s*:)",
        rb"\bgoto\s*(\*)",
        # Macros that are statements, or that are after a parameter, a function head or a star.
        rb"^(%s\([^(){};\n]*\))[ \t]*$" % _MACRO_NAME,
        rb"\b(?!(?:const|enum|struct|union|unsigned|volatile)\b)\w+[ \t*]+\w+[ \t]+(%s)(?=\s*[,)])" % _MACRO_NAME,
        rb"\)\s*(?:const\s*)?(%s(?:\([^()]*\))?)(?=\s*(?:const\s*)?[;{])" % _MACRO_NAME,
        rb"\*\s*([A-Za-z_]\w*)(?=[ \t]+[A-Za-z_]\w*\s*[,)\[])",
        # `typedef T (CALLBACK *f)(U);`
        rb"\(\s*([A-Za-z_]\w*)(?=\s+\*\s*\w+\s*\)\s*\()",
        # Macros that expand to strings, next to other strings. The first macro stays as the value. Blanks replace all
        # strings and macros after it.
        rb'=\s*%s((?:\s+(?:[A-Za-z_]\w*|"(?:[^"\\\n]|\\.)*"))+)(?=\s*[;,}])' % rb"[A-Z_]\w+",
    ),
    make_gap(rb"\b(auto)(?=\s+(?:const\s+)?[A-Za-z_]\w*\s*=)", padded_text(b"int")),
    make_gap(rb"^[ \t]*(#[ \t]*embed\b[^\n]*)$", lambda text: b"0".ljust(len(text))),
)

_C_GAPS: tuple[GapFinder, ...] = (
    *_COMMON_GAPS,
    # `TAILQ_FOREACH(a, b, c) {` becomes a loop.
    make_gap(
        rb"^[ \t]+((?!(?:do|else|for|if|return|switch|while)\b)[A-Za-z_]\w{4,})(?=[ \t]*\([^;{}]*\)\s*\{)",
        lambda name: b"while".ljust(len(name)),
    ),
)

_CPP_GAPS: tuple[GapFinder, ...] = (
    *_COMMON_GAPS,
    *make_gaps(
        blanks_for,
        # `f(this S &&self)`, `= delete("why")`, `T...[0]`.
        rb"\(\s*(this)(?=\s+[\w:])",
        rb"=\s*delete\s*(\([^()]*\))",
        rb"(\.\.\.\s*\[[^\[\]]*\])",
        # Qt: `public slots:`.
        rb"\b(?:public|private|protected)[ \t]+(\w+)[ \t]*(?=:)",
        rb"\b\w+[ \t]+\w+[ \t]*(:[ \t]*\d+)(?=[ \t]*(?:=|\{))",
    ),
    make_gap(rb"^[ \t]*((?:Q_)?(?:SIGNALS|signals))(?=[ \t]*:)", lambda text: b"public".ljust(len(text))),
    make_gap(rb"\bif\s+((?:!|not\b)?\s*consteval)(?=\s*\{)", lambda text: b"(1)".ljust(len(text))),
    # `[] mutable {`.
    make_gap(
        rb"\[[^\[\]\n]*\]\s*(mutable|noexcept|constexpr|static)(?=\s*(?:->|\{))",
        lambda text: b"()".ljust(len(text)),
    ),
    # The initializer `{.x{1}}` becomes `{.x=1 }`. The equivalent `{.x={1}}` would be one character longer.
    make_gap(rb"[{,]\s*\.\w+(\{)[^{}]*(\})", lambda bracket: b"=" if bracket == b"{" else b" "),
    # `(a->*f)(b)`.
    make_gap(rb"\w\s*(->\s*\*)(?=\s*\w)", lambda text: b"->".ljust(len(text))),
    make_gap(rb"\w\s*(\.\s*\*)(?=\s*\w)", lambda text: b".".ljust(len(text))),
)

GAPS = {
    "c": LanguageGaps(finders=_C_GAPS),
    "cpp": LanguageGaps(finders=_CPP_GAPS),
}
