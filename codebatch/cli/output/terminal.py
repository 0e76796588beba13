"""Text of unknown origin on a terminal: names and messages come from trees that are not trusted.

Lines for people are made `printable` where they are made, whatever they go to. Whatever goes to a terminal is made
`harmless` besides, by the streams themselves (streams.py): no path from data to a terminal leads around that.
"""

from __future__ import annotations

import re

# C0, DEL and C1 steer a terminal or end a line; so do Zl and Zp; what is of Cf cannot be seen, or makes a line read
# otherwise. Asked of unicodedata for every character of a line it would cost more than the line.
_UNSEEN = (
    "[\x00-\x1f\x7f-\x9f\xad\u0600-\u0605\u061c\u06dd\u070f\u0890\u0891\u08e2\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f"
    "\ufeff\ufff9-\ufffb\U000110bd\U000110cd\U00013430-\U0001343f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
    "\U000e0001\U000e0020-\U000e007f]"
)


_STEERING = f"(?!\t|\n|\r\n){_UNSEEN}"


def harmless(text: str, *, in_json: bool = False) -> str:
    """Return text whose only control characters are tabs and ends of lines; all others are shown as escapes.

    `in_json`: the escapes are those of JSON, so that JSON stays what it is.
    """
    if text.isascii() and text.isprintable():
        return text
    return re.sub(_STEERING, _escape_of_json if in_json else _escape, text)


def _escape(match: re.Match[str]) -> str:
    return match[0].encode("unicode_escape").decode("ascii")


def _escape_of_json(match: re.Match[str]) -> str:
    units = match[0].encode("utf-16-be").hex()
    return "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4))


def printable(line: str) -> str:
    """One line for people. Characters that would steer a terminal or hide what is written are shown as escapes."""
    if line.isascii() and line.isprintable():
        return line  # Nearly every one.
    return re.sub(_UNSEEN, _escape, line)
