"""Calls of the program of a command task, and the findings in its reports (SPEC.md "Command tasks").

The files are written below an empty directory, at their paths in the source tree, with their original bytes. There the
program runs.
"""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Callable, Collection, Iterator, Sequence
from functools import partial
from pathlib import Path

import msgspec
from msgspec.structs import replace

from codebatch.interchange.report_formats import read_report
from codebatch.interchange.reports import ImportedFinding, ImportedReport, UnreadableReport
from codebatch.model.analysis.language_groups import with_variants
from codebatch.model.analysis.report_formats import PatternFormat, parse_report_format
from codebatch.model.command_table import (
    EXIT_RECORDS,
    FILE_ARGUMENT,
    FILES_ARGUMENT,
    REPORT_ARGUMENT,
    CallTotals,
    CommandConfig,
    CommandTable,
)
from codebatch.model.gitignore import parse_arguments
from codebatch.model.program_call import ProgramEnd, ProgramFailed
from codebatch.model.project import is_below
from codebatch.model.record import Diagnostic, Omission, Record
from codebatch_workers.api.protocols import FileFailure, MemoryDirectory, TaskEnvironment
from codebatch_workers.programs.call_reports import FileReport, assign_report, without_ignored
from codebatch_workers.programs.report_paths import ReportedPaths
from codebatch_workers.programs.report_records import convert_findings
from codebatch_workers.programs.temporary_files import TemporaryFiles
from codebatch_workers.syntax.language.user_languages import resolve_spelled_language
from codebatch_workers.syntax.source import SourceFile
from codebatch_workers.syntax.suppression import matches_any_pattern

EVIDENCE_CHARACTERS_MAX = 4000
_EXIT_MESSAGE_CHARACTERS_MAX = 500
_EXIT_STATUS_MAX = 125
"""Greater statuses say that a shell could not run a program, or that a signal ended it."""
_CALL = b"/call"
_TREE = b"tree/"
_HOME = b"home"
_REPORT = b"report"


class CommandError(Exception):
    """The error that a call gave no usable report. `evidence` is the reason. `is_overdue`: it took too long."""

    def __init__(self, evidence: str, *, is_overdue: bool = False) -> None:
        super().__init__(evidence)
        self.evidence = evidence
        self.is_overdue = is_overdue

    @property
    def failure(self) -> FileFailure:
        """The failure of a file whose call gave no usable report."""
        return FileFailure(self.evidence, "timeout" if self.is_overdue else "exception")


class CalledTree:
    """The tree in which the program of a call runs. Locations are relative to this tree."""

    def __init__(self, files: TemporaryFiles, linked: Sequence[bytes] = ()) -> None:
        """`linked` are the locations of the links to directories of the project. Nothing is written through them."""
        self._files = files
        self._linked = linked

    def write_file(self, location: bytes, content: bytes, *, is_executable: bool) -> None:
        """Write a file, unless it is written already or below a linked directory. Raises OSError."""
        if not any(is_below(location, link) for link in self._linked):
            self._files.write_file(_TREE + location, content, is_executable=is_executable)

    def make_link(self, location: bytes, target: bytes) -> None:
        """Create a symbolic link, unless it is below a linked directory. Raises OSError."""
        if not any(is_below(location, link) for link in self._linked):
            self._files.make_link(_TREE + location, target)


