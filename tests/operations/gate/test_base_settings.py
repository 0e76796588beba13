"""The settings of the base, applied to the tree of HEAD: what changed settings hide, and `--settings-from base`."""

from __future__ import annotations

from pathlib import Path

import pytest

from codebatch.errors import BatchIncomplete
from codebatch.model.record import Diagnostic
from codebatch.operations.gate.base_settings import HiddenFindings
from tests.operations.gate.conftest import RULE
from tests.support.git_project import Project
from tests.support.git_repositories import git

pytestmark = pytest.mark.slow

_BUG = b"import os\n\n\ndef f(x):\n    return nope\n"
_TOML = b'[tasks.l]\ncommand = ["./lint.sh", "{file}"]\nmatch = ["*.py"]\nrecords = "gcc"\nversion = false\n'
_PROGRAM = b'#!/bin/sh\nwhile read -r rule; do echo "$1:1:1: error: $rule"; done < cfg/rules.txt\n'
_LINTER = {"codebatch.toml": _TOML + b'config_files = ["cfg/*"]\n', "lint.sh": _PROGRAM, "cfg/rules.txt": b"one\ntwo\n"}

# The files before and after the change, the hidden findings, and the findings with a lower severity. The change also
# adds a new error to src/b.py, which the settings of the base report.
CHANGES: dict[str, tuple[dict[str, bytes], dict[str, bytes], int, int]] = {
    "rule off": ({}, {"codebatch.toml": b'[tasks.lint]\noff = ["F821"]\n'}, 2, 0),
    "exclude": ({"codebatch.toml": b""}, {"codebatch.toml": b'exclude = ["src/"]\n'}, 4, 0),
    "include": ({}, {"codebatch.toml": b'include = ["*.toml"]\n'}, 4, 0),
    "ignore file": ({}, {"src/.codebatchignore": b"b.py\n"}, 2, 0),
    "ignore file removed": ({"src/.codebatchignore": b"a.py\n"}, {"src/.codebatchignore": b"*.py\n"}, 2, 0),
    "severity": ({}, {"codebatch.toml": b'[tasks.lint.severity]\nF821 = "info"\n'}, 0, 2),
    "generated": ({}, {".gitattributes": b"src/b.py linguist-generated\n"}, 0, 2),
    "pipeline": (
        {},
        {"codebatch.toml": b'pipeline = "p"\n[pipelines.p]\ntasks = ["analyze", "lint"]\n[tasks.lint]\noff = ["F*"]\n'},
        4,
        0,
    ),
    "settings removed": (
        {"codebatch.toml": b'[tasks.lint]\non = ["todo-comment"]\n', "src/t.py": b"# TODO: x\n"},
        {"codebatch.toml": b""},
        1,
        0,
    ),
    "new rule": ({}, {"codebatch.toml": RULE}, 0, 0),
    "renamed rule": ({"codebatch.toml": RULE}, {"codebatch.toml": RULE.replace(b"no-is", b"is-no")}, 0, 0),
    "configuration of ruff": (
        {"codebatch.toml": b'[tasks.lint.ruff]\nconfig = "project"\n'},
        {"pyproject.toml": b"[tool.ruff.lint]\nignore = ['F821']\n"},
        2,
        0,
    ),
    "configuration of a linter": (_LINTER, {"cfg/rules.txt": b"one\n"}, 2, 0),
}


def _project(tmp_path: Path, before: dict[str, bytes]) -> Project:
    files = {b"src/a.py": _BUG, **{path.encode(): data for path, data in before.items()}}
    project = Project(tmp_path, [files])
    if "lint.sh" in before:
        (project.tree / "lint.sh").chmod(0o755)
        project.commit({})
    return project


@pytest.mark.parametrize("is_committed", [True, False])
@pytest.mark.parametrize("name", CHANGES)
def test_findings_that_changed_settings_hide_are_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, is_committed: bool
) -> None:
    before, after, findings, lowered = CHANGES[name]
    project = _project(tmp_path, before)
    monkeypatch.chdir(project.tree)
    (project.commit if is_committed else project.write)({"src/b.py": _BUG, **after})
    project.run()
    base = "main~1" if is_committed else "main"
    checked = project.check(base=base)
    assert checked.changed_settings
    assert checked.hidden == HiddenFindings(findings=findings, lowered=lowered)
    judged = project.check(base=base, uses_base_settings=True)
    assert judged.hidden == checked.hidden
    assert "F821" in [change.new.code for change in judged.forbidden if isinstance(change.new, Diagnostic)]


