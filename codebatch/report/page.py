"""The page of a report: one HTML file that asks nothing of a network, and in which text of a tree is data alone.

What is found stands in it as JSON, in which no character can end the element that holds it, or begin markup. Its
Content-Security-Policy lets no script or style run but the two that are here, by their hashes, and nothing be loaded.
"""

from __future__ import annotations

import base64
import hashlib
import re
from importlib.resources import files

import msgspec

from codebatch.report.contents import ReportContents

_SLOT = re.compile(r"\{\{(\w+)\}\}")
_ESCAPES = {each: f"\\u{ord(each):04x}".encode() for each in "<>&\u2028\u2029"}


def encode_page(contents: ReportContents) -> bytes:
    """The page. The same contents give the same bytes."""
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
    """Contents as JSON that may stand in HTML: what could end its element, or begin markup, is escaped."""
    encoded = msgspec.json.encode(contents)
    for character, escape in _ESCAPES.items():
        encoded = encoded.replace(character.encode(), escape)  # It stands within texts alone.
    return encoded


def _part(name: str) -> str:
    return (files("codebatch.report") / name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    digest = hashlib.sha256(text.encode()).digest()
    return f"sha256-{base64.b64encode(digest).decode('ascii')}"