class CommandCalls:
    """The calls of the program of a task. `files` counts the selected files since the last `take_report`."""

    def __init__(self, environment: TaskEnvironment[CommandConfig]) -> None:
        assert environment.program is not None, "the runner of tasks looks the program up"
        self._program = environment.program
        self.table: CommandTable = environment.program.table
        self._format = None if self.table.records == EXIT_RECORDS else parse_report_format(self.table.records)
        self._reads_lines = self._format == "gcc" or isinstance(self._format, PatternFormat)
        self._config = environment.config
        self._name = environment.name
        self._scratch = environment.scratch
        self._memory: MemoryDirectory | None = environment.try_memory()
        self._patterns = parse_arguments(self.table.path_patterns, "match")
        self._linked = [os.fsencode(directory.rstrip("/")) for directory in self.table.link]
        self._languages = frozenset(with_variants(map(resolve_spelled_language, self.table.languages)))
        self.files = 0

    def take_report(self) -> str:
        """Return the facts since the last report, as JSON."""
        report = CallTotals(files=self.files)
        self.files = 0
        return msgspec.json.encode(report).decode()

    def selects(self, file: SourceFile) -> bool:
        """Return whether the program checks a file. It checks no binary file, and no file in a linked directory."""
        if any(is_below(file.path, link) for link in self._linked):
            return False
        if self.table.match:
            is_selected = self._patterns.selects(file.path)
            if is_selected is False or (is_selected is None and file.language not in self._languages):
                return False
        return file.file_class != "binary" and file.file_class not in self.table.excluded_classes

    def call(
        self,
        write: Callable[[CalledTree], None],
        arguments: Sequence[bytes],
        locations: Collection[bytes],
        first: bytes,
    ) -> dict[bytes, FileReport]:
        """Call the program in a tree that `write` fills. Return the reports by location, for some locations.

        `arguments` are the files on its command line. `first` is the location to which output without a file belongs.
        Raises CommandError.
        """
        while True:
            scratch = self._scratch if self._memory is None else self._memory.path
            try:
                if self._memory is None:
                    scratch.mkdir(exist_ok=True)  # A program can have removed it.
                return self._call_below(scratch, write, arguments, locations, first)
            except OSError as error:
                if self._memory is None:
                    raise CommandError(f"its files cannot be written: {error.strerror}") from error
                # The memory is full, or another program removed the directory (logind does so at logout).
                self._memory.remove()
                self._memory = None

    def _call_below(
        self,
        scratch: Path,
        write: Callable[[CalledTree], None],
        arguments: Sequence[bytes],
        locations: Collection[bytes],
        first: bytes,
    ) -> dict[bytes, FileReport]:
        base = os.fsencode(os.path.realpath(scratch)) + _CALL
        files = TemporaryFiles(base)
        try:
            for name in (_TREE.rstrip(b"/"), _HOME):
                files.make_directory(name)
            for location in self._linked:
                files.make_link(_TREE + location, os.fsencode(self._program.project) + b"/" + location)
            write(CalledTree(files, self._linked))
            report = base + b"/" + _REPORT if REPORT_ARGUMENT in self.table.command else None
            command = list(self._command_arguments(arguments, report))
            try:
                end = self._program.run(command, base + b"/" + _TREE, base + b"/" + _HOME, report)
            except ProgramFailed as error:
                evidence = self._evidence(str(error), error.error_output, base)
                raise CommandError(evidence, is_overdue=error.is_overdue) from error
            try:
                imported = self._read(end, locations)
            except UnreadableReport as error:
                raise CommandError(self._evidence(str(error), end.error_output, base)) from error
            paths = ReportedPaths(locations, base + b"/" + _TREE)
            assigned = assign_report(imported, paths, locations, first)
            if report is None:
                self._omit_error_output(end, paths, assigned)
            for file_report in assigned.values():
                file_report.remove_texts(partial(_without_scratch, base=base))
            return assigned
        finally:
            files.remove()

    def _command_arguments(self, arguments: Sequence[bytes], report: bytes | None) -> Iterator[bytes]:
        for argument in self.table.command[1:]:
            if argument in (FILES_ARGUMENT, FILE_ARGUMENT):
                yield from arguments
            elif argument == REPORT_ARGUMENT and report is not None:
                yield report
            else:
                yield argument.encode()

    def _read(self, end: ProgramEnd, locations: Collection[bytes]) -> ImportedReport:
        """Return the findings of a call. Raises UnreadableReport, with the reason why the call failed."""
        if end.exit_status < 0:
            raise UnreadableReport(f"{_signal_name(-end.exit_status)} ended it")
        if self._format is None:
            return self._read_exit(end, locations)
        if end.exit_status not in self.table.exit_ok:
            raise UnreadableReport(f"it ended with status {end.exit_status}")
        try:
            report = read_report(self._format, end.output, default_severity=self.table.severity)
        except UnreadableReport as error:
            raise UnreadableReport(f"its report cannot be read: {error}") from error
        if report.has_failed:
            raise UnreadableReport("its report is marked as incomplete")
        report = without_ignored(report, self.table.ignore)
        if end.exit_status and not report.findings and not report.dismissed:
            self._refuse_other_text(end, report)
        return report

    def _refuse_other_text(self, end: ProgramEnd, report: ImportedReport) -> None:
        """Raise UnreadableReport if a program without findings printed a text with another status than 0."""
        texts = (*report.unread.samples, report.other_text)
        if text := next(filter(None, texts), ""):
            raise UnreadableReport(f"it ended with status {end.exit_status}, and its output has no finding: {text!r}")
        if self._reads_lines and end.error_output.strip() and not end.output.strip():
            raise UnreadableReport(f"it ended with status {end.exit_status}, and only its standard error has a text")

    def _omit_error_output(self, end: ProgramEnd, paths: ReportedPaths, assigned: dict[bytes, FileReport]) -> None:
        """Count the findings on the standard error, which is not read."""
        if self._format is None or not self._reads_lines:
            return
        with contextlib.suppress(UnreadableReport):
            for finding in read_report(self._format, end.error_output).findings:
                location = next((place for path in finding.paths if (place := paths.find(path, is_uri=False))), None)
                if location is not None:
                    sample = f"on standard error: {finding.message}"
                    assigned.setdefault(location, FileReport()).omit("lines", sample)

    def _read_exit(self, end: ProgramEnd, locations: Collection[bytes]) -> ImportedReport:
        if end.exit_status > _EXIT_STATUS_MAX:
            raise UnreadableReport(f"it ended with status {end.exit_status}")
        if not end.exit_status:
            return ImportedReport([])
        output = (end.output.strip() or end.error_output.strip()).decode("utf-8", "replace")
        message = output[:_EXIT_MESSAGE_CHARACTERS_MAX] or f"ended with status {end.exit_status}"
        return ImportedReport([ImportedFinding(tuple(locations), message, self.table.severity, line=1)])

    def records(self, file: SourceFile, report: FileReport) -> list[Record]:
        """Return the findings of a file as records, sorted, each once, as the settings of the task select them.

        Records of what was omitted follow.
        """
        converted = convert_findings(file, report.findings, task=self._name, tool=self.table.tool)
        records = {
            replace(record, severity=self._config.severities.get(record.code, record.severity))
            for record in converted.records
            if not matches_any_pattern(record.code, self._config.off)
        }
        path, path_b64 = file.path_fields
        for finding in converted.without_place:
            report.omit("findings", f"{file.path.decode('utf-8', 'backslashreplace')}:{finding.line}")
        for finding in report.findings:
            if finding.replaced:
                report.omit("values", finding.replaced)
        omissions = [
            Omission(path=path, path_b64=path_b64, task=self._name, part=part, count=count, sample=sample)
            for part, (count, sample) in sorted(report.omitted.items())
        ]
        return [*sorted(records, key=_order), *omissions]

    def _evidence(self, reason: str, error_output: bytes, base: bytes) -> str:
        program = os.path.basename(self.table.command[0])
        text = error_output.decode("utf-8", "backslashreplace").strip()
        return _without_scratch(f"{text}\n{program}: {reason}".strip(), base)[-EVIDENCE_CHARACTERS_MAX:]


def _order(record: Diagnostic) -> tuple[int, int, int, int, str, str, str, str]:
    place = record.line, record.column, record.end_line, record.end_column
    return *place, record.tool, record.code, record.severity, record.message


def file_argument(location: bytes) -> bytes:
    """Return the location of a file as an argument. A name that could be an option begins with `./`."""
    return b"./" + location if location.startswith(b"-") else location


def _signal_name(number: int) -> str:
    """Return the name of a signal. Most real-time signals have none."""
    return next((known.name for known in signal.Signals if known == number), f"signal {number}")


def _without_scratch(text: str, base: bytes) -> str:
    directory = os.fsdecode(base)
    tree = f"{directory}/{_TREE.decode()}"
    home = f"{directory}/{_HOME.decode()}"
    return text.replace(tree, "").replace(tree.rstrip("/"), ".").replace(home, "~").replace(f"{directory}/", "")
