"""One table of a work file at a time: its keys, and what each is set to."""

from __future__ import annotations

import contextlib
import re
import typing
from collections.abc import Mapping

import msgspec

from codebatch.model.likeness import did_you_mean
from codebatch.model.placeholders import problems as placeholder_problems
from codebatch.work.asking import check_pattern
from codebatch.work.problems import Problems
from codebatch.work.tables import TABLES, TO_COME, Kind

ID_HINT = "letters, digits, '.', '_' and '-', a letter or a digit first, 100 at most"
_NAME_OF_CALLER = re.compile(r"\$([A-Za-z_][A-Za-z0-9_]*)\Z")
_SHOWN_MAX = 60
_SHOWN_INTEGER_MAX = 2**63


class Place(typing.NamedTuple):
    """A table of a file: both as people know them. `table` is empty for the file itself."""

    file: str
    table: str

    def __str__(self) -> str:
        return f"{self.file}: [{self.table}]" if self.table else self.file


class TableChecker:
    """Tells what is wrong with tables. `environ` is what values such as `"$NAME"` are taken from."""

    def __init__(self, problems: Problems, environ: Mapping[str, str]) -> None:
        self._problems = problems
        self._environ = environ
        self._fields = {
            kind: {field.name: field.type for field in msgspec.structs.fields(type_)} for kind, type_ in TABLES.items()
        }

    def check(self, place: Place, kind: Kind, table: Mapping[str, object]) -> bool:
        """Whether a table is sound; what is wrong with it is told."""
        before = self._problems.count
        fields = self._fields[kind]
        try:
            msgspec.convert(table, TABLES[kind])
            has_types = True
        except (msgspec.ValidationError, ValueError):
            has_types = False
        for key, value in table.items():
            if has_types or self._has_type(place, kind, key, value, fields):
                self._check_texts(place, key, value)
        return self._problems.count == before

    def _has_type(self, place: Place, kind: Kind, key: str, value: object, fields: Mapping[str, object]) -> bool:
        if key not in fields:
            self._unknown(place, kind, key, value)
            return False
        if value == "auto" and key == "strategy":
            self._problems.add(f"{place} sets strategy to 'auto', which this version does not have yet")
            return False
        try:
            msgspec.convert(value, fields[key])
            return True
        except (msgspec.ValidationError, ValueError):
            self._problems.add(f"{place} sets {key} to {_shown(value)}, which is to be {_wanted(fields[key])}")
            return False

    def _check_texts(self, place: Place, key: str, value: object) -> None:
        """Tell what is wrong with a value that has its type."""
        if _holds_nul(value):
            self._problems.add(f"{place} sets {key} to what holds a NUL")
        elif key == "env" and isinstance(value, dict):
            self.check_environment(place, value)
        elif key == "cwd" and isinstance(value, str):
            if value.startswith("/") or ".." in value.split("/") or not value:
                hint = "set `root`, which may be anywhere"
                self._problems.add(f"{place} sets cwd to {value!r}, which is not below the root", hint)
        elif key in ("run", "check") and isinstance(value, str | list):
            self._check_run(place, key, value)
        elif key == "tries" and isinstance(value, list):
            for number, table in enumerate(value, start=1):
                self._check_try(Place(place.file, f"{place.table}.tries {number}"), table)
        elif key == "question" and isinstance(value, dict):
            check_pattern(value.get("pattern", ""), f"{place} question", self._problems)
            if not value.get("pattern") and not value.get("exits"):
                self._problems.add(f"{place} has a question that is known by nothing", "set `pattern` or `exits` in it")

    def _check_run(self, place: Place, key: str, value: str | list[str]) -> None:
        if not value or not value[0].strip():
            self._problems.add(f"{place} has an empty {key}", f'for example: {key} = "make test"')
        for problem in placeholder_problems(value):
            self._problems.add(f"{place} {problem.told}", problem.hint)

    def _check_try(self, place: Place, table: Mapping[str, object]) -> None:
        run, env, suffix = table.get("run"), table.get("env"), table.get("text_suffix")
        if isinstance(run, str | list):
            self._check_run(place, "run", run)
        if isinstance(env, dict):
            self.check_environment(place, env)
        if isinstance(suffix, str):
            for problem in placeholder_problems([suffix]):
                self._problems.add(f"{place} {problem.told}, in text_suffix", problem.hint)

    def _unknown(self, place: Place, kind: Kind, key: str, value: object) -> None:
        if key in TO_COME[kind]:
            self._problems.add(f"{place} sets {key!r}, which this version does not have yet")
        elif kind == "defaults" and key in self._fields["task"]:
            self._problems.add(f"{place} sets {key!r}, which only a task can", "set it in [tasks.…]")
        elif kind == "task" and isinstance(value, dict):
            hint = f'an id with a dot stands in quotes: [tasks."….{key}"]'
            self._problems.add(f"{place} has the table {key!r}, which there is not", hint)
        else:
            known = tuple(self._fields[kind]) + (("defaults", "tasks") if kind == "settings" else ())
            self._problems.add(f"{place} sets {key!r}, which there is not", lambda: did_you_mean(key, known))

    def check_environment(self, place: Place, env: Mapping[str, str]) -> None:
        """Tell which names and values no environment can hold, or not now."""
        for name, value in env.items():
            if not name or "=" in name:
                self._problems.add(f"{place} sets the variable {name!r}, which no environment can hold")
            elif (caller := _NAME_OF_CALLER.match(value)) and caller[1] not in self._environ:
                hint = f"set it where you start from: export {caller[1]}=…"
                self._problems.add(f"{place} sets the variable {name} to ${caller[1]}, which is not set", hint)
            for problem in placeholder_problems([value]):
                self._problems.add(f"{place} {problem.told}, in the variable {name}", problem.hint)


def sound_part(table: Mapping[str, object], type_: type[msgspec.Struct]) -> dict[str, object]:
    """What of an unsound table can be read, so that no more is told than is wrong."""
    part: dict[str, object] = {}
    for key in table.keys() & set(type_.__struct_fields__):
        with contextlib.suppress(msgspec.ValidationError, ValueError):
            msgspec.convert({key: table[key]}, type_)
            part[key] = table[key]
    return part


def _holds_nul(value: object) -> bool:
    if isinstance(value, str):
        return "\0" in value
    if isinstance(value, dict):
        return "\0" in "".join(value) or _holds_nul([*value.values()])
    return isinstance(value, list) and any(_holds_nul(each) for each in value)


def _wanted(type_: object) -> str:
    """What is wanted of a value, by the description of its type."""
    for part in (type_, *typing.get_args(type_)):
        for about in getattr(part, "__metadata__", ()):
            if about.description:
                return str(about.description)
    raise AssertionError(type_)


def _shown(value: object) -> str:
    if isinstance(value, int) and abs(value) >= _SHOWN_INTEGER_MAX:
        return "a number of many digits"
    if isinstance(value, float):
        return str(value)
    try:
        text = repr(value) if isinstance(value, str) else msgspec.json.encode(value).decode()
    except (msgspec.MsgspecError, ValueError, OverflowError):
        return "what holds a number of many digits"
    return text if len(text) <= _SHOWN_MAX else f"{text[:_SHOWN_MAX]}…"
