"""ruff over the Python files of a unit, with the answers that it gives about each of them alone.

ruff looks at neighbours: package roots, excluded names, ignore and configuration files. So the files are written
below an empty directory at their relative paths, with an empty `__init__.py` wherever the snapshot has one above them;
each is named on the command line, which no exclusion applies to; and no configuration is read. A file that cannot be
written at its path is asked about alone, at another. ruff knows UTF-8 only: what it is given is `SourceFile.utf8`.
That directory lies in memory where it can, else in the store.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Callable, Hashable, Iterable, Sequence
from functools import cached_property
from pathlib import Path

import msgspec
from ruff import find_ruff_bin  # type: ignore[import-untyped]  # it has no annotations

from codebatch.model.record import Diagnostic
from codebatch_workers.api.protocols import MemoryDirectory, TaskEnvironment
from codebatch_workers.lint.ruff_rules import SEVERITIES
from codebatch_workers.syntax.contexts import directories_of_packages
from codebatch_workers.syntax.source import SourceFile

# Fixed: what is a builtin, and which syntax is known, must not follow the Python that runs us.
TARGET_VERSION = "py314"
SYNTAX_ERROR = "invalid-syntax"
# It must be asked for: else a file that ruff cannot read is one without findings.
UNREADABLE = "E902"

_ARGUMENT_BYTES_MAX = 100_000
# Longer paths might not fit below the scratch directory; the file then stands under its last name.
_PATH_BYTES_MAX = 2000
_NAME_BYTES_MAX = 240
_ENDINGS = (b".pyi", b".ipynb")
# Else whether an import is of the project, which F401 tells, follows from which files are there.
WITHOUT_SOURCES = ("--config", "src = []")
_LINE_END = re.compile(rb"\r\n?|\n")
_OK_STATUS = (0, 1)


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
    """ruff did not do what it was asked to."""


def arguments(codes: Iterable[str]) -> list[str]:
    """What every call says before `--` and the names of files."""
    return [
        "check",
        "--isolated",
        *WITHOUT_SOURCES,
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


class Ruff:
    """ruff with a list of rules, working in a directory of its own.

    The tasks of a process share one (`shared_ruff`), so that a unit's files are checked once: for the rules that any of
    them wants, of which each takes its own. What ruff says of one rule does not depend on which others are asked for.
    """

    def __init__(
        self,
        codes: Iterable[str],
        scratch: Path,
        memory: MemoryDirectory | None = None,
        *,
        heeds_notes: bool = True,
    ) -> None:
        """Unless it `heeds_notes` it says too what notes in the source silence (`# noqa`)."""
        self.codes = sorted(codes)
        self._answers: dict[SourceFile, list[Diagnostic]] = {}
        self._scratch = scratch
        self.memory = memory
        self._besides = () if heeds_notes else ("--ignore-noqa",)

    @cached_property
    def _binary(self) -> str:
        return str(find_ruff_bin())

    def want(self, codes: Iterable[str]) -> None:
        """Add rules to those that are asked for."""
        self.codes = sorted({*self.codes, *codes})
        self._answers.clear()

    def check(self, files: Sequence[SourceFile]) -> list[list[Diagnostic]]:
        """The diagnostics of each file, by position; those of the last call are not asked for again.

        A syntax error has the code SYNTAX_ERROR. Raises RuffError if ruff cannot run or speaks of another file.
        """
        unknown = [file for file in files if file not in self._answers]
        if unknown:
            known = {file: self._answers[file] for file in files if file in self._answers}
            self._answers = known | dict(zip(unknown, self._check(unknown), strict=True))
        return [self._answers[file] for file in files]

    def _check(self, files: Sequence[SourceFile]) -> list[list[Diagnostic]]:
        if self.memory is not None:
            try:
                return self._check_below(self.memory.path, files)
            except (OSError, RuffError):
                # Memory is full, or somebody tidied up there (logind does when its user logs out): from now on the
                # store's scratch must do, and where that was not the matter it raises the same again.
                self.memory.remove()
                self.memory = None
        return self._check_below(self._scratch, files)

    def _check_below(self, scratch: Path, files: Sequence[SourceFile]) -> list[list[Diagnostic]]:
        together: dict[Hashable, list[SourceFile]] = {}
        for file in files:
            key = self.beside(file) if _place(file.path) == file.path else file
            together.setdefault(key, []).append(file)
        found: dict[SourceFile, list[RuffFinding]] = {}
        for group in together.values():
            found.update(zip(group, self._ask(scratch, group), strict=True))
        return [_diagnostics(file, found[file]) for file in files]

    def _ask(self, scratch: Path, files: Sequence[SourceFile]) -> Iterable[list[RuffFinding]]:
        """What ruff finds in files that stand beside each other."""
        directory = os.fsencode(os.path.realpath(scratch)) + b"/ruff"
        if os.path.lexists(directory):
            _remove_all(directory)
        tree = _FilesOnDisk(directory)
        try:
            tree.write(self.beside(files[0]))
            names = tree.materialise(files)
            found: dict[str, list[RuffFinding]] = {os.fsdecode(directory + b"/" + name): [] for name in names}
            for chunk in _chunks(names):
                for finding in self._call(directory, chunk):
                    if finding.filename not in found or finding.code == UNREADABLE:
                        raise RuffError(f"unexpected answer: {finding.filename}: {finding.code} {finding.message}")
                    found[finding.filename].append(finding)
        finally:
            tree.remove()
        return found.values()

    def beside(self, _file: SourceFile) -> tuple[tuple[bytes, str], ...]:
        """Paths and texts of what ruff must find beside a file. Files of which that differs are asked about apart."""
        return ()

    def arguments(self) -> list[str]:
        """What every call says before `--` and the names of files."""
        return arguments([*self.codes, UNREADABLE])

    def _call(self, directory: bytes, names: Sequence[bytes]) -> list[RuffFinding]:
        done = subprocess.run(
            [self._binary, *self.arguments(), *self._besides, "--", *names],
            cwd=directory,
            env={"RAYON_NUM_THREADS": "1", "LC_ALL": "C.UTF-8"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
        )
        if done.returncode not in _OK_STATUS:
            raise RuffError(f"ruff ended with {done.returncode}: {done.stderr[-2000:].decode('utf-8', 'replace')}")
        return _decoder.decode(done.stdout)


def shared_ruff(environment: TaskEnvironment[msgspec.Struct]) -> Ruff:
    """The one ruff of a process, made by the first task that asks."""
    ruff = environment.shared.get(__name__)
    if not isinstance(ruff, Ruff):
        ruff = environment.shared[__name__] = Ruff((), environment.scratch, environment.try_memory())
    return ruff


def is_for_ruff(file: SourceFile) -> bool:
    """Whether ruff is asked about a file."""
    return file.language == "python" and file.file_class not in ("binary", "huge", "empty")


class _FilesOnDisk:
    """Files below an empty directory, and how each of them and of their directories goes again."""

    def __init__(self, directory: bytes) -> None:
        self._directory = directory
        self._made: dict[bytes, Callable[[bytes], None]] = {}
        os.mkdir(directory)

    def write(self, texts: Iterable[tuple[bytes, str]]) -> None:
        """Write texts at the places of their paths."""
        for path, text in texts:
            self._write(_place(path), text.encode("utf-8"))

    def materialise(self, files: Sequence[SourceFile]) -> list[bytes]:
        """Write the files, but for those that are there, and the packages above them; the place of each."""
        places = [_place(file.path) for file in files]
        for place, file in zip(places, files, strict=True):
            content = file.utf8 if file.notebook is None else file.notebook.sources()
            self._write(place, content, is_executable=file.executable)
        for packages in {
            file.contexts.get("packages", b"")
            for place, file in zip(places, files, strict=True)
            if _keeps_directories(place, file.path)
        }:
            for package in directories_of_packages(packages):
                self._write(_place(package + b"/__init__.py" if package else b"__init__.py"), b"")
        return places

    def _write(self, name: bytes, content: bytes, *, is_executable: bool = False) -> None:
        """Write a file that is not there yet. Raises FileExistsError where two names are one to the file system."""
        if name in self._made:
            return
        self._make_directory(name.rpartition(b"/")[0])
        mode = 0o700 if is_executable else 0o600
        # Descriptors cost half of what file objects do, and there are thousands of small files.
        descriptor = os.open(self._directory + b"/" + name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
        self._made[name] = os.unlink
        try:
            view = memoryview(content)
            while view:
                view = view[os.write(descriptor, view) :]
        finally:
            os.close(descriptor)

    def _make_directory(self, name: bytes) -> None:
        if name and name not in self._made:
            self._make_directory(name.rpartition(b"/")[0])
            os.mkdir(self._directory + b"/" + name)
            self._made[name] = os.rmdir

    def remove(self) -> None:
        """Remove the directory; to remove what was made takes half as long as to look for what is there."""
        try:
            for name, remove in reversed(self._made.items()):
                remove(self._directory + b"/" + name)
            os.rmdir(self._directory)
        except OSError:
            # There is more in it, or less.
            _remove_all(self._directory)


def _remove_all(directory: bytes) -> None:
    import shutil  # 3 ms of each worker, for what is hardly ever there

    shutil.rmtree(directory, ignore_errors=True)


def _chunks(names: Sequence[bytes]) -> Iterable[list[bytes]]:
    """Names as ruff is told them, as many together as a command line takes: nearly always all."""
    chunk: list[bytes] = []
    size = 0
    for place in names:
        # A name alone could be `-`, which is its standard input.
        name = b"./" + place
        size += len(name) + 1
        if chunk and size > _ARGUMENT_BYTES_MAX:
            yield chunk
            chunk, size = [], len(name) + 1
        chunk.append(name)
    yield chunk


def _place(path: bytes) -> bytes:
    """Where ruff is given what has a path: there, if ruff can repeat it, in JSON, and it fits.

    Else with invalid UTF-8 escaped; where that is too long, under the last name; where that is, under another.
    """
    try:
        path.decode("utf-8")
    except UnicodeDecodeError:
        path = path.decode("utf-8", "backslashreplace").encode("utf-8")
    if len(path) <= _PATH_BYTES_MAX and (
        len(path) <= _NAME_BYTES_MAX or max(map(len, path.split(b"/"))) <= _NAME_BYTES_MAX
    ):
        return path
    name = path.rpartition(b"/")[2]
    if len(name) <= _NAME_BYTES_MAX:
        return name
    return next((b"module" + each for each in _ENDINGS if name.endswith(each)), b"module.py")


def _keeps_directories(place: bytes, path: bytes) -> bool:
    return place.count(b"/") == path.count(b"/")


def _diagnostics(file: SourceFile, findings: Sequence[RuffFinding]) -> list[Diagnostic]:
    """Records by position."""
    if not findings:
        return []
    path, path_b64 = file.path_fields
    lines = _RuffLines(file) if b"\r" in file.utf8 else None
    records = []
    for finding in findings:
        code = finding.code or SYNTAX_ERROR
        start = finding.location or _RuffLocation(1, 1)
        end = finding.end_location or start
        line, column = lines.position(start) if lines else (start.row, start.column)
        end_line, end_column = lines.position(end) if lines else (end.row, end.column)
        if file.notebook is not None and finding.cell is not None:
            line, end_line = (file.notebook.line(finding.cell, each.row) for each in (start, end))
        records.append(
            Diagnostic(
                path=path,
                path_b64=path_b64,
                line=line,
                column=column,
                end_line=end_line,
                end_column=end_column,
                severity=SEVERITIES.get(code, "error"),
                code=code,
                message=finding.message,
                tool="ruff",
            )
        )
    records.sort(key=_order)
    return records


def _order(record: Diagnostic) -> tuple[int, int, str, int, int, str]:
    return record.line, record.column, record.code, record.end_line, record.end_column, record.message


class _RuffLines:
    """Positions of a file with CR in it: to ruff a lone CR ends a line, to us it is a character."""

    def __init__(self, file: SourceFile) -> None:
        self.file = file
        self.starts: Sequence[int] = [0, *(match.end() for match in _LINE_END.finditer(file.utf8))]

    def position(self, location: _RuffLocation) -> tuple[int, int]:
        row = min(location.row, len(self.starts))
        start = self.starts[row - 1]
        line, column = self.file.position(start)
        return line, column + location.column - 1
