"""A finding in a file, by byte offsets, as a record."""

from __future__ import annotations

from codebatch.model.record import Diagnostic, Severity
from codebatch_workers.syntax.source import SourceFile

# Of findings that name no other. Those of a task that is not built in are given its name (execution.py).
OWN_TOOL = "codebatch"


def diagnostic(
    file: SourceFile,
    start: int,
    end: int,
    *,
    code: str,
    message: str,
    severity: Severity = "warning",
    tool: str = OWN_TOOL,
) -> Diagnostic:
    """A finding from one offset in `file.utf8` to another, the end exclusive."""
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
