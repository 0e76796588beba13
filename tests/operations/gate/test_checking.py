"""Tests of the gate: the base in git that HEAD is compared with, and the findings of the change."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
from pathlib import Path

import pytest

import codebatch
from codebatch.errors import BatchIncomplete, InvalidInput, TaskNotRun, ToolMismatch
from codebatch.operations.gate.base_selection import NotCompared
from codebatch.operations.gate.baselines import read_baseline
from codebatch.operations.gate.quality_gate import CheckResult
from tests.operations.gate.conftest import MAIN, RULE, SYNTAX_ERROR, base_of
from tests.support.git_project import Project
from tests.support.git_repositories import DAY, NOW, git, make_repository

pytestmark = pytest.mark.slow


def _new_findings(checked: CheckResult) -> list[tuple[object, object]]:
    assert checked.comparison is not None
    changes = [change.new for change in checked.comparison.differences() if change.state == "new"]
    return [(change.path, change.code) for change in changes]  # type: ignore[union-attr]  # a new finding


def test_first_run_analyses_the_merge_base(project: Project) -> None:
    """A CI job without a cached store must not pass every change."""
    project.commit({"b.py": SYNTAX_ERROR})
    project.run()
    checked = project.check()
    assert base_of(checked).why.endswith("the merge base with origin/HEAD")
    assert _new_findings(checked) == [("b.py", "syntax-error")]
    assert not checked.has_passed


def test_check_without_a_base_has_not_passed(tmp_path: Path) -> None:
    project = Project(tmp_path, [{b"a.py": MAIN}])
    project.run()
    checked = project.check()
    assert isinstance(checked.base, NotCompared)
    assert (checked.base.is_allowable, checked.is_compared, checked.has_passed) == (True, False, False)
    assert checked.base.why.endswith("is the first commit")


@pytest.mark.parametrize("reference", ["latest", "HEAD", "main"])
def test_comparison_of_head_with_itself_has_not_passed(
    project: Project, reference: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A CI job that names its own commit as the base would pass every change."""
    monkeypatch.chdir(project.tree)
    project.run()
    checked = project.check(base=reference)
    assert isinstance(checked.base, NotCompared)
    assert (checked.base.is_allowable, checked.has_passed) == (False, False)
    project.write({"b.py": SYNTAX_ERROR})
    project.run()
    assert project.check(base="HEAD").judged[0].violations == 1


def test_equal_trees_of_two_commits_are_compared(project: Project) -> None:
    project.commit({})
    project.run()
    assert project.check().has_passed


