"""ruff on the Python files of a unit. The findings in a file depend only on this file.

By default, ruff also uses other files: package roots, exclusions, ignore files and configuration. So the files are
written below an empty directory, at the same relative paths as in the source tree. Each package above them gets an
empty `__init__.py`. Exclusions do not apply, because each file is named on the command line. No configuration is read.
If a file cannot be written at its path, it is checked separately, at another path. ruff supports only UTF-8, so it gets
the content as `SourceFile.utf8`. The empty directory is in memory if possible, otherwise in the store.
"""

from __future__ import annotations

import os
import re
import resource
import subprocess
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path

import msgspec
from ruff import find_ruff_bin  # type: ignore[import-untyped]  # it has no annotations

from codebatch.model.record import Diagnostic
from codebatch_workers.api.protocols import MemoryDirectory, TaskEnvironment
from codebatch_workers.lint.ruff_rules import SEVERITY_BY_CODE
from codebatch_workers.programs.temporary_files import TemporaryFiles, argument_chunks, written_path
from codebatch_workers.syntax.contexts import package_directories
from codebatch_workers.syntax.source import SourceFile

# The language version is fixed, so that builtins and syntax do not depend on the Python that runs codebatch.
TARGET_VERSION = "py314"
SYNTAX_ERROR_CODE = "invalid-syntax"
# This code must be among the selected rules. Otherwise, ruff would report no finding for a file that it cannot read.
UNREADABLE_CODE = "E902"

# Findings of F401 contain whether the import is from the project. With this setting, ruff does not decide this by the
# files that are present.
WITHOUT_SOURCES_ARGUMENTS = ("--config", "src = []")
_LINE_END = re.compile(rb"\r\n?|\n")
_OK_EXIT_STATUSES = (0, 1)
# The stack with which a file is checked again. ruff parses recursively, and 8 MiB are enough for 5,000 levels.
_STACK_BYTES = 128 << 20


class _RuffLocation(msgspec.Struct, frozen=True):
    row: int
    column: int


class RuffFinding(msgspec.Struct, frozen=True):
    filename: str
    message: str
    location: _RuffLocation | None
    end_location: _RuffLocation | None
    code: str | None = None
    cell: int | None = None


_decoder = msgspec.json.Decoder(list[RuffFinding])


class RuffError(Exception):
    """An error of ruff: the process failed, or its output was unexpected."""


class RuffCrash(RuffError):
    """An error of ruff: a signal ended the process. It aborts if its stack is exceeded by deeply nested code."""


def common_arguments(codes: Iterable[str]) -> list[str]:
    """Return the arguments that every call has before `--` and the file names."""
    return [
        "check",
        "--isolated",
        *WITHOUT_SOURCES_ARGUMENTS,
        "--no-cache",
        "--no-respect-gitignore",
        "--quiet",
        "--target-version",
        TARGET_VERSION,
        "--output-format",
        "json",
        "--select",
        ",".join(sorted(codes)),
    ]


