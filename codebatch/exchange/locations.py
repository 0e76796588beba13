"""How paths and messages are said to other programs: both come from trees that nobody vouches for."""

from __future__ import annotations

import re
from urllib.parse import quote

from codebatch.model.entry import display_path

# Characters that steer a terminal, end a line, or cannot be seen.
_STEERING = re.compile("[\x00-\x09\x0b\x0c\x0e-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]")


def uri_of(path: bytes) -> str:
    """A path as a relative URI (RFC 3986): each byte that is not plain is percent-encoded, so none is lost."""
    return quote(path, safe="/!$&'()*+,;=@")


def text_of(path: bytes) -> str:
    r"""A path as text, for forms that know no bytes: what is no UTF-8 as people are shown it, such as `caf\xe9.py`."""
    return display_path(path)


def printable_text(text: str) -> str:
    r"""A text of which nothing steers a terminal, but for ends of lines; the rest as escapes, such as `\x1b`."""
    return _STEERING.sub(lambda match: match[0].encode("unicode_escape").decode("ascii"), text)
