"""Checkstyle's XML. What it has no word for stands in attributes of ours, which its readers pass over."""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import groupby

from codebatch.exchange.findings import Outgoing, by_place
from codebatch.exchange.locations import text_of
from codebatch.exchange.model import Export
from codebatch.model.record import Severity

NAMESPACE = "urn:codebatch:checkstyle"
_SEVERITIES: dict[Severity, str] = {"error": "error", "warning": "warning", "info": "info", "hint": "info"}
_ENTITIES = {'"': "&quot;", "&": "&amp;", "<": "&lt;", ">": "&gt;", "\t": "&#9;", "\n": "&#10;", "\r": "&#13;"}
# What XML 1.0 has as an entity alone, or cannot have at all ("Char").
_SPECIAL = re.compile('["&<>\x00-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]')


def export_checkstyle(outgoing: Iterable[Outgoing]) -> Export:
    """Findings by file and place, a line each."""
    count = 0
    lines = ['<?xml version="1.0" encoding="UTF-8"?>', f'<checkstyle version="8.0" xmlns:codebatch="{NAMESPACE}">']
    for path, found in groupby(by_place(outgoing), key=lambda each: each.path):
        lines.append(f"<file{attribute('name', text_of(path))}>")
        for each in found:
            lines.append(_error(each))
            count += 1
        lines.append("</file>")
    lines.append("</checkstyle>\n")
    return Export(data="\n".join(lines).encode(), count=count)


def _error(each: Outgoing) -> str:
    found = each.found
    attributes = {
        "line": found.line,
        "column": found.column,
        "severity": _SEVERITIES[found.severity],
        "message": found.message,
        "source": f"{found.tool}.{found.code}",
        "codebatch:tool": found.tool,
        "codebatch:code": found.code,
        "codebatch:end-line": found.end_line,
        "codebatch:end-column": found.end_column,
    }
    if found.severity == "hint":
        attributes["codebatch:level"] = found.severity
    return f"<error{''.join(attribute(name, str(value)) for name, value in attributes.items())}/>"


def attribute(name: str, value: str) -> str:
    r"""An attribute with a blank before it. What XML cannot say is told as an escape, such as `\x1b`."""
    return f' {name}="{_SPECIAL.sub(_said, value)}"'


def _said(match: re.Match[str]) -> str:
    return _ENTITIES.get(match[0]) or match[0].encode("unicode_escape").decode("ascii")
