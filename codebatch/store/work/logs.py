"""The end of an attempt's log (SPEC.md "Attempts"), as text."""

from __future__ import annotations

from pathlib import Path

from codebatch.system.files.file_reader import FileReader

TAIL_BYTES_MAX = 1 << 16
"""Of the end of a log in which its last lines are looked for, where all of it is not wanted."""


def last_lines(files: FileReader, path: Path, lines: int) -> list[str]:
    """The last lines of a log; none where it is not there."""
    end = files.size(path) or 0
    begin = max(0, end - TAIL_BYTES_MAX)
    if not end:
        return []
    found = files.read_range(path, begin, end - begin).decode("utf-8", "replace").splitlines()
    return found[-lines:]