class RuffRunner:
    """A runner of ruff, with a list of rules, and a directory for the files to check.

    All tasks of a process share one instance (`shared_ruff`). So ruff checks the files of a unit only once, for the
    rules of all tasks. Each task uses only the findings of its own rules. The rules of other tasks do not change these
    findings.
    """

    def __init__(
        self,
        codes: Iterable[str],
        scratch: Path,
        memory: MemoryDirectory | None = None,
        *,
        respects_noqa: bool = True,
    ) -> None:
        """Create a runner. If `respects_noqa` is false, `# noqa` suppresses nothing."""
        self.codes = sorted(codes)
        self._findings_by_file: dict[SourceFile, list[Diagnostic]] = {}
        self._uncheckable: set[SourceFile] = set()
        self._scratch = scratch
        self.memory_directory = memory
        self._extra_arguments = () if respects_noqa else ("--ignore-noqa",)

    @cached_property
    def _ruff_path(self) -> str:
        return str(find_ruff_bin())

    def select_rules(self, codes: Iterable[str]) -> None:
        """Add rules to the list of rules that ruff checks."""
        self.codes = sorted({*self.codes, *codes})
        self._findings_by_file.clear()

    def check(self, files: Sequence[SourceFile]) -> list[list[Diagnostic]]:
        """Return the findings in each file, in the order of `files`. Results for files of the previous call are reused.

        A syntax error has the code SYNTAX_ERROR. For a file on which ruff crashes, the list is empty, and
        `is_uncheckable` is true. Raises RuffError if ruff cannot run, or reports a file that was not given.
        """
        unknown = [file for file in files if file not in self._findings_by_file]
        if unknown:
            known = {file: self._findings_by_file[file] for file in files if file in self._findings_by_file}
            self._uncheckable &= known.keys()
            self._findings_by_file = known | dict(zip(unknown, self._check_files(unknown), strict=True))
        return [self._findings_by_file[file] for file in files]

    def is_uncheckable(self, file: SourceFile) -> bool:
        """Return whether ruff crashed on a file of the last call of `check`."""
        return file in self._uncheckable

    def _check_files(self, files: Sequence[SourceFile]) -> list[list[Diagnostic]]:
        if self.memory_directory is not None:
            try:
                return self._check_below(self.memory_directory.path, files)
            except (OSError, RuffError):
                # The memory is full, or another program removed the directory (logind does so at logout). From now on,
                # the store's scratch directory is used. If the error had another cause, it is raised again there.
                self.memory_directory.remove()
                self.memory_directory = None
        return self._check_below(self._scratch, files)

    def _check_below(self, scratch: Path, files: Sequence[SourceFile]) -> list[list[Diagnostic]]:
        groups: dict[Hashable, list[SourceFile]] = {}
        for file in files:
            key = self.companion_texts(file) if _location(file.path) == file.path else file
            groups.setdefault(key, []).append(file)
        findings: dict[SourceFile, list[RuffFinding]] = {}
        for group in groups.values():
            findings.update(zip(group, self._run_ruff(scratch, group), strict=True))
        return [_convert_findings(file, findings[file]) for file in files]

    def _run_ruff(self, scratch: Path, files: Sequence[SourceFile]) -> Iterable[list[RuffFinding]]:
        """Return one list of findings for each file. All files must have equal companion files."""
        directory = os.fsencode(os.path.realpath(scratch)) + b"/ruff"
        tree = TemporaryFiles(directory)
        try:
            for path, text in self.companion_texts(files[0]):
                tree.write_file(_location(path), text.encode("utf-8"))
            names = _write_missing(tree, files)
            findings: dict[str, list[RuffFinding]] = {os.fsdecode(directory + b"/" + name): [] for name in names}
            # A bare name could be `-`, which means standard input.
            file_by_argument = dict(zip([b"./" + name for name in names], files, strict=True))
            for chunk in argument_chunks(list(file_by_argument)):
                for finding in self._findings_of(directory, chunk, file_by_argument):
                    if finding.filename not in findings or finding.code == UNREADABLE_CODE:
                        raise RuffError(f"unexpected answer: {finding.filename}: {finding.code} {finding.message}")
                    findings[finding.filename].append(finding)
        finally:
            tree.remove()
        return findings.values()

    def companion_texts(self, _file: SourceFile) -> tuple[tuple[bytes, str], ...]:
        """Return the paths and texts of the files that ruff needs next to a file, such as configuration files.

        Files with different companion files are checked in separate calls.
        """
        return ()

    def command_arguments(self) -> list[str]:
        """Return the arguments that every call has before `--` and the file names."""
        return common_arguments([*self.codes, UNREADABLE_CODE])

    def _findings_of(
        self, directory: bytes, names: Sequence[bytes], files: Mapping[bytes, SourceFile]
    ) -> list[RuffFinding]:
        """Return the findings in some files.

        If ruff crashes, halve the list. A single file is checked again with a larger stack.
        """
        try:
            return self._call_ruff(directory, names)
        except RuffCrash:
            if len(names) == 1:
                return self._findings_with_large_stack(directory, names[0], files)
        middle = len(names) // 2
        return [
            finding
            for part in (names[:middle], names[middle:])
            for finding in self._findings_of(directory, part, files)
        ]

    def _findings_with_large_stack(
        self, directory: bytes, name: bytes, files: Mapping[bytes, SourceFile]
    ) -> list[RuffFinding]:
        try:
            return self._execute_ruff(directory, [name], _enlarge_stack)
        except RuffCrash:
            self._uncheckable.add(files[name])
            return []

    def _call_ruff(self, directory: bytes, names: Sequence[bytes]) -> list[RuffFinding]:
        return self._execute_ruff(directory, names, None)

    def _execute_ruff(
        self, directory: bytes, names: Sequence[bytes], before_start: Callable[[], None] | None
    ) -> list[RuffFinding]:
        done = subprocess.run(
            [self._ruff_path, *self.command_arguments(), *self._extra_arguments, "--", *names],
            cwd=directory,
            env={"RAYON_NUM_THREADS": "1", "LC_ALL": "C.UTF-8"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
            preexec_fn=before_start,
        )
        if done.returncode < 0:
            raise RuffCrash(f"ruff was ended by signal {-done.returncode}")
        if done.returncode not in _OK_EXIT_STATUSES:
            raise RuffError(f"ruff ended with {done.returncode}: {done.stderr[-2000:].decode('utf-8', 'replace')}")
        return _decoder.decode(done.stdout)


def _enlarge_stack() -> None:
    hard_limit = resource.getrlimit(resource.RLIMIT_STACK)[1]
    bytes_max = _STACK_BYTES if hard_limit == resource.RLIM_INFINITY else min(_STACK_BYTES, hard_limit)
    resource.setrlimit(resource.RLIMIT_STACK, (bytes_max, hard_limit))


def shared_ruff(environment: TaskEnvironment[msgspec.Struct]) -> RuffRunner:
    """Return the instance that all tasks of a process share. The first call creates it."""
    ruff = environment.shared.get(__name__)
    if not isinstance(ruff, RuffRunner):
        ruff = environment.shared[__name__] = RuffRunner((), environment.scratch, environment.try_memory())
    return ruff


def is_for_ruff(file: SourceFile) -> bool:
    """Return whether ruff checks a file: a Python file that is not binary, huge or empty."""
    return file.syntax.has_exact_parser and file.file_class not in ("binary", "huge", "empty")


def _write_missing(tree: TemporaryFiles, files: Sequence[SourceFile]) -> list[bytes]:
    """Write files, and an empty `__init__.py` in each package above them. Skip those that are written already.

    Return the location of each file.
    """
    locations = [_location(file.path) for file in files]
    for location, file in zip(locations, files, strict=True):
        content = file.utf8 if file.notebook is None else file.notebook.code_only_notebook()
        tree.write_file(location, content, is_executable=file.executable)
    for packages in {
        file.contexts.get("packages", b"")
        for location, file in zip(locations, files, strict=True)
        if _has_same_directories(location, file.path)
    }:
        for package in package_directories(packages):
            tree.write_file(_location(package + b"/__init__.py" if package else b"__init__.py"), b"")
    return locations


def _location(path: bytes) -> bytes:
    return written_path(path, default_ending=b".py")


def _has_same_directories(location: bytes, path: bytes) -> bool:
    return location.count(b"/") == path.count(b"/")


def _convert_findings(file: SourceFile, findings: Sequence[RuffFinding]) -> list[Diagnostic]:
    """Convert ruff's findings in a file to records, sorted by position."""
    if not findings:
        return []
    path, path_b64 = file.path_fields
    lines = _RuffLines(file) if b"\r" in file.utf8 else None
    records = []
    for finding in findings:
        code = finding.code or SYNTAX_ERROR_CODE
        start = finding.location or _RuffLocation(1, 1)
        end = finding.end_location or start
        line, column = lines.position(start) if lines else (start.row, start.column)
        end_line, end_column = lines.position(end) if lines else (end.row, end.column)
        if file.notebook is not None and finding.cell is not None:
            line, end_line = (file.notebook.module_line(finding.cell, position.row) for position in (start, end))
        records.append(
            Diagnostic(
                path=path,
                path_b64=path_b64,
                line=line,
                column=column,
                end_line=end_line,
                end_column=end_column,
                severity=SEVERITY_BY_CODE.get(code, "error"),
                code=code,
                message=finding.message,
                tool="ruff",
            )
        )
    records.sort(key=_sort_key)
    return records


def _sort_key(record: Diagnostic) -> tuple[int, int, str, int, int, str]:
    return record.line, record.column, record.code, record.end_line, record.end_column, record.message


class _RuffLines:
    """Conversion of ruff's positions in a file that contains CR.

    For ruff, a lone CR ends a line. For codebatch, a lone CR is a character of the line.
    """

    def __init__(self, file: SourceFile) -> None:
        self.file = file
        self.starts: Sequence[int] = [0, *(match.end() for match in _LINE_END.finditer(file.utf8))]

    def position(self, location: _RuffLocation) -> tuple[int, int]:
        row = min(location.row, len(self.starts))
        start = self.starts[row - 1]
        line, column = self.file.position(start)
        return line, column + location.column - 1
