"""GitLab's Code Quality report: findings, each with a fingerprint that no other has, else the later ones vanish."""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import sha256

import msgspec

from codebatch.exchange.findings import Outgoing, by_place
from codebatch.exchange.locations import text_of
from codebatch.exchange.model import Export
from codebatch.model.record import Severity

_SEVERITIES: dict[Severity, str] = {"error": "major", "warning": "minor", "info": "info", "hint": "info"}


def export_gitlab(outgoing: Iterable[Outgoing]) -> Export:
    """Findings by path and place, a line each, in one array."""
    rows = [msgspec.json.encode(_row(each)) for each in by_place(outgoing)]
    return Export(data=b"[" + b",".join(b"\n" + row for row in rows) + b"\n]\n", count=len(rows))


def _row(each: Outgoing) -> dict[str, object]:
    found = each.found
    begin = max(found.line, 1)
    # An end is behind what is found: of what ends where a line begins, that line is none.
    end = max(found.end_line - (found.end_column <= 1), begin)
    return {
        "description": found.message,
        "check_name": found.code,
        "fingerprint": _fingerprint(each),
        "severity": _SEVERITIES[found.severity],
        "location": {"path": text_of(each.path), "lines": {"begin": begin, "end": end}},
    }


def _fingerprint(each: Outgoing) -> str:
    """Of the path and what knows the finding again; where its file is lost, of where it stands and what it says."""
    known = each.fingerprint or msgspec.json.encode(each.found).decode()
    return sha256(b"\0".join((each.path, known.encode()))).hexdigest()
