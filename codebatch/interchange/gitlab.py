"""Writing of the Code Quality report of GitLab.

Each fingerprint must be unique, because GitLab drops later findings with the same one.
"""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import sha256

import msgspec

from codebatch.interchange.findings import Export, ExportedFinding, sort_by_location
from codebatch.interchange.locations import path_text
from codebatch.model.record import Severity

_WRITTEN_SEVERITIES: dict[Severity, str] = {"error": "major", "warning": "minor", "info": "info", "hint": "info"}


def export_gitlab(outgoing: Iterable[ExportedFinding]) -> Export:
    """Return a JSON array of findings sorted by path and location, one on each line."""
    rows = [msgspec.json.encode(_finding_row(finding)) for finding in sort_by_location(outgoing)]
    return Export(data=b"[" + b",".join(b"\n" + row for row in rows) + b"\n]\n", count=len(rows))


def _finding_row(outgoing: ExportedFinding) -> dict[str, object]:
    diagnostic = outgoing.diagnostic
    begin = max(diagnostic.line, 1)
    # The end of a finding is exclusive: if it is at the start of a line, the finding does not include this line.
    end = max(diagnostic.end_line - (diagnostic.end_column <= 1), begin)
    return {
        "description": diagnostic.message,
        "check_name": diagnostic.code,
        "fingerprint": _finding_fingerprint(outgoing),
        "severity": _WRITTEN_SEVERITIES[diagnostic.severity],
        "location": {"path": path_text(outgoing.path), "lines": {"begin": begin, "end": end}},
    }


def _finding_fingerprint(outgoing: ExportedFinding) -> str:
    """Return a digest of the path and the fingerprint of a finding.

    If the finding has no fingerprint, because the content of its file is missing, use the whole finding instead.
    """
    identity = outgoing.fingerprint or msgspec.json.encode(outgoing.diagnostic).decode()
    return sha256(b"\0".join((outgoing.path, identity.encode()))).hexdigest()
