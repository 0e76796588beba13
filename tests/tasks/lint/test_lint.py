"""Tests of the task lint: language-neutral rules, and ruff with answers as over the whole tree."""

from __future__ import annotations

import json
import os
import random
import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from ruff import find_ruff_bin  # type: ignore[import-untyped]  # it has no annotations

from codebatch.model.digest import Digest
from codebatch.model.entry import Entry
from codebatch.model.record import SEVERITIES as RECORD_SEVERITIES
from codebatch.model.record import Diagnostic
from codebatch_workers.lint.bounds import FINDINGS_PER_FILE_MAX
from codebatch_workers.lint.config import LintConfig
from codebatch_workers.lint.python.ruff import RuffRunner, common_arguments
from codebatch_workers.lint.ruff_rules import SEVERITY_BY_CODE
from codebatch_workers.lint.text_rules import TEXT_RULES
from codebatch_workers.syntax.contexts import packages_context
from codebatch_workers.syntax.source import SourceFile
from tests.support import corpora
from tests.support.source_files import Snapshot, lint_all, source

ALL_RULES = {"on": [rule.code for rule in TEXT_RULES]}
BODY = "MC4CAQAwBQYDK2VwBCIEIHVmz3XyuEusnRgYwDQYJKoZIhvcNAQELBQAwZjELMAkG"
KEY = f"-----BEGIN RSA PRIVATE KEY-----\n{BODY}\n-----END RSA PRIVATE KEY-----\n"


@pytest.mark.parametrize(
    ("path", "content", "expected"),
    [
        ("a.c", "x\n<<<<<<< HEAD\na\n=======\nb\n>>>>>>> other\n", ["2:1 merge-conflict"]),
        ("a.rst", "Title\n=======\n", []),
        ("a.c", "  <<<<<<< x\n=======\n>>>>>>> y\n", []),
        ("a.pem", KEY, ["1:1 private-key"]),
        ("a.js", f"const k = `é{KEY}`;\n", ["1:13 private-key"]),
        ("a.pem", KEY + KEY, ["1:1 private-key"]),
        ("a.py", "# -----BEGIN PRIVATE KEY----- is how one begins\n", []),
        ("a.java", 'k = "-----BEGIN PRIVATE KEY-----\\n" + encoded.toString() + "-----END";\n', []),
        ("a.java", f'k = "-----BEGIN PRIVATE KEY-----\\n" + "{BODY}" + "-----END";\n', ["1:6 private-key"]),
        ("a.md", "-----BEGIN PRIVATE KEY-----\\nMIIEowIBAAKCAQEA\\n-----END PRIVATE KEY-----\n", []),
        ("a.md", KEY.replace(BODY, "A" * 64), []),
        ("a.md", KEY.partition("-----END")[0], []),
        ("a.md", KEY + KEY.replace(BODY, "MIIE"), ["1:1 private-key"]),
        ("a.txt", "-----BEGIN PUBLIC KEY-----\nMIIE\n", []),
        ("a.go", "x := 1 // é\u202e\n", ["1:12 bidi-control"]),
        ("a.po", "\u202e\n", []),
        ("a.hbs", "\u202e{{ name }}\n", []),
        ("a.min.js", "let x = '\u202e';\n", []),
        ("a.c", b"\xff\n", ["1:1 invalid-encoding"]),
        ("a.c", b"/* \xa9 A */\nint x; // \xe9\n", []),
        ("a.c", b'/* \xa9 A */\nchar x[] = "\xe9"; // \xe9\n', ["1:1 invalid-encoding"]),
        ("a.rs", b"// \xa9\nfn f() {}\n", ["1:1 invalid-encoding"]),
        ("a.txt", b"\xff\n", []),
        ("a.html", b"<meta charset=windows-1250><p>\xff</p>\n", []),
        ("a.html", b"<meta charset='utf-8'><p>\xff</p>\n", ["1:1 invalid-encoding"]),
        ("a.br", bytes(range(14, 256)) * 9, []),
        ("a.c", b"//\n" * 5000 + b"\0", ["5001:1 nul-character"]),
        ("a.ai", b"a\n" * 5000 + b"\0", []),
        ("a.txt", "a\nb\r\nc\n", ["2:2 mixed-line-endings"]),
        ("a.txt", "a\r\nb\r\nc\n", ["3:2 mixed-line-endings"]),
        ("a.txt", "a\r\nb\r\n", []),
        ("a.txt", "a\rb\n", ["1:2 lone-carriage-return"]),
        ("a.txt", "mastodon hackathon todo \t\n", []),
        ("vendor/a.txt", "a\nb\r\nc\n", []),
        ("vendor/a.txt", KEY, ["1:1 private-key"]),
        ("a.bin", b"\0" + KEY.encode(), []),
        ("a.txt", "", []),
        ("a.go", "x := 1 // é\u202e codebatch: ignore\n", []),
        ("a.go", "x := 1 // é\u202e codebatch: ignore[private-key, bidi-control]\n", []),
        ("a.go", "x := 1 // é\u202e codebatch: ignore[private-key]\n", ["1:12 bidi-control"]),
    ],
)
def test_rule_reports_exactly_the_expected_findings(
    path: str, content: bytes | str, expected: list[str], tmp_path: Path
) -> None:
    (findings,) = lint_all([source(path, content)], tmp_path)
    assert [f"{finding.line}:{finding.column} {finding.code}" for finding in findings] == expected


