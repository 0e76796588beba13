"""Checks of a single table in a work file: its keys, types and values."""

from __future__ import annotations

import contextlib
import re
import typing
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from codebatch.model.text.line_numbers import TableWithLines, table_line
from codebatch.model.text.suggestions import did_you_mean_text
from codebatch.model.work.placeholders import placeholder_problems as placeholder_problems
from codebatch.model.work.variables import VariableError, bare_variables, expand_value
from codebatch.snapshotting.selection import find_pattern_mistake
from codebatch.work.definition.problems import DefinitionProblems
from codebatch.work.definition.tables import TABLE_TYPES, TableKind

ID_HINT = (
    "ids consist of letters, digits, '.', '_' and '-', start with a letter or digit and have at most 100 characters"
)
_INNER_TABLE_KINDS: dict[str, TableKind] = {"each": "each", "infer": "infer", "notify": "notify", "trees": "trees"}
_PATTERN_KEYS = ("files", "inputs", "outputs")
_KEYS_OF_OTHER_PROGRAMS = {
    "depends_on": "needs",
    "depends": "needs",
    "dependencies": "needs",
    "deps": "needs",
    "blocked_by": "needs",
    "retry": "retries",
    "cmd": "run",
    "cmds": "run",
    "command": "run",
    "script": "run",
    "dir": "cwd",
    "workdir": "cwd",
    "working_directory": "cwd",
    "environment": "env",
    "dotenv": "env_file",
    "matrix": "each",
    "jobs": "max_parallel",
    "concurrency": "max_parallel",
}
"""Keys that other programs use, each with the key of work files that has the same meaning."""
_QUOTE_HINT = 'quote text values: "3.10" is text, 3.10 is a number'
_RECORDS_HINT = "to record the findings of a linter, write [tasks.X] command = […] in codebatch.toml"
_VALUE_CHARACTERS_SHOWN = 60
_SHOWN_INTEGER_MAX = 2**63


class TableLocation(typing.NamedTuple):
    """The location of a table, as shown to users.

    `table` is empty for the file itself. `line` is 0 if it is unknown.
    """

    file: str
    table: str
    line: int = 0

    def __str__(self) -> str:
        return f"{self.file_and_line}: [{self.table}]" if self.table else self.file_and_line

    @property
    def file_and_line(self) -> str:
        """The file and, if known, the line."""
        return f"{self.file}:{self.line}" if self.line else self.file

    def key_location(self, table: object, key: str) -> TableLocation:
        """Return the location of a key of the table."""
        return self._replace(line=table_line(table, key) or self.line)

    def nested_location(self, key: str, table: object) -> TableLocation:
        """Return the location of a nested table."""
        return TableLocation(self.file, f"{self.table}.{key}" if self.table else key, table_line(table) or self.line)


