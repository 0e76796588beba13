"""The XML format of Checkstyle. Data without a Checkstyle attribute is in a namespace that its readers ignore."""

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
# Characters that XML 1.0 allows only as entities, or not at all (production "Char").
_SPECIAL = re.compile('["&<>\x00-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]')


def export_checkstyle(outgoing: Iterable[Outgoing]) -> Export:
    """Return findings sorted by file and location, one on each line."""
    count = 0
    lines = ['<?xml version="1.0" encoding="UTF-8"?>', f'<checkstyle version="8.0" xmlns:codebatch="{NAMESPACE}">']
    for path, group in groupby(by_place(outgoing), key=lambda finding: finding.path):
        lines.append(f"<file{attribute('name', text_of(path))}>")
        for finding in group:
            lines.append(_error(finding))
            count += 1
        lines.append("</file>")
    lines.append("</checkstyle>\n")
    return Export(data="\n".join(lines).encode(), count=count)


def _error(outgoing: Outgoing) -> str:
    diagnostic = outgoing.found
    attributes = {
        "line": diagnostic.line,
        "column": diagnostic.column,
        "severity": _SEVERITIES[diagnostic.severity],
        "message": diagnostic.message,
        "source": f"{diagnostic.tool}.{diagnostic.code}",
        "codebatch:tool": diagnostic.tool,
        "codebatch:code": diagnostic.code,
        "codebatch:end-line": diagnostic.end_line,
        "codebatch:end-column": diagnostic.end_column,
    }
    if diagnostic.severity == "hint":
        attributes["codebatch:level"] = diagnostic.severity
    return f"<error{''.join(attribute(name, str(value)) for name, value in attributes.items())}/>"


def attribute(name: str, value: str) -> str:
    r"""Return an attribute with a leading blank. Characters that XML cannot represent are escaped, such as `\x1b`."""
    return f' {name}="{_SPECIAL.sub(_escaped, value)}"'


def _escaped(match: re.Match[str]) -> str:
    return _ENTITIES.get(match[0]) or match[0].encode("unicode_escape").decode("ascii")