@pytest.mark.parametrize(
    ("path", "content", "expected"),
    [
        ("a.txt", b"\xef\xbb\xbfa\n", ["1:1-1:1 byte-order-mark"]),
        ("a.txt", "a" * 10_000 + "\n", ["1:1-1:10001 huge-line"]),
        ("a.txt", "a", ["1:2-1:2 missing-final-newline"]),
        ("a.txt", "é \t\r\nb\r\n", ["1:2-1:4 trailing-whitespace"]),
        ("a.c", "  \tint x;\n\t int y;\n", ["1:1-1:4 mixed-indentation"]),
        ("a.c", "// TODO: x, mastodon\nint HACK; /* todo */\n", ["1:4-1:8 todo-comment"]),
        ("a", "#!/bin/sh\n", ["1:1-1:10 shebang-not-executable"]),
    ],
)
def test_default_off_rule_can_be_enabled(path: str, content: bytes | str, expected: list[str], tmp_path: Path) -> None:
    assert lint_all([source(path, content)], tmp_path) == [[]]
    (findings,) = lint_all([source(path, content)], tmp_path, ALL_RULES)
    assert [f"{e.line}:{e.column}-{e.end_line}:{e.end_column} {e.code}" for e in findings] == expected


def test_finding_of_a_nul_character_is_one_character_long(tmp_path: Path) -> None:
    ((found,),) = lint_all([source("a.c", b"//\n" * 5000 + b"//\0\n")], tmp_path)
    assert (found.line, found.column, found.end_line, found.end_column) == (5001, 3, 5001, 4)


def test_rules_can_be_turned_off_and_unknown_rules_are_rejected(tmp_path: Path) -> None:
    file = source("a.py", "import os\r\nx = 1\n")
    (findings,) = lint_all([file], tmp_path, {"off": ["F401", "mixed-line-endings"]})
    assert findings == []
    with pytest.raises(ValueError, match="unknown rule 'nonsense'"):
        LintConfig(off=("nonsense",))
    with pytest.raises(ValueError, match="unknown rule 'mixed-line-ending'; did you mean 'mixed-line-endings'"):
        LintConfig(on=("mixed-line-ending",))


