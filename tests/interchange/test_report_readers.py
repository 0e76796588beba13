"""Tests of the readers of linter outputs, with real outputs, tables of special cases, and random bytes."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from codebatch.interchange import lines, reports
from codebatch.interchange.report_formats import read_report
from codebatch.interchange.reports import (
    LOCATION_NUMBER_MAX,
    ImportedFinding,
    UnreadableReport,
    UnreadText,
)
from codebatch.model.analysis.report_formats import (
    POINTER_CHARACTERS_MAX,
    REPORT_FORMAT_NAMES,
    JsonFormat,
    JsonLinesFormat,
    PatternFormat,
    ReportFormat,
)
from codebatch.model.record import Severity

GOLDEN = Path(__file__).parent.parent / "golden" / "reports"
Row = tuple[int, int, int, int, Severity, str]

SHELLCHECK = JsonFormat(
    items="/comments",
    path="/file",
    line="/line",
    column="/column",
    end_line="/endLine",
    end_column="/endColumn",
    severity="/level",
    code="/code",
    message="/message",
)
MYPY = JsonLinesFormat(
    path="/file",
    line="/line",
    column="/column",
    end_line="/end_line",
    end_column="/end_column",
    severity="/severity",
    code="/code",
    message="/message",
    first_column=0,
)
ESLINT = JsonFormat(
    items="/*/messages",
    path="/*/filePath",
    line="/line",
    column="/column",
    end_line="/endLine",
    end_column="/endColumn",
    severity="/severity",
    code="/ruleId",
    message="/message",
    severities={"2": "error", "1": "warning"},
    column_unit="utf-16",
)
BIOME = JsonFormat(
    items="/diagnostics",
    path="/location/path",
    line="/location/start/line",
    column="/location/start/column",
    end_line="/location/end/line",
    end_column="/location/end/column",
    severity="/severity",
    code="/category",
    message="/message",
)
GCC = JsonFormat(
    path="/locations/0/caret/file",
    line="/locations/0/caret/line",
    column="/locations/0/caret/byte-column",
    severity="/kind",
    code="/option",
    message="/message",
    column_unit="utf-8",
)
YAMLLINT = PatternFormat(
    pattern=r"^(?P<path>.+?):(?P<line>\d+):(?P<column>\d+): \[(?P<severity>\w+)\] (?P<message>.*) \((?P<code>[\w-]+)\)$"
)

OUTPUTS: dict[str, tuple[ReportFormat, str, list[Row]]] = {
    "shellcheck.gcc": (
        "gcc",
        "src/a.sh",
        [(1, 1, 0, 0, "error", "SC2148"), (2, 6, 0, 0, "info", "SC2086"), (4, 11, 0, 0, "info", "SC2086")],
    ),
    "shellcheck.checkstyle": (
        "checkstyle",
        "src/a.sh",
        [
            (1, 1, 0, 0, "error", "ShellCheck.SC2148"),
            (2, 6, 0, 0, "info", "ShellCheck.SC2086"),
            (4, 11, 0, 0, "info", "ShellCheck.SC2086"),
        ],
    ),
    "shellcheck.json1": (
        SHELLCHECK,
        "src/a.sh",
        [(1, 1, 1, 1, "error", "2148"), (2, 6, 2, 8, "info", "2086"), (4, 11, 4, 13, "info", "2086")],
    ),
    "mypy.txt": (
        "gcc",
        "src/b.py",
        [
            (2, 12, 0, 0, "error", "return-value"),
            (4, 13, 0, 0, "info", ""),
            (5, 11, 0, 0, "error", "assignment"),
            (5, 13, 0, 0, "error", "arg-type"),
            (5, 25, 0, 0, "error", "assignment"),
        ],
    ),
    "mypy-ends.txt": (
        "gcc",
        "src/b.py",
        [
            (2, 12, 2, 13, "error", "return-value"),
            (4, 13, 4, 17, "info", ""),
            (5, 11, 5, 14, "error", "assignment"),
            (5, 13, 5, 14, "error", "arg-type"),
            (5, 25, 5, 29, "error", "assignment"),
        ],
    ),
    "mypy.jsonl": (
        MYPY,
        "src/b.py",
        [
            (2, 12, 2, 13, "error", "return-value"),
            (4, 13, 4, 17, "info", "misc"),
            (5, 11, 5, 14, "error", "assignment"),
            (5, 13, 5, 14, "error", "arg-type"),
            (5, 25, 5, 29, "error", "assignment"),
        ],
    ),
    "yamllint.txt": (
        YAMLLINT,
        "src/c.yaml",
        [
            (1, 1, 0, 0, "warning", "document-start"),
            (2, 1, 0, 0, "error", "key-duplicates"),
            (2, 5, 0, 0, "error", "trailing-spaces"),
            (3, 5, 0, 0, "error", "colons"),
            (3, 9, 0, 0, "error", "commas"),
        ],
    ),
    "eslint.json": (
        ESLINT,
        "/project/src/d.js",
        [
            (1, 1, 1, 11, "warning", "no-var"),
            (1, 5, 1, 6, "warning", "no-unused-vars"),
            (2, 12, 2, 13, "warning", "no-unused-vars"),
            (2, 16, 2, 30, "error", "no-undef"),
        ],
    ),
    "biome.json": (
        BIOME,
        "src/d.js",
        [
            (1, 5, 1, 6, "warning", "lint/correctness/noUnusedVariables"),
            (2, 7, 2, 10, "warning", "lint/style/useConst"),
            (2, 11, 2, 12, "warning", "lint/correctness/noUnusedVariables"),
        ],
    ),
    "gcc.txt": ("gcc", "src/e.c", [(1, 21, 0, 0, "warning", "-Wunused-value"), (2, 1, 0, 0, "error", "")]),
    "gcc.json": (GCC, "src/e.c", [(1, 21, 0, 0, "warning", "-Wunused-value"), (2, 1, 0, 0, "error", "")]),
}


def rows(findings: Sequence[ImportedFinding]) -> list[Row]:
    return [(f.line, f.column, f.end_line, f.end_column, f.severity, f.code) for f in findings]


@pytest.mark.parametrize("name", OUTPUTS)
def test_output_of_a_linter_is_read(name: str) -> None:
    form, path, expected = OUTPUTS[name]
    report = read_report(form, (GOLDEN / name).read_bytes())
    findings = report.findings
    assert (rows(findings), report.unread) == (expected, UnreadText())
    assert {finding.replaced for finding in findings} == {""}
    assert {finding.paths for finding in findings} == {(path,)}
    assert all(finding.message for finding in findings)
    assert {finding.unit for finding in findings} == {"characters" if isinstance(form, str) else form.column_unit}


@pytest.mark.parametrize(
    "names", [("shellcheck.gcc", "shellcheck.checkstyle", "shellcheck.json1"), ("mypy.txt", "mypy.jsonl")]
)
def test_formats_of_a_linter_agree(names: Sequence[str]) -> None:
    messages = [
        [finding.message for finding in read_report(OUTPUTS[name][0], (GOLDEN / name).read_bytes()).findings]
        for name in names
    ]
    assert all(candidate == messages[0] for candidate in messages)


def found(message: str = "m", **members: Any) -> ImportedFinding:
    """Return a finding in the first line of the file `a`, with other members."""
    return ImportedFinding(**{"paths": ("a",), "message": message, "severity": "hint", "line": 1, **members})


GCC_LINES: dict[bytes, ImportedFinding | None] = {
    b"a:1: m": found(),
    b"a:1:2: m": found(column=2),
    b"a:1:2: m\r": found(column=2),
    b"a:1:2: Fatal Error: m": found(column=2, severity="error"),
    b"a:1: note: m [c-d]": found(severity="info", code="c-d"),
    b"a:1: style: m": found(),
    b"a:1: help: see http://x:80/y": found(message="see http://x:80/y"),
    b"a:1: TODO: m [not a code]": found(message="TODO: m [not a code]"),
    b"a:1: m [c] ": found(code="c"),
    b"a:1: m [\xff]": found(code="\ufffd"),
    b"a:1: list[int]": found(message="list[int]"),
    b"a:1: m  [c]": found(code="c"),
    b"a b:1/c:2: 3: m": found(paths=("a b:1/c",), line=2, message="3: m"),
    b"\x1b[1ma:1:\x1b[0m m": found(),
    b"\xff:1: m\xff": found(paths=(b"\xff",), message="m\ufffd"),
    b"a:0:0: m": found(line=0),
    b"a:%d:%d: m" % (10**9, 10**30): found(line=10**9, column=LOCATION_NUMBER_MAX),
    "a:\u0661: m".encode(): None,
    b"a:x: m": None,
    b"a:1:m": None,
    b"a:1:": None,
    b" a:1: m": None,
    b":1: m": None,
    b"a:1: " + b"m" * (lines.LINE_BYTES_MAX - 5): found(message="m" * (lines.LINE_BYTES_MAX - 5)),
    b"a:1: " + b"m" * (lines.LINE_BYTES_MAX - 4): None,
    b"\xef\xbb\xbfa:1: m": found(),
    "a:1: m".encode("utf-16"): found(),
}


@pytest.mark.parametrize("line", GCC_LINES, ids=repr)
def test_line_in_the_format_of_gcc(line: bytes) -> None:
    expected = GCC_LINES[line]
    report = read_report("gcc", line, default_severity="hint")
    assert report.findings == ([] if expected is None else [expected])
    assert report.unread.parts == (expected is None)


def test_other_lines_are_ignored() -> None:
    data = b"In file included from b.h:3,\n                 from a.c:1:\na:1: m\n    1 | x ? y:1: z\n\nFound 1 error\n"
    report = read_report("gcc", data)
    assert report.findings == [found(severity="warning")]
    assert (report.unread.parts, report.other_text) == (0, "In file included from b.h:3,")


def test_pattern_finds_a_match_anywhere_in_a_line() -> None:
    form = PatternFormat(
        pattern=r"<(?P<path>\w*):(?P<line>-?\d+)(:(?P<column>\d+)-(?P<end_line>\d+):(?P<end_column>\d+))?"
        r"( (?P<severity>\w+))?( \[(?P<code>.)\])?( (?P<tool>T.))? (?P<message>\w+)>",
        severities={"Bad": "error"},
        first_line=0,
        column_unit="utf-8",
    )
    data = b"x <a:0 m> y\n<a:0>\nx <a:4:5-6:7 bAD [\xff] T\xff m> y\nno <:-1 note m>"
    assert read_report(form, data, default_severity="hint").findings == [
        found(unit="utf-8"),
        found(
            line=5, column=5, end_line=7, end_column=7, severity="error", code="\ufffd", tool="T\ufffd", unit="utf-8"
        ),
        found(paths=(), line=0, severity="info", unit="utf-8"),
    ]


def test_line_can_end_with_carriage_return() -> None:
    data = (GOLDEN / "yamllint.txt").read_bytes()
    assert read_report(YAMLLINT, data.replace(b"\n", b"\r\n")) == read_report(YAMLLINT, data)


def test_many_lines_have_more_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lines, "MATCH_SECONDS_MAX", 1e-4)
    monkeypatch.setattr(lines, "_MATCH_SECONDS_PER_LINE", 1e-3)  # The collection of garbage takes CPU time too.
    form = PatternFormat(pattern="(?P<path>a)(?P<line>1)(?P<message>m)")
    assert len(read_report(form, b"a1m\n" * 50_000).findings) == 50_000


def test_slow_pattern_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lines, "MATCH_SECONDS_MAX", 0.3)
    form = PatternFormat(pattern="(?P<path>(a+)+)(?P<line>b)(?P<message>c)")
    assert read_report(form, b"aaabc").findings == [
        found(paths=("aaa",), line=0, message="c", severity="warning", replaced="line 'b'")
    ]
    with pytest.raises(UnreadableReport, match="`pattern` took too much CPU time"):
        read_report(form, b"a" * 100)


def json_format(**members: str) -> JsonFormat:
    return msgspec.structs.replace(JsonFormat(path="/p", line="/l", message="/m"), **members)


NESTED = json_format(items="/r/*/f/*/e", path="/r/*/f/*/p", tool="/r/*/t")
ODD_LINES: list[object] = [0, -1, 1e300, 10**30, "9" * 5000, "1x", "²", True, None, [], ""]
UNKNOWN_SEVERITIES = ["severity 'unknown'", "severity 'True'", "", ""]
ODD_SEVERITIES: list[object] = ["ERROR", "unknown", True, None, {}]
DOCUMENTS: dict[str, tuple[JsonFormat, object, list[ImportedFinding] | str]] = {
    "an array": (json_format(), [{"p": "a", "l": 1, "m": "m"}], [found()]),
    "one finding": (json_format(), {"p": "a", "l": "1", "m": "m"}, [found()]),
    "null": (json_format(items="/x"), {"x": None}, []),
    "no items": (json_format(items="/x"), {"y": []}, "it has no value at /x"),
    "no array": (json_format(items="/x/*"), {"x": 5}, "the value at /x is not an array"),
    "no array at the top": (json_format(items="/*"), {}, "the value at the top is not an array"),
    "no message": (json_format(), [{"p": "a", "m": None}], "a finding has no text at /m"),
    "no finding": (json_format(), [5], "a finding has no text at /m"),
    "no path": (json_format(), {"m": "m", "p": 5}, [found(paths=(), line=0, replaced="no value at /l")]),
    "numbers": (json_format(code="/c"), {"p": "a", "l": 1.0, "m": 5, "c": 7}, [found(message="5", code="7")]),
    "lines": (
        json_format(),
        [{"p": "a", "m": "m", "l": line} for line in ODD_LINES],
        [
            found(line=line, replaced=replaced)
            for line, replaced in [
                *((line, "") for line in (0, 0, *[LOCATION_NUMBER_MAX] * 3)),
                *((0, f"line '{word}'") for word in ("1x", "²")),
                (0, ""),
                (0, ""),
                (0, "line '[]'"),
                (0, ""),
            ]
        ],
    ),
    "levels": (
        NESTED,
        {"r": [{"t": "T", "f": [{"p": "a", "e": [{"l": 1, "m": "m"}]}, {"p": "b"}]}, {"f": None}, {}]},
        [found(tool="T")],
    ),
    "numbers from 0": (
        msgspec.structs.replace(json_format(column="/c", end_line="/k", end_column="/d"), first_line=0, first_column=0),
        [{"p": "a", "l": 0, "c": 0, "k": 2, "d": 3, "m": "m"}, {"p": "a", "l": "7", "m": "m"}],
        [found(column=1, end_line=3, end_column=4), found(line=8)],
    ),
    "an array of arrays": (json_format(items="/*"), [[{"p": "a", "l": 1, "m": "m"}], []], [found()]),
    "escapes and indexes": (
        json_format(path="/a~1b/1/~0", code="/c/5"),
        {"a/b": [0, {"~": "a"}], "l": 1, "m": "m", "c": []},
        [found()],
    ),
    "severities": (
        json_format(severity="/s"),
        [{"p": "a", "l": 1, "m": "m", "s": word} for word in ODD_SEVERITIES],
        [found(severity="error"), *(found(replaced=text) for text in UNKNOWN_SEVERITIES)],
    ),
}


@pytest.mark.parametrize("name", DOCUMENTS)
def test_pointers_select_the_findings_of_a_document(name: str) -> None:
    form, document, expected = DOCUMENTS[name]
    data = json.dumps(document).encode()
    if isinstance(expected, str):
        with pytest.raises(UnreadableReport, match=expected):
            read_report(form, data)
    else:
        assert read_report(form, data, default_severity="hint").findings == expected


def test_most_levels_that_a_pointer_can_have() -> None:
    depth = (POINTER_CHARACTERS_MAX - len("/p")) // len("/*")
    form = json_format(items="/*" * depth, path="/*" * depth + "/p")
    data = b"[" * depth + b'{"p":"a","l":1,"m":"m"}' + b"]" * depth
    assert read_report(form, data).findings == [found(severity="warning")]


def test_line_without_items_has_no_finding() -> None:
    form = JsonLinesFormat(items="/x", path="/p", line="/l", message="/m")
    data = b'{"y":1}\n\n{"x":{"p":"a","l":1,"m":"m"}}\r\n{"x":[]}'
    report = read_report(form, data)
    assert (report.findings, report.other_text) == ([found(severity="warning")], '{"y":1}')
    for bad, message in (b'{"x":{}}', "a finding has no text"), (b"{", "line 5: input data was truncated"):
        with pytest.raises(UnreadableReport, match=message):
            read_report(form, data + b"\n" + bad)


def test_line_without_the_array_of_items_is_named() -> None:
    form = JsonLinesFormat(items="/x/*", path="/p", line="/l", message="/m")
    with pytest.raises(UnreadableReport, match=r"^line 2: the value at /x is not an array"):
        read_report(form, b'{"x":[]}\n{"x":5}')


def test_rdjsonl_has_a_diagnostic_in_each_line() -> None:
    diagnostic = {
        "message": "m",
        "location": {"path": "a", "range": {"start": {"line": 1, "column": 2}}},
        "severity": "ERROR",
        "code": {"value": "c"},
        "source": {"name": "t"},
    }
    line = json.dumps(diagnostic)
    expected = found(severity="error", code="c", tool="t", column=2, unit="utf-8")
    assert read_report("rdjsonl", f"{line}\n\n{line}\n".encode()).findings == [expected, expected]
    with pytest.raises(UnreadableReport, match="line 2: "):
        read_report("rdjsonl", f"{line}\n[]".encode())


FORMATS: list[ReportFormat] = [
    *REPORT_FORMAT_NAMES,
    *(form for form, _, _ in OUTPUTS.values() if not isinstance(form, str)),
    NESTED,
]
TWO: list[tuple[ReportFormat, bytes]] = [
    ("gcc", b"a:1: m\n" * 2),
    ("rdjsonl", b"{}\n" * 2),
    (json_format(), b'[{"m":""},{"m":""}]'),
    (PatternFormat(pattern="(?P<path>.)(?P<line>.)(?P<message>.)"), b"a1m\n" * 2),
]


@pytest.mark.parametrize(("form", "data"), TWO, ids=repr)
def test_number_of_findings_is_limited(form: ReportFormat, data: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    assert len(read_report(form, data).findings) == 2
    monkeypatch.setattr(reports, "REPORTED_FINDINGS_MAX", 1)
    with pytest.raises(UnreadableReport, match="more than 1 finding"):
        read_report(form, data)


def check_readable_or_rejected(data: bytes) -> None:
    """Read the bytes in each format. Only UnreadableReport may be raised, and the texts of findings must be valid."""
    for form in FORMATS:
        with contextlib.suppress(UnreadableReport):
            for finding in read_report(form, data).findings:
                texts = [path for path in finding.paths if isinstance(path, str)]
                msgspec.json.encode([*texts, finding.message, finding.code, finding.tool])
                if not isinstance(form, str):
                    assert min(finding.line, finding.column, finding.end_line, finding.end_column) >= 0


SPECIAL = [
    b"\0",
    b"[" * 100_000,
    b'{"x":' * 10_000,
    b"\xff\xfe{",
    b"\xef\xbb\xbf",
    b'"\\ud800"',
    b"\xed\xa0\x80",
    b"9" * 5000,
]
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["comments", "file", "line", "message", "messages", "filePath", "r", "f", "e", "level"]),
            inner,
        )
    ),
    max_leaves=20,
)


@pytest.mark.parametrize("data", SPECIAL, ids=lambda data: repr(data[:9]))
def test_special_bytes_are_read_or_rejected(data: bytes) -> None:
    for text in (data, b"a:1:2: error: " + data, b'{"comments":[{"message":' + data + b"}]}", b"\xff\xfe" + data):
        check_readable_or_rejected(text)


@given(st.binary(max_size=200) | VALUES.map(lambda value: json.dumps(value).encode("utf-8", "surrogatepass")))
def test_any_bytes_are_read_or_rejected(data: bytes) -> None:
    check_readable_or_rejected(data)


@settings(max_examples=200)
@given(st.sampled_from(sorted(OUTPUTS)), st.integers(0, 1100), st.binary(max_size=4), st.integers(0, 4))
def test_changed_or_truncated_output_is_read_or_rejected(name: str, at: int, inserted: bytes, removed: int) -> None:
    data = (GOLDEN / name).read_bytes()
    check_readable_or_rejected(data[:at] + inserted + data[at + removed :])
    check_readable_or_rejected(data[:at])
