"""A reader of reviewdog's diagnostic format (proto/rdf/reviewdog.proto in its repository) as JSON.

Columns count bytes of a line.
"""

from __future__ import annotations

import msgspec

from codebatch.model.record import Severity
from codebatch_workers.exchange.reported import Report, Reported, Whole, bounded, decoded, whole

_SEVERITIES: dict[str | int, Severity] = {
    "ERROR": "error",
    "WARNING": "warning",
    "INFO": "info",
    1: "error",
    2: "warning",
    3: "info",
}
_COUNTING_CHARACTERS = ("ruff",)
"""Programs that count code points, contrary to the format."""


class _RdjsonSource(msgspec.Struct):
    name: str | None = None


class _RdjsonCode(msgspec.Struct):
    value: str | None = None


class _Position(msgspec.Struct):
    line: Whole | None = None
    column: Whole | None = None


class _Range(msgspec.Struct):
    start: _Position | None = None
    end: _Position | None = None


class _RdjsonLocation(msgspec.Struct):
    path: str | None = None
    range: _Range | None = None


class _Diagnostic(msgspec.Struct):
    message: str | None = None
    location: _RdjsonLocation | None = None
    severity: str | int | None = None
    source: _RdjsonSource | None = None
    code: _RdjsonCode | None = None
    original_output: str | None = None


class _Result(msgspec.Struct):
    diagnostics: list[_Diagnostic | None] | None
    source: _RdjsonSource | None = None
    severity: str | int | None = None


_decoder = msgspec.json.Decoder(_Result)


def read_rdjson(data: bytes) -> Report:
    """Read a DiagnosticResult. Raises Unreadable."""
    result = decoded(data, _decoder)
    return Report(
        list(bounded(_convert(diagnostic, result) for diagnostic in result.diagnostics or () if diagnostic is not None))
    )


def _convert(diagnostic: _Diagnostic, result: _Result) -> Reported:
    location = diagnostic.location or _RdjsonLocation()
    range_ = location.range or _Range()
    start, end = range_.start or _Position(), range_.end or _Position()
    severity = _SEVERITIES.get(diagnostic.severity or result.severity or "", "warning")
    # This format has three severities, so codebatch writes hints in this way.
    if severity == "info" and diagnostic.original_output == "hint":
        severity = "hint"
    writer = (result.source and result.source.name) or ""
    return Reported(
        paths=(location.path,) if location.path else (),
        message=diagnostic.message or "",
        severity=severity,
        code=(diagnostic.code and diagnostic.code.value) or "",
        tool=(diagnostic.source and diagnostic.source.name) or writer,
        line=whole(start.line),
        column=whole(start.column),
        end_line=whole(end.line),
        end_column=whole(end.column),
        unit="characters" if writer in _COUNTING_CHARACTERS else "utf-8",
    )
