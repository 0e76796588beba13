"""Tasks that call a program on files, and read its report (SPEC.md "Command tasks")."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice

import msgspec

from codebatch.model.command_table import FILES_ARGUMENT, CommandConfig, config_files_context_name
from codebatch.model.entry import Entry, is_safe_path
from codebatch.model.record import Record
from codebatch_workers.api.project import Project
from codebatch_workers.api.protocols import FileFailure, TaskEnvironment
from codebatch_workers.programs.call_reports import FileReport
from codebatch_workers.programs.command_calls import (
    CalledTree,
    CommandCalls,
    CommandError,
    file_argument,
)
from codebatch_workers.programs.inner_links import inner_links
from codebatch_workers.programs.temporary_files import argument_chunks, written_path
from codebatch_workers.syntax.source import SourceFile

OVERDUE_CALLS_MAX = 2
"""Maximum number of consecutive calls for single files that exceed the time limit."""

_config_files_decoder = msgspec.msgpack.Decoder(list[tuple[bytes, str, bool]])
_NO_CONFIG_FILES = msgspec.msgpack.encode([])


def create_file_task(environment: TaskEnvironment[CommandConfig]) -> FileCommandTask:
    """Return a task that calls its program on some files at a time."""
    return FileCommandTask(environment)


def create_project_task(environment: TaskEnvironment[CommandConfig]) -> ProjectCommandTask:
    """Return a task that calls its program once, on the whole snapshot."""
    return ProjectCommandTask(environment)


class FileCommandTask:
    """A task whose program checks files, each independently of the others."""

    def __init__(self, environment: TaskEnvironment[CommandConfig]) -> None:
        self._calls = CommandCalls(environment)
        self._read_object = environment.read_object
        self._config_files_context = config_files_context_name(environment.name)

    def run_file(self, _file: SourceFile) -> list[Record]:
        """Return no records: the program is called for many files at a time."""
        return []

    def complete(
        self, files: Sequence[SourceFile], _records: Sequence[list[Record]]
    ) -> list[list[Record] | FileFailure]:
        """Call the program on the selected files. If a call fails, call it for each of its files alone."""
        results: list[list[Record] | FileFailure] = [[] for _ in files]
        for chunk in self._chunks(files):
            answers = self._results([files[index] for index in chunk])
            for index, answer in zip(chunk, answers, strict=True):
                results[index] = answer
        return results

    def take_report(self) -> str:
        """Return facts about the calls since the last report, as JSON of CallTotals."""
        return self._calls.take_report()

    def _chunks(self, files: Sequence[SourceFile]) -> Iterator[list[int]]:
        """Yield the indexes of the files of each call. A file whose location another file has is called alone."""
        indexes: dict[bytes, int] = {}
        for index, file in enumerate(files):
            if self._calls.selects(file):
                self._calls.files += 1
                argument = file_argument(written_path(file.path))
                if indexes.setdefault(argument, index) != index:
                    yield [index]
        length_max = 1 if self._calls.table.calls_one_file else self._calls.table.chunk
        for arguments in argument_chunks(list(indexes), length_max):
            yield [indexes[argument] for argument in arguments]

    def _results(self, files: Sequence[SourceFile], *, is_last: bool = False) -> list[list[Record] | FileFailure]:
        """Return the results of a call for all files or, if it fails, of a call for each file.

        A program that exceeds its time limit for each file must not take this time for all of them. So after
        OVERDUE_CALLS_MAX such calls in a row, the other files are called together, and if this last call takes too long
        too, they fail.
        """
        try:
            return [*self._call(files)]
        except CommandError as error:
            if len(files) == 1 or (is_last and error.is_overdue):
                return [error.failure] * len(files)
        results: list[list[Record] | FileFailure] = []
        overdue = 0
        for index, file in enumerate(files):
            if overdue == OVERDUE_CALLS_MAX:
                return results + self._results(files[index:], is_last=True)
            (result,) = self._results([file])
            overdue = overdue + 1 if isinstance(result, FileFailure) and result.reason == "timeout" else 0
            results.append(result)
        return results

    def _call(self, files: Sequence[SourceFile]) -> Iterator[list[Record]]:
        """Yield the findings in each file. Raises CommandError."""
        file_by_location = {written_path(file.path): file for file in files}
        config_files = _config_files_decoder.decode(files[0].contexts.get(self._config_files_context, _NO_CONFIG_FILES))

        def write(tree: CalledTree) -> None:
            for location, file in file_by_location.items():
                tree.write_file(location, file.content, is_executable=file.executable)
            for path, digest, is_executable in filter(_is_safe, config_files):
                tree.write_file(written_path(path), self._read_object(digest), is_executable=is_executable)

        arguments = list(map(file_argument, file_by_location))
        reports = self._calls.call(write, arguments, file_by_location.keys(), next(iter(file_by_location)))
        for location, file in file_by_location.items():
            report = reports.get(location)
            yield [] if report is None else self._calls.records(file, report)


def _entries_by_location(entries: Sequence[Entry]) -> dict[bytes, Entry]:
    """Return the files by the locations at which they are written: first the files that are written at their paths.

    If two files have the same location, the first one is returned.
    """
    by_location: dict[bytes, Entry] = {}
    for entry in sorted(entries, key=lambda entry: written_path(entry.path) != entry.path):
        by_location.setdefault(written_path(entry.path), entry)
    return by_location


def _is_safe(config_file: tuple[bytes, str, bool]) -> bool:
    """Return whether a configuration file is in the tree. Plans can come from others."""
    return is_safe_path(config_file[0])


class ProjectCommandTask:
    """A task whose program checks the whole snapshot in one call.

    `report` has facts about the last call, as JSON of CallTotals.
    """

    def __init__(self, environment: TaskEnvironment[CommandConfig]) -> None:
        self._calls = CommandCalls(environment)
        self.report = ""

    def run_project(self, project: Project) -> list[Record]:
        """Return the findings in the selected files of the batch, by path. Raises FileFailure.

        Without a selected file, the program is not called.
        """
        entries = _entries_by_location(project.files)
        is_selected = partial(self._is_selected, project, entries)
        has_arguments = FILES_ARGUMENT in self._calls.table.command
        selected = list(filter(is_selected, entries) if has_arguments else islice(filter(is_selected, entries), 1))
        records: list[Record] = []
        if selected:
            reports = self._call(project, entries, map(file_argument, selected) if has_arguments else (), selected[0])
            for location in filter(is_selected, sorted(reports)):
                records += self._calls.records(project.source(entries[location]), reports[location])
            self._calls.files = len(selected) if has_arguments else len(entries)
        self.report = self._calls.take_report()
        return records

    def _is_selected(self, project: Project, entries: Mapping[bytes, Entry], location: bytes) -> bool:
        return self._calls.selects(project.source(entries[location]))

    def _call(
        self, project: Project, entries: Mapping[bytes, Entry], arguments: Iterable[bytes], first: bytes
    ) -> dict[bytes, FileReport]:
        """Call the program on the whole snapshot. Return the reports of the files of the batch by location."""
        everything = _entries_by_location((*project.files, *project.outside))

        def write(tree: CalledTree) -> None:
            for location, entry in everything.items():
                content = project.read(entry)
                # The location of a file that cannot be at its path may be that of a directory. The file is left out.
                conflicts = () if location == entry.path else (FileExistsError, NotADirectoryError)
                with contextlib.suppress(*conflicts):
                    tree.write_file(location, content, is_executable=entry.executable)
            for path, target in inner_links({link.path: project.read(link) for link in project.symlinks}).items():
                tree.make_link(written_path(path), target)

        try:
            reports = self._calls.call(write, list(arguments), everything.keys(), first)
        except CommandError as error:
            raise error.failure from error
        return {location: report for location, report in reports.items() if location in entries}
