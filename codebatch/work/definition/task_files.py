"""Task lists in other formats than TOML, YAML and JSON: Markdown, JSON lines, and lines of text."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from codebatch.errors import CodebatchError, InvalidConfiguration
from codebatch.model.text.json_text import JsonError, parse_json
from codebatch.model.text.line_numbers import TableWithLines, table_line
from codebatch.model.text.markdown import first_heading, level_2_sections, make_slug, split_front_matter
from codebatch.model.text.toml import TomlError, parse_toml
from codebatch.model.text.yaml import YamlError, parse_yaml
from codebatch.model.work.command import COMMAND_BYTES_MAX, COMMAND_ID_PATTERN
from codebatch.model.work.work_batch import COMMANDS_MAX
from codebatch.work.definition.problems import DefinitionProblems
from codebatch.work.definition.table_checks import TableLocation, value_text
from codebatch.work.definition.work_files import WORK_FILE_BYTES_MAX, TaskSource, WorkFile, decode_text, read_bytes

FRONT_MATTER_CHARACTERS_MAX = 1 << 20
_IGNORED_NAME = "readme.md"
PROSE_NEEDS_KEYS = ("depends_on", "dependencies", "blocked_by")
_PRIORITY_BY_WORD = {"high": 10, "medium": 0, "low": -10}
_DONE_STATUS = "done"
_STATUSES_LIKE_DONE = {"complete", "completed", "finished", "closed"}
"""Words that are rejected as a status in front matter, because they probably mean "done".

