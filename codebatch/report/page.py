"""The page of a report: one HTML file that makes no network requests and contains text of the tree only as data.

The data is JSON in which all characters that could end its element or start markup are escaped. The
Content-Security-Policy allows only the script and style of the page, by their hashes, and no loading of resources.
"""

from __future__ import annotations

import base64
import hashlib
import re
from importlib.resources import files

import msgspec

from codebatch.report.contents import ReportContents

_SLOT = re.compile(r"\{\{(\w+)\}\}")
_ESCAPES = {character: f"\\u{ord(character):04x}".encode() for character in "<>&\u2028\u2029"}


def encode_page(contents: ReportContents) -> bytes:
    """Return the page. The same contents give the same bytes."""
    style, script = _part("style.css"), _part("view.js")
    filled = {
        "style": style,
        "style_hash": _hash(style),
        "script": script,
        "script_hash": _hash(script),
        "data": encode_data(contents).decode(),
    }
    return _SLOT.sub(lambda slot: filled[slot[1]], _part("page.html")).encode()


def encode_data(contents: ReportContents) -> bytes:
    """Return contents as JSON for an HTML element: characters that could end the element or start markup are
    escaped.
    """
    encoded = msgspec.json.encode(contents)
    for character, escape in _ESCAPES.items():
        encoded = encoded.replace(character.encode(), escape)  # These characters occur only in JSON strings.
    return encoded


def _part(name: str) -> str:
    return (files("codebatch.report") / name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    digest = hashlib.sha256(text.encode()).digest()
    return f"sha256-{base64.b64encode(digest).decode('ascii')}"
