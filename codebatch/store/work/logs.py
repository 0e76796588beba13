"""Reading of the last lines of an attempt's log as text (SPEC.md "Attempts")."""

from __future__ import annotations

from pathlib import Path

from codebatch.system.files.file_reader import FileReader

TAIL_BYTES_MAX = 1 << 16
"""Maximum number of bytes that are read at the end of a log to find its last lines."""


def last_lines(files: FileReader, path: Path, lines: int) -> list[str]:
    """Return the last `lines` lines of a log as text, or an empty list if the log is missing."""
    end = files.size(path) or 0
    begin = max(0, end - TAIL_BYTES_MAX)
    if not end:
        return []
    tail = files.read_range(path, begin, end - begin).decode("utf-8", "replace").splitlines()
    return tail[-lines:]