def test_pinned_rules_are_stable_in_this_ruff() -> None:
    done = subprocess.run(
        [find_ruff_bin(), "rule", "--all", "--output-format", "json"], capture_output=True, check=True
    )
    stable = {
        rule["code"] for rule in json.loads(done.stdout) if "Stable" in str(rule["status"]) and not rule["preview"]
    }
    assert SEVERITY_BY_CODE.keys() <= stable
    assert set(SEVERITY_BY_CODE.values()) == set(RECORD_SEVERITIES)
    outside = ("I0", "INP", "TID", "TC0", "EXE", "A005", "N999")
    assert not [code for code in SEVERITY_BY_CODE if code.startswith(outside)]


def codes(files: list[list[Diagnostic]]) -> list[list[str]]:
    return [[f"{finding.line}:{finding.column} {finding.code}" for finding in file] for file in files]


@pytest.mark.parametrize(
    "path",
    [
        b"-x.py",
        b"--config",
        b"build/a.py",
        b".venv/lib/a.py",
        b"node_modules/a.py",
        b"a\nb.py",
        b"\xff/\xfe.py",
        b"@file.py",
        b"d/" * 1500 + b"a.py",
        b"x" * 255,
        b"na\\xffme.py",
        b"\"quote'.py",
        b"tool",
    ],
)
def test_any_file_name_is_checked_by_ruff(path: bytes, tmp_path: Path) -> None:
    """A name that ruff would exclude, take for an option, or cannot print is checked like any other."""
    file = source(path, b"#!/usr/bin/python\nimport os\nx = undefined\n")
    assert codes(lint_all([file, source("z.py", "import re\n")], tmp_path)) == [["2:8 F401", "3:5 F821"], ["1:8 F401"]]


def test_configuration_and_ignore_files_of_the_tree_are_not_read(tmp_path: Path) -> None:
    for name in ("ruff.toml", ".ruff.toml", ".gitignore", ".ignore"):
        (tmp_path / name).write_text('exclude = ["*"]\nlint.ignore = ["ALL"]\n' if "ruff" in name else "*\n")
    assert codes(lint_all([source("a.py", "import os\n")], tmp_path)) == [["1:8 F401"]]


def test_other_encodings_are_transcoded_for_ruff(tmp_path: Path) -> None:
    files = [
        source("a.py", b"# coding: latin-1\ns = '\xe9'; import os\n"),
        source("b.py", b"\xef\xbb\xbfimport os\n"),
        source("c.py", b"\xff\xfe" + "é = 1; import os\n".encode("utf-16le")),
        source("d.py", b"s = '\xff'; import os\n"),
    ]
    assert [file_codes[-1] for file_codes in codes(lint_all(files, tmp_path))] == [
        "2:17 F401",
        "1:8 F401",
        "1:15 F401",
        "1:17 F401",
    ]


def test_lone_carriage_returns_do_not_shift_ruff_findings(tmp_path: Path) -> None:
    file = source("a.py", "x = 1\rimport os\r\nimport re\n")
    (findings,) = lint_all([file], tmp_path, {"off": ["lone-carriage-return", "mixed-line-endings"]})
    assert codes([findings]) == [["1:14 F401", "2:8 F401"]]


def test_syntax_errors_are_left_to_parse(tmp_path: Path) -> None:
    files = [source("a.py", "x = = 1\n"), source("b.py", "return 1\n"), source("c.py", "import os\n")]
    assert codes(lint_all(files, tmp_path)) == [[], [], ["1:8 F401"]]


def test_findings_do_not_depend_on_other_files_of_the_unit(tmp_path: Path) -> None:
    context = {"packages": b"p/"}
    files = [source(f"p/{name}.py", "import os\nimport p.a\n", context) for name in ("__init__", "a", "b", "conftest")]
    together = lint_all(files, tmp_path)
    assert together == [lint_all([file], tmp_path)[0] for file in files]
    assert sum(map(len, together)) > 4


def test_unit_without_python_starts_no_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(RuffRunner, "_ruff_path", "/nonexistent")
    assert lint_all([source("a.c", "int x;\n")], tmp_path) == [[]]


