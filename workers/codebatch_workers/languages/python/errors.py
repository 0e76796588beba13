"""Errors in files of Python."""

from __future__ import annotations

from codecs import BOM_UTF8
from collections.abc import Mapping

from codebatch_workers.lint.language_errors import LanguageErrors
from codebatch_workers.syntax.source import SourceFile

_UNREAD_ENCODINGS = ("utf-16", "utf-32")


def _encoding_problem(file: SourceFile) -> tuple[int, str] | None:
    """Return why Python refuses to read the bytes of a file: invalid bytes, UTF-16, UTF-32, or NUL characters."""
    if file.encoding_problem:
        return 0, file.encoding_problem
    if file.encoding.startswith(_UNREAD_ENCODINGS):
        return 0, f"Python does not support source files in {file.encoding.upper()}"
    if file.utf8.startswith(BOM_UTF8):
        return 0, "Python does not accept a second byte order mark"
    offset = file.utf8.find(b"\0")
    return None if offset < 0 else (offset, "Python does not accept NUL characters")


ERRORS: Mapping[str, LanguageErrors] = {
    "python": LanguageErrors(has_exact_parser=True, encoding_problem=_encoding_problem, requires_utf8=True)
}
