"""Text of unknown origin on a terminal: names and messages come from trees that nobody vouches for."""

from __future__ import annotations

import re

# C0, DEL and C1 steer a terminal or end a line; the separators and the marks of direction make a line read otherwise.
_UNSEEN = re.compile("[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]")


def printable(line: str) -> str:
    """One line for people. Characters that would steer a terminal or hide what is written are shown as escapes."""
    return _UNSEEN.sub(lambda match: match[0].encode("unicode_escape").decode("ascii"), line)
