"""Checkstyle's XML, which many programs write. No document type is taken, so there are no entities of its own.

expat is asked by itself, as it comes with Python: what defusedxml adds to it is the refusal of a document type, which
is one handler; and a document is not held as a tree. Attributes of the namespace NAMESPACE are ours: what the format
has no word for.
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
    """What the file says. Raises Unreadable."""
    reading = _CheckstyleReading()
    parser = expat.ParserCreate(namespace_separator=" ")
    parser.buffer_text = True
    parser.StartDoctypeDeclHandler = _refuse_doctype
    parser.StartElementHandler = reading.start
    parser.EndElementHandler = reading.end
    try:
        parser.Parse(data, True)
    except expat.ExpatError as error:
        raise Unreadable(str(error)) from error
    except (LookupError, ValueError) as error:  # Of an encoding that there is not, or that is no encoding of bytes.
        raise error if isinstance(error, Unreadable) else Unreadable(str(error)) from error
    return Report(reading.findings, dismissed=reading.dismissed, has_failed=reading.has_failed)


def _refuse_doctype(*_: object) -> None:
    raise Unreadable("it has a document type (DTD), which is not supported")


class _CheckstyleReading:
    """What was read so far."""

    def __init__(self) -> None:
        self.findings: list[Reported] = []
        self.dismissed = 0
        self.has_failed = False
        self._depth = 0
        self._path = ""

    def start(self, name: str, attributes: dict[str, str]) -> None:
        """An element begins. Raises Unreadable."""
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
                self.findings.append(_reported(self._path, attributes))
            case "exception":
                self.has_failed = True
            case _:
                pass

    def end(self, name: str) -> None:
        """An element ends."""
        self._depth -= 1
        if name.rpartition(" ")[2] == "file":
            self._path = ""


def _reported(path: str, attributes: dict[str, str]) -> Reported:
    def of_ours(name: str) -> str | None:
        return attributes.get(f"{NAMESPACE} {name}")

    level = of_ours("level")
    severity = next((each for each in SEVERITIES if each == level), None)
    code = of_ours("code")
    return Reported(
        paths=(path,) if path else (),
        message=attributes.get("message", ""),
        severity=severity or _SEVERITIES.get(attributes.get("severity", ""), "warning"),
        code=attributes.get("source", "") if code is None else code,
        tool=of_ours("tool") or "",
        line=_number(attributes.get("line")),
        column=_number(attributes.get("column")),
        end_line=_number(of_ours("end-line")),
        end_column=_number(of_ours("end-column")),
    )


def _number(text: str | None) -> int:
    """A number of at most nine digits; 0 for anything else."""
    return int(text) if text and text.isascii() and text.isdigit() and len(text) < 10 else 0
