"""import: findings from reports of another program, as `diagnostic` records sorted by location.

A finding is excluded if the batch does not have its file, or if the file does not have its line. `report` contains the
numbers of excluded findings (`ExcludedRecords`).
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from codebatch.interchange.report_formats import read_report
from codebatch.interchange.reports import (
    ImportedFinding,
    ImportedReport,
    UnreadableReport,
    UnreadText,
    limit_findings,
)
from codebatch.model.analysis.imports import ExcludedRecords, ImportConfig, split_files
from codebatch.model.analysis.report_formats import ReportFormat
from codebatch.model.record import Diagnostic
from codebatch_workers.api.project import Project
from codebatch_workers.api.protocols import TaskEnvironment
from codebatch_workers.programs.report_paths import ReportedPaths
from codebatch_workers.programs.report_records import convert_findings

EXAMPLES_MAX = 5
_EXAMPLE_CHARACTERS_MAX = 500


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
        report = _read_reports(self._config.format, split_files(self._read_object(self._config.object)))
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
            for record in convert_findings(project.source(files[path]), findings_by_path[path], task=self._name).records
        ]
        replaced = [finding.replaced for finding in report.findings if finding.replaced]
        excluded = ExcludedRecords(
            unknown_files=unknown_files,
            unknown_locations=len(report.findings) - unknown_files - len(records),
            dismissed=report.dismissed,
            tool_failed=report.has_failed,
            examples=tuple(examples),
            unread=report.unread.parts,
            unread_sample=next(iter(report.unread.samples), ""),
            replaced=len(replaced),
            replaced_sample=next(iter(replaced), ""),
        )
        self.report = msgspec.json.encode(excluded).decode()
        return records


def _read_reports(form: ReportFormat, files: Sequence[bytes]) -> ImportedReport:
    """Read several report files, and return their content as one report.

    Raises UnreadableReport. If there are several files, the message contains the number of the file that could not be
    read.
    """
    reports: list[ImportedReport] = []
    for number, data in enumerate(files, 1):
        try:
            reports.append(read_report(form, data))
        except UnreadableReport as error:
            raise UnreadableReport(
                f"file {number} of {len(files)}: {error}" if len(files) > 1 else str(error)
            ) from error
    return ImportedReport(
        findings=list(limit_findings(finding for report in reports for finding in report.findings)),
        dismissed=sum(report.dismissed for report in reports),
        has_failed=any(report.has_failed for report in reports),
        unread=UnreadText(
            sum(report.unread.parts for report in reports),
            tuple(sample for report in reports for sample in report.unread.samples),
        ),
    )


def _display_path(path: str | bytes) -> str:
    text = path.decode("utf-8", "backslashreplace") if isinstance(path, bytes) else path
    return text[:_EXAMPLE_CHARACTERS_MAX]
