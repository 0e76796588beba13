"""The diagnostic format of reviewdog (proto/rdf/reviewdog.proto in its repository): JSON, and lines of JSON (rdjsonl).

Columns count the bytes of a line from 1.
"""

from __future__ import annotations

import codecs
import functools
from collections.abc import Callable, Iterable, Sequence
from itertools import accumulate, groupby

import msgspec

from codebatch.interchange.findings import Export, ExportedFinding, sort_by_location
from codebatch.interchange.locations import path_text
from codebatch.interchange.reports import (
    NO_MESSAGE,
    ImportedFinding,
    ImportedReport,
    WholeNumber,
    decode_lines,
    decode_report,
    int_or_zero,
    limit_findings,
    sample_text,
)
from codebatch.model.record import Diagnostic, Severity

_WRITTEN_SEVERITIES: dict[Severity, str] = {"error": "ERROR", "warning": "WARNING", "info": "INFO", "hint": "INFO"}
_READ_SEVERITIES: dict[str | int, Severity] = {
    "ERROR": "error",
    "WARNING": "warning",
    "INFO": "info",
    1: "error",
    2: "warning",
    3: "info",
}
_KNOWN_SEVERITIES = ("", "UNKNOWN_SEVERITY", *_READ_SEVERITIES)
_TOOLS_COUNTING_CHARACTERS = ("ruff",)
"""Programs that write columns in code points, although the format requires bytes."""
# Number of code points in a part of a line. For each part of a line, the byte offset is cached.
_PART_CHARACTERS = 1000


class _RdjsonSource(msgspec.Struct, omit_defaults=True):
    name: str | None = None


class _RdjsonCode(msgspec.Struct, omit_defaults=True):
    value: str | None = None


class _RdjsonPosition(msgspec.Struct, omit_defaults=True):
    line: WholeNumber | None = None
    column: WholeNumber | None = None


class _RdjsonRange(msgspec.Struct, omit_defaults=True):
    start: _RdjsonPosition | None = None
    end: _RdjsonPosition | None = None


class _RdjsonLocation(msgspec.Struct, omit_defaults=True):
    path: str | None = None
    range: _RdjsonRange | None = None


class _RdjsonDiagnostic(msgspec.Struct, omit_defaults=True):
    message: str | None = None
    location: _RdjsonLocation | None = None
    severity: str | int | None = None
    source: _RdjsonSource | None = None
    code: _RdjsonCode | None = None
    original_output: str | None = None


class _RdjsonResult(msgspec.Struct, omit_defaults=True):
    diagnostics: list[_RdjsonDiagnostic | None] | None
    source: _RdjsonSource | None = None
    severity: str | int | None = None


_decoder = msgspec.json.Decoder(_RdjsonResult)
_line_decoder = msgspec.json.Decoder(_RdjsonDiagnostic)


def export_rdjson(outgoing: Iterable[ExportedFinding], content_of: Callable[[bytes], bytes | None]) -> Export:
    """Return a JSON document. The findings are sorted by path and location, one on each line.

    `content_of` returns the content of a file, or None if it is missing.
    """
    rows = []
    for path, group in groupby(sort_by_location(outgoing), key=lambda group: group.path):
        content = content_of(path)
        lines = None if content is None else content.removeprefix(codecs.BOM_UTF8).split(b"\n")
        rows += [msgspec.json.encode(_diagnostic_row(finding, lines)) for finding in group]
    head = b'{"source":{"name":"codebatch"},"diagnostics":['
    return Export(data=head + b",".join(b"\n" + row for row in rows) + b"\n]}\n", count=len(rows))


def _diagnostic_row(outgoing: ExportedFinding, lines: Sequence[bytes] | None) -> _RdjsonDiagnostic:
    diagnostic = outgoing.diagnostic
    span = _diagnostic_range(diagnostic, lines) if diagnostic.line >= 1 else None
    return _RdjsonDiagnostic(
        message=diagnostic.message or "",
        location=_RdjsonLocation(path=path_text(outgoing.path), range=span),
        severity=_WRITTEN_SEVERITIES[diagnostic.severity],
        source=_RdjsonSource(name=diagnostic.tool),
        code=_RdjsonCode(value=diagnostic.code),
        original_output=diagnostic.severity if diagnostic.severity == "hint" else None,
    )


