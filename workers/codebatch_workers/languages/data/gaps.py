"""Valid JSON, TOML and YAML that the grammars do not support.

TOML can be version 1.1. In TOML 1.0, blanks can be between a backslash and a line end. For YAML, this is text that the
specification forbids, but that every loader accepts.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from tree_sitter import Node

from codebatch_workers.languages.data.json_commas import find_accepted, trailing_commas
from codebatch_workers.syntax.grammar_gaps.stand_ins import make_gap
from codebatch_workers.syntax.language_gaps import GapFinder, LanguageGaps, Replacement

_TOML_TOKEN = re.compile(
    rb"\"\"\"(?:[^\\]|\\.)*?(?:\"{3,5}|\Z)|'''.*?(?:'{3,5}|\Z)|\"(?:[^\"\\\n]|\\.)*\"|'[^'\n]*'|#[^\n]*|[\[\]{},\n]",
    re.DOTALL,
)
_OPENING_END = re.compile(rb"[{,]\s*\Z")
_BLANKS_MAX = 200
_BLANKS_OR_COMMENTS = re.compile(rb"\s*(?:#[^\n]*\n\s*)*")


def _inline_table_replacements(utf8: bytes) -> Iterator[Replacement]:
    """Yield replacements for line ends, comments and trailing commas within inline tables: blanks."""
    opened: list[bytes] = []
    comma: Replacement | None = None
    for match in _TOML_TOKEN.finditer(utf8) if b"{" in utf8 else ():
        token = match[0]
        is_in_table = opened[-1:] == [b"{"]
        if token == b"\n" or token[:1] == b"#":
            if is_in_table:
                yield Replacement(match.start(), b" " * len(token))
            continue
        is_last = token == b"}" and is_in_table and comma is not None
        if is_last and comma is not None and _BLANKS_OR_COMMENTS.fullmatch(utf8, comma.start + 1, match.start()):
            yield comma
        if token in (b"[", b"{"):
            opened.append(token)
        elif token in (b"]", b"}") and opened:
            opened.pop()
        is_behind_value = token == b"," and not _OPENING_END.search(
            utf8, max(0, match.start() - _BLANKS_MAX), match.start()
        )
        comma = Replacement(match.start(), b" ") if is_behind_value else None


def _backslash_at_end(text: bytes) -> bytes:
    return b"\\".rjust(len(text))


_TOML_GAPS: tuple[GapFinder, ...] = (
    make_gap(rb"(\\[ \t]+)(?=\r?$)", _backslash_at_end, needs=(b"\\",)),
    make_gap(rb"(?<!\\)(?:\\\\)*(\\e|\\x[0-9A-Fa-f]{2})", lambda text: b"\\t".ljust(len(text), b"_"), needs=(b"\\",)),
    # A time without seconds.
    make_gap(
        rb"[=\[,][ \t\r\n]*((?:\d{4}-\d\d-\d\d[Tt ])?\d\d:\d\d(?:[Zz]|[+-]\d\d:\d\d)?)(?![:\d.])",
        lambda text: b"1" * len(text),
        needs=(b":",),
    ),
    _inline_table_replacements,
)

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


_JSON_KEY = re.compile(rb"\"[^\"\n]{0,200}\"\s*:")
_JAVASCRIPT_KEY = re.compile(rb"[{,]\s*(?:[A-Za-z_$][\w$]{0,200}|'[^'\n]{0,200}')\s*:")


def _is_javascript_object(_path: bytes, utf8: bytes, _root: Node) -> bool:
    """Return whether a text with errors is probably a JavaScript object: no key is in double quotes."""
    return _JAVASCRIPT_KEY.search(utf8) is not None and _JSON_KEY.search(utf8) is None


# The plus sign of an exponent.
_JSON_GAPS: tuple[GapFinder, ...] = (make_gap(rb"[0-9][eE](\+)(?=[0-9])", lambda _: b"0", needs=(b"e+", b"E+")),)

GAPS = {
    "json": LanguageGaps(finders=_JSON_GAPS, has_expected_errors=_is_javascript_object, accepted_errors=find_accepted),
    "jsonc": LanguageGaps(
        finders=_JSON_GAPS,
        has_expected_errors=_is_javascript_object,
        accepted_errors=lambda _path, _has_comments, errors: (trailing_commas(errors), True),
    ),
    "toml": LanguageGaps(finders=_TOML_GAPS),
    "yaml": LanguageGaps(finders=(_unindented_quote_replacements,)),
}
