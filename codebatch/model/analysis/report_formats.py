"""Formats of the reports of other programs, as users name or describe them.

A format is a name, or a table that describes the JSON or the lines of a program. Pointers are JSON pointers (RFC 6901).
A step `*` of a pointer means every element of an array.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Mapping
from typing import Literal, TypeAlias, get_args

import msgspec

from codebatch.model.record import SEVERITIES, Severity
from codebatch.model.task import JsonValue
from codebatch.model.text.json_pointers import EVERY_ELEMENT, POINTER_PATTERN, pointer_steps
from codebatch.model.text.suggestions import did_you_mean_text

ReportFormatName = Literal["sarif", "checkstyle", "rdjson", "rdjsonl", "jsonl", "gcc"]
REPORT_FORMAT_NAMES: tuple[ReportFormatName, ...] = get_args(ReportFormatName)

ColumnUnit = Literal["characters", "utf-16", "utf-8"]
"""The unit in which a report counts columns: code points, UTF-16 units, or UTF-8 bytes."""

FINDING_MEMBERS = ("path", "line", "column", "end_line", "end_column", "severity", "code", "message", "tool")
"""The parts of a finding: members of a table with pointers, and groups of a pattern."""

PATTERN_CHARACTERS_MAX = 4096
POINTER_CHARACTERS_MAX = 1000
_REQUIRED_GROUPS = ("path", "line", "message")


class _FormatTable(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """Settings of each described format.

    - `severities`: our severities by the words or numbers of the program, without regard to case.
    - `first_line`, `first_column`: the number that the program gives to the first line and to the first column.
    """

    severities: dict[str, Severity] = {}
    column_unit: ColumnUnit = "characters"
    first_line: Literal[0, 1] = 1
    first_column: Literal[0, 1] = 1


class JsonFormat(
    _FormatTable,
    frozen=True,
    kw_only=True,
    omit_defaults=True,
    forbid_unknown_fields=True,
    tag_field="format",
    tag="json",
):
    """A JSON document with findings at `items`, either an array of findings or a single finding.

    The other members are pointers within a finding. A pointer with `*` begins at the document: its steps up to the last
    `*` are the first steps of `items`, and select the same element. Empty pointers are not used, except `items`.
    """

    items: str = ""
    path: str
    line: str
    message: str
    column: str = ""
    end_line: str = ""
    end_column: str = ""
    severity: str = ""
    code: str = ""
    tool: str = ""

    def __post_init__(self) -> None:
        for name in ("items", *FINDING_MEMBERS):
            _check_pointer(name, getattr(self, name), self.items)
        for name in _REQUIRED_GROUPS:
            if not getattr(self, name):
                raise ValueError(f'`{name}` is empty: give the pointer to it, such as {name} = "/{name}"')


class JsonLinesFormat(
    JsonFormat, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True, tag="json-lines"
):
    """Lines, each a document of JsonFormat. A line without a value at `items` has no finding."""


class PatternFormat(
    _FormatTable,
    frozen=True,
    kw_only=True,
    omit_defaults=True,
    forbid_unknown_fields=True,
    tag_field="format",
    tag="pattern",
):
    """Lines that contain a match of a regular expression with named groups. Other lines are ignored."""

    pattern: str

    def __post_init__(self) -> None:
        _check_pattern(self.pattern)


ReportFormat: TypeAlias = ReportFormatName | JsonFormat | JsonLinesFormat | PatternFormat

_TABLE_TYPES: Mapping[str, type[JsonFormat | PatternFormat]] = {
    "json": JsonFormat,
    "json-lines": JsonLinesFormat,
    "pattern": PatternFormat,
}
TABLE_FORMAT_NAMES = tuple(_TABLE_TYPES)

_EXAMPLES = {
    "items": 'items = "/comments"',
    "pattern": r"pattern = '^(?P<path>.+?):(?P<line>\d+): (?P<message>.*)'",
    **{name: f'{name} = "/{name}"' for name in FINDING_MEMBERS},
}

_CHOICES: Mapping[str, tuple[object, ...]] = {
    "severities": SEVERITIES,
    "column_unit": get_args(ColumnUnit),
    "first_line": (0, 1),
    "first_column": (0, 1),
}


def parse_report_format(value: JsonValue) -> ReportFormat:
    """Return a format as users write it: a name, or a table with `format`.

    Raises ValueError. The message names the invalid member and contains a suggestion or an example.
    """
    match value:
        case str():
            return _parse_name(value)
        case Mapping():
            return _parse_table(value)
        case _:
            raise ValueError(f"a format is a table or one of {', '.join(REPORT_FORMAT_NAMES)}")


def format_name(form: ReportFormat) -> str:
    """Return the name of a format, such as sarif or json."""
    return form if isinstance(form, str) else str(form.__struct_config__.tag)


def compile_pattern(pattern: str) -> re.Pattern[str]:
    """Compile the regular expression of a format. Raises re.error, RecursionError or OverflowError."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        return re.compile(pattern)


