"""Findings of another program, out of the files that it wrote: `diagnostic` records, by place.

A finding in no file of the batch, or at a line that its file does not have, is not a record. Such findings are counted
(`ExcludedRecords`); `told` describes the counts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import msgspec

from codebatch.model.analysis.imports import ExcludedRecords, ImportConfig, ImportFormat, split_files
from codebatch.model.entry import Entry
from codebatch.model.record import Diagnostic
from codebatch_workers.api.project import Project
from codebatch_workers.api.protocols import TaskEnvironment
from codebatch_workers.exchange.checkstyle import read_checkstyle
from codebatch_workers.exchange.jsonl import read_jsonl
from codebatch_workers.exchange.paths import Paths
from codebatch_workers.exchange.places import LocationConverter
from codebatch_workers.exchange.rdjson import read_rdjson
from codebatch_workers.exchange.reported import MESSAGE_CHARACTERS_MAX, Report, Reported, Unreadable, bounded
from codebatch_workers.exchange.sarif import read_sarif

EXAMPLES_MAX = 5
_EXAMPLE_CHARACTERS_MAX = 500
_CUT = "…"

_READERS: Mapping[ImportFormat, Callable[[bytes], Report]] = {
    "checkstyle": read_checkstyle,
    "jsonl": read_jsonl,
    "rdjson": read_rdjson,
    "sarif": read_sarif,
}


def create(environment: TaskEnvironment[ImportConfig]) -> Imported:
    """The task."""
    return Imported(environment)


class Imported:
    """`diagnostic` records."""

    def __init__(self, environment: TaskEnvironment[ImportConfig]) -> None:
        self._config = environment.config
        self._read_object = environment.read_object
        self._name = environment.name
        self.told = ""

    def run_project(self, project: Project) -> list[Diagnostic]:
        """The findings in files of the batch. Raises Unreadable or ObjectMissing."""
        assert self._config.format, "what is planned is configured"
        report = _read_all(_READERS[self._config.format], split_files(self._read_object(self._config.object)))
        files = {entry.path: entry for entry in project.files}
        paths = Paths(files.keys(), self._config.root)
        of_file: dict[bytes, list[Reported]] = {}
        examples: dict[str, None] = {}
        no_file = 0
        for each in report.findings:
            known = (paths.find(path, is_uri=each.is_uri) for path in each.paths)
            path = next(filter(None, known), None)
            if path is None:
                no_file += 1
                if each.paths and len(examples) < EXAMPLES_MAX:
                    examples[_shown(each.paths[0])] = None
            else:
                of_file.setdefault(path, []).append(each)
        records = [record for path in sorted(of_file) for record in self._records(project, files[path], of_file[path])]
        left_out = ExcludedRecords(
            unknown_files=no_file,
            unknown_locations=len(report.findings) - no_file - len(records),
            dismissed=report.dismissed,
            tool_failed=report.has_failed,
            examples=tuple(examples),
        )
        self.told = msgspec.json.encode(left_out).decode()
        return records

    def _records(self, project: Project, entry: Entry, reported: list[Reported]) -> list[Diagnostic]:
        file = project.source(entry)
        path, path_b64 = file.path_fields
        places = LocationConverter(file)
        records = [
            Diagnostic(
                path=path,
                path_b64=path_b64,
                **place._asdict(),
                severity=each.severity,
                code=each.code or self._name,
                message=_cut(each.message),
                tool=each.tool or self._name,
            )
            for each in reported
            if (place := places.find(each)) is not None
        ]
        return sorted(records, key=lambda record: (record.line, record.column))


def _read_all(read: Callable[[bytes], Report], files: Sequence[bytes]) -> Report:
    """The reports of some files as one. Raises Unreadable, which numbers the file where there are several."""
    reports: list[Report] = []
    for number, data in enumerate(files, 1):
        try:
            reports.append(read(data))
        except Unreadable as error:
            raise Unreadable(f"file {number} of {len(files)}: {error}" if len(files) > 1 else str(error)) from error
    return Report(
        findings=list(bounded(each for report in reports for each in report.findings)),
        dismissed=sum(report.dismissed for report in reports),
        has_failed=any(report.has_failed for report in reports),
    )


def _cut(message: str) -> str:
    if len(message) <= MESSAGE_CHARACTERS_MAX:
        return message
    return message[: MESSAGE_CHARACTERS_MAX - 1] + _CUT


def _shown(path: str | bytes) -> str:
    text = path.decode("utf-8", "backslashreplace") if isinstance(path, bytes) else path
    return text[:_EXAMPLE_CHARACTERS_MAX]
