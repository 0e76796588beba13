"""Findings in lines of text: the format of gcc, which many programs print, and regular expressions of users.

Lines with more than LINE_BYTES_MAX bytes are not read, and color codes are removed. Bytes that are not UTF-8 are kept
in paths and replaced in other texts.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from codebatch.interchange.banner_lines import is_banner_line
from codebatch.interchange.reports import (
    SAMPLES_MAX,
    SEVERITY_BY_WORD,
    ImportedFinding,
    ImportedReport,
    SeverityWords,
    UnreadableReport,
    UnreadText,
    as_utf8,
    limit_findings,
    sample_text,
    to_location_number,
    unknown_line,
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

    Columns count code points. Raises UnreadableReport.
    """
    lines = _split_lines(data)
    matches = [_GCC_LINE.fullmatch(line) if is_short else None for line, is_short in lines]
    return _make_report(lines, matches, lambda match: _convert_gcc(match, default_severity))


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
    """Read the lines that contain a match of the pattern.

    Raises UnreadableReport, also if matching takes too much CPU time: more than MATCH_SECONDS_MAX, plus 10 µs for each
    line.
    """
    severities = SeverityWords(form.severities, default_severity)
    search = compile_pattern(form.pattern).search
    lines = _split_lines(data)
    try:
        with cpu_time_limit(MATCH_SECONDS_MAX + len(lines) * _MATCH_SECONDS_PER_LINE):
            matches = [search(line) if is_short else None for line, is_short in lines]
    except MatchTimeout as error:
        raise UnreadableReport("`pattern` took too much CPU time: simplify the regular expression") from error

    def convert(match: re.Match[str]) -> ImportedFinding:
        groups = {name: text or "" for name, text in match.groupdict().items()}
        severity, unknown_severity = severities.find(groups.get("severity", ""))
        return ImportedFinding(
            paths=(_path(groups["path"]),) if groups["path"] else (),
            message=_text(groups["message"]),
            severity=severity,
            code=_text(groups.get("code", "")),
            tool=_text(groups.get("tool", "")),
            line=to_location_number(groups["line"], form.first_line),
            column=to_location_number(groups.get("column"), form.first_column),
            end_line=to_location_number(groups.get("end_line"), form.first_line),
            end_column=to_location_number(groups.get("end_column"), form.first_column),
            unit=form.column_unit,
            replaced=unknown_severity or unknown_line(groups["line"]),
        )

    return _make_report(lines, matches, convert)


_Line = tuple[str, bool]
"""A line, and whether it is short enough to be read."""


def _make_report(
    lines: Sequence[_Line],
    matches: Sequence[re.Match[str] | None],
    convert: Callable[[re.Match[str]], ImportedFinding],
) -> ImportedReport:
    """Return the findings in the lines with a match, and the lines that may report a problem in another way."""
    findings = limit_findings(convert(match) for match in matches if match is not None)
    unread: list[str] = []
    count = 0
    other_text = ""
    follows_finding = False
    for index, ((line, _), match) in enumerate(zip(lines, matches, strict=True)):
        if match is not None:
            follows_finding = True
        elif line.strip():
            other_text = other_text or sample_text(line)
            next_line = lines[index + 1][0] if index + 1 < len(lines) else ""
            if not is_banner_line(line, next_line, follows_finding=follows_finding):
                follows_finding = False
                count += 1
                if len(unread) < SAMPLES_MAX:
                    unread.append(sample_text(line))
    return ImportedReport(list(findings), unread=UnreadText(count, tuple(unread)), other_text=other_text)


def _split_lines(data: bytes) -> list[_Line]:
    """Return the lines of a report, which may end with CR or LF. Raises UnreadableReport for invalid UTF-16."""
    try:
        data = strip_color_codes(as_utf8(data))
    except ValueError as error:
        raise UnreadableReport(str(error)) from error
    lines = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")
    return [
        (line[: LINE_BYTES_MAX + 1].decode("utf-8", "surrogateescape"), len(line) <= LINE_BYTES_MAX) for line in lines
    ]


def _path(text: str) -> str | bytes:
    """Return a path as text, or as bytes if it is not UTF-8."""
    data = text.encode("utf-8", "surrogateescape")
    return text if data.decode("utf-8", "replace") == text else data


def _text(text: str) -> str:
    """Return a text in which U+FFFD replaces bytes that are not UTF-8."""
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
