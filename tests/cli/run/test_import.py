"""Tests of the command `import`: formats that only `--set` describes."""

from __future__ import annotations

import json

import pytest

from tests.support.command_line import CommandLine, write


@pytest.fixture
def ran(codebatch: CommandLine) -> CommandLine:
    """Return a command line in a project with two files and a batch."""
    write(codebatch.directory / "a.py", "x = 1\ny = 2\n")
    codebatch("run", "--pipeline", "parse")
    return codebatch


def test_report_is_described_with_set(ran: CommandLine) -> None:
    write(ran.directory / "report.json", '{"x": [{"f": "a.py", "n": 0, "level": 2, "m": "first=1"}]}')
    members = ["items=/x", "path=/f", "line=/n", "message=/m", "severity=/level", "severities.2=error", "first_line=0"]
    options = [word for member in members for word in ("--set", member)]
    answer = ran("import", "json", "report.json", "--as", "other", *options, "--json").json
    assert (answer["format"], answer["findings"]) == ("json", 1)
    write(ran.directory / "report.txt", "in a.py, line=2: second\n")
    pattern = r"pattern=in (?P<path>.*?), line=(?P<line>\d+): (?P<message>.*)"
    ran("import", "pattern", "report.txt", "--as", "lines", "--set", pattern)
    rows = ran("query", "diagnostics", "-o", "csv", "--fields", "line,severity,message").lines
    assert sorted(rows[1:]) == ["1,error,first=1", "2,warning,second"]


WHOLE = ["--set", "path=/f", "--set", "line=/n", "--set", "message=/m"]
MISTAKES: dict[str, tuple[list[str], str]] = {
    "nothing": (["json"], '`path` is missing, for example: path = "/path"'),
    "a member": (["json", "--set", "lin=/x"], "unknown member `lin`: did you mean 'line'?"),
    "no value": (["json", "--set", "line"], "--set 'line' has no value"),
    "a number": (["json", *WHOLE, "--set", "first_line=2"], "`first_line`: expected `int`, got `str`, one of: 0, 1"),
    "a name": (["gcc", "--set", "line=/x"], "--set cannot be used with the format gcc"),
}


@pytest.mark.parametrize("case", MISTAKES)
def test_mistake_in_a_description_is_reported(ran: CommandLine, case: str) -> None:
    words, message = MISTAKES[case]
    answer = ran("import", *words, "report.json", "--as", "other", status=2)
    assert f"error: {message}" in answer.notes


def test_imported_finding_of_the_default_linter_is_one_finding(codebatch: CommandLine) -> None:
    write(codebatch.directory / "a.py", "import json\nprint(nn)\n")
    codebatch("run")
    rows = codebatch("query", "diagnostics", "--json").records
    exported = [{**row, "severity": "error"} for row in rows if row["code"] == "F401"]
    other = {**exported[0], "message": "another"}
    write(codebatch.directory.parent / "found.jsonl", "".join(f"{json.dumps(row)}\n" for row in (*exported, other)))
    codebatch("import", "jsonl", "../found.jsonl", "--as", "other")
    found = codebatch("findings", "--json").json
    assert [(rule["code"], rule["severity"], rule["count"]) for rule in found["rules"]] == [
        ("F821", "error", 1),
        ("F401", "error", 2),
    ]
    assert codebatch("query", "diagnostics").lines == [
        "a.py:1:8: error F401 `json` imported but unused [ruff, also other]",
        "a.py:2:7: error F821 Undefined name `nn` [ruff]",
        "a.py:1:8: error F401 another [ruff]",
    ]
    assert codebatch("query", "diagnostics", "--count").text.strip() == "3"
    assert len(codebatch("query", "diagnostics", "--task", "other").lines) == 2
    assert codebatch("query", "stats", "--group-by", "code").lines == ["count  code", "    2  F401", "    1  F821"]
    assert len(codebatch("sql", "select * from diagnostic", "-o", "jsonl").lines) == 3
    summary = codebatch("summary", "--json").json
    assert (summary["severities"], summary["codes"]) == ({"error": 3}, {"F401": 2, "F821": 1})