class TableChecker:
    """A checker of tables in work files. Errors are added to `problems`, other remarks to `notes`.

    `environ` has the environment variables that values of `env` may use. Patterns are relative to `root`.
    """

    def __init__(self, problems: DefinitionProblems, environ: Mapping[str, str], root: Path) -> None:
        self._problems = problems
        self._environ = environ
        self._root = root
        self.notes: list[str] = []
        self._fields = {
            kind: {field.name: field.type for field in msgspec.structs.fields(type_)}
            for kind, type_ in TABLE_TYPES.items()
        }

    def check(self, place: TableLocation, kind: TableKind, table: Mapping[str, object]) -> bool:
        """Return whether a table is valid. Errors are added to the problems."""
        before = self._problems.count
        fields = self._fields[kind]
        try:
            msgspec.convert(table, TABLE_TYPES[kind])
            has_types = True
        except (msgspec.ValidationError, ValueError):
            has_types = False
        for key, value in table.items():
            where = place.key_location(table, key)
            if has_types or self._has_type(where, kind, table, key, fields):
                self._check_texts(where, key, value)
        if not has_types and self._problems.count == before:
            lacks = [field.name for field in msgspec.structs.fields(TABLE_TYPES[kind]) if field.required]
            self._problems.add(f"{place} needs {' and '.join(lacks)}")
        return self._problems.count == before

    def _has_type(
        self, place: TableLocation, kind: TableKind, table: Mapping[str, object], key: str, fields: Mapping[str, object]
    ) -> bool:
        value = table[key]
        if key not in fields:
            self._report_unknown_key(place, kind, key, value)
            return False
        if key in _INNER_TABLE_KINDS and isinstance(value, dict):
            return self.check(place.nested_location(key, value), _INNER_TABLE_KINDS[key], value)
        try:
            msgspec.convert(value, fields[key])
            return True
        except (msgspec.ValidationError, ValueError):
            expected = _expected_text(fields[key])
            hint = _QUOTE_HINT if isinstance(table, TableWithLines) and _is_unquoted(value, expected) else None
            self._problems.add(f"{place} sets `{key}` to {value_text(value)}, expected {expected}", hint)
            return False

    def _check_texts(self, place: TableLocation, key: str, value: object) -> None:
        """Report errors in the text of a value that has the right type."""
        if _contains_nul(value):
            self._problems.add(f"{place} sets `{key}` to a value with a NUL character")
        elif key == "env" and isinstance(value, dict):
            self.check_environment(place, value)
        elif key in ("cwd", "stdin") and isinstance(value, str):
            self._check_path(place, key, value)
        elif key in _PATTERN_KEYS and isinstance(value, list):
            self._check_patterns(place, key, value)
        elif key == "each" and isinstance(value, dict) and isinstance(value.get("files"), list):
            self._check_patterns(place.nested_location(key, value), "files", value["files"])
        elif key in ("run", "check", "when") and isinstance(value, str | list):
            self._check_run(place, key, value)
        elif key == "tries" and isinstance(value, list):
            for number, table in enumerate(value, start=1):
                self._check_try(TableLocation(place.file, f"{place.table}.tries {number}"), table)
        elif key in ("question", "retry_if") and isinstance(value, dict):
            check_pattern(value.get("pattern", ""), f"{place} {key}", self._problems)
            if not value.get("pattern") and not value.get("exits"):
                message = (
                    "a `question` without a condition" if key == "question" else "a `retry_if` without a condition"
                )
                self._problems.add(f"{place} has {message}", "set `pattern` or `exits` in it")
        elif key == "wait_if" and isinstance(value, str | dict):
            pattern = value if isinstance(value, str) else value.get("pattern", "")
            check_pattern(pattern, f"{place} wait_if", self._problems, groups=("at", "seconds"))

    def _check_path(self, place: TableLocation, key: str, value: str) -> None:
        if value.startswith("/") or ".." in value.split("/") or not value:
            hint = "set `root` to work outside it"
            self._problems.add(f"{place} sets `{key}` to {value!r}, which is outside the root", hint)

    def _check_patterns(self, place: TableLocation, key: str, patterns: Sequence[str]) -> None:
        if (mistake := find_pattern_mistake(patterns, self._root)) is not None:
            message = (
                f"{place} has the pattern {mistake.pattern!r} in `{key}`, which can match no path: {mistake.reason}"
            )
            self._problems.add(message, mistake.hint)

    def _check_run(self, place: TableLocation, key: str, value: str | list[str]) -> None:
        if not value or not value[0].strip():
            self._problems.add(f"{place} has an empty `{key}`", f'for example: {key} = "make test"')
        for problem in placeholder_problems(value):
            self._problems.add(f"{place} {problem.text}", problem.hint)

    def _check_try(self, place: TableLocation, table: Mapping[str, object]) -> None:
        run, env, suffix = table.get("run"), table.get("env"), table.get("text_suffix")
        if isinstance(run, str | list):
            self._check_run(place, "run", run)
        if isinstance(env, dict):
            self.check_environment(place, env)
        if isinstance(suffix, str):
            for problem in placeholder_problems([suffix]):
                self._problems.add(f"{place} {problem.text}, in text_suffix", problem.hint)

    def _report_unknown_key(self, place: TableLocation, kind: TableKind, key: str, value: object) -> None:
        if key == "records" and kind in ("task", "defaults"):
            self._problems.add(f"{place} sets 'records', but commands of a task list have no records", _RECORDS_HINT)
        elif kind == "defaults" and key in self._fields["task"]:
            self._problems.add(f"{place} sets {key!r}, which is allowed only in a task", "set it in a task: [tasks.…]")
        elif kind == "task" and isinstance(value, dict):
            hint = f'quote ids with a dot: [tasks."….{key}"]'
            self._problems.add(f"{place}: unknown table {key!r}", hint)
        else:
            known = tuple(self._fields[kind]) + (("defaults", "tasks") if kind == "settings" else ())
            equivalent = _KEYS_OF_OTHER_PROGRAMS.get(key)
            message = f"{place}: unknown setting {key!r}"
            if kind == "settings" and (hint := self._task_hint(key, value)):
                self._problems.add(message, hint)
            elif equivalent in known:
                self._problems.add(message, f"did you mean {equivalent!r}?")
            else:
                self._problems.add(message, lambda: did_you_mean_text(key, known))

    def _task_hint(self, key: str, value: object) -> str:
        """Return a hint for a task, or a setting of tasks, at the top level of a file. Empty for anything else."""
        if isinstance(value, dict):
            if not self._fields["task"].keys().isdisjoint(value):
                return f"tasks belong below `tasks`: [tasks.{key}]"
            has_tasks = any(isinstance(each, dict) and self._task_hint(key, each) for each in value.values())
            return "did you mean 'tasks'?" if has_tasks else ""
        if key in self._fields["defaults"]:
            return f"set {key!r} in a task, [tasks.NAME], or for all tasks in [defaults]"
        return f"set {key!r} in a task: [tasks.NAME]" if key in self._fields["task"] else ""

    def check_environment(self, place: TableLocation, env: Mapping[str, str]) -> None:
        """Report invalid names of variables, and values with undefined variables or placeholders."""
        for name, value in env.items():
            if not name or "=" in name:
                self._problems.add(f"{place} sets the variable {name!r}, which is not a valid name")
            else:
                self._check_variables(place, name, value)
            if "{files}" in value.replace("{{files}}", ""):
                self._problems.add(f"{place} uses {{files}} in the variable {name}, which can hold only one value")
            for problem in placeholder_problems([value]):
                self._problems.add(f"{place} {problem.text}, in the variable {name}", problem.hint)

    def _check_variables(self, place: TableLocation, name: str, value: str) -> None:
        """Report undefined variables in the value of an environment variable.

        If the value contains text such as `$NAME` that is not expanded, add a note.
        """
        try:
            expand_value(value, self._environ)
        except VariableError as error:
            hint = "set it in the environment, or write ${NAME:-default}; for a literal ${ write $${"
            self._problems.add(f"{place} sets the variable {name} to {value_text(value)}: {error}", hint)
        for bare in bare_variables(value):
            if bare in self._environ:
                note = f"{place} sets the variable {name} to {value_text(value)}, in which ${bare} is not expanded"
                self.notes.append(f"{note}: write ${{{bare}}}")


