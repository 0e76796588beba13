"""A reader of JSON Lines: `diagnostic` records as codebatch writes them (`-o jsonl`). Only `message` is required."""

from __future__ import annotations

import binascii
from collections.abc import Iterator

import msgspec

from codebatch.interchange.reports import Report, Reported, Unreadable, Whole, as_utf8, bounded, decoded, whole
from codebatch.model.record import Severity


class _JsonLine(msgspec.Struct):
    kind: str = "diagnostic"
    path: str | None = None
    path_b64: str | None = None
    line: Whole | None = None
    column: Whole | None = None
    end_line: Whole | None = None
    end_column: Whole | None = None
    severity: Severity | None = None
    code: str | None = None
    message: str | None = None
    tool: str | None = None


_decoder = msgspec.json.Decoder(_JsonLine)


def read_jsonl(data: bytes) -> Report:
    """Read JSON Lines. Records of other kinds count as dismissed. Raises Unreadable, which names the line."""
    try:
        data = as_utf8(data)
    except ValueError as error:
        raise Unreadable(str(error)) from error
    lines = list(_lines(data))
    diagnostics = [line for line in lines if line[1].kind == "diagnostic"]
    return Report(list(bounded(_convert(*line) for line in diagnostics)), dismissed=len(lines) - len(diagnostics))


def _lines(data: bytes) -> Iterator[tuple[int, _JsonLine]]:
    for number, line in enumerate(data.split(b"\n"), 1):
        if line.strip():
            try:
                yield number, decoded(line, _decoder)
            except Unreadable as error:
                raise Unreadable(f"line {number}: {error}") from error


def _convert(number: int, line: _JsonLine) -> Reported:
    if line.message is None:
        raise Unreadable(f"line {number}: it has no message")
    path: str | bytes | None = line.path
    if path is None and line.path_b64 is not None:
        try:
            path = binascii.a2b_base64(line.path_b64)
        except ValueError as error:
            raise Unreadable(f"line {number}: `path_b64` is not valid base64") from error
    return Reported(
        paths=(path,) if path else (),
        message=line.message,
        severity=line.severity or "warning",
        code=line.code or "",
        tool=line.tool or "",
        line=whole(line.line),
        column=whole(line.column),
        end_line=whole(line.end_line),
        end_column=whole(line.end_column),
    )
