"""Tests of report formats: valid tables travel unchanged as JSON, and each mistake is named."""

from __future__ import annotations

import msgspec
import pytest

from codebatch.model.analysis.report_formats import (
    PATTERN_CHARACTERS_MAX,
    POINTER_CHARACTERS_MAX,
    REPORT_FORMAT_NAMES,
    JsonFormat,
    JsonLinesFormat,
    PatternFormat,
    ReportFormat,
    format_name,
    parse_report_format,
)

TABLE: dict[object, object] = {"path": "/p", "line": "/l", "message": "/m"}
PATTERN = r"(?P<path>.+):(?P<line>\d+) (?P<message>.*)"

FORMATS: dict[str, tuple[object, ReportFormat]] = {
    "json": (
        {"format": "json", **TABLE, "items": "/*/a~1b/*", "tool": "/*/t", "first_line": 0, "column_unit": "utf-16"},
        JsonFormat(
            path="/p", line="/l", message="/m", items="/*/a~1b/*", tool="/*/t", first_line=0, column_unit="utf-16"
        ),
    ),
    "json-lines": (
        {"format": "json-lines", **TABLE, "severities": {"2": "error"}},
        JsonLinesFormat(path="/p", line="/l", message="/m", severities={"2": "error"}),
    ),
    "pattern": ({"format": "pattern", "pattern": PATTERN}, PatternFormat(pattern=PATTERN)),
    **{name: (name, name) for name in REPORT_FORMAT_NAMES},
}


@pytest.mark.parametrize("name", FORMATS)
def test_format_is_encoded_as_it_is_written(name: str) -> None:
    written, form = FORMATS[name]
    assert parse_report_format(written) == form
    assert format_name(form) == name
    encoded = msgspec.json.encode(form)
    assert msgspec.json.decode(encoded) == written
    assert msgspec.json.decode(encoded, type=ReportFormat) == form


MISTAKES: list[tuple[object, str]] = [
    ("gc", "unknown format 'gc': did you mean 'gcc'?"),
    ("x", "unknown format 'x': one of: sarif, checkstyle, rdjson, rdjsonl, jsonl, gcc, json, json-lines, pattern"),
    ("json", 'json needs a description of the report, for example: {format = "json", path = "/path", line'),
    ("pattern", 'pattern needs a description of the report, for example: {format = "pattern", pattern = \'^(?P<path>'),
    (5, "a format is a table or one of sarif, "),
    ({}, "unknown `format` '' of a table: one of: json, json-lines, pattern"),
    ({"format": "jsn"}, "unknown `format` 'jsn' of a table: did you mean 'json'?"),
    ({"format": "gcc"}, "unknown `format` 'gcc' of a table"),
    ({**TABLE, "lin": "/x"}, "unknown member `lin`: did you mean 'line'?"),
    ({**TABLE, 5: "/x"}, "unknown member `5`: one of: "),
    ({"path": "/p", "message": "/m"}, '`line` is missing, for example: line = "/line"'),
    ({**TABLE, "code": 5}, '`code`: expected `str`, got `int`, for example: code = "/code"'),
    ({**TABLE, "code": "code"}, "`code` is 'code', which is not a JSON pointer: for example code = \"/code\""),
    ({**TABLE, "items": "/a~2"}, "`items` is '/a~2', which is not a JSON pointer: for example items = \"/comments\""),
    ({**TABLE, "code": "/" * (POINTER_CHARACTERS_MAX + 1)}, "`code` has more than 1,000 characters"),
    ({**TABLE, "message": ""}, '`message` is empty: give the pointer to it, such as message = "/message"'),
    (
        {**TABLE, "severities": {"x": "hnt"}},
        "`severities`: invalid enum value 'hnt', one of: error, warning",
    ),
    ({**TABLE, "first_column": 2}, "`first_column`: invalid enum value 2, one of: 0, 1"),
    ({**TABLE, "column_unit": "bytes"}, "`column_unit`: invalid enum value 'bytes', one of: characters, utf-16, utf-8"),
    ({**TABLE, "path": "/*/p"}, "`path` is '/*/p', but `items` is '', which does not begin with '/*'"),
    (
        {**TABLE, "items": "/a*", "path": "/a/*/p"},
        "`path` is '/a/*/p', but `items` is '/a*', which does not",
    ),
    ({**TABLE, "items": "/*b", "path": "/*/p"}, "`path` is '/*/p', but `items` is '/*b', which does not begin with"),
    ({**TABLE, "items": "/*/a", "path": "/*/*/p"}, "`path` is '/*/*/p', but `items` is '/*/a', which does not begin"),
    ({"format": "pattern", "pattern": "("}, "`pattern` is not a valid regular expression: missing )"),
    ({"format": "pattern", "pattern": "(" * 4000}, "`pattern` is not a valid regular expression: "),
    ({"format": "pattern", "pattern": "x" * (PATTERN_CHARACTERS_MAX + 1)}, "`pattern` has more than 4,096 characters"),
    (
        {"format": "pattern", "pattern": "(?P<path>)(?P<line>)"},
        "`pattern` has no group 'message', for example: ",
    ),
    (
        {"format": "pattern", "pattern": PATTERN + "(?P<col>)"},
        "`pattern` has an unknown group 'col': did you mean",
    ),
    ({"format": "pattern", "pattern": 5}, "`pattern`: expected `str`, got `int`, for example: pattern = '^(?P<path>"),
]


@pytest.mark.parametrize(("value", "message"), MISTAKES)
def test_mistake_is_named(value: object, message: str) -> None:
    table = {"format": "json", **value} if isinstance(value, dict) and value.keys() & TABLE.keys() else value
    with pytest.raises(ValueError) as caught:  # The message is compared.
        parse_report_format(table)
    assert str(caught.value).startswith(message)


def test_pattern_that_python_warns_about_is_accepted() -> None:
    assert parse_report_format({"format": "pattern", "pattern": PATTERN + "[[a]"}) == PatternFormat(
        pattern=PATTERN + "[[a]"
    )


def test_worker_checks_a_decoded_format_too() -> None:
    with pytest.raises(msgspec.ValidationError, match="not a JSON pointer"):
        msgspec.json.decode(b'{"format":"json","path":"p","line":"/l","message":"/m"}', type=ReportFormat)
