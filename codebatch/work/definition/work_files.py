"""Work files: where they are found, their formats, and reading them without checks of their contents."""

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
from codebatch.model.text.line_numbers import table_line
from codebatch.model.text.suggestions import closest_word
from codebatch.model.text.toml import TomlError, parse_toml
from codebatch.model.text.yaml import YamlError, parse_yaml
from codebatch.operations.project.configuration import load_configuration
from codebatch.snapshotting.projects import iter_project_directories
from codebatch.system.files.regular_files import read_regular
from codebatch.work.definition.table_checks import TableLocation

WORK_FILE_BYTES_MAX = 64 << 20
YAML_CHARACTERS_MAX = 16 << 20
DEFAULT_FILE_NAME = "work.toml"
STANDARD_INPUT_NAME = "-"
# For files with other content too, the table that contains the task list. Any other file contains only a task list.
_TASK_TABLE_BY_FILE = {"codebatch.toml": ("work",), "pyproject.toml": ("tool", "codebatch", "work")}
_BYTE_ORDER_MARK = "\ufeff"

WORK_FILE_EXAMPLE = '[tasks.build]\nrun = "make"\n\n[tasks.test]\nrun = ["make", "test"]\nneeds = ["build"]'
"""A minimal work file, shown in hints."""


class TaskSource(NamedTuple):
    """A task as it is written in a file.

    If the file is a list of lines, the task is a group, and `lines` are the values of its members. `is_prose` is set if
    the table is front matter, in which people may use keys of their own.
    """

    name: str
    place: TableLocation
    table: object
    is_prose: bool = False
    lines: tuple[str, ...] | None = None


class WorkFile(NamedTuple):
    """A work file, or a directory of tasks, that was read.

    - `name`: the path as the user gave it.
    - `parent_table`: the words of the table that contains the task list.
    - `document`: the settings of the file, or None if the file contains only tasks.
    - `done`: the tasks that are marked as done.
    - `unread`: the IDs of tasks that could not be read.
    """

    path: Path
    name: str
    parent_table: tuple[str, ...]
    document: Mapping[str, object] | None
    task_sources: tuple[TaskSource, ...] = ()
    done: tuple[TaskSource, ...] = ()
    unread: frozenset[str] = frozenset()
    included_by: WorkFile | None = None

    def table_location(self, *words: str, table: object = None) -> TableLocation:
        """Return the location of a table of the file."""
        return TableLocation(self.name, ".".join((*self.parent_table, *words)), table_line(table))

    @property
    def settings(self) -> Mapping[str, object]:
        """The settings of the file, without tasks. Empty if the file contains only tasks."""
        return self.document or {}


def default_file(cwd: Path, words: Sequence[str]) -> tuple[Path, str]:
    """Return the work file that is used if the user names none, and its path relative to the directory.

    It is the configuration file if that file has `[work]`. Otherwise, it is the nearest `work.toml`, in the directory
    or above it in the project.

    Raises NothingToDo if there is none. `words` are the tasks that the user named. If one of them is a path, the hint
    suggests `-f`.
    """
    start = os.path.realpath(os.fsencode(cwd))
    configuration = load_configuration(cwd)
    if configuration.file is not None and "work" in configuration.set_in_file:
        return configuration.file, os.path.relpath(configuration.file, os.fsdecode(start))
    for directory in iter_project_directories(start):
        path = Path(os.fsdecode(directory), DEFAULT_FILE_NAME)
        if os.path.lexists(path):
            return path, os.path.relpath(path, os.fsdecode(start))
    message = f"no {DEFAULT_FILE_NAME} in this directory or above it in the project, and no [work] in the settings"
    raise NothingToDo(message, hint=file_hint(words, cwd) or no_work_file_hint())


def file_hint(words: Sequence[str], cwd: Path) -> str | None:
    """Return a hint to use `-f` if one of `words`, the tasks that the user named, is a path."""
    path = next((word for word in words if os.path.lexists(cwd / word)), None)
    return None if path is None else f"give files and directories with -f: -f {shlex.quote(path)}"


def no_work_file_hint() -> str:
    """Return a hint that shows how to write a work file."""
    return (
        f"write a {DEFAULT_FILE_NAME}, for example with: {_printf_command(WORK_FILE_EXAMPLE, '>', DEFAULT_FILE_NAME)}"
    )


def no_task_hint(path: Path, name: str) -> str:
    """Return a hint that shows how to add a task to a file or directory."""
    if path.is_dir():
        example = _printf_command("---\nrun: make\n---", ">", os.path.join(name, "build.md"))
        return f"each *.md except README.md is a task, with --recursive also in subdirectories; for example: {example}"
    if path.suffix == ".toml" and path.name not in _TASK_TABLE_BY_FILE:
        return f"add one, for example with: {_printf_command(WORK_FILE_EXAMPLE, '>>', name)}"
    return "formats of task lists: codebatch help lists"