def test_scratch_directory_is_empty_after_lint(tmp_path: Path) -> None:
    lint_all([source("a.py", "import os\n")], tmp_path)
    assert list(tmp_path.iterdir()) == []


# -- Real code --------------------------------------------------------------------------------------------------------


def python_files(root: Path) -> Iterator[SourceFile]:
    """Yield the Python files of a tree with the contexts that a plan gives them."""
    paths = sorted(path.relative_to(root) for path in root.rglob("*") if path.is_file() and not path.is_symlink())
    context = packages_context(Snapshot(*map(str, paths)))
    for path in paths:
        if path.suffix in (".py", ".pyi"):
            name = os.fsencode(path)
            packages = context(Entry(name, "file", False, 0, Digest("")))
            yield source(name, (root / path).read_bytes(), {"packages": packages})


@pytest.mark.corpus
@pytest.mark.slow
@pytest.mark.parametrize(("name", "version"), [corpora.DJANGO, ("jedi", "0.19.2")])
def test_units_together_match_ruff_over_the_whole_tree(name: str, version: str, tmp_path: Path) -> None:
    root = corpora.sdist(name, version)
    files = [file for file in python_files(root) if file.file_class not in ("binary", "huge", "empty")]
    done = subprocess.run(
        [find_ruff_bin(), *common_arguments(SEVERITY_BY_CODE), "--config", "exclude=[]", root],
        capture_output=True,
        check=False,
    )
    whole: Counter[tuple[object, ...]] = Counter()
    for finding in json.loads(done.stdout):
        path = os.path.relpath(finding["filename"], root)
        code = finding["code"] or "invalid-syntax"
        start, end = finding["location"], finding["end_location"]
        whole[path, code, finding["message"], start["row"], start["column"], end["row"], end["column"]] += 1
    ruff = RuffRunner(SEVERITY_BY_CODE, tmp_path)
    ours: Counter[tuple[object, ...]] = Counter()
    cuts = random.Random(name)
    while files:
        unit, files = files[: (size := cuts.randint(1, 200))], files[size:]
        for e in (finding for findings in ruff.check(unit) for finding in findings):
            ours[e.path, e.code, e.message, e.line, e.column, e.end_line, e.end_column] += 1
    assert ours.total() > 500
    assert ours == whole


def test_findings_of_a_rule_are_limited(tmp_path: Path) -> None:
    file = source("a.txt", "x \n" * (FINDINGS_PER_FILE_MAX + 1))
    assert [len(findings) for findings in lint_all([file], tmp_path, {"on": ["trailing-whitespace"]})] == [
        FINDINGS_PER_FILE_MAX
    ]


def test_findings_of_a_ruff_rule_are_limited(tmp_path: Path) -> None:
    much = source("a.py", "assert (1, 2)\n" * (FINDINGS_PER_FILE_MAX + 10) + "x = y\n")
    (findings,) = lint_all([much], tmp_path)
    assert Counter(finding.code for finding in findings) == {"F631": FINDINGS_PER_FILE_MAX, "F821": 1}


def test_severity_is_lower_outside_production_code_unless_configured(tmp_path: Path) -> None:
    """A configured severity applies everywhere. A key in a test is not a secret."""
    severity_by_path = {
        "a.py": "error", "examples/a.py": "warning", "vendor/a.py": "info", "tests/a.py": "warning",
        "tests/data/a.py": "hint",
    }  # fmt: skip
    code = "def f():\n    return undefined\n"
    findings = lint_all([source(path, code) for path in severity_by_path], tmp_path)
    assert [finding.severity for (finding,) in findings] == list(severity_by_path.values())
    config = {"severity": {"F821": "error"}}
    (((first), *_), *_) = lint_all([source("tests/a.py", code)], tmp_path, config)
    assert first.severity == "error"
    paths = ("a.pem", "vendor/a.pem", "tests/a.pem", "testdata/a.pem", "samples/a.pem", "docs/a.pem")
    keys = lint_all([source(path, KEY) for path in paths], tmp_path)
    assert [finding.severity for (finding,) in keys] == ["warning", "hint", "hint", "hint", "hint", "hint"]


