"""Findings in lines of text: the format of gcc, which many programs print, and regular expressions of users.

Lines with more than LINE_BYTES_MAX bytes are ignored, and color codes are removed. Bytes that are not UTF-8 are kept in
paths and replaced in other texts.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from codebatch.interchange.reports import (
    SEVERITY_BY_WORD,
    ImportedFinding,
    ImportedReport,
    UnreadableReport,
    as_utf8,
    limit_findings,
    merge_severities,
    to_location_number,
)
from codebatch.model.analysis.report_formats import PatternFormat, compile_pattern
from codebatch.model.record import Severity
from codebatch.model.text.color_codes import strip_color_codes
from codebatch.model.text.regex_timeout import MATCH_SECONDS_MAX, MatchTimeout, cpu_time_limit

LINE_BYTES_MAX = 4096
_MATCH_SECONDS_PER_LINE = 1e-5

# mypy can print the end of a finding after its column. This end is inclusive.
_GCC_LINE = re.compile(
    r"(?P<path>\S.*?):(?P<line>[0-9]+)(?::(?P<column>[0-9]+)(?::(?P<end_line>[0-9]+):(?P<end_column>[0-9]+))?)?:"
    r"\s+(?P<text>.*)"
)
_GCC_SEVERITY = re.compile(r"(?P<word>[A-Za-z]+(?: [A-Za-z]+)?):\s*(?P<message>.*)")
_GCC_CODE = re.compile(r"(?P<message>.*\S)\s+\[(?P<code>[^][\s]+)\]")


def read_gcc(data: bytes, default_severity: Severity = "warning") -> ImportedReport:
    """Read lines `path:line:column: severity: message [code]`, of which column, severity and code are optional.

    Other lines are ignored. Columns count code points. Raises UnreadableReport.
    """
    matches = filter(None, map(_GCC_LINE.fullmatch, _iter_lines(data)))
    return ImportedReport(list(limit_findings(_convert_gcc(match, default_severity) for match in matches)))


def _convert_gcc(match: re.Match[str], default_severity: Severity) -> ImportedFinding:
    message, severity, code = match["text"].rstrip(), default_severity, ""
    prefix = _GCC_SEVERITY.fullmatch(message)
    if prefix is not None and prefix["word"].lower() in SEVERITY_BY_WORD:
        severity, message = SEVERITY_BY_WORD[prefix["word"].lower()], prefix["message"]
    suffix = _GCC_CODE.fullmatch(message)
    if suffix is not None:
        message, code = suffix["message"], suffix["code"]
    return ImportedFinding(
        paths=(_path(match["path"]),),
        message=_text(message),
        severity=severity,
        code=_text(code),
        line=to_location_number(match["line"]),
        column=to_location_number(match["column"]),
        end_line=to_location_number(match["end_line"]),
        end_column=to_location_number(match["end_column"], 0),
    )


def read_pattern(form: PatternFormat, data: bytes, default_severity: Severity = "warning") -> ImportedReport:
    """Read the lines that contain a match of the pattern. Other lines are ignored.

    Raises UnreadableReport, also if matching takes too much CPU time: more than MATCH_SECONDS_MAX, plus 10 µs for each
    line.
    """
    severities = merge_severities(form.severities)
    search = compile_pattern(form.pattern).search
    lines = list(_iter_lines(data))
    try:
        with cpu_time_limit(MATCH_SECONDS_MAX + len(lines) * _MATCH_SECONDS_PER_LINE):
            matches = [match for line in lines if (match := search(line)) is not None]
    except MatchTimeout as error:
        raise UnreadableReport("`pattern` took too much CPU time: simplify the regular expression") from error

    def convert(match: re.Match[str]) -> ImportedFinding:
        groups = {name: text or "" for name, text in match.groupdict().items()}
        return ImportedFinding(
            paths=(_path(groups["path"]),) if groups["path"] else (),
            message=_text(groups["message"]),
            severity=severities.get(groups.get("severity", "").lower(), default_severity),
            code=_text(groups.get("code", "")),
            tool=_text(groups.get("tool", "")),
            line=to_location_number(groups["line"], form.first_line),
            column=to_location_number(groups.get("column"), form.first_column),
            end_line=to_location_number(groups.get("end_line"), form.first_line),
            end_column=to_location_number(groups.get("end_column"), form.first_column),
            unit=form.column_unit,
        )

    return ImportedReport(list(limit_findings(map(convert, matches))))


def _iter_lines(data: bytes) -> Iterator[str]:
    """Yield the lines of a report. Raises UnreadableReport for invalid UTF-16."""
    try:
        data = strip_color_codes(as_utf8(data))
    except ValueError as error:
        raise UnreadableReport(str(error)) from error
    for line in data.split(b"\n"):
        if len(line) <= LINE_BYTES_MAX:
            yield line.removesuffix(b"\r").decode("utf-8", "surrogateescape")


def _path(text: str) -> str | bytes:
    """Return a path as text, or as bytes if it is not UTF-8."""
    data = text.encode("utf-8", "surrogateescape")
    return text if data.decode("utf-8", "replace") == text else data


def _text(text: str) -> str:
    """Return a text in which U+FFFD replaces bytes that are not UTF-8."""
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
