"""Valid TOML that the grammar does not support: TOML 1.1, and blanks between a backslash and a line end in TOML 1.0."""

from __future__ import annotations

import re
from collections.abc import Iterator

from codebatch_workers.syntax.grammar_gaps.stand_ins import GapFinder, Replacement, make_gap

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


TOML_GAPS: tuple[GapFinder, ...] = (
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
