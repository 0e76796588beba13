"""The page of a report: one HTML file. It makes no network requests, and text of the analysed tree is only data in it.

The data is JSON. All characters that could end its HTML element or start markup are escaped. The
Content-Security-Policy allows only the script and the style of the page, identified by their hashes, and no other
resources.
"""

from __future__ import annotations

import base64
import hashlib
import re
from importlib.resources import files

import msgspec

from codebatch.report.contents import ReportContents

_TEMPLATE_SLOT = re.compile(r"\{\{(\w+)\}\}")
_JSON_ESCAPES = {character: f"\\u{ord(character):04x}".encode() for character in "<>&\u2028\u2029"}


def encode_page(contents: ReportContents) -> bytes:
    """Return the page as HTML. Equal contents give equal bytes."""
    style, script = _read_page_part("style.css"), _read_page_part("view.js")
    filled = {
        "style": style,
        "style_hash": _csp_hash(style),
        "script": script,
        "script_hash": _csp_hash(script),
        "data": encode_data(contents).decode(),
    }
    return _TEMPLATE_SLOT.sub(lambda slot: filled[slot[1]], _read_page_part("page.html")).encode()


def encode_data(contents: ReportContents) -> bytes:
    """Return contents as JSON for an HTML element.

    Characters that could end the element or start markup are escaped.
    """
    encoded = msgspec.json.encode(contents)
    for character, escape in _JSON_ESCAPES.items():
        # In JSON, these characters occur only in strings, so they can be escaped everywhere.
        encoded = encoded.replace(character.encode(), escape)
    return encoded


def _read_page_part(name: str) -> str:
    return (files("codebatch.report") / name).read_text(encoding="utf-8")


def _csp_hash(text: str) -> str:
    digest = hashlib.sha256(text.encode()).digest()
    return f"sha256-{base64.b64encode(digest).decode('ascii')}"