def test_batch_of_another_commit_than_the_tree_is_refused(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """A CI job that restores a store and forgets to run would judge an older commit."""
    monkeypatch.chdir(project.tree)
    project.run()
    project.commit({"b.py": SYNTAX_ERROR})
    with pytest.raises(BatchIncomplete, match=r"the latest batch is of commit .*, but the work tree has commit"):
        project.check()
    assert project.check(head="latest", base="main~1").is_compared
    # A commit of exactly the analysed files needs no new run.
    project.run()
    git(project.tree, "commit", "-q", "--amend", "-m", "n")
    assert not project.check().has_passed


def test_restricted_base_is_analysed_with_the_paths_of_head(project: Project) -> None:
    """Otherwise, new findings in other files would not be comparable, and the check would pass."""
    project.commit({"src/a.py": b"x = 1\n"})
    restricted = project.run(path="src")
    project.commit({"b.py": SYNTAX_ERROR})
    project.run()
    checked = project.check(base=restricted.id)
    assert base_of(checked).batch.about.paths == ()
    assert _new_findings(checked) == [("b.py", "syntax-error")]


def test_condition_on_a_metric_needs_its_task(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the task, no value can exceed the limit."""
    monkeypatch.chdir(project.tree)
    project.write({"codebatch.toml": b'[pipelines.mine]\ntasks = ["parse", "analyze"]\n'})
    project.run(pipeline="mine")
    project.check("metric:complexity>3", base="main~1")
    for metric in ("cycle", "duplicated_lines", "dependents"):
        with pytest.raises(TaskNotRun, match=f"no metric '{metric}'"):
            project.check(f"metric:{metric}>0", base="main~1")


def test_gate_compares_with_the_merge_base_and_reports_only_new_findings(project: Project) -> None:
    merge_base = git(project.tree, "rev-parse", "HEAD")
    batch = project.run()
    project.commit({"b.py": SYNTAX_ERROR})
    project.run()
    checked = project.check()
    assert base_of(checked).batch.id == batch.id
    assert base_of(checked).why == f"batch of commit {merge_base[:12]}, the merge base with origin/HEAD"
    assert _new_findings(checked) == [("b.py", "syntax-error")]
    assert [(condition.value, condition.verdict) for condition in checked.judged] == [(1, "failed"), (0, "passed")]


def test_gate_runs_the_tree_of_the_merge_base_if_only_an_older_batch_exists(project: Project) -> None:
    """Findings that were new between the two commits do not belong to the change.

    The base is reused and is not the latest batch.
    """
    project.run("main~1")
    git(project.tree, "checkout", "-q", "change")
    project.commit({"b.py": b"import json\n"})
    head = project.run()
    checked = project.check("new")
    base = base_of(checked).batch
    assert (base.about.commit, base.about.is_clean) == (git(project.tree, "rev-parse", "main"), True)
    assert _new_findings(checked) == [("b.py", "F401")]
    with codebatch.open(project.store, project=project.tree) as store:
        assert store.batch().id == head.id
        assert len([*store.batches()]) == 3
    assert base_of(project.check("new")).batch.id == base.id
    assert git(project.tree, "status", "--porcelain") == ""
    assert git(project.tree, "worktree", "list").count("\n") == 0


def test_gate_ignores_findings_between_the_nearest_batch_and_the_change(project: Project) -> None:
    """The tree of the merge base is unavailable here, because one of its files would need a git filter."""
    main = project.commit({".gitattributes": b"*.bin filter=lfs\n", "b.py": b"import json\n"})
    git(project.tree, "update-ref", "refs/remotes/origin/main", main)
    older = project.run("main")
    git(project.tree, "checkout", "-q", "change")
    project.commit({"b.py": b"import json\nimport sys\n", 'c "d\t.py': b"import re\n"})
    project.run()
    checked = project.check("new")
    assert base_of(checked).batch.id == older.id
    assert "files that need a git filter" in base_of(checked).why
    assert checked.outside_change == 1
    assert [(change.new.path, change.new.line) for change in checked.forbidden] == [("b.py", 2), ('c "d\t.py', 1)]  # type: ignore[union-attr]


def test_check_is_incomplete_if_a_compared_content_is_missing(project: Project) -> None:
    """Without the content, the lines of the findings cannot be matched."""
    project.commit({"a.py": b"import os\n\n\ndef g(x):\n    return x\n"})
    first = project.run()
    project.commit({"a.py": b"\nimport os\nimport re\n\n\ndef g(x):\n    return x\n"})
    project.run()
    assert project.check(base=first.id).completeness.is_complete
    for content in (project.store / "objects").rglob("*"):
        if content.is_file():
            content.unlink()
    checked = project.check(base=first.id)
    assert not checked.has_passed
    assert not checked.completeness.is_complete


def test_uncommitted_changes_are_compared_with_their_commit(project: Project) -> None:
    clean = project.run()
    project.write({"b.py": SYNTAX_ERROR})
    project.run()
    checked = project.check()
    assert base_of(checked).batch.id == clean.id
    assert not checked.has_passed


def test_base_on_the_default_branch_is_the_previous_commit(project: Project) -> None:
    before = project.run("main~1")
    project.run("main")
    assert base_of(project.check()).batch.id == before.id


def test_github_merge_commit_is_compared_with_its_first_parent(project: Project) -> None:
    """The comparison also works if no other commit is available, as with `fetch-depth: 1`."""
    first = project.run()
    project.commit({"b.py": SYNTAX_ERROR})
    git(project.tree, "checkout", "-q", "--detach", "main")
    git(project.tree, "merge", "-q", "--no-ff", "-m", "m", "change")
    merge = git(project.tree, "rev-parse", "HEAD")
    git(project.tree, "update-ref", "refs/heads/merge", merge)
    shallow = project.tree.with_name("shallow")
    subprocess.run(["git", "clone", "-q", "--depth=1", "--branch=merge", f"file://{project.tree}", shallow], check=True)
    project.tree.rename(project.tree.with_name("whole"))
    shallow.rename(project.tree)
    project.run()
    github_environment = {"GITHUB_REF": "refs/pull/7/merge", "GITHUB_SHA": merge, "GITHUB_BASE_REF": "main"}
    checked = project.check(environment=github_environment)
    assert (base_of(checked).batch.id, checked.changed_settings) == (first.id, None)
    with pytest.raises(BatchIncomplete, match="cannot tell which settings of the check changed"):
        project.check("gate-changed", environment=github_environment)
    without = project.check(environment={"GITHUB_BASE_REF": "main"})
    assert isinstance(without.base, NotCompared)
    assert not without.base.is_allowable
    assert "fetch-depth: 0" in without.base.why


def test_base_with_other_tasks_is_run_with_the_tasks_of_head(project: Project) -> None:
    """So a rule that was turned on reports no new findings in unchanged code."""
    first = project.run()
    project.write({"codebatch.toml": RULE})
    project.run()
    checked = project.check("new", base=first.id)
    assert base_of(checked).batch.about.snapshot_id == first.about.snapshot_id
    assert base_of(checked).batch.id != first.id
    assert checked.has_passed


def test_base_that_cannot_be_rerun_is_an_error(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    first = project.run()
    project.write({"codebatch.toml": RULE})
    project.run()

    def mismatch(*_: object) -> None:
        raise ToolMismatch("another ruff")

    monkeypatch.setattr("codebatch.operations.gate.base_runs.check_tools", mismatch)
    with pytest.raises(BatchIncomplete, match="another ruff"):
        project.check(base=first.id)
    assert base_of(project.check(base=first.id, allow_incomparable=True)).batch.id == first.id


def test_changed_lines_option_excludes_findings_on_unchanged_lines(project: Project) -> None:
    """A use of a name that was removed is a new finding, although its line is unchanged."""
    project.commit({"a.py": b"import os\n\n\nprint(os)\n"})
    project.run()
    project.commit({"a.py": b"import os2\n\n\nprint(os)\n"})
    project.run()
    unrestricted = project.check("new", base="latest~1")
    changed = project.check("new", base="latest~1", changed_lines=True)
    assert unrestricted.on_unchanged_lines == 0
    assert changed.counts == unrestricted.counts
    assert changed.on_unchanged_lines == 1
    assert len(unrestricted.forbidden) == len(changed.forbidden) + 1


def test_finding_whose_last_line_changed_is_on_changed_lines(project: Project) -> None:
    project.commit({"a.py": b"x = 1\nif (\n    x\n    is not None\n):\n    x = 2\n"})
    project.run()
    project.commit({"a.py": b"x = 1\nif (\n    x\n    is 5\n):\n    x = 2\n"})
    project.run()
    checked = project.check("new", base="latest~1", changed_lines=True)
    assert [(change.new.line, change.new.end_line) for change in checked.forbidden] == [(3, 4)]  # type: ignore[union-attr]


def test_metric_conditions_are_evaluated(project: Project) -> None:
    project.run()
    project.commit({"a.py": MAIN + b"\n\ndef g(x):\n    return [y for y in x if y or x]\n"})
    project.run()
    checked = project.check("metric:complexity>3", "metric:complexity>4", "metric:code+1", "metric:cycle>0")
    assert [(condition.value, condition.verdict) for condition in checked.judged] == [
        (4, "failed"), (4, "passed"), (2, "failed"), (None, "passed"),
    ]  # fmt: skip
    with pytest.raises(InvalidInput, match="no metric 'complexty'") as caught:
        project.check("metric:complexty>3")
    assert str(caught.value.hint) == "did you mean 'complexity'?"


_BRANCHES = b"    if x:\n        return 1\n    if x is 2:\n        return 2\n    return 3\n"
_METHOD = b"".join(b"    " + line for line in (b"def f(self, x):\n" + _BRANCHES).splitlines(keepends=True))


@pytest.mark.parametrize(
    "files",
    [
        {"a.py": b"class C:\n" + _METHOD},
        {"a.py": b"def renamed(x):\n" + _BRANCHES},
        {"a.py": b"", "b.py": b"def f(x):\n" + _BRANCHES},
        {"a.py": b"y = 1\n", "b.py": b"class C:\n" + _METHOD},
    ],
    ids=["wrapped", "renamed", "moved", "moved-and-wrapped"],
)
def test_moved_function_violates_no_condition(project: Project, files: dict[str, bytes]) -> None:
    base = project.commit({"a.py": b"def f(x):\n" + _BRANCHES})
    first = project.run()
    assert first.about.commit == base
    project.commit(files)
    project.run()
    assert project.check("new", "metric:complexity>2", base=first.id).has_passed
    project.write({path: content.replace(b"return 3", b"return 3 if x else 4") for path, content in files.items()})
    project.run()
    checked = project.check("metric:complexity>3", base=first.id)
    assert checked.judged[0].violations == 1


def test_unknown_commit_is_not_a_base(project: Project) -> None:
    """The store contains a batch of another clone."""
    project.run()
    project.commit({"b.py": SYNTAX_ERROR})
    project.run()
    git(project.tree, "update-ref", "-d", "refs/heads/change")
    other = project.tree.with_name("other")
    make_repository(other, [(NOW + 9 * DAY, {b"z.py": b""})])
    (project.tree / ".git").rename(project.tree.with_name("gone"))
    (other / ".git").rename(project.tree / ".git")
    checked = project.check()
    assert isinstance(checked.base, NotCompared)
    assert not checked.has_passed


def test_check_is_available_from_python(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    project.run()
    project.commit({"b.py": SYNTAX_ERROR})
    project.run()
    monkeypatch.chdir(project.tree)
    assert not codebatch.check(store=project.store).has_passed
    assert codebatch.check("main~1", store=project.store, fail_on=["severity-raised"]).has_passed
    assert not codebatch.check("latest", store=project.store, fail_on=["new"]).has_passed
    with pytest.raises(InvalidInput, match="`baseline` replaces the base batch"):
        codebatch.check("latest", store=project.store, baseline="known.jsonl")
    with pytest.raises(InvalidInput, match="is not a condition"):
        codebatch.check(store=project.store, fail_on=["newer"])


def test_changed_file_selection_does_not_bypass_the_gate(project: Project) -> None:
    """A batch with other file patterns is not a base: the tree of the base is run with the patterns of HEAD."""
    project.run()
    project.commit({"codebatch.toml": b'exclude = ["a.py"]\n', "b.py": SYNTAX_ERROR})
    project.run()
    checked = project.check()
    assert base_of(checked).batch.about.items == 0
    assert _new_findings(checked) == [("b.py", "syntax-error")]


def test_baseline_rejects_a_fifo_and_accepts_a_byte_order_mark(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    with pytest.raises(InvalidInput, match="is not a regular file"):
        read_baseline(tmp_path / "fifo")
    (tmp_path / "known.jsonl").write_bytes(b"\xef\xbb\xbf\n")
    assert read_baseline(tmp_path / "known.jsonl") == []


def test_renaming_and_editing_all_files_does_not_change_the_project(project: Project) -> None:
    project.run()
    (project.tree / "a.py").unlink()
    project.commit({"z.py": SYNTAX_ERROR})
    project.run()
    assert _new_findings(project.check()) == [("z.py", "syntax-error")]


def test_gate_reports_new_findings_with_a_store_of_another_clone(project: Project) -> None:
    """The store has a batch of the merge base from another directory.

    The tree is run here, and new findings are reported.
    """
    project.run()
    project.tree = project.tree.rename(project.tree.with_name("elsewhere"))
    project.commit({"b.py": SYNTAX_ERROR})
    project.run()
    assert _new_findings(project.check()) == [("b.py", "syntax-error")]


def test_store_of_another_clone_does_not_pass_a_shallow_clone(project: Project, tmp_path: Path) -> None:
    project.run()
    project.commit({"b.py": SYNTAX_ERROR})
    git(tmp_path, "clone", "-q", "--depth", "1", f"file://{project.tree}", "shallow")
    project.tree = tmp_path / "shallow"
    project.run()
    checked = project.check(environment={"GITHUB_BASE_REF": "main"})
    assert isinstance(checked.base, NotCompared)
    assert not checked.base.is_allowable
    (fetch,) = re.findall(r"fetch it: git (.*), or in", checked.base.why)
    git(project.tree, *shlex.split(fetch))
    assert _new_findings(project.check(environment={"GITHUB_BASE_REF": "main"})) == [("b.py", "syntax-error")]


@pytest.mark.parametrize("depth", [1, 2])
def test_pull_request_is_compared_without_a_cached_store(project: Project, tmp_path: Path, depth: int) -> None:
    """Simulate GitHub: a clone of the merge commit with depth 2 or 1, and a store without other batches."""
    project.commit({"b.py": SYNTAX_ERROR})
    git(project.tree, "checkout", "-q", "-B", "merge", "main")
    git(project.tree, "merge", "-q", "--no-ff", "-m", "m", "change")
    merge, full = git(project.tree, "rev-parse", "HEAD"), project.tree
    pull_request = {"GITHUB_REF": "refs/pull/7/merge", "GITHUB_SHA": merge, "GITHUB_BASE_REF": "main"}
    project.tree, project.store = tmp_path / "clone", tmp_path / "store"
    git(tmp_path, "clone", "-q", f"--depth={depth}", "--branch=merge", f"file://{full}", "clone")
    project.run()
    checked = project.check(environment=pull_request)
    if depth == 2:
        assert _new_findings(checked) == [("b.py", "syntax-error")]
        return
    assert isinstance(checked.base, NotCompared)
    assert (checked.base.is_allowable, checked.is_compared, checked.has_passed) == (False, False, False)
    assert "in actions/checkout set `fetch-depth: 2`" in checked.base.why
