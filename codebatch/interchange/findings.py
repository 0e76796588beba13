"""The input and the result of an export, which are the same for all formats."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, NamedTuple

import msgspec

from codebatch.model.entry import path_fields
from codebatch.model.record import Diagnostic, Severity

ExportFormat = Literal["sarif", "github", "gitlab", "checkstyle", "rdjson", "junit", "ctags"]


class ExportedFinding(NamedTuple):
    """An exported finding and its file.

    If a comparison of two batches is exported, `state` is the state of the finding, and `reason` explains this state.
    `is_changed` is set if the older batch does not have the finding's line. `fingerprint` identifies the finding in
    later exports. It is empty if the content of the file is missing. `is_allowed` is set if a check does not fail for
    the finding.
    """

    diagnostic: Diagnostic
    path: bytes
    state: str | None = None
    reason: str | None = None
    is_changed: bool = False
    fingerprint: str = ""
    is_allowed: bool = False


class Export(msgspec.Struct, frozen=True, kw_only=True):
    """The result of an export.

    - `data`: the bytes of the exported file.
    - `count`: the number of exported findings, or for ctags the number of definitions.
    - `excluded`: descriptions of findings that were left out because of limits of the format.
    - `summary`: for the format `github`, a summary in Markdown; otherwise empty.
    """

    data: bytes
    count: int
    excluded: tuple[str, ...] = ()
    summary: bytes = b""


class ExportedFindings(msgspec.Struct, frozen=True, kw_only=True):
    """The input of an export.

    `tools` maps each tool to its version, or to an empty string if that is unknown. Tools without findings are
    included. `incomplete` describes missing results, or is empty. `is_accepted` is set if the user accepts them.
    """

    findings: tuple[ExportedFinding, ...]
    tools: dict[str, str]
    incomplete: str
    is_accepted: bool = False


def own_finding(
    path: bytes, code: str, message: str, *, line: int = 1, severity: Severity = "error"
) -> ExportedFinding:
    """Return a statement of codebatch about a line as a finding, for formats that have only findings."""
    text, encoded = path_fields(path)
    diagnostic = Diagnostic(
        path=text,
        path_b64=encoded,
        line=line,
        column=1,
        end_line=line,
        end_column=1,
        severity=severity,
        code=code,
        message=message,
        tool="codebatch",
    )
    return ExportedFinding(diagnostic, path, "new")


def sort_by_location(outgoing: Iterable[ExportedFinding]) -> list[ExportedFinding]:
    """Sort findings by path and location."""
    return sorted(
        outgoing,
        key=lambda finding: (finding.path, finding.diagnostic.line, finding.diagnostic.column, finding.diagnostic.code),
    )
