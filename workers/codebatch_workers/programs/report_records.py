"""Findings in the reports of programs, as `diagnostic` records."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from codebatch.interchange.reports import MESSAGE_CHARACTERS_MAX, ImportedFinding
from codebatch.model.record import Diagnostic
from codebatch_workers.programs.report_locations import LocationConverter
from codebatch_workers.syntax.source import SourceFile

NAME_CHARACTERS_MAX = 1000
"""Maximum length of the code and of the tool of a finding."""
_ELLIPSIS = "…"


class ConvertedFindings(NamedTuple):
    """The findings of a file as records, by position, and those at a place that the file does not have."""

    records: list[Diagnostic]
    without_place: list[ImportedFinding]


def convert_findings(
    file: SourceFile, findings: Iterable[ImportedFinding], *, task: str, tool: str = ""
) -> ConvertedFindings:
    """Convert the findings of a file to records.

    The name of the task is the code of findings that have none, and the tool if `tool` is empty.
    """
    path, path_b64 = file.path_fields
    locations = LocationConverter(file)
    located = [(finding, locations.find(finding)) for finding in findings]
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
        for finding, location in located
        if location is not None
    ]
    records.sort(key=lambda record: (record.line, record.column))
    return ConvertedFindings(records, [finding for finding, location in located if location is None])


def _shorten(text: str, characters_max: int) -> str:
    return text if len(text) <= characters_max else text[: characters_max - 1] + _ELLIPSIS