If they were ignored, a completed task could run again.
"""
_STATUS_KEY = "status"
_SINGLE_TASK_KEYS = {"run", "id", "needs", *PROSE_NEEDS_KEYS}
"""Keys of front matter. If a Markdown file has one of them, the whole file is one task."""
_TEXT_KEYS = frozenset({"id", "needs", "after", "title", "tags", *PROSE_NEEDS_KEYS})
"""Keys of front matter whose values are always text. YAML may convert the values of all other keys."""


class _MarkdownTask(NamedTuple):
    """A parsed Markdown file: the front matter as a table, and the body. `body_line` is the first line of the body."""

    table: TableWithLines
    body: str
    body_line: int


def markdown_directory(path: Path, name: str, problems: DefinitionProblems, *, is_recursive: bool) -> WorkFile:
    """Read the tasks of a directory. Each Markdown file is a task. The tasks are sorted by file name.

    Files with errors are reported and skipped.
    """
    root = os.path.realpath(path)
    written: list[TaskSource] = []
    done: list[TaskSource] = []
    unread: set[str] = set()
    total = 0
    for relative in _markdown_names(path, name, problems, is_recursive=is_recursive):
        displayed_name = os.path.join(name, relative)
        if len(written) > COMMANDS_MAX:
            break  # `check_ids` reports later that there are too many tasks.
        try:
            file = path / relative
            if file.is_symlink() and not os.path.realpath(file).startswith(os.path.join(root, "")):
                raise InvalidConfiguration(f"{displayed_name} is a symbolic link out of {name}")
            data = read_bytes(file, displayed_name, COMMAND_BYTES_MAX)
            total += len(data)
            if total > WORK_FILE_BYTES_MAX:
                raise InvalidConfiguration(f"the files of {name} together have more than {WORK_FILE_BYTES_MAX:,} bytes")
            task, is_done = _parse_task(
                _split_prose(decode_text(data, displayed_name), displayed_name), displayed_name, Path(relative).stem
            )
        except CodebatchError as error:
            problems.add(error.message, error.hint)
            # Other tasks may need this task. Because its ID is in `unread`, no second error is reported for them.
            unread.add(Path(relative).stem)
            if total > WORK_FILE_BYTES_MAX:
                break
            continue
        (done if is_done else written).append(task)
    return WorkFile(path, name, (), None, tuple(written), tuple(done), frozenset(unread))


def markdown_file(path: Path, name: str) -> WorkFile:
    """Read a Markdown file. If its front matter has `run`, `id` or dependencies, the file is one task.

    Otherwise, each section is a task. Raises InvalidConfiguration.
    """
    text = decode_text(read_bytes(path, name), name)
    prose = _split_prose(text, name)
    if prose.table.keys() & _SINGLE_TASK_KEYS:
        task, is_done = _parse_task(prose, name, path.stem)
        return WorkFile(path, name, (), None, () if is_done else (task,), (task,) if is_done else ())
    written: list[TaskSource] = []
    done: list[TaskSource] = []
    common = _task_table(prose)
    are_done = _is_done(prose.table, name)
    for section in level_2_sections(prose.body):
        place = TableLocation(name, "", section.line + prose.body_line - 1)
        table = TableWithLines(place.line)
        table.update(common, title=section.title, text=section.text)
        table.lines = common.lines
        task = TaskSource(section.name or make_slug(section.title), place, table, is_prose=True)
        (done if are_done or section.is_done else written).append(task)
    if not written and not done:
        raise InvalidConfiguration(
            f"{name} has no tasks",
            hint="write each task as a section with a ## heading; or give the file front matter with an id",
        )
    return WorkFile(path, name, (), None, tuple(written), tuple(done))


def json_lines_file(path: Path, name: str, problems: DefinitionProblems) -> WorkFile:
    """Read a file in which each line is a JSON object with an `id`.

    Invalid lines are reported as problems. Raises InvalidConfiguration.
    """
    written: list[TaskSource] = []
    for number, line in enumerate(decode_text(read_bytes(path, name), name).split("\n"), 1):
        if not line.strip():
            continue
        place = TableLocation(name, "", number)
        try:
            table = parse_json(line)
        except JsonError as error:
            problems.add(f"{place} is not valid JSON: {error}")
            continue
        id_ = table.get("id") if isinstance(table, dict) else None
        if isinstance(table, dict) and isinstance(id_, str):
            written.append(TaskSource(id_, place, {key: value for key, value in table.items() if key != "id"}))
        else:
            problems.add(
                f"{place} is not a task: expected an object with an id", 'for example: {"id": "build", "run": "make"}'
            )
    return WorkFile(path, name, (), None, tuple(written))


def lines_file(path: Path, name: str) -> WorkFile:
    """Read a file in which each line is a task.

    The tasks are members of a group that is named after the file. Raises InvalidConfiguration.
    """
    lines = text_lines(decode_text(read_bytes(path, name), name))
    group = TaskSource(make_slug(Path(name).stem) or "line", TableLocation(name, ""), {}, lines=tuple(lines))
    return WorkFile(path, name, (), None, (group,))


def text_lines(text: str) -> list[str]:
    """Return the lines of a text without line breaks. Blank lines are left out."""
    return [line for raw in text.split("\n") if (line := raw.rstrip("\r")).strip()]


def _markdown_names(path: Path, name: str, problems: DefinitionProblems, *, is_recursive: bool) -> Sequence[str]:
    """Return the paths of the Markdown files of a directory, relative to the directory and sorted."""
    paths: list[str] = []

    def report(error: OSError) -> None:
        problems.add(f"cannot read {name}: {error.strerror}")

    for directory, below, names in os.walk(path, onerror=report):
        below[:] = [entry for entry in below if is_recursive and not entry.startswith((".", "_"))]
        paths += [
            os.path.relpath(os.path.join(directory, entry), path)
            for entry in names
            if entry.endswith(".md") and not entry.startswith((".", "_")) and entry.lower() != _IGNORED_NAME
        ]
    return sorted(paths)


def _split_prose(text: str, name: str) -> _MarkdownTask:
    """Split a Markdown text into front matter and body. Raises InvalidConfiguration."""
    try:
        front = split_front_matter(text)
    except ValueError as error:
        raise InvalidConfiguration(f"{name}: {error}") from error
    if front is None:
        return _MarkdownTask(TableWithLines(1), text, 1)
    try:
        if front.language == "yaml":
            table = parse_yaml(front.text, length_max=FRONT_MATTER_CHARACTERS_MAX, line=2, texts=_TEXT_KEYS)
        # The added newline replaces the first line of the file, so that line numbers in errors are right.
        else:
            table = parse_toml(f"\n{front.text}", length_max=FRONT_MATTER_CHARACTERS_MAX + 1)
    except YamlError as error:
        raise InvalidConfiguration(f"{name}:{error.line}: front matter is not valid YAML: {error}") from error
    except TomlError as error:
        raise InvalidConfiguration(f"{name}: front matter is not valid TOML: {error}") from error
    if table is None:
        table = TableWithLines(1)
    if not isinstance(table, dict):
        kind = "a list" if isinstance(table, list) else "a single value"
        raise InvalidConfiguration(
            f"{name}:2: front matter must have a key and a value on each line, but is {kind}",
            hint="for example: needs: [001-schema]",
        )
    return _MarkdownTask(_as_table_with_lines(table), front.body, front.body_line)


def _as_table_with_lines(table: dict[str, object]) -> TableWithLines:
    if isinstance(table, TableWithLines):
        return table
    lined = TableWithLines(0)
    lined.update(table)
    return lined


def _parse_task(prose: _MarkdownTask, name: str, stem: str) -> tuple[TaskSource, bool]:
    """Return the task that a Markdown file describes, and whether it is marked as done. Raises InvalidConfiguration."""
    table = _task_table(prose)
    table.setdefault("title", first_heading(prose.body))
    table.setdefault("text", prose.body.strip("\r\n"))
    id_ = prose.table.get("id", stem if COMMAND_ID_PATTERN.match(stem) else make_slug(stem) or stem)
    if not isinstance(id_, str):
        spot = TableLocation(name, "").key_location(prose.table, "id").file_and_line
        message = f"{spot} sets `id` to {value_text(id_)}, expected a string"
        raise InvalidConfiguration(message, hint="quote the value")
    return TaskSource(id_, TableLocation(name, ""), table, is_prose=True), _is_done(prose.table, name)


def _task_table(prose: _MarkdownTask) -> TableWithLines:
    """Return the front matter as a table of a task. Keys are renamed, for example `depends_on` to `needs`."""
    table = TableWithLines(prose.table.line)
    needs: list[object] = []
    table.lines = dict(prose.table.lines)
    for key, value in prose.table.items():
        if key == "needs" or key in PROSE_NEEDS_KEYS:
            needs += _as_list(value)
            table.lines.setdefault("needs", table_line(prose.table, key))
        elif key == "tags":
            table[key] = _as_list(value)
        elif key == "title" and value is None:
            continue
        elif key == "priority" and isinstance(value, str):
            table[key] = _PRIORITY_BY_WORD.get(value.lower(), value)
        elif key not in ("id", _STATUS_KEY):
            table[key] = value
    if needs:
        table["needs"] = needs
    return table


def _is_done(table: TableWithLines, name: str) -> bool:
    """Return whether front matter marks its task as done.

    Raises InvalidConfiguration if the status is ambiguous.
    """
    status = table.get(_STATUS_KEY)
    word = status.strip().lower() if isinstance(status, str) else status
    if word is not None and (not isinstance(word, str) or word in _STATUSES_LIKE_DONE):
        location = TableLocation(name, "").key_location(table, _STATUS_KEY)
        message = f"{location.file_and_line} sets `status` to {value_text(status)}"
        raise InvalidConfiguration(
            message, hint=f"to mark the task as done, write `status: {_DONE_STATUS}`; otherwise, remove the line"
        )
    return word == _DONE_STATUS


def _as_list(value: object) -> list[object]:
    """Return a list unchanged, a single value as a list, and None as an empty list."""
    if value is None:
        return []
    return value if isinstance(value, list) else [value]
