"""Patterns and rewrites of Python."""

from __future__ import annotations

import re
from collections.abc import Mapping

from codebatch_workers.syntax.patterns.language_patterns import NO_CONTEXT, CodeLiteral, LanguagePatterns, RuleExample
from codebatch_workers.syntax.patterns.literals import find_line_break, without_brackets
from codebatch_workers.syntax.python_versions import ANY_CODE_IN_STRINGS, PYTHON_CONTEXT

_PREFIX = re.compile(rb"[a-zA-Z]*")


def _find_forbidden(code: bytes, literal: bytes, contexts: Mapping[str, bytes]) -> str:
    """In an f-string, `:=` begins the format of the value. Older versions of Python also forbid other code."""
    walrus = "`:=` outside of parentheses there" if b":=" in without_brackets(code) else ""
    if contexts.get(PYTHON_CONTEXT) == ANY_CODE_IN_STRINGS:
        return walrus
    quote = literal[_PREFIX.match(literal).end() :][:3]  # type: ignore[union-attr]  # The pattern always matches.
    is_long = quote in (b'"""', b"'''")
    if (quote if is_long else quote[:1]) in code:
        forbidden = "its own quotation mark there"
    elif b"\\" in code:
        forbidden = "a backslash there"
    elif b"#" in code:
        forbidden = "a comment or `#` there"
    elif walrus:
        return walrus
    else:
        forbidden = find_line_break(code, b"" if is_long else literal, contexts)
    return f"{forbidden} before Python 3.12" if forbidden else ""


PATTERNS = {
    "python": LanguagePatterns(
        example=RuleExample("print($$$)", "print is left in the code", "print(1)\n", "log.print(1)\n"),
        contexts=(NO_CONTEXT, ("", "\ndef f(): pass"), ("try:\n    pass\n", "")),
        blocks=frozenset({"module", "block"}),
        has_parentheses=True,
        literal=CodeLiteral("string", _find_forbidden),
    )
}