def missing_file_hint(path: Path, name: str) -> str | None:
    """Return a hint for a file that does not exist: a similar name, or how to create the file."""
    try:
        suggestion = closest_word(
            path.name, [entry_name for entry_name in os.listdir(path.parent) if not entry_name.startswith(".")]
        )
    except OSError:
        suggestion = None
    if suggestion is not None:
        return f"did you mean {os.path.join(os.path.dirname(name), suggestion)!r}?"
    to = name if path.suffix == ".toml" else f"{name}.toml"
    return f"give an existing file, or create one, for example with: {_printf_command(WORK_FILE_EXAMPLE, '>', to)}"


def _printf_command(text: str, how: str, name: str) -> str:
    return f"printf -- '{_escape_for_printf(text)}\\n' {how}{shlex.quote(name)}"


def _escape_for_printf(text: str) -> str:
    """Return a text on one line, with special characters escaped for printf(1)."""
    return text.replace("\n", "\\n")


def read_bytes(path: Path, name: str, bytes_max: int = WORK_FILE_BYTES_MAX) -> bytes:
    """Return the content of a regular file, or of standard input if the name is `-`.

    Raises InvalidConfiguration if the file is unreadable or has more than `bytes_max` bytes.
    """
    try:
        if name == STANDARD_INPUT_NAME:
            data = sys.stdin.buffer.read(bytes_max + 1)
            if len(data) > bytes_max:
                raise InvalidConfiguration(f"standard input has more than {bytes_max:,} bytes")
            return data
        return read_regular(path, bytes_max=bytes_max, is_link_followed=True)
    except OSError as error:
        if error.errno == errno.EFBIG:
            message = f"{name} has {path.stat().st_size:,} bytes, more than {bytes_max:,}"
            raise InvalidConfiguration(message) from error
        raise InvalidConfiguration(f"cannot read {name}: {error.strerror}") from error


def decode_text(data: bytes, name: str) -> str:
    """Decode UTF-8 and remove a byte order mark. Raises InvalidConfiguration."""
    try:
        return data.decode().removeprefix(_BYTE_ORDER_MARK)
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise InvalidConfiguration(f"{name} is not valid UTF-8 (line {line})") from error


def document_file(path: Path, name: str) -> WorkFile:
    """Read a TOML, YAML or JSON file and parse it by its extension. Raises InvalidConfiguration."""
    document = _PARSER_BY_SUFFIX[path.suffix](read_bytes(path, name), name)
    above = _TASK_TABLE_BY_FILE.get(path.name, ())
    for word in above:
        below = document.get(word)
        if not isinstance(below, dict):
            raise InvalidConfiguration(
                f"{name} has no table [{'.'.join(above)}]",
                hint=f"add the table [{'.'.join(above)}] to {name}, or create a file {DEFAULT_FILE_NAME}",
            )
        document = below
    file = WorkFile(path, name, above, document)
    return file._replace(task_sources=tuple(_read_tasks(file)))


def is_document_file(path: Path) -> bool:
    """Return whether a path has the extension of a TOML, YAML or JSON file."""
    return path.suffix in _PARSER_BY_SUFFIX


def _read_tasks(file: WorkFile) -> Iterator[TaskSource]:
    tasks = file.settings.get("tasks", {})
    for name, table in tasks.items() if isinstance(tasks, dict) else ():
        line = table_line(table) if isinstance(table, dict) else table_line(tasks, name)
        yield TaskSource(name, file.table_location("tasks", name)._replace(line=line), table)


def _read_toml(data: bytes, name: str) -> Mapping[str, object]:
    text = decode_text(data, name)
    try:
        return parse_toml(text, length_max=WORK_FILE_BYTES_MAX)
    except TomlError as error:
        raise InvalidConfiguration(f"{name} is not valid TOML: {error}") from error


def _read_yaml(data: bytes, name: str) -> Mapping[str, object]:
    try:
        return _require_table(parse_yaml(decode_text(data, name), length_max=YAML_CHARACTERS_MAX), name)
    except YamlError as error:
        raise InvalidConfiguration(f"{name}:{error.line} is not valid YAML: {error}") from error


def _read_json(data: bytes, name: str) -> Mapping[str, object]:
    try:
        return _require_table(parse_json(decode_text(data, name)), name)
    except JsonError as error:
        line = f":{error.line}" if error.line else ""
        raise InvalidConfiguration(f"{name}{line} is not valid JSON: {error}") from error


def _require_table(document: object, name: str) -> Mapping[str, object]:
    if isinstance(document, dict):
        return document
    if document is None:
        return {}
    raise InvalidConfiguration(
        f"{name} is not a table of settings and tasks", hint="put tasks into the table `tasks`, with IDs as keys"
    )


_PARSER_BY_SUFFIX = {".toml": _read_toml, ".yaml": _read_yaml, ".yml": _read_yaml, ".json": _read_json}
