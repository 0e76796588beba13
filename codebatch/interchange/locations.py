"""Paths and messages in exports. Both come from untrusted trees, so they may contain any characters."""

from __future__ import annotations

import re
from urllib.parse import quote

from codebatch.model.entry import display_path

# Characters that control a terminal, end a line, or are invisible.
_CONTROL_CHARACTERS = re.compile("[\x00-\x09\x0b\x0c\x0e-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]")


def path_uri(path: bytes) -> str:
    """Return a path as a relative URI (RFC 3986). Bytes that are not allowed in a URI path are percent-encoded.

    The colon and every byte that is not ASCII are encoded too. Decoding the URI returns the same bytes.
    """
    return quote(path, safe="/!$&'()*+,;=@")


def path_text(path: bytes) -> str:
    r"""Return a path as text, for formats that cannot contain arbitrary bytes.

    Bytes that are not valid UTF-8 become backslash escapes, such as `caf\xe9.py`.
    """
    return display_path(path)


def printable_text(text: str) -> str:
    r"""Return a text in which control characters and invisible characters are escaped, such as `\x1b`.

    LF and CR stay.
    """
    return _CONTROL_CHARACTERS.sub(lambda match: match[0].encode("unicode_escape").decode("ascii"), text)
