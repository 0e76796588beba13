"""The XML format of Checkstyle, which many programs write.

The reader rejects documents with a document type (DTD), so no entities can be defined. It uses expat, which is part of
Python. The library defusedxml is not used, because it would add only this rejection, which takes one handler. No
document tree is built.

Checkstyle has no attribute for some data of codebatch. These are written as attributes of the namespace NAMESPACE,
which other readers ignore.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import groupby
from xml.parsers import expat

from codebatch.interchange.findings import Export, ExportedFinding, sort_by_location
from codebatch.interchange.locations import path_text
from codebatch.interchange.reports import (
    NO_MESSAGE,
    REPORTED_FINDINGS_MAX,
    ImportedFinding,
    ImportedReport,
    UnreadableReport,
    UnreadText,
    sample_text,
    to_location_number,
    unknown_line,
)
from codebatch.model.record import SEVERITIES, Severity

NAMESPACE = "urn:codebatch:checkstyle"
XML_DEPTH_MAX = 64
_WRITTEN_SEVERITIES: dict[Severity, str] = {"error": "error", "warning": "warning", "info": "info", "hint": "info"}
_XML_ENTITIES = {'"': "&quot;", "&": "&amp;", "<": "&lt;", ">": "&gt;", "\t": "&#9;", "\n": "&#10;", "\r": "&#13;"}
# Characters that XML 1.0 allows only as entities, or not at all (production "Char").
_SPECIAL_CHARACTER = re.compile('["&<>\x00-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]')
_READ_SEVERITIES: dict[str, Severity] = {"error": "error", "fatal": "error", "warning": "warning", "info": "info"}
_DISMISSED_SEVERITY = "ignore"


def export_checkstyle(outgoing: Iterable[ExportedFinding]) -> Export:
    """Return a Checkstyle document. The findings are sorted by file and location, one on each line."""
    count = 0
    lines = ['<?xml version="1.0" encoding="UTF-8"?>', f'<checkstyle version="8.0" xmlns:codebatch="{NAMESPACE}">']
    for path, group in groupby(sort_by_location(outgoing), key=lambda finding: finding.path):
        lines.append(f"<file{xml_attribute('name', path_text(path))}>")
        for finding in group:
            lines.append(_error_element(finding))
            count += 1
        lines.append("</file>")
    lines.append("</checkstyle>\n")
    return Export(data="\n".join(lines).encode(), count=count)


def _error_element(outgoing: ExportedFinding) -> str:
    diagnostic = outgoing.diagnostic
    attributes = {
        "line": diagnostic.line,
        "column": diagnostic.column,
        "severity": _WRITTEN_SEVERITIES[diagnostic.severity],
        "message": diagnostic.message,
        "source": f"{diagnostic.tool}.{diagnostic.code}",
        "codebatch:tool": diagnostic.tool,
        "codebatch:code": diagnostic.code,
        "codebatch:end-line": diagnostic.end_line,
        "codebatch:end-column": diagnostic.end_column,
    }
    if diagnostic.severity == "hint":
        attributes["codebatch:level"] = diagnostic.severity
    return f"<error{''.join(xml_attribute(name, str(value)) for name, value in attributes.items())}/>"


def xml_attribute(name: str, value: str) -> str:
    """Return an XML attribute, preceded by a space."""
    return f' {name}="{xml_text(value)}"'


def xml_text(value: str) -> str:
    r"""Return a text for XML. Characters that XML cannot represent are escaped, such as `\x1b`."""
    return _SPECIAL_CHARACTER.sub(_escape_character, value)


def _escape_character(match: re.Match[str]) -> str:
    return _XML_ENTITIES.get(match[0]) or match[0].encode("unicode_escape").decode("ascii")


def read_checkstyle(data: bytes) -> ImportedReport:
    """Read a Checkstyle report. Raises UnreadableReport."""
    handler = _CheckstyleHandler()
    parser = expat.ParserCreate(namespace_separator=" ")
    parser.buffer_text = True
    parser.StartDoctypeDeclHandler = _refuse_doctype
    parser.StartElementHandler = handler.start_element
    parser.EndElementHandler = handler.end_element
    try:
        parser.Parse(data, True)
    except expat.ExpatError as error:
        raise UnreadableReport(str(error)) from error
    except (LookupError, ValueError) as error:  # The encoding is unknown, or not an encoding of bytes.
        raise error if isinstance(error, UnreadableReport) else UnreadableReport(str(error)) from error
    return ImportedReport(
        handler.findings, dismissed=handler.dismissed, has_failed=handler.has_failed, unread=handler.unread
    )


def _refuse_doctype(*_: object) -> None:
    raise UnreadableReport("it has a document type (DTD), which is not supported")


class _CheckstyleHandler:
    """A collector of findings. The parser calls it for each element."""

    def __init__(self) -> None:
        self.findings: list[ImportedFinding] = []
        self.dismissed = 0
        self.has_failed = False
        self._depth = 0
        self._path = ""
        self._unread = 0
        self._unread_name = ""

    @property
    def unread(self) -> UnreadText:
        """The elements of other names."""
        return UnreadText(self._unread, (f"<{sample_text(self._unread_name)}>",) if self._unread else ())

    def start_element(self, name: str, attributes: dict[str, str]) -> None:
        """Handle the start of an element: collect a finding, or the path of a file. Raises UnreadableReport."""
        name = name.rpartition(" ")[2]
        if not self._depth and name != "checkstyle":
            raise UnreadableReport(f"it starts with <{name[:80]}> instead of <checkstyle>")
        self._depth += 1
        if self._depth > XML_DEPTH_MAX:
            raise UnreadableReport(f"it has more than {XML_DEPTH_MAX} levels")
        match name:
            case "file":
                self._path = attributes.get("name", "")
            case "error" if attributes.get("severity") == _DISMISSED_SEVERITY:
                self.dismissed += 1
            case "error":
                if len(self.findings) >= REPORTED_FINDINGS_MAX:
                    raise UnreadableReport(f"it has more than {REPORTED_FINDINGS_MAX:,} findings")
                self.findings.append(_convert_error(self._path, attributes))
            case "exception":
                self.has_failed = True
            case "checkstyle":
                pass
            case _:
                self._unread += 1
                self._unread_name = self._unread_name or name

    def end_element(self, name: str) -> None:
        """Handle the end of an element: leave the file to which the next findings belong."""
        self._depth -= 1
        if name.rpartition(" ")[2] == "file":
            self._path = ""


def _convert_error(path: str, attributes: dict[str, str]) -> ImportedFinding:
    def extension(name: str) -> str | None:
        return attributes.get(f"{NAMESPACE} {name}")

    level = extension("level")
    severity = next((name for name in SEVERITIES if name == level), None)
    code = extension("code")
    word = attributes.get("severity", "")
    replaced = unknown_line(attributes.get("line")) if "message" in attributes else NO_MESSAGE
    if word and severity is None and word not in _READ_SEVERITIES:
        replaced = f"severity {sample_text(word)!r}"
    return ImportedFinding(
        paths=(path,) if path else (),
        message=attributes.get("message", ""),
        severity=severity or _READ_SEVERITIES.get(word, "warning"),
        code=attributes.get("source", "") if code is None else code,
        tool=extension("tool") or "",
        line=to_location_number(attributes.get("line")),
        column=to_location_number(attributes.get("column")),
        end_line=to_location_number(extension("end-line")),
        end_column=to_location_number(extension("end-column")),
        replaced=replaced,
    )
