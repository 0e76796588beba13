"""A reader of Checkstyle XML, which many programs write. Document types are refused, so no entities can be defined.

The reader uses expat, which is part of Python. Compared to it, defusedxml adds only the refusal of document types,
which is one handler. No document tree is built. Attributes of the namespace NAMESPACE are extensions of codebatch.
"""

from __future__ import annotations

from xml.parsers import expat

from codebatch.model.record import SEVERITIES, Severity
from codebatch_workers.exchange.reported import REPORTED_MAX, Report, Reported, Unreadable

NAMESPACE = "urn:codebatch:checkstyle"
XML_DEPTH_MAX = 64
_SEVERITIES: dict[str, Severity] = {"error": "error", "fatal": "error", "warning": "warning", "info": "info"}
_DISMISSED = "ignore"


def read_checkstyle(data: bytes) -> Report:
    """Read a Checkstyle report. Raises Unreadable."""
    handler = _CheckstyleHandler()
    parser = expat.ParserCreate(namespace_separator=" ")
    parser.buffer_text = True
    parser.StartDoctypeDeclHandler = _refuse_doctype
    parser.StartElementHandler = handler.start
    parser.EndElementHandler = handler.end
    try:
        parser.Parse(data, True)
    except expat.ExpatError as error:
        raise Unreadable(str(error)) from error
    except (LookupError, ValueError) as error:  # The encoding is unknown, or not an encoding of bytes.
        raise error if isinstance(error, Unreadable) else Unreadable(str(error)) from error
    return Report(handler.findings, dismissed=handler.dismissed, has_failed=handler.has_failed)


def _refuse_doctype(*_: object) -> None:
    raise Unreadable("it has a document type (DTD), which is not supported")


class _CheckstyleHandler:
    """The findings that were read so far."""

    def __init__(self) -> None:
        self.findings: list[Reported] = []
        self.dismissed = 0
        self.has_failed = False
        self._depth = 0
        self._path = ""

    def start(self, name: str, attributes: dict[str, str]) -> None:
        """Handle the start of an element. Raises Unreadable."""
        name = name.rpartition(" ")[2]
        if not self._depth and name != "checkstyle":
            raise Unreadable(f"it starts with <{name[:80]}> instead of <checkstyle>")
        self._depth += 1
        if self._depth > XML_DEPTH_MAX:
            raise Unreadable(f"it has more than {XML_DEPTH_MAX} levels")
        match name:
            case "file":
                self._path = attributes.get("name", "")
            case "error" if attributes.get("severity") == _DISMISSED:
                self.dismissed += 1
            case "error":
                if len(self.findings) >= REPORTED_MAX:
                    raise Unreadable(f"it has more than {REPORTED_MAX:,} findings")
                self.findings.append(_convert(self._path, attributes))
            case "exception":
                self.has_failed = True
            case _:
                pass

    def end(self, name: str) -> None:
        """Handle the end of an element."""
        self._depth -= 1
        if name.rpartition(" ")[2] == "file":
            self._path = ""


def _convert(path: str, attributes: dict[str, str]) -> Reported:
    def extension(name: str) -> str | None:
        return attributes.get(f"{NAMESPACE} {name}")

    level = extension("level")
    severity = next((name for name in SEVERITIES if name == level), None)
    code = extension("code")
    return Reported(
        paths=(path,) if path else (),
        message=attributes.get("message", ""),
        severity=severity or _SEVERITIES.get(attributes.get("severity", ""), "warning"),
        code=attributes.get("source", "") if code is None else code,
        tool=extension("tool") or "",
        line=_number(attributes.get("line")),
        column=_number(attributes.get("column")),
        end_line=_number(extension("end-line")),
        end_column=_number(extension("end-column")),
    )


def _number(text: str | None) -> int:
    """Return a number of at most nine digits, or 0 for any other text."""
    return int(text) if text and text.isascii() and text.isdigit() and len(text) < 10 else 0
