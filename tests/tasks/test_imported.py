"""Tests of the reports of other programs: they are read as meant, and hostile reports are rejected with a message."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from codebatch.interchange import reports
from codebatch.interchange.checkstyle import XML_DEPTH_MAX, read_checkstyle
from codebatch.interchange.jsonl import read_jsonl
from codebatch.interchange.rdjson import read_rdjson
from codebatch.interchange.reports import ImportedFinding, ImportedReport, ImportedSpan, UnreadableReport
from codebatch.interchange.sarif import read_sarif
from codebatch.model.analysis.report_formats import ColumnUnit
from codebatch.model.record import Severity
from codebatch_workers.programs.report_locations import LocationConverter
from codebatch_workers.programs.report_paths import ReportedPaths
from tests.support.source_files import source

Read = Callable[[bytes], ImportedReport]


def sarif(*results: dict[str, Any], rules: list[Any] | None = None, **run: object) -> bytes:
    """Return a log of one run."""
    tool = {"driver": {"name": "tool", "rules": rules or []}}
    return json.dumps({"version": "2.1.0", "runs": [{"tool": tool, "results": results, **run}]}).encode()


def at(uri: str, **location: object) -> list[dict[str, object]]:
    return [{"physicalLocation": {"artifactLocation": {"uri": uri, **location}}}]


def one(data: bytes, read: Read = read_sarif) -> ImportedFinding:
    (finding,) = read(data).findings
    return finding


LEVELS: dict[str, tuple[dict[str, Any], dict[str, Any], Severity]] = {
    "error": ({"level": "error"}, {}, "error"),
    "note": ({"level": "note"}, {}, "info"),
    "none": ({"level": "none"}, {}, "hint"),
    "a word that there is not": ({"level": "fatal"}, {}, "warning"),
    "nothing said": ({}, {}, "warning"),
    "the rule's": ({}, {"defaultConfiguration": {"level": "error"}}, "error"),
    "its own before the rule's": ({"level": "note"}, {"defaultConfiguration": {"level": "error"}}, "info"),
    "CodeQL's word": ({}, {"properties": {"problem.severity": "recommendation"}}, "info"),
    "a score": ({}, {"properties": {"security-severity": "7.0"}}, "error"),
    "a lower score": ({}, {"properties": {"security-severity": 4}}, "warning"),
    "the lowest": ({}, {"properties": {"security-severity": "3.9"}}, "info"),
    "no score": ({}, {"properties": {"security-severity": {"a": []}}}, "warning"),
    "to be looked at": ({"kind": "review"}, {}, "info"),
    "to be looked at, whatever the rule": ({"kind": "open"}, {"defaultConfiguration": {"level": "error"}}, "info"),
    "a hint of ours": ({"level": "note", "properties": {"severity": "hint"}}, {}, "hint"),
    "a severity of others": ({"level": "error", "properties": {"severity": "hint"}}, {}, "error"),
}


@pytest.mark.parametrize("case", LEVELS)
def test_severity_is_derived_from_the_nearest_level(case: str) -> None:
    result, rule, severity = LEVELS[case]
    finding = one(sarif({"ruleId": "R", "message": {"text": "m"}, **result}, rules=[{"id": "R", **rule}]))
    assert (finding.severity, finding.code, finding.tool, finding.message) == (severity, "R", "tool", "m")


def test_result_may_reference_its_rule_and_message_in_any_form() -> None:
    strings = {"messageStrings": {"a": {"text": "{0} is {{1}}, {1} {2}"}}, "defaultConfiguration": {"level": "error"}}
    message = {"id": "a", "arguments": ["x", "y"]}
    rules: list[dict[str, Any]] = [{"id": "Q"}, {"id": "R", **strings}]
    for result in ({"ruleIndex": 1}, {"ruleId": "R/1"}, {"rule": {"id": "R"}}, {"rule": {"index": 1}}):
        finding = one(sarif({"message": message, **result}, rules=rules))
        assert (finding.message, finding.severity) == ("x is {1}, y {2}", "error")
    extension = {"rules": [{"id": "E", "shortDescription": {"text": "short"}}]}
    tool = {"driver": {"name": "d", "rules": rules}, "extensions": [extension]}
    finding = one(sarif({"rule": {"index": 0, "toolComponent": {"index": 0}}}, tool=tool))
    assert (finding.code, finding.message, finding.tool) == ("E", "short", "d")


def test_rule_is_found_with_a_missing_or_foreign_index() -> None:
    """-1 is the default index, which some programs write.

    An index without its component would select a rule of the driver.
    """
    rules: list[dict[str, Any]] = [{"id": "Q", "shortDescription": {"text": "q"}}, {"id": "R", "guid": "g-r"}]
    extension_rule = {"id": "E", "guid": "g-e", "messageStrings": {"a": {"text": "of E"}}}
    part = {
        "name": "part",
        "guid": "g-p",
        "rules": [None, extension_rule],
        "globalMessageStrings": {"a": {"text": "of all"}},
    }
    tool = {"driver": {"name": "d", "rules": rules}, "extensions": [None, part]}
    references: list[tuple[dict[str, Any], str, str]] = [
        ({"ruleIndex": -1, "rule": {"index": 0}}, "Q", "q"),
        ({"ruleIndex": -1, "rule": {"id": "Q", "index": -1}}, "Q", "q"),
        ({"ruleIndex": -1, "ruleId": "Q"}, "Q", "q"),
        ({"ruleIndex": 0.0}, "Q", "q"),
        ({"ruleIndex": 0, "ruleId": "E"}, "E", "of E"),
        ({"ruleIndex": 1, "ruleId": "E", "rule": {"toolComponent": {"index": 1}}}, "E", "of E"),
        ({"rule": {"guid": "g-e", "toolComponent": {"guid": "g-p"}}}, "E", "of E"),
        ({"rule": {"guid": "g-e"}}, "", ""),
        ({"rule": {"index": 1, "toolComponent": {"guid": "nobody's"}}}, "", ""),
        ({"rule": {"index": 7, "toolComponent": {"index": 1}}}, "", "of all"),
    ]
    for reference, code, text in references:
        finding = one(sarif({"message": {"id": "a"}, **reference}, tool=tool))
        assert (finding.code, finding.message) == (code, text), reference


def test_rule_configuration_override_takes_precedence_over_the_rule_level() -> None:
    rules = [{"id": "Q"}, {"id": "R", "defaultConfiguration": {"level": "note"}}]
    extension = {"rules": [{"id": "E"}]}
    tool = {"driver": {"name": "d", "rules": rules}, "extensions": [extension]}

    def severity(result: dict[str, Any], *invocations: list[dict[str, Any]] | None) -> Severity:
        every = [{"ruleConfigurationOverrides": overrides} for overrides in invocations]
        return one(sarif(result, tool=tool, invocations=every)).severity

    def override(descriptor: dict[str, Any], **configuration: object) -> dict[str, Any]:
        return {"descriptor": descriptor, "configuration": configuration}

    raised = [override({"index": 1}, level="error")]
    assert severity({"ruleId": "R"}, raised) == severity({"rule": {"index": 1}}, raised) == "error"
    assert severity({"ruleId": "R/sub"}, [override({"id": "R"}, level="error")]) == "error"
    assert severity({"ruleId": "Q"}, raised) == "warning"
    assert severity({"ruleId": "R", "level": "warning"}, raised) == "warning"
    extension_override = [override({"index": 0, "toolComponent": {"index": 0}}, level="error")]
    assert severity({"ruleId": "E"}, extension_override) == "error"
    assert severity({"ruleId": "Q"}, extension_override) == "warning"
    assert severity({"ruleId": "untold"}, [override({"id": "untold"}, level="error")]) == "error"
    off = [override({"index": 1}, enabled=False), override({"index": 1}, level="error"), *raised]
    assert severity({"ruleId": "R"}, off) == "error"
    assert severity({"ruleId": "R"}, off[:1]) == "info", "a rule with a result was treated as disabled"
    two = [override({"index": 1}, level="error"), override({"index": 1}, level="none")]
    assert severity({"ruleId": "R"}, two) == "error"
    assert severity({"ruleId": "R"}, raised, []) == "info", (
        "an override applies although the result does not name its invocation"
    )
    assert severity({"ruleId": "R", "provenance": {"invocationIndex": 0}}, raised, []) == "error"
    assert severity({"ruleId": "R", "provenance": {"invocationIndex": 1}}, raised, None) == "info"


def test_message_length_is_bounded_despite_its_arguments() -> None:
    message = {"text": "{0}" * 100_000, "arguments": ["x" * 1_000_000]}
    assert len(one(sarif({"message": message})).message) <= 2 * reports.MESSAGE_CHARACTERS_MAX


def test_dismissed_results_are_counted_and_tool_failures_detected() -> None:
    none: list[dict[str, Any]] = [
        {"kind": "pass"},
        {"kind": "notApplicable"},
        {"baselineState": "absent"},
        {"suppressions": [{"kind": "inSource"}, {"status": "accepted"}]},
    ]
    some: list[dict[str, Any]] = [{"suppressions": []}, {"suppressions": [{"status": "rejected"}]}, {"kind": "fail"}]
    report = read_sarif(sarif(*none, *some))
    assert (len(report.findings), report.dismissed, report.has_failed) == (3, 4, False)
    assert read_sarif(sarif(invocations=[{}, {"executionSuccessful": False}])).has_failed
    xml = b"<checkstyle><file name='a'><error severity='ignore'/><exception>x</exception></file></checkstyle>"
    assert read_checkstyle(xml) == ImportedReport([], dismissed=1, has_failed=True)


def test_uri_bases_resolve_to_file_paths() -> None:
    bases = {
        "SRC": {"uri": "src/", "uriBaseId": "TOP"},
        "TOP": {"uri": "file:///w"},
        "LOOP": {"uri": "x", "uriBaseId": "LOOP"},
    }
    run: dict[str, Any] = {"originalUriBaseIds": bases, "artifacts": [{"location": {"uri": "by-index"}}]}
    assert one(sarif({"locations": at("a", uriBaseId="SRC")}, **run)).paths == ("file:///w/src/a",)
    assert one(sarif({"locations": at("a", uriBaseId="%SRCROOT%")}, **run)).paths == ("a",)
    assert len(one(sarif({"locations": at("a", uriBaseId="LOOP")}, **run)).paths) == 1
    run["originalUriBaseIds"] = {"%SRCROOT%": {"uri": "file:///github/workspace/"}}
    assert one(sarif({"locations": at("a", uriBaseId="%SRCROOT%")}, **run)).paths == ("file:///github/workspace/a", "a")
    index = [{"physicalLocation": {"artifactLocation": {"index": 0}}}]
    assert one(sarif({"locations": index}, **run)).paths == ("by-index",)
    assert one(sarif({"locations": []}, **run)).paths == ()


def test_null_is_treated_as_absent() -> None:
    nothing: dict[str, Any] = dict.fromkeys(
        ("ruleId", "ruleIndex", "rule", "level", "kind", "message", "locations", "suppressions", "properties")
    )
    fix = {"artifactChanges": [{"replacements": [{"insertedContent": {"text": None}}]}]}
    assert one(sarif({**nothing, "fixes": [fix]})) == one(sarif({}))
    assert one(sarif({"locations": [{"physicalLocation": None}]})) == one(sarif({}))
    report = read_sarif(b'{"version":"2.1.0","runs":[{"tool":null,"results":null},{}]}')
    assert report == ImportedReport([], other_text="a run of  without `results`")
    assert one(sarif({"locations": [None, *at("a")]})).paths == ("a",)
    parts: dict[str, Any] = dict.fromkeys(("charOffset", "byteOffset", "startLine"))
    assert one(sarif({"locations": [{"physicalLocation": {"region": parts}}]})) == one(sarif({}))
    lists: dict[str, Any] = {"invocations": [None, {"ruleConfigurationOverrides": [None, {}]}], "artifacts": [None]}
    lists["originalUriBaseIds"] = {"A": None}
    rule: dict[str, Any] = {"id": "R", "messageStrings": {"a": None}}
    finding = one(sarif({"ruleId": "R", "suppressions": [None], "message": {"id": "a"}}, rules=[None, rule], **lists))
    assert finding == one(sarif({"ruleId": "R"}))
    assert one(sarif({"message": {"text": "{0} {1}", "arguments": [None, "x"]}})).message == "{0} x"
    assert read_sarif(b'{"version":"2.1.0","runs":[null,{"results":[null]}]}') == ImportedReport([])
    assert read_rdjson(b'{"diagnostics":[null]}') == ImportedReport([])
    assert read_rdjson(b'{"diagnostics":null}') == ImportedReport([])


def test_members_that_are_only_written_may_be_anything_in_a_report() -> None:
    """Reports of other programs may have types there that the standard does not allow, or bytes that are not UTF-8."""
    result = {"ruleId": "a", "partialFingerprints": [1], "suppressions": [{"kind": 1, "status": "rejected"}]}
    driver = {"name": "tool", "version": 2, "rules": [{"id": "a", "help": 3, "fullDescription": {"text": "?"}}]}
    run = {
        "tool": {"driver": driver},
        "automationDetails": [],
        "invocations": [{"toolExecutionNotifications": "x"}],
        "results": [result],
    }
    data = json.dumps({"$schema": 4, "version": "2.1.0", "runs": [run]}).encode().replace(b"?", b"\xff")
    assert one(data).code == "a"


def test_integral_float_is_accepted_as_an_integer() -> None:
    """JSON Schema accepts 2.0 as an integer, and programs that store numbers as floats write it."""
    region = '{"startLine": 2.0, "startColumn": 3e0, "endLine": 20e-1, "endColumn": 4}'
    data = sarif({"locations": [{"physicalLocation": {"region": "?"}}]}).decode()
    finding = one(data.replace('"?"', region).encode())
    assert finding[5:9] == (2, 3, 2, 4)
    assert all(type(value) is int for value in finding[5:9])
    assert one(b'{"message":"m","line":2.0}', read_jsonl).line == 2
    place = b'{"diagnostics":[{"location":{"range":{"start":{"line":2.0}}}}]}'
    assert one(place, read_rdjson).line == 2


HOSTILE: dict[str, tuple[Read, bytes, str]] = {
    "nothing": (read_sarif, b"", "truncated"),
    "another format": (read_sarif, b"<checkstyle/>", "JSON is malformed"),
    "a version": (read_sarif, b'{"version":"1.0.0","runs":[]}', "version is '1.0.0'"),
    "no runs": (read_sarif, b'{"version":"2.1.0"}', "required field `runs`"),
    "another type": (read_sarif, sarif({"message": 5}), r"got `int` - at `\$.runs\[0\].results\[0\].message`"),
    "half a line": (
        read_sarif,
        sarif({"locations": [{"physicalLocation": {"region": {"startLine": 1.5}}}]}),
        r"`\$.runs\[0\].results\[0\].locations\[0\].physicalLocation.region.startLine`",
    ),
    "10,000 levels": (read_sarif, b'{"x":' + b"[" * 10_000, "nested too deeply"),
    "levels of a message": (read_sarif, b'{"version":"2.1.0","runs":[{"x":' + b'{"y":' * 10_000, "nested too deeply"),
    "no UTF-8": (read_sarif, sarif({"ruleId": "?"}).replace(b"?", b"\xff"), "codec can't decode|invalid UTF-8"),
    "half of a UTF-16": (read_sarif, b"\xff\xfe{", "truncated data"),
    "elsewhere": (read_sarif, sarif(externalPropertyFileReferences={"results": [{}]}), "other files"),
    "laughs": (read_checkstyle, b'<!DOCTYPE c [<!ENTITY a "ha">]><checkstyle>&a;</checkstyle>', "DTD"),
    "a file of ours": (read_checkstyle, b'<!DOCTYPE c SYSTEM "file:///etc/passwd"><checkstyle/>', "DTD"),
    "an entity": (read_checkstyle, b"<checkstyle>&a;</checkstyle>", "undefined entity"),
    "levels": (read_checkstyle, b"<checkstyle>" + b"<a>" * 100_000, f"more than {XML_DEPTH_MAX} levels"),
    "another root": (read_checkstyle, b"<testsuite/>", "starts with <testsuite>"),
    "a control character": (read_checkstyle, b"<checkstyle>\x01</checkstyle>", "line 1, column 12"),
    "an encoding": (read_checkstyle, b"<?xml version='1.0' encoding='idna'?><checkstyle/>", "codec failed"),
    "a list": (read_rdjson, b"[]", "expected `object`"),
    "a line": (read_jsonl, b'{"message":"m"}\n\n{"message"', "line 3: input data was truncated"),
    "no message": (read_jsonl, b'{"path":"a"}', "line 1: it has no message"),
    "a severity": (read_jsonl, b'{"message":"m","severity":"bad"}', "line 1: invalid enum value 'bad'"),
    "not valid base64": (read_jsonl, b'{"message":"m","path_b64":"a"}', "not valid base64"),
}


@pytest.mark.parametrize("case", HOSTILE)
def test_unreadable_report_is_rejected_with_a_message(case: str) -> None:
    read, data, message = HOSTILE[case]
    with pytest.raises(UnreadableReport, match=message):
        read(data)


@pytest.mark.parametrize(
    ("read", "data"),
    [
        (read_sarif, sarif({}, {})),
        (read_checkstyle, b"<checkstyle><error/><error/></checkstyle>"),
        (read_rdjson, b'{"diagnostics":[{},{}]}'),
        (read_jsonl, b'{"message":""}\n{"message":""}'),
    ],
)
def test_number_of_findings_is_limited(read: Read, data: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    assert len(read(data).findings) == 2
    monkeypatch.setattr(reports, "REPORTED_FINDINGS_MAX", 1)
    monkeypatch.setattr("codebatch.interchange.checkstyle.REPORTED_FINDINGS_MAX", 1)
    with pytest.raises(UnreadableReport, match="more than 1 finding"):
        read(data)


def test_other_formats_are_parsed() -> None:
    xml = (
        '<?xml version="1.0"?><checkstyle><file name="a&#10;.js"><error line="2" column="3" severity="info" '
        'message="&lt;m&gt;" source="eslint.rules.semi"/><error line="-1" column="x"/></file><error/></checkstyle>'
    )
    first, second, third = read_checkstyle(xml.encode("utf-16")).findings
    assert first == ImportedFinding(("a\n.js",), "<m>", "info", code="eslint.rules.semi", line=2, column=3)
    assert second == ImportedFinding(("a\n.js",), "", "warning", replaced="no message")
    assert third.paths == ()
    ours = (
        '<checkstyle xmlns:o="urn:codebatch:checkstyle"><file name="a"><error severity="info" source="t.c" o:tool="t" '
        'o:code="c" o:end-line="3" o:end-column="4" o:level="hint"/></file></checkstyle>'
    )
    finding = ImportedFinding(("a",), "", "hint", code="c", tool="t", end_line=3, end_column=4, replaced="no message")
    assert one(ours.encode(), read_checkstyle) == finding
    place = {"start": {"line": 1, "column": 2}, "end": {"line": 3, "column": 4}}
    diagnostic = {"message": "m", "location": {"path": "a", "range": place}, "code": {"value": "c"}}
    result: dict[str, Any] = {"source": {"name": "t"}, "severity": 1, "diagnostics": [diagnostic]}
    finding = ImportedFinding(("a",), "m", "error", "c", "t", 1, 2, 3, 4, unit="utf-8")
    assert one(json.dumps(result).encode(), read_rdjson) == finding
    diagnostic |= {"severity": "INFO", "source": {"name": "u"}, "original_output": "hint"}
    finding = finding._replace(severity="hint", tool="u")
    assert one(b"\xef\xbb\xbf" + json.dumps(result).encode(), read_rdjson) == finding
    line = b'{"kind":"diagnostic","path_b64":"/w==","line":1,"severity":"hint","code":"c","message":"m","tool":"t"}'
    report = read_jsonl(b"\xef\xbb\xbf" + line + b'\r\n{"kind":"metric"}')
    assert report == ImportedReport([ImportedFinding((b"\xff",), "m", "hint", "c", "t", 1)], dismissed=1)


def test_ruff_columns_count_characters_in_every_format() -> None:
    assert one(sarif({})).unit == "utf-16"
    assert one(sarif({}, columnKind="unicodeCodePoints")).unit == "characters"
    ruff = {"driver": {"name": "ruff"}}
    assert one(sarif({}, tool=ruff)).unit == "characters"
    assert one(sarif({}, tool=ruff, columnKind="utf16CodeUnits")).unit == "utf-16"
    assert one(b'{"source":{"name":"ruff"},"diagnostics":[{}]}', read_rdjson).unit == "characters"
    assert one(b'{"source":{"name":"x"},"diagnostics":[{"source":{"name":"ruff"}}]}', read_rdjson).unit == "utf-8"


PATHS: list[tuple[str | bytes, bool, bytes | None]] = [
    ("a b.py", False, b"a b.py"),
    ("a%20b.py", True, b"a b.py"),
    ("a%20b.py", False, None),
    ("100%.py", True, b"100%.py"),
    ("./sub//x.py", False, b"sub/x.py"),
    ("sub/../a b.py", False, b"a b.py"),
    ("../tree/a b.py", False, None),
    ("../../etc/passwd", True, None),
    ("/home/me/tree/sub/x.py", False, b"sub/x.py"),
    ("/home/me/tree/../tree/sub/x.py", False, b"sub/x.py"),
    ("/home/me/tree2/sub/x.py", False, None),
    ("/sub/x.py", False, None),
    ("file:///home/me/tree/sub/x.py", True, b"sub/x.py"),
    ("FILE://localhost/home/me/tree/a%20b.py#L1", False, b"a b.py"),
    ("file:/home/me/tree/sub/x.py", True, b"sub/x.py"),
    ("file://host/home/me/tree/sub/x.py", True, None),
    ("file:sub/x.py", True, b"sub/x.py"),
    ("https://example.com/sub/x.py", True, None),
    ("c:x.py", True, None),
    ("c:x.py", False, b"c:x.py"),
    ("sub\\x.py", False, b"sub/x.py"),
    ("caf%E9.py", True, b"caf\xe9.py"),
    ("caf\\xe9.py", False, b"caf\xe9.py"),
    (b"caf\xe9.py", False, b"caf\xe9.py"),
    ("", False, None),
    ("a\0b", False, None),
    (".", False, None),
]


@pytest.mark.parametrize(("reported", "is_uri", "path"), PATHS)
def test_path_resolves_to_a_file_of_the_tree_or_none(reported: str | bytes, is_uri: bool, path: bytes | None) -> None:
    known = {b"a b.py", b"100%.py", b"sub/x.py", b"c:x.py", b"caf\xe9.py"}
    assert ReportedPaths(known, b"/home/me/tree").find(reported, is_uri=is_uri) == path
    assert ReportedPaths(known, b"").find("/sub/x.py", is_uri=False) is None
    assert ReportedPaths(known, b"/").find("/sub/x.py", is_uri=False) == b"sub/x.py"


TEXT = "\ufeffab\r\n\U0001f600é = x\n\nlast"
PLACES: list[tuple[tuple[int, int, int, int], ColumnUnit, tuple[int, int, int, int] | None]] = [
    ((1, 2, 1, 3), "utf-16", (1, 2, 1, 3)),
    ((0, 0, 0, 0), "characters", (1, 1, 1, 4)),
    ((2, 0, 0, 0), "characters", (2, 1, 2, 7)),
    ((2, 6, 2, 7), "characters", (2, 6, 2, 7)),
    ((2, 7, 2, 8), "utf-16", (2, 6, 2, 7)),
    ((2, 10, 2, 11), "utf-8", (2, 6, 2, 7)),
    ((2, 2, 0, 0), "utf-8", (2, 1, 2, 7)),
    ((2, 99, 0, 0), "utf-8", (2, 7, 2, 7)),
    ((2, 99, 2, 99), "utf-16", (2, 7, 2, 7)),
    ((2, 3, 1, 1), "characters", (2, 3, 2, 3)),
    ((3, 1, 9, 9), "characters", (3, 1, 4, 5)),
    ((4, 1, 0, 0), "characters", (4, 1, 4, 5)),
    ((5, 1, 0, 0), "characters", None),
    ((-1, 1, 0, 0), "characters", None),
    ((10**30, 1, 0, 0), "characters", None),
]


@pytest.mark.parametrize(("numbers", "unit", "place"), PLACES)
def test_location_is_within_the_text_for_any_column_unit(
    numbers: tuple[int, int, int, int], unit: ColumnUnit, place: tuple[int, int, int, int] | None
) -> None:
    line, column, end_line, end_column = numbers
    reported = ImportedFinding((), "", "info", "", "", line, column, end_line, end_column, unit)
    assert LocationConverter(source("a.txt", TEXT)).find(reported) == place


def finding_of_region(**region: int) -> ImportedFinding:
    return one(sarif({"locations": [{"physicalLocation": {"region": region}}]}))


def test_offsets_apply_if_the_line_is_absent() -> None:
    assert finding_of_region(charOffset=4, charLength=2).span == ImportedSpan(4, 2, is_of_bytes=False)
    assert finding_of_region(byteOffset=4).span == ImportedSpan(4, 0, is_of_bytes=True)
    assert finding_of_region(byteOffset=4, charOffset=5).span == ImportedSpan(5, 0, is_of_bytes=False)
    assert finding_of_region(byteOffset=4, charOffset=-1).span == ImportedSpan(4, 0, is_of_bytes=True)
    assert finding_of_region(byteOffset=-1, charOffset=-1).span is None
    file = source("a.txt", "one\ntwo\n")
    assert LocationConverter(file).find(finding_of_region(startLine=2, charOffset=0, charLength=1)) == (2, 1, 2, 4)
    assert LocationConverter(file).find(finding_of_region(charOffset=-1, byteOffset=-1)) == (1, 1, 1, 4)


SPANS: list[tuple[str, int, int, tuple[int, int, int, int] | None]] = [
    ("characters", 0, 2, (1, 1, 1, 3)),
    ("characters", 0, 0, (1, 1, 1, 1)),
    ("characters", 3, 2, (1, 4, 2, 2)),
    ("characters", 5, 1, (2, 2, 2, 3)),
    ("utf-16", 6, 1, (2, 2, 2, 3)),
    ("characters", 4, 7, (2, 1, 3, 1)),
    ("characters", 11, 99, (3, 1, 4, 5)),
    ("utf-16", 17, 0, (4, 5, 4, 5)),
    ("utf-16", 18, 0, None),
    ("characters", 16, 0, (4, 5, 4, 5)),
    ("characters", 17, 0, None),
    ("bytes", 0, 0, (1, 1, 1, 1)),
    ("bytes", 3, 2, (1, 1, 1, 3)),
    ("bytes", 7, 4, (2, 1, 2, 2)),
    ("bytes", 9, 2, (2, 1, 2, 2)),
    ("bytes", 11, 2, (2, 2, 2, 3)),
    ("bytes", 19, 10**12, (4, 1, 4, 5)),
    ("bytes", 23, 0, (4, 5, 4, 5)),
    ("bytes", 24, 0, None),
    ("bytes", 10**25, 0, None),
]


@pytest.mark.parametrize(("kind", "start", "length", "place"), SPANS)
def test_offset_is_converted_by_the_text_of_the_file(
    kind: str, start: int, length: int, place: tuple[int, int, int, int] | None
) -> None:
    unit: ColumnUnit = "utf-16" if kind == "utf-16" else "characters"
    reported = ImportedFinding((), "", "info", unit=unit, span=ImportedSpan(start, length, is_of_bytes=kind == "bytes"))
    assert LocationConverter(source("a.txt", TEXT)).find(reported) == place


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-32", "latin-1", "ascii"])
def test_offset_matches_its_character_in_each_encoding(encoding: str) -> None:
    """Compare with the lines and columns of the text as Python counts them."""
    text = "#!/usr/bin/python\n# coding: latin-1\r\nab\n\nlast" + (
        "" if encoding == "ascii" else " \xe4\xff!\n\xb0x \xc3\xa9 y"
    )
    text = text if encoding == "latin-1" else text.replace("latin-1", "utf-8")
    text = text.replace("!", "\U0001f600") if encoding.startswith("utf") else text
    content = text.encode(encoding)
    places = LocationConverter(source("script", content))
    for index in range(len(text) + 1):
        before = text[:index]
        expected = before.count("\n") + 1, index - before.rfind("\n")
        units: list[tuple[ColumnUnit, int, bool]] = [
            ("characters", index, False),
            ("utf-16", len(before.encode("utf-16-le")) // 2, False),
            ("utf-16", len(before.encode(encoding)), True),
        ]
        for unit, start, counts_bytes in units:
            location = places.find(
                ImportedFinding((), "", "info", unit=unit, span=ImportedSpan(start, 0, counts_bytes))
            )
            assert location is not None
            assert location[:2] == location[2:] == expected, (index, unit, counts_bytes)


def test_binary_file_has_bytes_but_no_characters() -> None:
    places = LocationConverter(source("a.bin", b"\0\n\1"))
    reported = ImportedFinding((), "", "info", span=ImportedSpan(3, 5, is_of_bytes=True))
    assert places.find(reported) == (1, 1, 1, 1)
    assert places.find(reported._replace(span=ImportedSpan(4, 0, is_of_bytes=True))) is None
    assert places.find(reported._replace(span=ImportedSpan(1, 0, is_of_bytes=False))) is None


def test_byte_columns_refer_to_the_original_encoding() -> None:
    byte_column = ImportedFinding((), "", "info", line=2, column=7, unit="utf-8")
    declared = source("a.py", b"# coding: latin-1\nx='\xe9\xe9'; y\n")
    assert declared.encoding == "iso-8859-1"
    pair = source("script", b"#!/usr/bin/python\n# coding: latin-1\nx='\xc3\xa9'; y\n")
    assert [
        place and place.column for place in map(LocationConverter(pair).find, [byte_column._replace(line=3, column=9)])
    ] == [9]
    for file in (declared, source("a.txt", b"\nx='\xe9\xff'; y\n")):
        locations = [LocationConverter(file).find(byte_column._replace(column=column)) for column in (4, 5, 9)]
        assert [place and place.column for place in locations] == [4, 5, 9]
    wide = source("a.txt", "\nabcé".encode("utf-16"))
    assert LocationConverter(wide).find(byte_column._replace(column=99)) == (2, 5, 2, 5)


def test_file_without_text_has_only_its_first_location() -> None:
    whole = ImportedFinding((), "", "info", line=1, column=7)
    assert LocationConverter(source("a.bin", b"\0\1")).find(whole) == (1, 1, 1, 1)
    assert LocationConverter(source("a.py", b"")).find(whole) == (1, 1, 1, 1)
    assert LocationConverter(source("a.py", b"x\n")).find(whole._replace(line=2)) == (2, 1, 2, 1)


def test_many_locations_in_a_long_line_are_converted_in_time() -> None:
    places = LocationConverter(source("a.js", "\U0001f600x" * 200_000))
    units: list[ColumnUnit] = ["utf-16", "utf-8"]
    for unit in units:
        for column in range(1, 600_001, 1_200):
            location = places.find(
                ImportedFinding((), "", "info", line=1, column=column, end_line=1, end_column=column, unit=unit)
            )
            assert location is not None
            assert location.column == (column - 1) // (3 if unit == "utf-16" else 5) * 2 + 1 + (
                (column - 1) % (3 if unit == "utf-16" else 5) >= (2 if unit == "utf-16" else 4)
            )
