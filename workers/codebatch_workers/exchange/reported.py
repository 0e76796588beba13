"""A finding as another program reports it, and what is said of a file that cannot be read."""

from __future__ import annotations

import codecs
from collections.abc import Iterable, Iterator
from typing import Annotated, Literal, NamedTuple, TypeVar

import msgspec

from codebatch.model.record import Severity

REPORTED_MAX = 1_000_000
MESSAGE_CHARACTERS_MAX = 65_536

Unit = Literal["characters", "utf-16", "utf-8"]
"""What columns count: code points, units of UTF-16, bytes of UTF-8."""

Whole = Annotated[float, msgspec.Meta(multiple_of=1)]
"""A whole number as JSON Schema has it, to which 2.0 is one too."""

T = TypeVar("T")
_WIDE = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


class Unreadable(ValueError):
    """A file that is not what it is said to be. The text goes behind a colon."""


class ReportedSpan(NamedTuple):
    """A place in the whole of a file, from 0: in the units of its columns, or in bytes of the file as it lies there."""

    start: int
    length: int
    is_of_bytes: bool


class Reported(NamedTuple):
    """A finding. Lines and columns are 1-based, ends exclusive, and 0 where nothing is said; texts may be empty.

    `span` counts where there is no line. `paths` are what the file may be meant by, the likeliest first; `is_uri`:
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
    """What a file says. `dismissed` of what stands in it are no findings, as it says itself."""

    findings: list[Reported]
    dismissed: int = 0
    has_failed: bool = False


def whole(number: float | None) -> int:
    """A whole number, 0 where nothing is said."""
    return int(number or 0)


def decoded(data: bytes, decoder: msgspec.json.Decoder[T]) -> T:
    """JSON. Raises Unreadable."""
    try:
        return decoder.decode(as_utf8(data))
    except RecursionError as error:
        raise Unreadable("it is nested too deeply") from error
    except ValueError as error:
        text = str(error)
        raise Unreadable(f"{text[:1].lower()}{text[1:]}" if text[1:2].islower() else text) from error


def as_utf8(data: bytes) -> bytes:
    """A text without its mark, as UTF-8 where it is UTF-16, as Windows writes it. Raises ValueError."""
    if data.startswith(_WIDE):
        return data.decode("utf-16").encode()
    return data.removeprefix(codecs.BOM_UTF8)


def bounded(findings: Iterable[Reported]) -> Iterator[Reported]:
    """The findings, of which there may be REPORTED_MAX. Raises Unreadable."""
    for count, each in enumerate(findings):
        if count >= REPORTED_MAX:
            raise Unreadable(f"it has more than {REPORTED_MAX:,} findings")
        yield each
