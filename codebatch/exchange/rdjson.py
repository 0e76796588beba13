"""reviewdog's diagnostic format (proto/rdf in its repository): columns are bytes of a line, from 1."""

from __future__ import annotations

import codecs
import functools
from collections.abc import Iterable, Sequence
from itertools import accumulate, groupby

import msgspec

from codebatch.exchange.findings import Outgoing, by_place
from codebatch.exchange.locations import text_of
from codebatch.exchange.model import Export
from codebatch.exchange.sources import BatchSources
from codebatch.model.record import Diagnostic, Severity

_SEVERITIES: dict[Severity, str] = {"error": "ERROR", "warning": "WARNING", "info": "INFO", "hint": "INFO"}
# Code points of a line that are counted at once.
_PART = 1000


def export_rdjson(outgoing: Iterable[Outgoing], sources: BatchSources) -> Export:
    """Findings by path and place, a line each; `sources` learns what is lost. Raises StoreCorrupt."""
    rows = []
    for path, each in groupby(by_place(outgoing), key=lambda each: each.path):
        content = sources.content(path)
        lines = None if content is None else content.removeprefix(codecs.BOM_UTF8).split(b"\n")
        rows += [msgspec.json.encode(_row(one, lines)) for one in each]
    head = b'{"source":{"name":"codebatch"},"diagnostics":['
    return Export(data=head + b",".join(b"\n" + row for row in rows) + b"\n]}\n", count=len(rows))


def _row(each: Outgoing, lines: Sequence[bytes] | None) -> dict[str, object]:
    found = each.found
    location: dict[str, object] = {"path": text_of(each.path)}
    if found.line >= 1:
        location["range"] = _range(found, lines)
    row: dict[str, object] = {
        "message": found.message,
        "location": location,
        "severity": _SEVERITIES[found.severity],
        "source": {"name": found.tool},
        "code": {"value": found.code},
    }
    return {**row, "original_output": found.severity} if found.severity == "hint" else row


def _range(found: Diagnostic, lines: Sequence[bytes] | None) -> dict[str, object]:
    start = _position(found.line, found.column, lines)
    if (found.end_line, found.end_column) < (found.line, found.column):
        return {"start": start}
    return {"start": start, "end": _position(found.end_line, found.end_column, lines)}


def _position(line: int, column: int, lines: Sequence[bytes] | None) -> dict[str, int]:
    """Without its column where the text is lost by which that is counted."""
    if lines is None:
        return {"line": line}
    text = lines[line - 1] if 0 < line <= len(lines) else b""
    return {"line": line, "column": byte_column(text, column)}


def byte_column(text: bytes, column: int) -> int:
    """A column in code points as one in bytes, both from 1. A byte that is no UTF-8 is a character."""
    characters = max(column - 1, 0)
    if text.isascii():
        return characters + 1
    decoded, starts = _measured(text)
    part = min(characters, len(decoded)) // _PART
    inside = decoded[part * _PART : characters]
    behind = max(characters - len(decoded), 0)
    return starts[part] + _size(inside) + behind + 1


@functools.lru_cache(maxsize=4)
def _measured(text: bytes) -> tuple[str, list[int]]:
    """A line decoded, and at what byte each part of it begins: what is minified has all findings in one line."""
    decoded = text.decode("utf-8", "surrogateescape")
    sizes = (_size(decoded[at : at + _PART]) for at in range(0, len(decoded), _PART))
    return decoded, [0, *accumulate(sizes)]


def _size(text: str) -> int:
    return len(text.encode("utf-8", "surrogateescape"))
