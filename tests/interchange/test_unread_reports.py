"""Parts of reports that are not read, and values that a default replaces: the readers count them."""

from __future__ import annotations

import json

import pytest

from codebatch.interchange.report_formats import read_report
from codebatch.interchange.reports import LOCATION_NUMBER_MAX, ImportedReport, UnreadableReport, UnreadText
from codebatch.model.analysis.report_formats import JsonFormat, ReportFormat
from tests.interchange.test_report_readers import ESLINT, YAMLLINT, found, json_format

SARIF_RESULT = '{"version": "2.1.0", "runs": [{"results": [{"message": {"text": "m"}, "level": "LEVEL"}]}]}'

BANNERS = [
    "Success: no issues found in 3 source files",
    "Found 2 errors in 1 file (checked 3 source files)",
    "Found 1 error in 1 file (errors prevented further checking)",
    "All checks passed!",
    "Found 3 errors.",
    "[*] 2 fixable with the `--fix` option.",
    "************* Module shop.cart",
    "-----------------------------------",
    "Your code has been rated at 9.50/10 (previous run: 9.50/10, +0.00)",
    "2 warnings and 1 error generated.",
    "compilation terminated.",
    "\u2716 4 problems (1 error, 3 warnings)",
    "0 problems",
    "12",
    "0 issues.",
    "3 issues:",
    "* errcheck: 1",
    "Total: 2 warnings / 0 errors in 3 files",
    "Checking shop/cart.lua             OK",
    "Checking cart.c ...",
    "1/2 files checked 50% done",
    "No syntax errors detected in cart.php",
    "cart.pl syntax OK",
    "12 files inspected, no offenses detected",
    "Found 2 warnings and 1 error.",
    "# example.org/shop/cart",
    "Linting 'Cart.swift' (1/2)",
    "a.c: In function 'f':",
    "a.cc: In member function 'void A::f()':",
    "a.c: At top level:",
    "    1 | int f() {",
    "      |     ^",
    "   ",
    "=====",
]
UNREAD = [
    "ERROR in a.sh line 3: all is wrong",
    "a.sh line 3: 2 errors",
    "a.md:1 MD041/first-line-heading First line",
    "a.sh(3): error x",
    "would reformat a.py",
    "[warn] a.js",
    "a.go",
    "2 errors: a.sh:3, a.sh:4",
    "error: a.sh is wrong",
    "Error 3 in a.sh",
    "In a.sh line 3:",
    "# a.sh 3",
    "    a.sh is wrong",
    "  3:1 error all is wrong",
]


@pytest.mark.parametrize("line", BANNERS)
def test_known_lines_beside_findings_are_read(line: str) -> None:
    report = read_report("gcc", f"a:1: m\n{line}\na:1: m\n".encode())
    assert (len(report.findings), report.unread) == (2, UnreadText())


@pytest.mark.parametrize("line", UNREAD)
def test_other_lines_are_unread(line: str) -> None:
    report = read_report("gcc", f"{line}\na:1: m\n".encode())
    assert (len(report.findings), report.unread) == (1, UnreadText(1, (line.strip(),)))
    assert read_report(YAMLLINT, line.encode()).unread == UnreadText(1, (line.strip(),))


def test_lines_of_code_belong_to_the_finding_before() -> None:
    """Only before the first unread line, because a later one may begin with blanks too."""
    data = b"a:1: m\nint f() {\n    ^~~\n    | x\nBAD\n  x\na:1: m\n  x\n"
    assert read_report("gcc", data).unread == UnreadText(2, ("BAD", "x"))


def test_each_line_ending_ends_a_line() -> None:
    findings = read_report("gcc", b"10%\ra:1: m\ra:1: m\r\na:1: m\n").findings
    assert findings == [found(severity="warning")] * 3


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be"])
@pytest.mark.parametrize(("form", "text"), [("gcc", "a:1: \u00e9\u20ac\n"), ("jsonl", '{"message": "\u00e9"}\n')])
def test_utf16_is_read_with_and_without_a_mark(form: ReportFormat, text: str, encoding: str) -> None:
    assert read_report(form, text.encode(encoding)) == read_report(form, text.encode())


def test_nul_in_a_line_is_not_utf16() -> None:
    assert read_report("gcc", b"a\0b:1: m\n").findings == [found(severity="warning", paths=("a\0b",))]


