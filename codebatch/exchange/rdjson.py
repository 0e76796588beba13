"""The diagnostic format of reviewdog (proto/rdf in its repository). Columns are bytes of a line, counted from 1."""

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
# Number of code points of a line that are measured together.
_PART = 1000


def export_rdjson(outgoing: Iterable[Outgoing], sources: BatchSources) -> Export:
    """Return findings sorted by location, one a line. Files with missing content are added to `sources`.

    Raises StoreCorrupt.
    """
    rows = []
    for path, group in groupby(by_place(outgoing), key=lambda group: group.path):
        content = sources.content(path)
        lines = None if content is None else content.removeprefix(codecs.BOM_UTF8).split(b"\n")
        rows += [msgspec.json.encode(_row(finding, lines)) for finding in group]
    head = b'{"source":{"name":"codebatch"},"diagnostics":['
    return Export(data=head + b",".join(b"\n" + row for row in rows) + b"\n]}\n", count=len(rows))


def _row(outgoing: Outgoing, lines: Sequence[bytes] | None) -> dict[str, object]:
    diagnostic = outgoing.found
    location: dict[str, object] = {"path": text_of(outgoing.path)}
    if diagnostic.line >= 1:
        location["range"] = _range(diagnostic, lines)
    row: dict[str, object] = {
        "message": diagnostic.message,
        "location": location,
        "severity": _SEVERITIES[diagnostic.severity],
        "source": {"name": diagnostic.tool},
        "code": {"value": diagnostic.code},
    }
    return {**row, "original_output": diagnostic.severity} if diagnostic.severity == "hint" else row


def _range(diagnostic: Diagnostic, lines: Sequence[bytes] | None) -> dict[str, object]:
    start = _position(diagnostic.line, diagnostic.column, lines)
    if (diagnostic.end_line, diagnostic.end_column) < (diagnostic.line, diagnostic.column):
        return {"start": start}
    return {"start": start, "end": _position(diagnostic.end_line, diagnostic.end_column, lines)}


def _position(line: int, column: int, lines: Sequence[bytes] | None) -> dict[str, int]:
    """Return a position, without its column if the content of the file is missing."""
    if lines is None:
        return {"line": line}
    text = lines[line - 1] if 0 < line <= len(lines) else b""
    return {"line": line, "column": byte_column(text, column)}


def byte_column(text: bytes, column: int) -> int:
    """Convert a column in code points to bytes, both counted from 1. An invalid byte counts as one code point."""
    characters = max(column - 1, 0)
    if text.isascii():
        return characters + 1
    decoded, starts = _decode_with_offsets(text)
    part = min(characters, len(decoded)) // _PART
    inside = decoded[part * _PART : characters]
    behind = max(characters - len(decoded), 0)
    return starts[part] + _size(inside) + behind + 1


@functools.lru_cache(maxsize=4)
def _decode_with_offsets(text: bytes) -> tuple[str, list[int]]:
    """Return a decoded line, and the byte offset of each part.

    Cached, because minified code has all findings in one line.
    """
    decoded = text.decode("utf-8", "surrogateescape")
    sizes = (_size(decoded[at : at + _PART]) for at in range(0, len(decoded), _PART))
    return decoded, [0, *accumulate(sizes)]


def _size(text: str) -> int:
    return len(text.encode("utf-8", "surrogateescape"))
