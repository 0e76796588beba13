"""Suppressions in a check: a condition demands reasons, and dates expire. Also, checks that are restricted to paths."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest

import codebatch
from codebatch.errors import InvalidInput
from codebatch.model.record import Diagnostic
from codebatch.operations.gate.condition_inputs import parse_conditions
from codebatch.operations.gate.quality_gate import CheckResult, GateChecker
from codebatch.operations.project.configuration import load_configuration
from codebatch.operations.runs.execution import ExecutionSettings, Listener
from tests.operations.gate.conftest import SYNTAX_ERROR
from tests.support.git_project import Project

pytestmark = pytest.mark.slow

_RULE_ON = {"codebatch.toml": b'[tasks.lint]\non = ["suppression-without-reason"]\n'}


def _violations(checked: CheckResult) -> list[tuple[str, int, str]]:
    changes = [change.new for change in checked.forbidden if isinstance(change.new, Diagnostic)]
    return [(str(finding.path), finding.line, finding.message) for finding in changes]


def test_new_suppressions_need_a_reason(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """Suppressions in old code never fail, even if the rule is new or the code moves."""
    monkeypatch.chdir(project.tree)
    old = b"import sys  # noqa: F401\n\n\ndef f():\n    return 1\n"
    project.commit({"old.py": old})
    project.commit({**_RULE_ON, "old.py": b"# A comment.\n\n" + old, "moved.py": b"import re  # noqa: F401 a plugin\n"})
    project.run()
    assert project.check("suppression-without-reason", base="change~1").has_passed
    project.commit({"b.py": b"import os  # noqa: F401\nimport re  # codebatch: ignore\n"})
    project.run()
    checked = project.check("suppression-without-reason", base="change~1")
    assert _violations(checked) == [
        ("b.py", 1, "`noqa: F401` without a reason"),
        ("b.py", 2, "`codebatch: ignore` without a reason"),
    ]
    assert [(judged.violations, judged.verdict) for judged in checked.judged] == [(2, "failed")]


def test_condition_that_demands_reasons_needs_its_rule(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise, a change that turns the rule off would pass."""
    monkeypatch.chdir(project.tree)
    project.run()
    with pytest.raises(InvalidInput, match="the rule of this name, which is off"):
        project.check("suppression-without-reason", base="main~1")
    project.write(_RULE_ON)
    project.run()
    assert project.check("suppression-without-reason", base="main~1").has_passed
    with pytest.raises(InvalidInput, match="the rule of this name, which is off"):
        project.check("suppression-without-reason", base="main~1", uses_base_settings=True)


def test_suppressions_expire_after_their_last_day(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """The date is judged when the check is made: the batch is the same, and its commit is the old one."""
    monkeypatch.chdir(project.tree)
    project.commit({"src/b.py": b"import os  # codebatch: ignore[F401] until 2027-01-31 moved then\n"})
    hostile = b"x = 1  # codebatch: ignore[ until 2027-02-30: ] until 2027-02-28 x\n"
    project.commit({"c.py": hostile + hostile.replace(b": ]", b": `]")})
    project.run()
    added = project.check("new", base="change~2", today=date(2027, 1, 31))
    assert (added.has_passed, added.allowed) == (True, []), "a suppression with a date is not a finding itself"
    assert project.check(base="change~1", today=date(2027, 1, 31)).has_passed
    checked = project.check(base="change~1", today=date(2027, 2, 1), changed_lines=True)
    message = "expired suppression: `codebatch: ignore[F401]` until 2027-01-31: moved then"
    assert _violations(checked) == [("src/b.py", 1, message)]
    assert not checked.has_passed
    assert project.check(base="change~1", today=date(2027, 2, 1), path="c.py").has_passed
    baseline = project.tree.parent / "known"
    baseline.write_bytes(b"")
    execution = ExecutionSettings(configuration=load_configuration(project.tree))
    with codebatch.open(project.store, project=project.tree) as store:
        checker = GateChecker(store, execution, Listener(), {}, today=date(2027, 2, 1))
        checked = checker.check_baseline(parse_conditions(("new",)), baseline)
        messages = [text for _, _, text in _violations(checked) if "2027" in text]
        assert messages == [message]


def test_only_changes_below_a_path_are_judged(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(project.tree)
    project.commit({"src/b.py": SYNTAX_ERROR, "lib/c.py": b"import os\n", "src2/d.py": SYNTAX_ERROR})
    project.run()
    checked = project.check(base="main", path="/src/")
    assert [(path, line) for path, line, _ in _violations(checked)] == [("src/b.py", 1)]
    assert (checked.counts["new"], checked.path) == (1, "/src/")
    assert project.check("new-error", "metric:complexity>1", base="main", path="/lib/").has_passed
    assert not project.check("new", base="main", path="/lib/").has_passed
    with pytest.raises(InvalidInput, match="no analysed file matches the path '/libs/'"):
        project.check(base="main", path="/libs/")
    with pytest.raises(InvalidInput, match="cannot be used with options of the base"):
        codebatch.check(baseline=Path("known"), path="/lib/", store=project.store)