def _parse_name(text: str) -> ReportFormatName:
    for name in REPORT_FORMAT_NAMES:
        if name == text:
            return name
    if text in _TABLE_TYPES:
        members = ", ".join(_EXAMPLES[name] for name in _required_members(_TABLE_TYPES[text]))
        raise ValueError(f'{text} needs a description of the report, for example: {{format = "{text}", {members}}}')
    raise ValueError(f"unknown format {text!r}: {did_you_mean_text(text, (*REPORT_FORMAT_NAMES, *TABLE_FORMAT_NAMES))}")


def _parse_table(table: Mapping[str, JsonValue]) -> JsonFormat | PatternFormat:
    form = str(table.get("format", ""))
    table_type = _TABLE_TYPES.get(form)
    if table_type is None:
        raise ValueError(f"unknown `format` {form!r} of a table: {did_you_mean_text(form, TABLE_FORMAT_NAMES)}")
    known = table_type.__struct_fields__
    for name in table:
        if name not in {"format", *known}:
            raise ValueError(f"unknown member `{name}`: {did_you_mean_text(str(name), known)}")
    for name in _required_members(table_type):
        if name not in table:
            raise ValueError(f"`{name}` is missing, for example: {_EXAMPLES[name]}")
    try:
        return msgspec.convert(table, table_type)
    except msgspec.ValidationError as error:
        raise ValueError(_mistake_text(error)) from error


def _required_members(table_type: type[msgspec.Struct]) -> tuple[str, ...]:
    return tuple(field.name for field in msgspec.structs.fields(table_type) if field.required)


def _mistake_text(error: msgspec.ValidationError) -> str:
    """Return the description of an invalid value, with the name of its member."""
    if error.__cause__ is not None:
        return str(error.__cause__)
    text, _, place = str(error).partition(" - at `$.")
    name = re.split(r"[.\[`]", place)[0]
    choices = f", one of: {', '.join(map(str, _CHOICES[name]))}" if name in _CHOICES else ""
    return f"`{name}`: {text[:1].lower()}{text[1:]}{choices or f', for example: {_EXAMPLES[name]}'}"


def _check_pointer(name: str, pointer: str, items: str) -> None:
    """Check a pointer of a table. Raises ValueError."""
    if len(pointer) > POINTER_CHARACTERS_MAX:
        raise ValueError(f"`{name}` has more than {POINTER_CHARACTERS_MAX:,} characters")
    if not POINTER_PATTERN.fullmatch(pointer):
        raise ValueError(f"`{name}` is {pointer!r}, which is not a JSON pointer: for example {_EXAMPLES[name]}")
    if name == "items" or EVERY_ELEMENT not in pointer_steps(pointer):
        return
    parent = "".join(pointer.rpartition(f"/{EVERY_ELEMENT}")[:2])
    if not f"{items}/".startswith(f"{parent}/"):
        raise ValueError(f"`{name}` is {pointer!r}, but `items` is {items!r}, which does not begin with {parent!r}")


def _check_pattern(pattern: str) -> None:
    """Check the regular expression of a table. Raises ValueError."""
    if len(pattern) > PATTERN_CHARACTERS_MAX:
        raise ValueError(f"`pattern` has more than {PATTERN_CHARACTERS_MAX:,} characters")
    try:
        groups = compile_pattern(pattern).groupindex
    except (re.error, RecursionError, OverflowError) as error:
        raise ValueError(f"`pattern` is not a valid regular expression: {error}") from error
    for name in groups:
        if name not in FINDING_MEMBERS:
            raise ValueError(f"`pattern` has an unknown group {name!r}: {did_you_mean_text(name, FINDING_MEMBERS)}")
    for name in _REQUIRED_GROUPS:
        if name not in groups:
            raise ValueError(f"`pattern` has no group {name!r}, for example: {_EXAMPLES['pattern']}")