@pytest.mark.parametrize(
    ("form", "documents", "replaced"),
    [
        (json_format(path="/q"), [{"p": "a", "l": 1, "m": "m"}] * 2, ["no value at /q"] * 2),
        (
            json_format(line="/x/y"),
            [{"p": "a", "l": 1, "m": "m"}, {"p": "a", "x": {}, "m": "m"}],
            ["no value at /x/y"] * 2,
        ),
        (json_format(severity="/s"), [{"p": "a", "l": 1, "m": "m"}], ["no value at /s"]),
        (json_format(line="/l"), [{"p": "a", "l": 1, "m": "m"}, {"p": "a", "m": "m"}], ["", ""]),
        (json_format(line="/l"), [{"p": "a", "l": None, "m": "m"}], [""]),
        (json_format(code="/c", end_line="/e", tool="/t"), [{"p": "a", "l": 1, "m": "m"}], [""]),
        (json_format(line="/l"), [], []),
    ],
)
def test_pointer_without_a_value_in_any_finding_is_named(
    form: JsonFormat, documents: list[object], replaced: list[str]
) -> None:
    report = read_report(form, json.dumps(documents).encode())
    assert [finding.replaced for finding in report.findings] == replaced


@pytest.mark.parametrize(
    ("document", "is_read"),
    [
        ([{"messagez": []}], False),
        ([{"messagez": []}, {"messages": []}], True),
        ([{"messages": None}], True),
        ([], True),
        ([[]], False),
    ],
)
def test_document_without_a_value_at_items_in_any_element_is_refused(document: object, is_read: bool) -> None:
    data = json.dumps(document).encode()
    if is_read:
        assert read_report(ESLINT, data) == ImportedReport([])
    else:
        with pytest.raises(UnreadableReport, match=r"none of its elements has a value at /\*/messages"):
            read_report(ESLINT, data)


@pytest.mark.parametrize(
    ("form", "data", "replaced"),
    [
        ("sarif", SARIF_RESULT.replace("LEVEL", "fatal"), "level 'fatal'"),
        ("sarif", SARIF_RESULT.replace("LEVEL", "none"), ""),
        ("checkstyle", '<checkstyle><error severity="style" message="m"/></checkstyle>', "severity 'style'"),
        ("checkstyle", '<checkstyle><error severity="fatal" message="m"/></checkstyle>', ""),
        ("checkstyle", '<checkstyle><error line="1a" message="m"/></checkstyle>', "line '1a'"),
        ("checkstyle", "<checkstyle><error/></checkstyle>", "no message"),
        ("rdjson", '{"diagnostics":[{"message":"m","severity":"BAD"}]}', "severity 'BAD'"),
        ("rdjson", '{"severity":"BAD","diagnostics":[{"message":"m"}]}', "severity 'BAD'"),
        ("rdjson", '{"diagnostics":[{"message":"m","severity":"UNKNOWN_SEVERITY"}]}', ""),
        ("rdjson", '{"diagnostics":[{"message":"m","severity":0}]}', ""),
        ("rdjsonl", '{"text":"m"}', "no message"),
    ],
)
def test_value_that_a_default_replaces_is_named(form: ReportFormat, data: str, replaced: str) -> None:
    (finding,) = read_report(form, data.encode()).findings
    assert (finding.replaced, finding.severity) in ((replaced, "warning"), ("", "hint"), ("", "error"))


def test_unknown_elements_of_checkstyle_are_unread() -> None:
    data = b'<checkstyle><file name="a"><violation line="1"/><note/></file></checkstyle>'
    assert read_report("checkstyle", data).unread == UnreadText(2, ("<violation>",))


def test_error_of_checkstyle_outside_of_a_file_has_no_path() -> None:
    report = read_report(
        "checkstyle", b'<checkstyle><file name="a.py"><error line="1"/></file><error line="2"/></checkstyle>'
    )
    assert [finding.paths for finding in report.findings] == [("a.py",), ()]


def test_line_of_checkstyle_that_no_file_has_is_not_the_first_line() -> None:
    (finding,) = read_report("checkstyle", b'<checkstyle><error line="99999999999" message="m"/></checkstyle>').findings
    assert finding.line == LOCATION_NUMBER_MAX


def test_sarif_without_runs_is_refused() -> None:
    with pytest.raises(UnreadableReport, match="it has no `runs`"):
        read_report("sarif", b'{"version": "2.1.0", "runs": null}')