@pytest.mark.parametrize(
    ("content", "code"),
    [(b"x = '\xff'\n", "invalid-encoding"), ("x = '\u202e'\n", "bidi-control"), ("x = '\u200b'\n", "PLE2515")],
)
def test_unusual_characters_in_tests_are_hints(content: bytes | str, code: str, tmp_path: Path) -> None:
    findings = lint_all([source(path, content) for path in ("tests/a.py", "a.py")], tmp_path)
    severities = [{finding.severity for finding in one if finding.code == code} for one in findings]
    assert severities == [{"hint"}, {"warning"}]


def test_severity_is_lower_in_documentation(tmp_path: Path) -> None:
    code = "import os\ndef f():\n    return undefined\n"
    severities = {}
    for path in ("docs/a.py", "tests/a.py", "tests/data/a.py", "examples/a.py"):
        ((unused, undefined),) = lint_all([source(path, code, {"attributes": b"documentation=true"})], tmp_path)
        severities[path] = unused.severity, undefined.severity
    assert severities == {
        "docs/a.py": ("hint", "warning"),
        "tests/a.py": ("hint", "hint"),
        "tests/data/a.py": ("hint", "hint"),
        "examples/a.py": ("hint", "warning"),
    }


def test_severity_of_unused_names_is_lowest_in_non_production_code(tmp_path: Path) -> None:
    code = "import os\ndef f():\n    x = 1\n    raise NotImplemented\n"
    migration = "revision = down_revision = ''\ndown_revision = ''\ndef f():\n    x = 1\n    raise NotImplemented\n"
    paths = ("a.py", "tests/a.py", "vendor/a.py")
    findings = lint_all([source(path, code) for path in paths], tmp_path)
    assert [[(finding.code, finding.severity) for finding in one] for one in findings] == [
        [("F401", "warning"), ("F841", "info"), ("F901", "warning")],
        [("F401", "hint"), ("F841", "hint"), ("F901", "info")],
        [("F401", "hint"), ("F841", "hint"), ("F901", "hint")],
    ]
    (steps,) = lint_all([source("a.py", migration)], tmp_path)
    assert [(finding.code, finding.severity) for finding in steps] == [("F841", "hint"), ("F901", "warning")]


def test_undefined_name_as_a_statement_of_a_test_is_a_hint(tmp_path: Path) -> None:
    code = "def f():\n    try:\n        undefined\n    except Exception:\n        return other\n"
    findings = lint_all([source(path, code) for path in ("tests/a.py", "a.py", "examples/a.py")], tmp_path)
    severities = [{finding.line: finding.severity for finding in one if finding.code == "F821"} for one in findings]
    assert severities == [{3: "hint", 5: "warning"}, {3: "error", 5: "error"}, {3: "warning", 5: "warning"}]


def test_unused_exception_name_is_a_hint_unless_configured(tmp_path: Path) -> None:
    code = """def f(x):
    try:
        x()
    except (ValueError, KeyError) as é:
        pass
    has = 1
"""
    (findings,) = lint_all([source("a.py", code)], tmp_path)
    assert [(finding.line, finding.severity) for finding in findings] == [(4, "hint"), (6, "info")]
    (findings,) = lint_all([source("a.py", code)], tmp_path, {"severity": {"F841": "error"}})
    assert [(finding.line, finding.severity) for finding in findings] == [(4, "error"), (6, "error")]


def test_severity_of_a_user_rule_applies_everywhere(tmp_path: Path) -> None:
    rule = {
        "id": "no-x",
        "language": "python",
        "query": '((identifier) @x (#eq? @x "x"))',
        "message": "m",
        "severity": "error",
    }
    ((finding,),) = lint_all([source("tests/a.py", "x\n")], tmp_path, {"rules": [rule], "off": ["B018", "F821"]})
    assert finding.severity == "error"
