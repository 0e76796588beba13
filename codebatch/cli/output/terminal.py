"""Escapes for text on terminals. Names and messages come from untrusted trees.

Lines for people pass through `printable_line` where they are created, wherever they are written. In addition, all
output to a terminal passes through `escape_controls` (streams.py). So all untrusted text on a terminal is escaped.
"""

from __future__ import annotations

import re

# C0, DEL and C1 control a terminal or end a line, and Zl and Zp end a line. Characters of Cf are invisible or reorder a
# line. To search with a regular expression is faster than to look up the category of each character.
_INVISIBLE_CHARACTER = (
    "[\x00-\x1f\x7f-\x9f\xad\u0600-\u0605\u061c\u06dd\u070f\u0890\u0891\u08e2\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f"
    "\ufeff\ufff9-\ufffb\U000110bd\U000110cd\U00013430-\U0001343f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
    "\U000e0001\U000e0020-\U000e007f]"
)


_CONTROL_CHARACTER = f"(?!\t|\n|\r\n){_INVISIBLE_CHARACTER}"


def escape_controls(text: str, *, in_json: bool = False) -> str:
    """Return a text with all control characters escaped, except tabs and line breaks.

    With `in_json`, the escapes are those of JSON, so that JSON stays valid and keeps its meaning.
    """
    if text.isascii() and text.isprintable():
        return text
    return re.sub(_CONTROL_CHARACTER, _escape_match_in_json if in_json else _escape_match, text)


def _escape_match(match: re.Match[str]) -> str:
    return match[0].encode("unicode_escape").decode("ascii")


def _escape_match_in_json(match: re.Match[str]) -> str:
    units = match[0].encode("utf-16-be").hex()
    return "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4))


def printable_line(line: str) -> str:
    """Return a line with all control and invisible characters escaped."""
    if line.isascii() and line.isprintable():
        return line  # Almost every line is plain ASCII.
    return re.sub(_INVISIBLE_CHARACTER, _escape_match, line)
