"""Findings in the reports of programs, as `diagnostic` records."""

from __future__ import annotations

from collections.abc import Iterable

from codebatch.interchange.reports import MESSAGE_CHARACTERS_MAX, ImportedFinding
from codebatch.model.record import Diagnostic
from codebatch_workers.programs.report_locations import LocationConverter
from codebatch_workers.syntax.source import SourceFile

NAME_CHARACTERS_MAX = 1000
"""Maximum length of the code and of the tool of a finding."""
_ELLIPSIS = "…"


def convert_findings(
    file: SourceFile, findings: Iterable[ImportedFinding], *, task: str, tool: str = ""
) -> list[Diagnostic]:
    """Return the findings of a file as records, by position. Those at a place that the file does not have are left out.

    The name of the task is the code of findings that have none, and the tool if `tool` is empty.
    """
    path, path_b64 = file.path_fields
    locations = LocationConverter(file)
    records = [
        Diagnostic(
            path=path,
            path_b64=path_b64,
            **location._asdict(),
            severity=finding.severity,
            code=_shorten(finding.code, NAME_CHARACTERS_MAX) or task,
            message=_shorten(finding.message, MESSAGE_CHARACTERS_MAX),
            tool=_shorten(finding.tool, NAME_CHARACTERS_MAX) or tool or task,
        )
        for finding in findings
        if (location := locations.find(finding)) is not None
    ]
    return sorted(records, key=lambda record: (record.line, record.column))


def _shorten(text: str, characters_max: int) -> str:
    return text if len(text) <= characters_max else text[: characters_max - 1] + _ELLIPSIS
