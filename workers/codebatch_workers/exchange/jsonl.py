"""JSON lines: `diagnostic` records as codebatch writes them (`-o jsonl`), of which `message` alone must be there."""

from __future__ import annotations

import binascii
from collections.abc import Iterator

import msgspec

from codebatch.model.record import Severity
from codebatch_workers.exchange.reported import Report, Reported, Unreadable, Whole, as_utf8, bounded, decoded, whole


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
    """What the lines say; those of other kinds of records are dismissed. Raises Unreadable, which names the line."""
    try:
        data = as_utf8(data)
    except ValueError as error:
        raise Unreadable(str(error)) from error
    every = list(_lines(data))
    of_findings = [each for each in every if each[1].kind == "diagnostic"]
    return Report(list(bounded(_reported(*each) for each in of_findings)), dismissed=len(every) - len(of_findings))


def _lines(data: bytes) -> Iterator[tuple[int, _JsonLine]]:
    for number, line in enumerate(data.split(b"\n"), 1):
        if line.strip():
            try:
                yield number, decoded(line, _decoder)
            except Unreadable as error:
                raise Unreadable(f"line {number}: {error}") from error


def _reported(number: int, each: _JsonLine) -> Reported:
    if each.message is None:
        raise Unreadable(f"line {number}: it has no message")
    path: str | bytes | None = each.path
    if path is None and each.path_b64 is not None:
        try:
            path = binascii.a2b_base64(each.path_b64)
        except ValueError as error:
            raise Unreadable(f"line {number}: `path_b64` is not valid base64") from error
    return Reported(
        paths=(path,) if path else (),
        message=each.message,
        severity=each.severity or "warning",
        code=each.code or "",
        tool=each.tool or "",
        line=whole(each.line),
        column=whole(each.column),
        end_line=whole(each.end_line),
        end_column=whole(each.end_column),
    )
