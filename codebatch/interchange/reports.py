"""Findings that other programs report, and the error for reports that cannot be read."""

from __future__ import annotations

import codecs
from collections.abc import Iterable, Iterator, Mapping
from typing import Annotated, NamedTuple, TypeVar

import msgspec

from codebatch.model.analysis.report_formats import ColumnUnit
from codebatch.model.record import Severity

REPORTED_FINDINGS_MAX = 1_000_000
MESSAGE_CHARACTERS_MAX = 65_536
SAMPLE_CHARACTERS_MAX = 120
SAMPLES_MAX = 100
NO_MESSAGE = "no message"
"""The description of a missing message, which every finding should have."""
LOCATION_NUMBER_MAX = 2**31 - 1
"""A line or column that no file has. Larger numbers are replaced by it."""
_LOCATION_DIGITS_MAX = 18

SEVERITY_BY_WORD: Mapping[str, Severity] = {
    **dict.fromkeys(("error", "err", "fatal", "fatal error", "critical", "failure"), "error"),
    **dict.fromkeys(("warning", "warn"), "warning"),
    **dict.fromkeys(("info", "information", "note", "notice"), "info"),
    **dict.fromkeys(("hint", "help", "style", "suggestion", "convention", "refactor"), "hint"),
}
"""The severities of words, in lower case, that programs print."""

WholeNumber = Annotated[float, msgspec.Meta(multiple_of=1)]
"""An integer in the sense of JSON Schema: 2.0 is an integer too."""

T = TypeVar("T")
_UTF16_BYTES_SEEN = 4
_UTF16_MARKS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


class UnreadableReport(ValueError):
    """The error that a report is not in the expected format. Messages to users contain its text after a colon."""


class ImportedSpan(NamedTuple):
    """A location in a file, given as an offset, counted from 0, and a length.

    If `is_of_bytes` is set, both are in bytes of the stored file. Otherwise they are in the report's unit of columns
    (Unit).
    """

    start: int
    length: int
    is_of_bytes: bool


class ImportedFinding(NamedTuple):
    """A finding in a report. Lines and columns are counted from 1, and are 0 if missing. Ends are exclusive.

    - `span`: the location as a span, if the report gives no line. Otherwise None.
    - `paths`: possible names of the file, the most likely first. If `is_uri` is set, percent signs in them are escapes.
    - `replaced`: a value of the report that is unknown, for which the finding has a default; otherwise empty.
    - Texts may be empty.
    """

    paths: tuple[str | bytes, ...]
    message: str
    severity: Severity
    code: str = ""
    tool: str = ""
    line: int = 0
    column: int = 0
    end_line: int = 0
    end_column: int = 0
    unit: ColumnUnit = "characters"
    is_uri: bool = False
    span: ImportedSpan | None = None
    replaced: str = ""


class UnreadText(NamedTuple):
    """The parts of a report that are in no finding: lines or elements. `samples` has the first ones."""

    parts: int = 0
    samples: tuple[str, ...] = ()


class ImportedReport(NamedTuple):
    """The content of a report. `dismissed` counts results that the report itself marks as no problem.

    `unread` are the parts that may report a problem in another format. `other_text` is the first part that is in no
    finding, also if it is known to report no problem. A report in which nothing but findings can occur has none.
    """

    findings: list[ImportedFinding]
    dismissed: int = 0
    has_failed: bool = False
    unread: UnreadText = UnreadText()
    other_text: str = ""


def sample_text(text: str) -> str:
    """Return the beginning of a part of a report, for messages."""
    text = " ".join(text.encode("utf-8", "surrogateescape").decode("utf-8", "replace").split())
    return text if len(text) <= SAMPLE_CHARACTERS_MAX else f"{text[:SAMPLE_CHARACTERS_MAX]}…"


def int_or_zero(number: float | None) -> int:
    """Convert a number to int. None becomes 0."""
    return int(number or 0)


