"""Work files: where they are found, and what stands in them before it is looked at."""

from __future__ import annotations

import errno
import os
import shlex
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from codebatch.errors import InvalidConfiguration, NothingToDo
from codebatch.model.text.json_text import JsonError, parse_json
from codebatch.model.text.line_numbers import line_of
from codebatch.model.text.suggestions import closest
from codebatch.model.text.toml import TomlError, parse_toml
from codebatch.model.text.yaml import YamlError, parse_yaml
from codebatch.operations.project.configuration import load_configuration
from codebatch.snapshotting.projects import iter_project_directories
from codebatch.system.files.regular_files import read_regular
from codebatch.work.definition.table_checks import TableLocation

WORK_FILE_BYTES_MAX = 64 << 20
YAML_BYTES_MAX = 16 << 20
DEFAULT_NAME = "work.toml"
STDIN_NAME = "-"
# Where a file has its work list, by its name; others are one as a whole.
_TABLES = {"codebatch.toml": ("work",), "pyproject.toml": ("tool", "codebatch", "work")}
_BOM = "\ufeff"

EXAMPLE = '[tasks.build]\nrun = "make"\n\n[tasks.test]\nrun = ["make", "test"]\nneeds = ["build"]'
"""The least that shows what a work file is."""


class WrittenTask(NamedTuple):
    """A task as it was written. `lines` are what it is made many of, where the file itself is such a list.

    `is_prose`: it is front matter, where people keep keys of their own.
    """

    name: str
    place: TableLocation
    table: object
    is_prose: bool = False
    lines: tuple[str, ...] | None = None


class WorkFile(NamedTuple):
    """A file that was read, or a directory. `name` is how people named it, `above` the table that its work list is.

    `document` has what holds for its tasks, beside what holds for those of the file that includes it; None where it is
    a list alone. `done` are tasks that people have checked off, `unread` ids of what could not be read.
    """

    path: Path
    name: str
    above: tuple[str, ...]
    document: Mapping[str, object] | None
    written: tuple[WrittenTask, ...] = ()
    done: tuple[WrittenTask, ...] = ()
    unread: frozenset[str] = frozenset()
    included_by: WorkFile | None = None

    def place(self, *words: str, table: object = None) -> TableLocation:
        """A table of it."""
        return TableLocation(self.name, ".".join((*self.above, *words)), line_of(table))

    @property
    def settings(self) -> Mapping[str, object]:
        """What it sets, beside its tasks."""
        return self.document or {}


def default_file(here: Path, words: Sequence[str]) -> tuple[Path, str]:
    """Return the list that holds for a directory, and its name as seen from there.

    It is `[work]` of the settings; else the nearest `work.toml` from the directory up to the top of the project.
    `words` are the tasks that are named, one of which may be meant as a file. Raises NothingToDo.
    """
    start = os.path.realpath(os.fsencode(here))
    configuration = load_configuration(here)
    if configuration.file is not None and "work" in configuration.set_in_file:
        return configuration.file, os.path.relpath(configuration.file, os.fsdecode(start))
    for directory in iter_project_directories(start):
        path = Path(os.fsdecode(directory), DEFAULT_NAME)
        if os.path.lexists(path):
            return path, os.path.relpath(path, os.fsdecode(start))
    message = f"no {DEFAULT_NAME} in this directory or above it in the project, and no [work] in the settings"
    raise NothingToDo(message, hint=file_hint(words, here) or nothing_hint())


def file_hint(words: Sequence[str], here: Path) -> str | None:
    """What to do where a file or directory is named as if it were a task."""
    meant = next((word for word in words if os.path.lexists(here / word)), None)
    return None if meant is None else f"give files and directories with -f: -f {shlex.quote(meant)}"


def nothing_hint() -> str:
    """What to do where there is no work list: a whole one."""
    return f"write a {DEFAULT_NAME}, for example with: {_written_by(EXAMPLE, '>', DEFAULT_NAME)}"


def no_task_hint(path: Path, name: str) -> str:
    """What to do where a file or directory has no task: what one looks like there."""
    if path.is_dir():
        example = _written_by("---\nrun: make\n---", ">", os.path.join(name, "build.md"))
        return f"each *.md except README.md is a task, with --recursive also in subdirectories; for example: {example}"
    if path.suffix == ".toml" and path.name not in _TABLES:
        return f"add one, for example with: {_written_by(EXAMPLE, '>>', name)}"
    return "formats of task lists: codebatch help lists"


