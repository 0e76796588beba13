"""Reading of JSON Lines: `diagnostic` records as codebatch writes them (`-o jsonl`).

Only the member `message` is required.
"""

from __future__ import annotations

import binascii

import msgspec

from codebatch.interchange.reports import (
    ImportedFinding,
    ImportedReport,
    UnreadableReport,
    WholeNumber,
    decode_lines,
    int_or_zero,
    limit_findings,
)
from codebatch.model.record import Severity


class _JsonLine(msgspec.Struct):
    kind: str = "diagnostic"
    path: str | None = None
    path_b64: str | None = None
    line: WholeNumber | None = None
    column: WholeNumber | None = None
    end_line: WholeNumber | None = None
    end_column: WholeNumber | None = None
    severity: Severity | None = None
    code: str | None = None
    message: str | None = None
    tool: str | None = None


_decoder = msgspec.json.Decoder(_JsonLine)


def read_jsonl(data: bytes) -> ImportedReport:
    """Read JSON Lines. Records of other kinds count as dismissed. Raises UnreadableReport, which names the line."""
    lines = list(decode_lines(data, _decoder))
    diagnostics = [line for line in lines if line[1].kind == "diagnostic"]
    return ImportedReport(
        list(limit_findings(_convert_line(*line) for line in diagnostics)), dismissed=len(lines) - len(diagnostics)
    )


def _convert_line(number: int, line: _JsonLine) -> ImportedFinding:
    if line.message is None:
        raise UnreadableReport(f"line {number}: it has no message")
    path: str | bytes | None = line.path
    if path is None and line.path_b64 is not None:
        try:
            path = binascii.a2b_base64(line.path_b64)
        except ValueError as error:
            raise UnreadableReport(f"line {number}: `path_b64` is not valid base64") from error
    return ImportedFinding(
        paths=(path,) if path else (),
        message=line.message,
        severity=line.severity or "warning",
        code=line.code or "",
        tool=line.tool or "",
        line=int_or_zero(line.line),
        column=int_or_zero(line.column),
        end_line=int_or_zero(line.end_line),
        end_column=int_or_zero(line.end_column),
    )