def valid_part(table: Mapping[str, object], type_: type[msgspec.Struct]) -> dict[str, object]:
    """Return the valid settings of an invalid table.

    Later checks use them, so that one error does not cause follow-up errors.
    """
    part: dict[str, object] = {}
    for key in table.keys() & set(type_.__struct_fields__):
        with contextlib.suppress(msgspec.ValidationError, ValueError):
            msgspec.convert({key: table[key]}, type_)
            part[key] = table[key]
    return part


def _is_unquoted(value: object, expected: str) -> bool:
    """Return whether a value should be a string but has another type, for example a number without quotes."""
    values = value if isinstance(value, list) else value.values() if isinstance(value, dict) else [value]
    is_text = any(word in expected for word in ("string", "IDs", "pattern", "path"))
    return is_text and any(not isinstance(element, str | dict | list) for element in values)


def _contains_nul(value: object) -> bool:
    if isinstance(value, str):
        return "\0" in value
    if isinstance(value, dict):
        return "\0" in "".join(value) or any(map(_contains_nul, value.values()))
    return isinstance(value, list) and any(map(_contains_nul, value))


def _expected_text(type_: object) -> str:
    """Return a description of the values that a type allows, for messages."""
    for part in (type_, *typing.get_args(type_)):
        for about in getattr(part, "__metadata__", ()):
            if about.description:
                return str(about.description)
    raise AssertionError(type_)


def value_text(value: object) -> str:
    """Return a value as text for a message: a string in quotes, any other value as JSON. Long values are cut."""
    if isinstance(value, int) and abs(value) >= _SHOWN_INTEGER_MAX:
        return "a very large number"
    if isinstance(value, float):
        return str(value)
    try:
        text = repr(value) if isinstance(value, str) else msgspec.json.encode(value).decode()
    except (msgspec.MsgspecError, ValueError, OverflowError):
        return "a value with a very large number"
    return text if len(text) <= _VALUE_CHARACTERS_SHOWN else f"{text[:_VALUE_CHARACTERS_SHOWN]}…"


def check_pattern(
    pattern: str, place: object, problems: DefinitionProblems, *, groups: Sequence[str] | None = None
) -> None:
    """Report an invalid regular expression, or a named group that is not in `groups`."""
    try:
        compiled = re.compile(pattern)
    except (re.error, RecursionError, OverflowError) as error:
        problems.add(f"{place} has an invalid regular expression: {error}")
        return
    for name in compiled.groupindex:
        if groups is not None and name not in groups:
            problems.add(f"{place} has an unknown group {name!r}", f"use only {' and '.join(groups)}")
