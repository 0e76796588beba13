"""Findings as other programs report them, and the error for unreadable reports."""

from __future__ import annotations

import codecs
from collections.abc import Iterable, Iterator
from typing import Annotated, Literal, NamedTuple, TypeVar

import msgspec

from codebatch.model.record import Severity

REPORTED_MAX = 1_000_000
MESSAGE_CHARACTERS_MAX = 65_536

Unit = Literal["characters", "utf-16", "utf-8"]
"""The unit of columns: code points, UTF-16 units, or UTF-8 bytes."""

Whole = Annotated[float, msgspec.Meta(multiple_of=1)]
"""An integer as in JSON Schema, which includes 2.0."""

T = TypeVar("T")
_WIDE = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


class Unreadable(ValueError):
    """A report that is not in the expected format. The message follows a colon."""


class ReportedSpan(NamedTuple):
    """A location as offset from 0 and length in a file, in units of columns or in bytes of the stored file."""

    start: int
    length: int
    is_of_bytes: bool


class Reported(NamedTuple):
    """A finding. Lines and columns are 1-based, ends exclusive, and 0 if missing. Texts may be empty.

    `span` applies if there is no line. `paths` are names of the file, the most likely first. If `is_uri` is set,
    percent signs in them are escapes.
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
    unit: Unit = "characters"
    is_uri: bool = False
    span: ReportedSpan | None = None


class Report(NamedTuple):
    """The content of a report. `dismissed` counts results that the report itself marks as no findings."""

    findings: list[Reported]
    dismissed: int = 0
    has_failed: bool = False


def whole(number: float | None) -> int:
    """Return a number as int, or 0 for None."""
    return int(number or 0)


def decoded(data: bytes, decoder: msgspec.json.Decoder[T]) -> T:
    """Decode JSON. Raises Unreadable."""
    try:
        return decoder.decode(as_utf8(data))
    except RecursionError as error:
        raise Unreadable("it is nested too deeply") from error
    except ValueError as error:
        text = str(error)
        raise Unreadable(f"{text[:1].lower()}{text[1:]}" if text[1:2].islower() else text) from error


def as_utf8(data: bytes) -> bytes:
    """Return a text as UTF-8 without byte order mark. UTF-16 is converted, because Windows programs write it.

    Raises ValueError.
    """
    if data.startswith(_WIDE):
        return data.decode("utf-16").encode()
    return data.removeprefix(codecs.BOM_UTF8)


def bounded(findings: Iterable[Reported]) -> Iterator[Reported]:
    """Yield the findings. Raises Unreadable if there are more than REPORTED_MAX."""
    for count, finding in enumerate(findings):
        if count >= REPORTED_MAX:
            raise Unreadable(f"it has more than {REPORTED_MAX:,} findings")
        yield finding
