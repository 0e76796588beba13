"""Construction of findings in a file."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from msgspec import UnsetType

from codebatch.model.record import Diagnostic, Severity

# The default tool of findings. In findings of custom tasks, the name of the task replaces it (execution.py).
OWN_TOOL = "codebatch"


class LocatedFile(Protocol):
    """The part of `SourceFile` that converts offsets to lines and columns (source.py)."""

    @property
    def utf8(self) -> bytes: ...
    @property
    def path_fields(self) -> tuple[str | UnsetType, str | UnsetType]: ...
    @property
    def line_count(self) -> int: ...
    @property
    def line_starts(self) -> Sequence[int]: ...
    def position(self, offset: int) -> tuple[int, int]: ...


def diagnostic(
    file: LocatedFile,
    start: int,
    end: int,
    *,
    code: str,
    message: str,
    severity: Severity = "warning",
    tool: str = OWN_TOOL,
) -> Diagnostic:
    """Return a finding that spans `start` to `end` (exclusive). Both are offsets in `file.utf8`."""
    path, path_b64 = file.path_fields
    line, column = file.position(start)
    end_line, end_column = file.position(end)
    return Diagnostic(
        path=path,
        path_b64=path_b64,
        line=line,
        column=column,
        end_line=end_line,
        end_column=end_column,
        severity=severity,
        code=code,
        message=message,
        tool=tool,
    )


def diagnostic_at(
    file: LocatedFile, line: int, message: str, *, column: int = 1, code: str = "", severity: Severity = "warning"
) -> Diagnostic:
    """Return a finding from a position to the end of its line. Raises ValueError if the file lacks the position."""
    lines = max(file.line_count, 1)
    if not 1 <= line <= lines:
        raise ValueError(f"the finding is at line {line}, but the file has {lines} lines")
    start = file.line_starts[line - 1]
    end = file.utf8.find(b"\n", start)
    _, last = file.position(len(file.utf8) if end < 0 else end)
    if not 1 <= column <= last:
        raise ValueError(f"the finding is at column {column} of line {line}, which ends before {last}")
    path, path_b64 = file.path_fields
    return Diagnostic(
        path=path,
        path_b64=path_b64,
        line=line,
        column=column,
        end_line=line,
        end_column=last,
        severity=severity,
        code=code,
        message=message,
        tool=OWN_TOOL,
    )