def test_rules_that_a_change_adds_do_not_fail_on_old_code(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(project.tree)
    project.commit({"codebatch.toml": RULE})
    project.run()
    checked = project.check("new", base="main", uses_base_settings=True)
    assert (checked.has_passed, checked.hidden, checked.counts["unchanged"]) == (True, HiddenFindings(), 2)


def _hide(project: Project, monkeypatch: pytest.MonkeyPatch) -> str:
    """Turn a rule off in a commit. Return the reason why the hidden findings are unknown."""
    monkeypatch.chdir(project.tree)
    project.run()
    checked = project.check(base="main~1")
    assert (checked.hidden.findings, checked.hidden.lowered) == (None, None)
    with pytest.raises(BatchIncomplete) as raised:
        project.check(base="main~1", uses_base_settings=True)
    assert checked.hidden.unknown_reason in str(raised.value)
    return checked.hidden.unknown_reason


def test_programs_that_a_change_changes_do_not_run_for_the_base(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = _project(tmp_path, _LINTER)
    project.commit({"lint.sh": b"#!/bin/sh\n", "codebatch.toml": _TOML})
    assert _hide(project, monkeypatch).endswith("the change changes lint.sh, which a task executes")


def test_commands_of_the_base_do_not_start_if_head_ran_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    project = _project(tmp_path, _LINTER)
    project.commit({"codebatch.toml": b""})
    reason = _hide(project, monkeypatch)
    assert reason.endswith("HEAD was analysed without a task that runs code of the project, such as l")


@pytest.mark.parametrize("content", [b"exclude = [\n", b"tasks = 1\n", b'[tasks.l]\npython = "t.py:task"\n'])
def test_invalid_settings_of_the_base_hide_an_unknown_number(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: bytes
) -> None:
    project = _project(tmp_path, {"codebatch.toml": content})
    project.commit({"codebatch.toml": b""})
    reason = _hide(project, monkeypatch)
    assert "/codebatch-" not in reason
    assert "codebatch.toml" in reason or "t.py" in reason


def test_settings_of_the_base_behind_a_link_out_of_the_project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    project = _project(tmp_path, {})
    (tmp_path / "out.toml").write_bytes(b"")
    (project.tree / "codebatch.toml").symlink_to(tmp_path / "out.toml")
    project.commit({})
    (project.tree / "codebatch.toml").unlink()
    project.commit({"codebatch.toml": b"exclude = ['src']\n"})
    assert _hide(project, monkeypatch).endswith("codebatch.toml is not a file in the root of the project")


def test_base_with_a_submodule_hides_an_unknown_number(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    project = _project(tmp_path, {})
    commit = git(project.tree, "rev-parse", "HEAD")
    git(project.tree, "update-index", "--add", "--cacheinfo", f"160000,{commit},sub")
    (project.tree / "sub").mkdir()
    git(project.tree, "commit", "-qm", "m")
    git(project.tree, "checkout", "-qb", "change")
    (project.tree / "codebatch.toml").write_bytes(b"exclude = ['src/b.py']\n")
    git(project.tree, "add", "codebatch.toml")
    git(project.tree, "commit", "-qm", "m")
    monkeypatch.chdir(project.tree)
    project.run()
    checked = project.check(base=project.run("main").id, head="latest~1")
    assert "has submodules" in checked.hidden.unknown_reason


def test_excluded_paths_on_the_command_line_are_not_hidden_by_settings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = _project(tmp_path, {"codebatch.toml": b'exclude = ["docs"]\n', "doc/d.py": _BUG})
    monkeypatch.chdir(project.tree)
    project.commit({"codebatch.toml": b'exclude = ["docs", "src/a.py"]\n'})
    project.run(exclude=("doc/",))
    assert project.check(base="main~1").hidden == HiddenFindings(findings=2, lowered=0)


def test_unknown_settings_are_not_reported_as_unchanged(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """A base with uncommitted changes has settings that nothing records."""
    monkeypatch.chdir(project.tree)
    project.write({"b.py": b"x = 1\n"})
    base = project.run()
    project.commit({"c.py": b"x = 1\n"})
    project.run()
    checked = project.check(base=base.id)
    assert checked.changed_settings is None
    assert checked.hidden.unknown_reason == "the base has uncommitted changes"
    for conditions, uses_base_settings in ((("gate-changed",), False), ((), True)):
        with pytest.raises(BatchIncomplete, match="cannot tell which settings"):
            project.check(*conditions, base=base.id, uses_base_settings=uses_base_settings)


def test_base_that_was_made_with_patterns_of_another_branch_is_not_reused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise, all findings in the files that the other branch excludes would be new."""
    project = _project(tmp_path, {})
    monkeypatch.chdir(project.tree)
    git(project.tree, "checkout", "-qb", "one")
    project.commit({"codebatch.toml": b'exclude = ["src/"]\n', "c.py": b"x = 1\n"})
    project.run()
    project.check(base="main")
    git(project.tree, "checkout", "-qb", "two", "main")
    project.commit({"c.py": b"x = 1\n"})
    project.run()
    assert project.check("new", base="main").has_passed