def absent_hint(path: Path, name: str) -> str | None:
    """What to do where there is no such file."""
    try:
        meant = closest(path.name, [each for each in os.listdir(path.parent) if not each.startswith(".")])
    except OSError:
        meant = None
    if meant is not None:
        return f"did you mean {os.path.join(os.path.dirname(name), meant)!r}?"
    to = name if path.suffix == ".toml" else f"{name}.toml"
    return f"give an existing file, or create one, for example with: {_written_by(EXAMPLE, '>', to)}"


def _written_by(text: str, how: str, name: str) -> str:
    return f"printf -- '{_escaped(text)}\\n' {how}{shlex.quote(name)}"


def _escaped(text: str) -> str:
    """A text as printf(1) takes it, on one line."""
    return text.replace("\n", "\\n")


def read_bytes(path: Path, name: str, bytes_max: int = WORK_FILE_BYTES_MAX) -> bytes:
    """A regular file, or standard input where it is `-`. Raises InvalidConfiguration."""
    try:
        if name == STDIN_NAME:
            data = sys.stdin.buffer.read(bytes_max + 1)
            if len(data) > bytes_max:
                raise InvalidConfiguration(f"standard input has more than {bytes_max:,} bytes")
            return data
        return read_regular(path, bytes_max=bytes_max, is_link_followed=True)
    except OSError as error:
        if error.errno == errno.EFBIG:
            told = f"{name} has {path.stat().st_size:,} bytes, more than {bytes_max:,}"
            raise InvalidConfiguration(told) from error
        raise InvalidConfiguration(f"cannot read {name}: {error.strerror}") from error


def text_of(data: bytes, name: str) -> str:
    """What bytes say. A byte order mark is no part of it. Raises InvalidConfiguration."""
    try:
        return data.decode().removeprefix(_BOM)
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise InvalidConfiguration(f"{name} is not valid UTF-8 (line {line})") from error


def document_file(path: Path, name: str) -> WorkFile:
    """A file that is one document: TOML, YAML or JSON, by its name. Raises InvalidConfiguration."""
    document = _PARSERS[path.suffix](read_bytes(path, name), name)
    above = _TABLES.get(path.name, ())
    for word in above:
        below = document.get(word)
        if not isinstance(below, dict):
            raise InvalidConfiguration(
                f"{name} has no [{'.'.join(above)}]", hint=f"add this table, or write a {DEFAULT_NAME}"
            )
        document = below
    file = WorkFile(path, name, above, document)
    return file._replace(written=tuple(_written(file)))


def is_document(path: Path) -> bool:
    """Whether a file is one document, by its name."""
    return path.suffix in _PARSERS


def _written(file: WorkFile) -> Iterator[WrittenTask]:
    tasks = file.settings.get("tasks", {})
    for name, table in tasks.items() if isinstance(tasks, dict) else ():
        line = line_of(table) if isinstance(table, dict) else line_of(tasks, name)
        yield WrittenTask(name, file.place("tasks", name)._replace(line=line), table)


def _toml(data: bytes, name: str) -> Mapping[str, object]:
    text = text_of(data, name)
    try:
        return parse_toml(text, length_max=WORK_FILE_BYTES_MAX)
    except TomlError as error:
        raise InvalidConfiguration(f"{name} is not valid TOML: {error}") from error


def _yaml(data: bytes, name: str) -> Mapping[str, object]:
    try:
        return _table(parse_yaml(text_of(data, name), length_max=YAML_BYTES_MAX), name)
    except YamlError as error:
        raise InvalidConfiguration(f"{name}:{error.line} is not valid YAML: {error}") from error


def _json(data: bytes, name: str) -> Mapping[str, object]:
    try:
        return _table(parse_json(text_of(data, name)), name)
    except JsonError as error:
        line = f":{error.line}" if error.line else ""
        raise InvalidConfiguration(f"{name}{line} is not valid JSON: {error}") from error


def _table(document: object, name: str) -> Mapping[str, object]:
    if isinstance(document, dict):
        return document
    if document is None:
        return {}
    raise InvalidConfiguration(
        f"{name} is not a table of settings and tasks", hint="put tasks below `tasks`, each with its id as key"
    )


_PARSERS = {".toml": _toml, ".yaml": _yaml, ".yml": _yaml, ".json": _json}
