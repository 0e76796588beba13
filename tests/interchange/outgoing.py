"""Findings for tests of exports: plain ones, and ones with hostile content."""

from __future__ import annotations

from codebatch.interchange.findings import ExportedFinding, ExportedFindings
from codebatch.model.entry import path_fields
from codebatch.model.record import Diagnostic, Severity
from codebatch.operations.export.sources import BatchSources

HOSTILE = "100% a,b: ::error::c\r\n\x1b[31m\x85\u202e<b>&\"'|`]]>\ufffe\U0001f600\\"
HOSTILE_PATH = b'a b/%41:,\t"<&\xe9\xff.py'


def outgoing(
    code: str = "F401",
    severity: Severity = "warning",
    *,
    path: bytes = b"src/a.py",
    tool: str = "ruff",
    message: str = "not used",
    place: tuple[int, int, int, int] = (3, 5, 3, 8),
) -> ExportedFinding:
    """Return a finding with a fingerprint. `place` is line, column, end line, end column."""
    text, encoded = path_fields(path)
    line, column, end_line, end_column = place
    diagnostic = Diagnostic(
        path=text,
        path_b64=encoded,
        line=line,
        column=column,
        end_line=end_line,
        end_column=end_column,
        severity=severity,
        code=code,
        message=message,
        tool=tool,
    )
    return ExportedFinding(diagnostic, path, fingerprint=f"{code}{line}".ljust(32, "0"))


FINDINGS = (
    outgoing("bare-except", "error", tool="codebatch", message="catches all", place=(2, 1, 4, 1)),
    outgoing(message=HOSTILE, path=HOSTILE_PATH, place=(1, 4, 1, 6))._replace(state="new", is_changed=True),
    outgoing("E711", "info")._replace(state="severity_raised"),
    outgoing("E999", "hint", place=(0, 0, 0, 0))._replace(fingerprint=""),
)
CONTENTS = {b"src/a.py": b"\xef\xbb\xbfone\ntwo\n    three\nfour\n", HOSTILE_PATH: "a\U00010410é = b\n".encode()}


def told(*findings: ExportedFinding, incomplete: str = "") -> ExportedFindings:
    """Return findings to export, with two tools, one of which has a version."""
    return ExportedFindings(
        findings=findings or FINDINGS, tools={"codebatch": "", "ruff": "0.17.5"}, incomplete=incomplete
    )


class Held(BatchSources):
    """Sources of some given contents only."""

    def __init__(self, contents: dict[bytes, bytes]) -> None:
        self.lost = set()
        self._contents = contents

    def content(self, path: bytes) -> bytes | None:
        data = self._contents.get(path)
        if data is None:
            self.lost.add(path)
        return data
