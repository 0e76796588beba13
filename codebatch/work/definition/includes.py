"""The files of a task list: the files that the user names, and the files that these include."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from codebatch.errors import CodebatchError, InvalidConfiguration
from codebatch.work.definition.problems import DefinitionProblems
from codebatch.work.definition.settings import WorkOptions
from codebatch.work.definition.task_files import json_lines_file, lines_file, markdown_directory, markdown_file
from codebatch.work.definition.work_files import (
    STANDARD_INPUT_NAME,
    WorkFile,
    default_file,
    document_file,
    is_document_file,
    missing_file_hint,
)

WORK_FILES_MAX = 1_000
INCLUDE_DEPTH_MAX = 20
_FILE_KINDS_HINT = "supported: .toml, .yaml, .yml, .json, .jsonl, .md, .txt, or a directory of .md files"


def read_files(
    paths: Sequence[Path], options: WorkOptions, cwd: Path, problems: DefinitionProblems, given: Sequence[WorkFile]
) -> list[WorkFile]:
    """Return the named files, then the `given` ones. Each file comes before the files that it includes.

    If there is no file, use the default file. If a file is unreadable, InvalidWork is raised with all problems. Raises
    NothingToDo if there is no default file.
    """
    reader = _WorkFileReader(problems, options.is_recursive)
    named = [(cwd / path, str(path)) for path in paths]
    if not named and not given:
        named = [default_file(cwd, options.tasks)]
    files = [file for path, name in named for file in reader.iter_files(path, name, is_each_line=options.each_line)]
    if reader.is_incomplete:
        problems.raise_any()
    return [*files, *given]


class _WorkFileReader:
    def __init__(self, problems: DefinitionProblems, is_recursive: bool) -> None:
        self._problems = problems
        self._is_recursive = is_recursive
        self._read_paths: set[str] = set()
        self.is_incomplete = False

    def iter_files(
        self, path: Path, name: str, by: WorkFile | None = None, *, is_each_line: bool = False
    ) -> Iterator[WorkFile]:
        """Yield a file and the files that it includes. A file that is included several times is yielded once."""
        if "\0" in name:
            self._problems.add(f"{name!r} is not a path: it contains a NUL character")
            self.is_incomplete = True
            return
        real = name if name == STANDARD_INPUT_NAME else os.path.realpath(path)
        if real in self._read_paths and by is not None:
            return
        self._read_paths.add(real)
        try:
            if len(self._read_paths) > WORK_FILES_MAX:
                raise InvalidConfiguration(f"the task list includes more than {WORK_FILES_MAX:,} files")
            if len(_including_files(by)) > INCLUDE_DEPTH_MAX:
                raise InvalidConfiguration(f"{name} is included more than {INCLUDE_DEPTH_MAX} levels deep")
            file = self._read_file(path, name, is_each_line)._replace(included_by=by)
        except CodebatchError as error:
            self._problems.add(error.message, error.hint)
            self.is_incomplete = True
            return
        yield file
        included = file.settings.get("include", ())
        for included_name in included if isinstance(included, list) and len(self._read_paths) <= WORK_FILES_MAX else ():
            if isinstance(included_name, str):
                yield from self.iter_files(
                    path.parent / included_name, os.path.join(os.path.dirname(name), included_name), file
                )

    def _read_file(self, path: Path, name: str, is_each_line: bool) -> WorkFile:
        if name != STANDARD_INPUT_NAME and not os.path.lexists(path):
            message = f"cannot read {name}: {os.strerror(errno.ENOENT)}"
            raise InvalidConfiguration(message, hint=missing_file_hint(path, name))
        if name != STANDARD_INPUT_NAME and path.is_dir():
            return markdown_directory(path, name, self._problems, is_recursive=self._is_recursive)
        if is_each_line or path.suffix == ".txt":
            return lines_file(path, name)
        if name == STANDARD_INPUT_NAME or path.suffix == ".jsonl":
            return json_lines_file(path, name, self._problems)
        if path.suffix == ".md":
            return markdown_file(path, name)
        if is_document_file(path):
            return document_file(path, name)
        message = f"unsupported file extension '{path.suffix}'" if path.suffix else "no file extension"
        raise InvalidConfiguration(f"cannot read {name} as a task list: {message}", hint=_FILE_KINDS_HINT)


def _including_files(file: WorkFile | None) -> list[WorkFile]:
    """Return a file, the file that includes it, and so on, up to a file that the user named."""
    chain = []
    while file is not None:
        chain.append(file)
        file = file.included_by
    return chain
