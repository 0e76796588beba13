"""Source lines for display, and code lines. This module imports neither a parser nor rules, so it loads fast."""

from __future__ import annotations

from collections.abc import Mapping
from io import BytesIO
from itertools import islice

from codebatch.model.task import JsonValue
from codebatch_workers.duplicates.code_lines import code_lines
from codebatch_workers.syntax.language.encodings import decode_content, is_binary


def source_lines(
    path: bytes, content: bytes, contexts: Mapping[str, bytes], first: int, last: int
) -> dict[str, JsonValue]:
    """Return the number of lines, and the texts of lines `first` to `last` without LF. Binary files have none."""
    if is_binary(content):
        return {"count": 0, "is_binary": True, "lines": []}
    utf8 = _decode_utf8(path, content, contexts)
    count = utf8.count(b"\n") + (not utf8.endswith(b"\n") and bool(utf8))
    decoded_lines = [line.removesuffix(b"\n").decode() for line in islice(BytesIO(utf8), first - 1, last)]
    return {"count": count, "is_binary": False, "lines": list(decoded_lines)}


def file_code_lines(
    path: bytes, content: bytes, contexts: Mapping[str, bytes], comments: bytes
) -> tuple[list[bytes], list[int]]:
    """Return the code lines of a file, and the line number of each.

    `comments` are the locations of comments, as stored in the file's fingerprints.
    """
    return code_lines(_decode_utf8(path, content, contexts), comments)


def decode_text(content: bytes) -> bytes:
    """Return the text of a file in UTF-8. A declared encoding (PEP 263) counts in every language."""
    return decode_content(content, lambda: True).utf8


def _decode_utf8(path: bytes, content: bytes, contexts: Mapping[str, bytes]) -> bytes:
    if path.endswith(b".ipynb"):
        from codebatch_workers.syntax.source import SourceFile  # Imported late: only notebooks need it.

        return SourceFile(path, content, executable=False, contexts=contexts).utf8

    def is_python() -> bool:
        # Imported late: only files with a `coding` declaration need it.
        from codebatch_workers.syntax.source import SourceFile

        return SourceFile(path, content, executable=False, contexts=contexts).syntax.has_encoding_comments

    return decode_content(content, is_python).utf8
