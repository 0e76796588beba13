"""import: findings from reports of another program, as `diagnostic` records sorted by location.

A finding is excluded if the batch does not have its file, or if the file does not have its line. `report` contains the
numbers of excluded findings (`ExcludedRecords`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import msgspec

from codebatch.interchange.checkstyle import read_checkstyle
from codebatch.interchange.jsonl import read_jsonl
from codebatch.interchange.rdjson import read_rdjson
from codebatch.interchange.reports import (
    MESSAGE_CHARACTERS_MAX,
    ImportedFinding,
    ImportedReport,
    UnreadableReport,
    limit_findings,
)
from codebatch.interchange.sarif import read_sarif
from codebatch.model.analysis.imports import ExcludedRecords, ImportConfig, ImportFormat, split_files
from codebatch.model.entry import Entry
from codebatch.model.record import Diagnostic
from codebatch_workers.api.project import Project
from codebatch_workers.api.protocols import TaskEnvironment
from codebatch_workers.tasks.imported_locations import LocationConverter
from codebatch_workers.tasks.imported_paths import ReportedPaths

EXAMPLES_MAX = 5
_EXAMPLE_CHARACTERS_MAX = 500
_ELLIPSIS = "…"

_READER_BY_FORMAT: Mapping[ImportFormat, Callable[[bytes], ImportedReport]] = {
    "checkstyle": read_checkstyle,
    "jsonl": read_jsonl,
    "rdjson": read_rdjson,
    "sarif": read_sarif,
}


def create(environment: TaskEnvironment[ImportConfig]) -> ImportTask:
    """Return the task."""
    return ImportTask(environment)


class ImportTask:
    """The task: `diagnostic` records."""

    def __init__(self, environment: TaskEnvironment[ImportConfig]) -> None:
        self._config = environment.config
        self._read_object = environment.read_object
        self._name = environment.name
        self.report = ""

    def run_project(self, project: Project) -> list[Diagnostic]:
        """Return the findings in files of the batch, by path. Raises UnreadableReport or ObjectMissing."""
        assert self._config.format, "what is planned is configured"
        report = _read_reports(
            _READER_BY_FORMAT[self._config.format], split_files(self._read_object(self._config.object))
        )
        files = {entry.path: entry for entry in project.files}
        paths = ReportedPaths(files.keys(), self._config.root)
        findings_by_path: dict[bytes, list[ImportedFinding]] = {}
        examples: dict[str, None] = {}
        unknown_files = 0
        for finding in report.findings:
            candidates = (paths.find(path, is_uri=finding.is_uri) for path in finding.paths)
            path = next(filter(None, candidates), None)
            if path is None:
                unknown_files += 1
                if finding.paths and len(examples) < EXAMPLES_MAX:
                    examples[_display_path(finding.paths[0])] = None
            else:
                findings_by_path.setdefault(path, []).append(finding)
        records = [
            record
            for path in sorted(findings_by_path)
            for record in self._convert_findings(project, files[path], findings_by_path[path])
        ]
        excluded = ExcludedRecords(
            unknown_files=unknown_files,
            unknown_locations=len(report.findings) - unknown_files - len(records),
            dismissed=report.dismissed,
            tool_failed=report.has_failed,
            examples=tuple(examples),
        )
        self.report = msgspec.json.encode(excluded).decode()
        return records

    def _convert_findings(self, project: Project, entry: Entry, reported: list[ImportedFinding]) -> list[Diagnostic]:
        file = project.source(entry)
        path, path_b64 = file.path_fields
        locations = LocationConverter(file)
        records = [
            Diagnostic(
                path=path,
                path_b64=path_b64,
                **location._asdict(),
                severity=finding.severity,
                code=finding.code or self._name,
                message=_shorten_message(finding.message),
                tool=finding.tool or self._name,
            )
            for finding in reported
            if (location := locations.find(finding)) is not None
        ]
        return sorted(records, key=lambda record: (record.line, record.column))


def _read_reports(read: Callable[[bytes], ImportedReport], files: Sequence[bytes]) -> ImportedReport:
    """Read several report files, and return their content as one report.

    Raises UnreadableReport. If there are several files, the message contains the number of the file that could not be
    read.
    """
    reports: list[ImportedReport] = []
    for number, data in enumerate(files, 1):
        try:
            reports.append(read(data))
        except UnreadableReport as error:
            raise UnreadableReport(
                f"file {number} of {len(files)}: {error}" if len(files) > 1 else str(error)
            ) from error
    return ImportedReport(
        findings=list(limit_findings(finding for report in reports for finding in report.findings)),
        dismissed=sum(report.dismissed for report in reports),
        has_failed=any(report.has_failed for report in reports),
    )


def _shorten_message(message: str) -> str:
    if len(message) <= MESSAGE_CHARACTERS_MAX:
        return message
    return message[: MESSAGE_CHARACTERS_MAX - 1] + _ELLIPSIS


def _display_path(path: str | bytes) -> str:
    text = path.decode("utf-8", "backslashreplace") if isinstance(path, bytes) else path
    return text[:_EXAMPLE_CHARACTERS_MAX]
