"""Tests of the configuration of lint: rules by path, severities, suppression comments and user rules."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from codebatch.model.task import JsonValue
from codebatch_workers.lint.config import LintConfig
from codebatch_workers.lint.examples import EXAMPLE_BY_CODE
from codebatch_workers.lint.text_rules import RULES_BY_CODE
from tests.support.source_files import lint_all, source

CRLF = "a\nb\r\n"
NO_PRINT: dict[str, JsonValue] = {
    "id": "no-print",
    "language": "python",
    "query": '(call function: (identifier) @_name (#eq? @_name "print")) @report',
    "message": "`{_name}` in a library",
}


def findings_in(path: str, content: str | bytes, scratch: Path, config: dict[str, JsonValue]) -> list[str]:
    (findings,) = lint_all([source(path, content)], scratch, config)
    return [f"{finding.line}:{finding.column} {finding.severity} {finding.code}" for finding in findings]


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("a.txt", ["2:2 info mixed-line-endings"]),
        ("gen/a.txt", []),
        ("gen/keep/a.txt", ["2:2 error mixed-line-endings"]),
        ("x/gen/a.txt", ["2:2 info mixed-line-endings"]),
    ],
)
def test_path_settings_override_general_settings(path: str, expected: list[str], tmp_path: Path) -> None:
    config: dict[str, JsonValue] = {
        "severity": {"mixed-*": "hint", "mixed-line-endings": "info"},
        "paths": [
            {"match": ["/gen/"], "off": ["mixed-line-endings"]},
            {"match": ["gen/keep/**"], "on": ["mixed-*"], "severity": {"mixed-line-endings": "error"}},
        ],
    }
    assert findings_in(path, CRLF, tmp_path, config) == expected


def test_ruff_respects_path_settings_and_severities(tmp_path: Path) -> None:
    config: dict[str, JsonValue] = {
        "off": ["F4*"],
        "severity": {"F841": "error"},
        "paths": [{"match": ["*.py", "!b.py"], "on": ["F401"]}],
    }
    text = "import os\ndef f():\n    x = 1\n"
    assert findings_in("a.py", text, tmp_path, config) == ["1:8 warning F401", "3:5 error F841"]
    assert findings_in("b.py", text, tmp_path, config) == ["3:5 error F841"]


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("import os  # codebatch: ignore\n", []),
        ("import os  # codebatch: ignore[F4*]\n", []),
        ("import os  # codebatch: ignore[F841]\n", ["1:8 warning F401"]),
        ("# codebatch: ignore-next-line[F401]\nimport os\nimport re\n", ["3:8 warning F401"]),
        ("import os\nimport re\n# codebatch: ignore-file[F401, F841]\n", []),
        ("import os  # noqa: F401\n", []),
        ("import os  # codebatch: ignored\n", ["1:8 warning F401"]),
    ],
)
def test_suppression_comments_apply_to_findings_of_every_tool(
    content: str, expected: list[str], tmp_path: Path
) -> None:
    assert findings_in("a.py", content, tmp_path, {}) == expected


def test_suppression_comments_apply_in_other_encodings(tmp_path: Path) -> None:
    content = b"\xff\xfe" + "import os  # codebatch: ignore[F401]\n".encode("utf-16le")
    assert findings_in("a.py", content, tmp_path, {}) == []


def test_todo_policy_allows_comments_that_name_an_issue(tmp_path: Path) -> None:
    config: dict[str, JsonValue] = {"on": ["todo-comment"], "todo": {"words": ["TODO", "NB"], "allow": "TODO.#[0-9]+"}}
    text = "# TODO: a\n# TODO(#12): b\n# FIXME c\n# NB d\nTODO = 'TODO'\n"
    assert findings_in("a.py", text, tmp_path, config) == ["1:3 hint todo-comment", "4:3 hint todo-comment"]


def test_user_rule_reports_the_matches_of_its_query(tmp_path: Path) -> None:
    config: dict[str, JsonValue] = {
        "rules": [
            NO_PRINT,
            {**NO_PRINT, "id": "js", "language": "javascript", "query": "(debugger_statement) @x", "message": "m"},
        ]
    }
    text = "s = 'a𐐀b'; print(s)\nprint(1)  # codebatch: ignore[no-print]\ns.print(2)\n"
    (findings,) = lint_all([source("a.py", text)], tmp_path, config)
    assert [(e.line, e.column, e.end_column, e.code, e.message) for e in findings] == [
        (1, 12, 20, "no-print", "`print` in a library")
    ]
    assert findings_in("a.js", "debugger\n", tmp_path, config) == ["1:1 warning js"]
    assert findings_in("node_modules/a.js", "debugger\n", tmp_path, config) == []
    assert findings_in("a.py", text, tmp_path, {**config, "off": ["no-print"]}) == []


def test_user_rule_may_match_prose(tmp_path: Path) -> None:
    rule = {
        "id": "deep",
        "language": "markdown",
        "query": "(atx_heading (atx_h4_marker)) @x",
        "message": "deep heading",
    }
    assert findings_in("a.md", "# a\n\n#### b\n", tmp_path, {"rules": [rule]}) == ["3:1 warning deep"]


@pytest.mark.parametrize(
    ("config", "problem"),
    [
        ({"rules": [{**NO_PRINT, "query": "(nope) @x"}]}, "query of the rule 'no-print' is not valid for python"),
        ({"rules": [{**NO_PRINT, "query": "(call"}]}, "query of the rule 'no-print'"),
        ({"rules": [{**NO_PRINT, "query": "(call)"}]}, "must capture what to report"),
        ({"rules": [{**NO_PRINT, "message": "{what}"}]}, "`what`, which its query does not capture"),
        ({"rules": [{**NO_PRINT, "language": "klingon"}]}, "'klingon', which has no grammar"),
        ({"rules": [NO_PRINT, NO_PRINT]}, "duplicate rule 'no-print'"),
        ({"rules": [{**NO_PRINT, "id": "Print"}]}, "rule ID 'Print'"),
        ({"rules": [{**NO_PRINT, "id": "bidi-control"}]}, "duplicate rule 'bidi-control'"),
        ({"severity": {"F9999": "error"}}, "unknown rule 'F9999'"),
        ({"severity": {"F401": "fatal"}}, "Invalid enum value 'fatal'"),
        ({"paths": [{"off": ["F401"]}]}, "missing required field `match`"),
        ({"todo": {"allow": "("}}, "not a valid regular expression"),
        ({"paths": [{"match": ["a", "./b/"]}]}, "'./b/' in `match` can match no path: .*; write '/b/'"),
    ],
)
def test_invalid_configuration_is_rejected(config: dict[str, JsonValue], problem: str) -> None:
    with pytest.raises(msgspec.ValidationError, match=problem):
        msgspec.convert(config, LintConfig)


def test_every_built_in_rule_has_an_example() -> None:
    assert EXAMPLE_BY_CODE.keys() == RULES_BY_CODE.keys()
