"""Tests of the export formats, byte by byte, and with the contents of a hostile tree."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import unquote_to_bytes

import jsonschema  # type: ignore[import-untyped]  # it has no types
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from codebatch.interchange.checkstyle import NAMESPACE, export_checkstyle
from codebatch.interchange.ctags import export_ctags
from codebatch.interchange.findings import Export, ExportedFinding, ExportedFindings
from codebatch.interchange.github import ANNOTATIONS_MAX, export_github
from codebatch.interchange.gitlab import export_gitlab
from codebatch.interchange.junit import export_junit
from codebatch.interchange.rdjson import byte_column, export_rdjson
from codebatch.interchange.sarif import export_sarif
from codebatch.interchange.scanning_limits import group_by_tool, limit_findings_by_tool
from codebatch.interchange.summary import make_summary
from codebatch.model.record import SEVERITIES
from codebatch.query.fields import JsonRecord
from codebatch.query.filters.filters import path_bytes

from .outgoing import CONTENTS, FINDINGS, HOSTILE, HOSTILE_PATH, Held, outgoing, told

GOLDEN = Path(__file__).parent.parent / "golden" / "interchange"
SARIF = jsonschema.Draft4Validator(
    json.loads((Path(__file__).parent / "vendored" / "sarif-2.1.0-rtm.5.json").read_bytes())
)
SYMBOLS: list[JsonRecord] = [
    {"path": "b.py", "name": "A", "qualified": "A", "scope": "", "symbol_type": "class", "line": 1, "column": 1,
     "end_line": 9, "end_column": 1},
    {"path": "b.py", "name": "run", "qualified": "A.run", "scope": "A", "symbol_type": "method", "line": 2, "column": 5,
     "end_line": 4, "end_column": 1, "visibility": "private"},
    {"path_b64": "YVx0CemBLnB5", "name": "!\x1b", "qualified": "!", "scope": "", "symbol_type": "function", "line": 1,
     "column": 1, "end_line": 1, "end_column": 1},
    {"path": "b.py", "name": "os", "qualified": "os", "scope": "", "symbol_type": "import", "line": 1, "column": 1,
     "end_line": 1, "end_column": 5},
]  # fmt: skip


def with_paths(symbols: list[JsonRecord]) -> list[tuple[bytes, JsonRecord]]:
    return [(path_bytes(symbol), symbol) for symbol in symbols]


def _sarif(exported: ExportedFindings) -> Export:
    limited = limit_findings_by_tool(group_by_tool(exported.findings, exported.tools))
    return export_sarif(exported, limited, {("ruff", "F401"): "an import that is not used"})


def _sarif_runs(exported: ExportedFindings) -> list[dict[str, Any]]:
    log = json.loads(_sarif(exported).data)
    SARIF.validate(log)
    runs = log["runs"]
    assert isinstance(runs, list)
    return runs


FORMS: dict[str, Callable[[], bytes]] = {
    "sarif.sarif": lambda: _sarif(told(incomplete="1 of 9 results failed (lint)")).data,
    "github.txt": lambda: export_github(told()).data,
    "summary.md": lambda: make_summary(told(incomplete="1 of 9 results failed (lint)")),
    "gitlab.json": lambda: export_gitlab(FINDINGS).data,
    "checkstyle.xml": lambda: export_checkstyle(FINDINGS).data,
    "rdjson.json": lambda: export_rdjson(FINDINGS, Held(CONTENTS).content).data,
    "tags": lambda: export_ctags(with_paths(SYMBOLS)).data,
}


@pytest.mark.parametrize("name", FORMS)
def test_export_matches_its_golden_file(name: str) -> None:
    assert FORMS[name]() == (GOLDEN / name).read_bytes()


def test_sarif_is_valid_and_preserves_all_members() -> None:
    runs = _sarif_runs(told(incomplete="half of it"))
    assert [run["automationDetails"] for run in runs] == [{"id": "codebatch/codebatch/"}, {"id": "codebatch/ruff/"}]
    assert all(run["invocations"][0]["executionSuccessful"] is False for run in runs)
    hostile, worse, hint = runs[1]["results"]
    place = hostile["locations"][0]["physicalLocation"]
    assert unquote_to_bytes(place["artifactLocation"]["uri"]) == HOSTILE_PATH
    assert place["region"] == {"startLine": 1, "startColumn": 4, "endLine": 1, "endColumn": 6}
    assert hostile["message"]["text"] == HOSTILE
    assert [result.get("baselineState") for result in (hostile, worse, hint)] == ["new", "updated", None]
    assert (worse["level"], hint["level"], hint["properties"]) == ("note", "note", {"severity": "hint"})
    assert "region" not in hint["locations"][0]["physicalLocation"]
    assert "partialFingerprints" not in hint


def test_rule_has_the_highest_severity_of_its_findings() -> None:
    odd = outgoing("E1", "error", place=(2, 5, 3, 0))
    (run,) = [run for run in _sarif_runs(told(outgoing("E1", "hint"), odd, outgoing("E1"))) if run["results"]]
    assert [(rule["id"], rule["defaultConfiguration"]) for rule in run["tool"]["driver"]["rules"]] == [
        ("E1", {"level": "error"})
    ]
    assert run["results"][1]["locations"][0]["physicalLocation"]["region"] == {"startLine": 2, "startColumn": 5}


def test_tool_without_findings_has_a_run() -> None:
    runs = _sarif_runs(told(outgoing()))
    assert [len(run["results"]) for run in runs] == [0, 1]
    assert "version" not in runs[0]["tool"]["driver"]


def test_sarif_respects_the_limits_of_github(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("codebatch.interchange.scanning_limits.RUNS_MAX", 2)
    monkeypatch.setattr("codebatch.interchange.scanning_limits.RESULTS_MAX", 3)
    monkeypatch.setattr("codebatch.interchange.scanning_limits.RESULTS_SHOWN_MAX", 2)
    findings = [outgoing(tool=tool, place=(line, 1, line, 2)) for tool in "abc" for line in range(1, 6)]
    export = _sarif(told(*findings))
    runs = json.loads(export.data)["runs"]
    assert [(run["tool"]["driver"]["name"], len(run["results"])) for run in runs] == [("a", 3), ("b", 3)]
    assert export.count == 6
    assert export.excluded == (
        "omitted: 3 tools with 5 findings, because GitHub accepts at most 2 tools",
        "omitted: the 2 least severe of 5 findings of a, because GitHub accepts no more findings",
        "GitHub shows 2 of the 3 findings of a",
        "omitted: the 2 least severe of 5 findings of b, because GitHub accepts no more findings",
        "GitHub shows 2 of the 3 findings of b",
    )
    monkeypatch.setattr("codebatch.interchange.scanning_limits.GZIP_BYTES_MAX", 410)
    assert [len(run["results"]) for run in json.loads(_sarif(told(*findings)).data)["runs"]] == [1, 1]


def test_annotations_are_single_lines_and_omissions_are_noted() -> None:
    every = [outgoing(place=(line, 1, line, 2)) for line in range(1, 14)]
    export = export_github(told(outgoing("E1", "error", message=HOSTILE, path=HOSTILE_PATH), *every))
    first, *rest = export.data.decode().splitlines()
    assert first.startswith('::error file=a b/%2541%3A%2C\\t"<&\\xe9\\xff.py,line=3,endLine=3,col=5,')
    assert first.endswith("::100%25 a,b: ::error::c%0D%0A\\x1b[31m\\x85\\u202e<b>&\"'|`]]>\ufffe\U0001f600\\")
    assert len(rest) == ANNOTATIONS_MAX
    assert export.excluded == ("omitted: 3 warnings, because GitHub shows at most 10 per step",)
    assert b"## codebatch: 14 findings" in export.summary


def test_summary_respects_its_size_limit() -> None:
    findings = [outgoing(message=HOSTILE, place=(line, 1, line, 2)) for line in range(1, 50)]
    whole, cut_short = make_summary(told(*findings)), make_summary(told(*findings), 3_000)
    assert len(cut_short) <= 3_000 < len(whole)
    assert "25 more are not listed." in cut_short.decode()
    assert make_summary(told(*findings), 10) == b""


def test_gitlab_fingerprints_are_unique() -> None:
    alike = [
        outgoing(),
        outgoing(path=b"b.py"),
        *(outgoing(place=(n, 1, n, 2))._replace(fingerprint="") for n in (1, 2)),
    ]
    rows = json.loads(export_gitlab(alike).data)
    assert len({row["fingerprint"] for row in rows}) == len(rows)
    assert json.loads(export_gitlab([outgoing(place=(2, 1, 4, 1))]).data)[0]["location"]["lines"] == {
        "begin": 2,
        "end": 3,
    }


def test_checkstyle_with_hostile_text_is_valid_xml() -> None:
    tree = ET.fromstring(export_checkstyle(FINDINGS).data)
    files = {file.get("name"): file for file in tree}
    (error,) = files['a b/%41:,\t"<&\\xe9\\xff.py']
    assert error.get("message") == HOSTILE.replace("\x1b", "\\x1b").replace("\x85", "\\x85").replace(
        "\ufffe", "\\ufffe"
    )
    assert error.get(f"{{{NAMESPACE}}}code") == "F401"
    hint = files["src/a.py"][0]
    assert (hint.get("severity"), hint.get(f"{{{NAMESPACE}}}level")) == ("info", "hint")


def test_junit_with_hostile_text_is_valid_xml_of_jenkins() -> None:
    """The schema of Jenkins allows only these attributes, and one element in a test."""
    missing = ExportedFindings(findings=tuple(FINDINGS), tools={}, incomplete=HOSTILE)
    (suite,) = ET.fromstring(export_junit(missing).data)
    assert [*suite.keys()] == ["name", "tests", "failures", "errors", "skipped"]
    error, *failures = [element for test in suite for element in test]
    assert (error.tag, [*error.keys()], {element.tag for element in failures}) == (
        "error",
        ["message", "type"],
        {"failure"},
    )
    assert str(error.text).removeprefix("incomplete: ") == error.get("message")
    assert {tuple(test.keys()) for test in suite} == {("classname", "name")}
    text = HOSTILE.replace("\x1b", "\\x1b").replace("\x85", "\\x85").replace("\ufffe", "\\ufffe")
    assert text in [element.get("message") for element in failures]
    assert any(str(test.get("name")).startswith('a b/%41:,\t"<&\\xe9\\xff.py') for test in suite)


def test_byte_column_converts_character_columns() -> None:
    text = "a\U00010410é = b".encode()
    assert [byte_column(text, column) for column in (1, 2, 3, 4, 8, 9)] == [1, 2, 6, 8, 12, 13]
    long = ("é" * 5_000).encode()
    assert [byte_column(long, column) for column in (1, 1_000, 1_001, 5_001, 5_002)] == [
        1,
        1_999,
        2_001,
        10_001,
        10_002,
    ]
    assert [byte_column(b"caf\xe9s", column) for column in (0, 4, 5, 6, 9)] == [1, 4, 5, 6, 9]
    sources = Held({})
    (row,) = json.loads(export_rdjson([outgoing()], sources.content).data)["diagnostics"]
    assert row["location"]["range"] == {"start": {"line": 3}, "end": {"line": 3}}
    assert sources.lost == {b"src/a.py"}


ANY_TEXT, ANY_NUMBER = st.text(max_size=40), st.integers(-3, 5)
ANY_FINDING = st.builds(
    lambda code, severity, path, tool, message, place: outgoing(
        code, severity, path=path, tool=tool, message=message, place=place
    ),
    ANY_TEXT,
    st.sampled_from(SEVERITIES),
    st.binary(min_size=1, max_size=20),
    ANY_TEXT,
    ANY_TEXT,
    st.tuples(ANY_NUMBER, ANY_NUMBER, ANY_NUMBER, ANY_NUMBER),
)


@settings(max_examples=50, deadline=None)
@given(st.lists(ANY_FINDING, min_size=1, max_size=4), st.binary(max_size=60))
def test_exports_of_arbitrary_findings_are_valid(findings: list[ExportedFinding], content: bytes) -> None:
    exported = told(*findings)
    _sarif_runs(exported)
    annotations = export_github(exported).data.decode().splitlines()
    assert [line.partition(" ")[0] in ("::error", "::warning", "::notice") for line in annotations] == [True] * len(
        findings
    )
    assert sum(len(file) for file in ET.fromstring(export_checkstyle(findings).data)) == len(findings)
    assert len(json.loads(export_gitlab(findings).data)) == len(findings)
    tests = [*ET.fromstring(export_junit(told(*findings, *findings)).data).iter("testcase")]
    assert len({test.get("name") for test in tests}) == len(tests) == 2 * len(findings) + 1
    rows = json.loads(export_rdjson(findings, Held({finding.path: content for finding in findings}).content).data)[
        "diagnostics"
    ]
    positions = [position for row in rows for position in row["location"].get("range", {}).values()]
    assert all(position["line"] >= 1 and position["column"] >= 1 for position in positions)


@settings(max_examples=50, deadline=None)
@given(st.lists(st.tuples(ANY_TEXT, ANY_NUMBER, ANY_NUMBER), max_size=5))
def test_tags_with_arbitrary_names_are_sorted(rows: list[tuple[str, int, int]]) -> None:
    symbols: list[JsonRecord] = [
        {**SYMBOLS[0], "name": name, "qualified": name, "line": line, "end_line": end_line}
        for name, line, end_line in rows
    ]
    lines = export_ctags(with_paths(symbols)).data.split(b"\n")[:-1]
    assert lines == sorted(lines)
    assert len(lines) == len(export_ctags([]).data.splitlines()) + sum(name != "" for name, *_ in rows)


def test_exports_without_findings_are_valid_and_empty() -> None:
    none = ExportedFindings(findings=(), tools={}, incomplete="")
    assert json.loads(_sarif(none).data)["runs"] == []
    assert export_github(none).data == b""
    assert make_summary(none) == b"## codebatch: 0 findings\n\n"
    assert json.loads(export_gitlab([]).data) == []
    assert len(ET.fromstring(export_checkstyle([]).data)) == 0
    assert [len(suite) for suite in ET.fromstring(export_junit(none).data)] == [1]
    assert json.loads(export_rdjson([], Held({}).content).data)["diagnostics"] == []
    assert export_ctags([]).data.startswith(b"!_TAG_FILE_ENCODING")