def _diagnostic_range(diagnostic: Diagnostic, lines: Sequence[bytes] | None) -> _RdjsonRange:
    start = _diagnostic_position(diagnostic.line, diagnostic.column, lines)
    if (diagnostic.end_line, diagnostic.end_column) < (diagnostic.line, diagnostic.column):
        return _RdjsonRange(start=start)
    return _RdjsonRange(start=start, end=_diagnostic_position(diagnostic.end_line, diagnostic.end_column, lines))


def _diagnostic_position(line: int, column: int, lines: Sequence[bytes] | None) -> _RdjsonPosition:
    """Return a line and a column as a position of the format, whose column counts bytes.

    If the content of the file is missing, omit the column.
    """
    if lines is None:
        return _RdjsonPosition(line=line)
    text = lines[line - 1] if 0 < line <= len(lines) else b""
    return _RdjsonPosition(line=line, column=byte_column(text, column))


def byte_column(text: bytes, column: int) -> int:
    """Convert a column from code points to bytes, both counted from 1. An invalid byte counts as one code point."""
    characters = max(column - 1, 0)
    if text.isascii():
        return characters + 1
    decoded, starts = _decode_with_offsets(text)
    part = min(characters, len(decoded)) // _PART_CHARACTERS
    inside = decoded[part * _PART_CHARACTERS : characters]
    behind = max(characters - len(decoded), 0)
    return starts[part] + _utf8_size(inside) + behind + 1


@functools.lru_cache(maxsize=4)
def _decode_with_offsets(text: bytes) -> tuple[str, list[int]]:
    """Return a line as text, and the byte offset of each part of _PART code points.

    The result is cached, because in minified code all findings are on one line.
    """
    decoded = text.decode("utf-8", "surrogateescape")
    sizes = (_utf8_size(decoded[at : at + _PART_CHARACTERS]) for at in range(0, len(decoded), _PART_CHARACTERS))
    return decoded, [0, *accumulate(sizes)]


def _utf8_size(text: str) -> int:
    return len(text.encode("utf-8", "surrogateescape"))


def read_rdjson(data: bytes) -> ImportedReport:
    """Read a DiagnosticResult. Raises UnreadableReport."""
    result = decode_report(data, _decoder)
    return ImportedReport(
        list(
            limit_findings(
                _convert_diagnostic(diagnostic, result)
                for diagnostic in result.diagnostics or ()
                if diagnostic is not None
            )
        )
    )


def read_rdjsonl(data: bytes) -> ImportedReport:
    """Read lines, each a Diagnostic (rdjsonl). Raises UnreadableReport, which names the line."""
    no_defaults = _RdjsonResult(diagnostics=None)
    diagnostics = (diagnostic for _, diagnostic in decode_lines(data, _line_decoder))
    return ImportedReport(
        list(limit_findings(_convert_diagnostic(diagnostic, no_defaults) for diagnostic in diagnostics))
    )


def _convert_diagnostic(diagnostic: _RdjsonDiagnostic, result: _RdjsonResult) -> ImportedFinding:
    location = diagnostic.location or _RdjsonLocation()
    range_ = location.range or _RdjsonRange()
    start, end = range_.start or _RdjsonPosition(), range_.end or _RdjsonPosition()
    word = diagnostic.severity or result.severity or ""
    severity = _READ_SEVERITIES.get(word, "warning")
    replaced = NO_MESSAGE if diagnostic.message is None else ""
    if word not in _KNOWN_SEVERITIES:
        replaced = f"severity {sample_text(str(word))!r}"
    # The format has no member for hints, so codebatch writes a hint in this way.
    if severity == "info" and diagnostic.original_output == "hint":
        severity = "hint"
    writer = (result.source and result.source.name) or ""
    return ImportedFinding(
        paths=(location.path,) if location.path else (),
        message=diagnostic.message or "",
        severity=severity,
        code=(diagnostic.code and diagnostic.code.value) or "",
        tool=(diagnostic.source and diagnostic.source.name) or writer,
        line=int_or_zero(start.line),
        column=int_or_zero(start.column),
        end_line=int_or_zero(end.line),
        end_column=int_or_zero(end.column),
        unit="characters" if writer in _TOOLS_COUNTING_CHARACTERS else "utf-8",
        replaced=replaced,
    )
