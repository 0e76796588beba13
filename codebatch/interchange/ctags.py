"""Writing of tags files in the format of universal-ctags (tags(5)).

A tags file is sorted, so that editors and `readtags` can use binary search.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from itertools import chain, groupby
from operator import itemgetter

from codebatch.interchange.findings import Export
from codebatch.model.task import JsonValue

_TAGS_HEAD = (
    b"!_TAG_FILE_ENCODING\tutf-8\t//",
    b'!_TAG_FILE_FORMAT\t2\t/extended format; --format=1 will not append ;" to lines/',
    b"!_TAG_FILE_SORTED\t1\t/0=unsorted, 1=sorted, 2=foldcase/",
    b"!_TAG_OUTPUT_EXCMD\tnumber\t/number, pattern, mixed, or combineV2/",
    b"!_TAG_OUTPUT_FILESEP\tslash\t/slash or backslash/",
    b"!_TAG_OUTPUT_MODE\tu-ctags\t/u-ctags or e-ctags/",
    b"!_TAG_PROGRAM_NAME\tcodebatch\t//",
)
_SPECIAL_BYTE = re.compile(rb"[\x00-\x1f\x7f\\]")
_SHORT_ESCAPES = {7: b"\\a", 8: b"\\b", 9: b"\\t", 10: b"\\n", 11: b"\\v", 12: b"\\f", 13: b"\\r", 92: b"\\\\"}
_ACCESS_BY_VISIBILITY = {"protected": b"protected", "internal": b"internal", "private": b"private"}


def export_ctags(symbols: Iterable[tuple[bytes, Mapping[str, JsonValue]]]) -> Export:
    """Return a tags file with all definitions, without imports, sorted by name and location.

    `symbols` are pairs of a file's path and one of its `symbol` records. All records of a file are adjacent.
    """
    lines: list[bytes] = []
    for path, of_file in groupby(symbols, key=itemgetter(0)):
        kinds: dict[JsonValue, str] = {}
        for _, symbol in of_file:
            kinds[symbol["qualified"]] = kind = str(symbol["symbol_type"])
            if kind != "import" and symbol["name"]:
                lines.append(_tag_line(path, symbol, kind, kinds.get(symbol["scope"])))
    lines.sort()
    # The tags of a large tree can have hundreds of megabytes, so they are joined only once.
    return Export(data=b"\n".join(chain(_TAGS_HEAD, lines, (b"",))), count=len(lines))


def _tag_line(path: bytes, symbol: Mapping[str, JsonValue], kind: str, scope_kind: str | None) -> bytes:
    """Return the tag of a definition.

    If its scope is a definition of the same file and precedes it, the tag names the scope.
    """
    name = _escape_bytes(str(symbol["name"]).encode())
    if name[:1] in (b" ", b"!"):
        name = b"\\x%02x%b" % (name[0], name[1:])
    first, last = _definition_lines(symbol)
    fields = [b'%d;"' % first, b"kind:%b" % kind.encode(), b"line:%d" % first]
    if scope_kind:
        fields.append(b"scope:%b:%b" % (scope_kind.encode(), _escape_bytes(str(symbol["scope"]).encode())))
    fields.append(b"end:%d" % last)
    if access := _ACCESS_BY_VISIBILITY.get(str(symbol.get("visibility"))):
        fields.append(b"access:%b" % access)
    return b"\t".join((name, _escape_bytes(path), *fields))


def _definition_lines(symbol: Mapping[str, JsonValue]) -> tuple[int, int]:
    """Return the first and the last line of a definition."""
    line, end_line = symbol["line"], symbol["end_line"]
    assert isinstance(line, int)
    assert isinstance(end_line, int)
    return line, max(end_line - (symbol["end_column"] == 1), line)


def _escape_bytes(text: bytes) -> bytes:
    return _SPECIAL_BYTE.sub(lambda match: _SHORT_ESCAPES.get(match[0][0]) or b"\\x%02x" % match[0][0], text)