def to_location_number(value: object, first: int = 1) -> int:
    """Convert a line or column to one that is counted from 1, given the number of the first one.

    `value` is a number or a text of digits. Return 0 for any other value, and LOCATION_NUMBER_MAX for a larger number.
    """
    if isinstance(value, str) and value.isascii() and value.isdigit():
        value = int(value) if len(value) <= _LOCATION_DIGITS_MAX else LOCATION_NUMBER_MAX
    if isinstance(value, bool) or not isinstance(value, int | float):
        return 0
    return int(max(0, min(value + 1 - first, LOCATION_NUMBER_MAX)))


def unknown_line(value: object) -> str:
    """Return a description of a line that is neither missing nor a number, otherwise an empty text."""
    is_known = value is None or isinstance(value, int | float) or (isinstance(value, str) and not value.strip())
    if is_known or (isinstance(value, str) and value.lstrip("-").isascii() and value.lstrip("-").isdigit()):
        return ""
    return f"line {sample_text(str(value))!r}"


class SeverityWords:
    """The severities of words, without regard to case: those of a user, and SEVERITY_BY_WORD for other words.

    `default` is the severity of other words and of no word.
    """

    def __init__(self, severities: Mapping[str, Severity], default: Severity) -> None:
        self._severities = {**SEVERITY_BY_WORD, **{word.lower(): severity for word, severity in severities.items()}}
        self._default = default

    def find(self, word: str) -> tuple[Severity, str]:
        """Return the severity of a word, and a description of the word if it is unknown."""
        severity = self._severities.get(word.lower())
        unknown = f"severity {sample_text(word)!r}" if severity is None and word.strip() else ""
        return severity or self._default, unknown


def decode_report(data: bytes, decoder: msgspec.json.Decoder[T]) -> T:
    """Decode JSON. Raises UnreadableReport for an invalid text."""
    try:
        return decoder.decode(as_utf8(data))
    except RecursionError as error:
        raise UnreadableReport("it is nested too deeply") from error
    except ValueError as error:
        text = str(error)
        raise UnreadableReport(f"{text[:1].lower()}{text[1:]}" if text[1:2].islower() else text) from error


def decode_lines(data: bytes, decoder: msgspec.json.Decoder[T]) -> Iterator[tuple[int, T]]:
    """Yield the number and the value of each line of JSON. Empty lines are ignored.

    Raises UnreadableReport, which names the line.
    """
    try:
        data = as_utf8(data)
    except ValueError as error:
        raise UnreadableReport(str(error)) from error
    for number, line in enumerate(data.split(b"\n"), 1):
        if line.strip():
            try:
                yield number, decode_report(line, decoder)
            except UnreadableReport as error:
                raise UnreadableReport(f"line {number}: {error}") from error


def as_utf8(data: bytes) -> bytes:
    """Return a text in any encoding of Unicode as UTF-8, without a byte order mark. Raises ValueError.

    Windows programs write UTF-16, some of them without a byte order mark. Reports begin with an ASCII character.
    """
    if data.startswith(_UTF16_MARKS):
        return data.decode("utf-16").encode()
    for encoding, zeros in (("utf-16-le", data[1:_UTF16_BYTES_SEEN:2]), ("utf-16-be", data[:_UTF16_BYTES_SEEN:2])):
        if len(zeros) > 1 and not any(zeros) and any(data[:_UTF16_BYTES_SEEN]):
            return data.decode(encoding).encode()
    return data.removeprefix(codecs.BOM_UTF8)


def limit_findings(findings: Iterable[ImportedFinding]) -> Iterator[ImportedFinding]:
    """Yield the findings unchanged. Raises UnreadableReport if there are more than REPORTED_FINDINGS_MAX."""
    for count, finding in enumerate(findings):
        if count >= REPORTED_FINDINGS_MAX:
            raise UnreadableReport(f"it has more than {REPORTED_FINDINGS_MAX:,} findings")
        yield finding
