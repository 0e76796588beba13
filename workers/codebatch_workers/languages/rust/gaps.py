"""Valid Rust that the grammar does not support."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from codebatch_workers.syntax.grammar_gaps.stand_ins import blanks_for, iter_closed, make_gap, make_gaps, name_for
from codebatch_workers.syntax.language_gaps import GapFinder, LanguageGaps, Replacement

_BRACKET_TOKENS = rb"#\[|[()\[\]{}]|//[^\n]*"
_TOKENS_AND_TEXTS = re.compile(rb"%s|\"[^\"\\]*(?:\\.[^\"\\]*)*(?:\"|(?P<open>\\?\Z))" % _BRACKET_TOKENS, re.DOTALL)
_TOKENS_WITHOUT_TEXTS = re.compile(_BRACKET_TOKENS)
_CLOSING_BRACKETS = {b"(": b")", b"[": b"]", b"{": b"}", b"#[": b"]"}
_ATTRIBUTE_PATH = re.compile(rb"#\[\s*[\w:]+\s*[(\[{=\]]")
# The end of the code before an attribute that belongs to an expression, to a field in a value or pattern, or to a
# parameter.
_BEFORE_AN_OPERAND = re.compile(rb"(?:[(\[{,=|&+]|\breturn)\Z")
_LINES_BEFORE_MAX = 20
_BLANKS_MAX = 200


def _attribute_replacements(utf8: bytes) -> Iterator[Replacement]:
    """Yield replacements for attributes of operands: blanks. The grammar supports attributes only in some lists."""
    opened: list[tuple[bytes, int]] = []
    starts: dict[int, int] = {}
    for match in iter_closed(_TOKENS_AND_TEXTS, _TOKENS_WITHOUT_TEXTS, utf8):
        token = match[0]
        if token in _CLOSING_BRACKETS:
            opened.append((token, match.start()))
        elif len(token) == 1 and opened:
            opening, start = opened.pop()
            if _CLOSING_BRACKETS[opening] != token:
                opened.clear()
            elif opening == b"#[" and _ATTRIBUTE_PATH.match(utf8, start):
                starts[match.end()] = start
                if _BEFORE_AN_OPERAND.search(_code_before(utf8, start, starts)):
                    yield Replacement(start, blanks_for(utf8[start : match.end()]))


def _code_before(utf8: bytes, end: int, attributes: Mapping[int, int]) -> bytes:
    """Return the end of the last line of code before an offset. Attributes and comment lines are skipped.

    `attributes` maps the end of each attribute to its start.
    """
    line = b""
    for _ in range(_LINES_BEFORE_MAX):
        floor = max(0, end - _BLANKS_MAX)
        end = floor + len(utf8[floor:end].rstrip())
        start = utf8.rfind(b"\n", 0, end) + 1
        line = utf8[max(start, end - _BLANKS_MAX) : end]
        if end in attributes:
            end = attributes[end]
        elif line.lstrip().startswith(b"//"):
            end = start
        else:
            break
    return line


_TRAIT_ALIAS = re.compile(
    rb"^[ \t]*(?:\w+(?:\([^()\n]*\))?[ \t]+){0,3}trait\s+\w+[^;{}=]{0,300}?(=)[^;{}]{0,900}(;\s)", re.MULTILINE
)


def _trait_alias_replacements(utf8: bytes) -> Iterator[Replacement]:
    """Yield replacements that turn `trait A = B;` into a trait with the base `B` and an empty body."""
    for match in _TRAIT_ALIAS.finditer(utf8):
        yield Replacement(match.start(1), b":")
        yield Replacement(match.start(2), b"{}")


_NUMBER_TYPES = rb"[iu](?:8|16|32|64|128|size)|f(?:16|32|64|128)"

_GAPS: tuple[GapFinder, ...] = (
    # `unsafe mod a`, which is valid as the input of a macro.
    make_gap(rb"\b(unsafe)(?=\s+mod\b)", needs=(b"unsafe",)),
    # In the edition of 2015, `try` is a name. Names of primitive types can also name other things.
    *make_gaps(
        name_for,
        rb"\b(try)(?=\s*!\s*[(\[{])",
        rb"\bmacro_rules!\s*(try)\b",
        rb"(?<!#)\b(try|async|await|dyn)(?=\s*(?:[,;=)|:]|\(\s*\)\s*(?:[;.)]|->)))",
        rb"\b(bool|char|str|%s)(?=\s*(?:@|![ \t]*[(\[{]))" % _NUMBER_TYPES,
        rb"\b(auto|default|gen|safe|union)(?=\s*[:;,)=(.|])",
    ),
    make_gap(rb"\bmacro_rules(\s+!)", lambda text: b"!" + blanks_for(text[1:])),
    _attribute_replacements,
    *make_gaps(
        blanks_for,
        # `A<B::<C>>` as a type, `f::<-1>`, `|a, b,|`, `S { a, .. } = b`, `S<>`.
        rb"<[\w:]*\w(::)(?=<)",
        rb"\w(::<[^<>;{}()]*>)(?=\s*\{)",
        rb"[<,]\s*(-)(?=\s*\d)",
        rb"(,)(?=\s*\|)",
        # Parameters without bounds, as in `S<A:>`, and white space beyond ASCII.
        rb"[<,]\s*'?\w+\s*(:)(?=\s*(?:/\*[^*]*\*/\s*)?[,>])",
        rb"(\xe2\x80[\x8e\x8f\xa8\xa9]|\xc2\x85)",
        rb"(\.\.)(?=\s*\})",
        rb"(<\s*>)",
        # `struct A where B: C;`
        rb"\bstruct\s+\w+[^;{}()=]{0,300}?\b(where\b[^;{}]{0,900})(?=;)",
        # `dyn 'a + B`, `for<'a> B<'a>`, `for<'a> |b| c`
        rb"\b(?:dyn|impl)\s+('\w+\s*\+)",
        rb"\b(for\s*<\s*'[^<>]*>)",
        # Contextual keywords.
        rb"\b(safe)(?=\s+(?:fn|static)\b)",
        rb"\b(async)(?=\s+Fn(?:Mut|Once)?\b)",
        # Unstable syntax that rustc parses.
        rb"\b(box)(?=\s+[\w&(])",
        rb"\b(default)(?=\s+(?:unsafe|async|const|type|impl|fn)\b)",
        rb"\b(const)(?=\s+(?:unsafe\s+)?(?:auto\s+)?(?:trait|impl)\b)",
        rb"\b(?:impl|dyn)\s+(const)\b",
        rb"(~\s*const|\[const\])(?=\s+[\w:])",
        rb"\b(auto)(?=\s+trait\b)",
        rb"\b(gen)(?=\s*(?:\{|move\b|fn\b))",
        rb"\b(super)(?=\s+let\b)",
        rb"\b(type)(?=\s+const\b)",
        rb"\basync\s+(use)(?=\s*[|{])",
        rb"\b(const|static)(?=\s+(?:async\s+)?(?:move\s+)?\|)",
        rb"[{,]\s*(?:pub\s+)?(unsafe)(?=\s+\w+\s*:)",
        rb"\b(unsafe)(?=\s+static\b)",
        rb"\A(?:#![^\n]*\n)?\s*(---+[^\n]*\n(?:[^\n]*\n)*?---+)[ \t]*$",
    ),
    _trait_alias_replacements,
    # `Fn(&_)`, `where [A; N]: {`.
    make_gap(rb"[(,]\s*&?(_)(?=\s*[,)])", lambda _: b"T"),
    make_gap(rb"[\])](:\s)(?=\s*\{)", lambda _: b":T"),
    # Tuple fields by number: `S { 0: a }`.
    make_gap(rb"[{,]\s*(\d+)(?=\s*:(?!:))", lambda number: b"f" * len(number)),
    make_gap(rb"\b(become|do\s+yeet)\b", lambda text: b"return".ljust(len(text))),
    make_gap(rb"\d(f16|f128)\b", lambda suffix: b"f64".ljust(len(suffix))),
    # The type `()` at the start of a bound.
    make_gap(rb"(?:\bwhere|,)\s*\[?(\(\))(?=\s*[:;])", lambda _: b"__"),
)

GAPS = {
    "rust": LanguageGaps(
        finders=_GAPS,
        # In these nodes, Rust allows any tokens with balanced brackets and closed strings. The grammar supports only
        # some of these tokens.
        macro_nodes=frozenset({"token_tree", "token_tree_pattern", "token_repetition", "token_repetition_pattern"}),
        macro_tokens=re.compile(rb"[\w\s$~@#?!.,;:=+*/%^&|<>-]*\Z"),
    )
}
