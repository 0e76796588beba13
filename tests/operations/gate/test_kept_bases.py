"""The batches that a run in CI keeps by default: few, but always the base of the next check."""

from __future__ import annotations

import pytest

from codebatch.operations.project.configuration import KEEP_IN_CI, load_configuration
from codebatch.store.batches.pins import assign_name
from codebatch.store.batches.store_directory import open_store
from codebatch.system.files.files import RealFiles
from tests.operations.gate.conftest import SYNTAX_ERROR, base_of
from tests.support.git_project import Project
from tests.support.git_repositories import git

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def _in_ci(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CI", "true")


def _run_commits(project: Project, number: int, name: str = "m") -> list[str]:
    """Commit and run several times. Return the IDs of the batches."""
    batches: list[str] = []
    for at in range(number):
        project.commit({f"{name}{at}.py": b"x = %d\n" % at})
        batches.append(project.run().id)
    return batches


def _kept(project: Project) -> set[str]:
    return {path.name for path in (project.store / "batches").glob("batch-*")}


def test_run_in_ci_keeps_few_batches_and_those_that_users_named(project: Project) -> None:
    named = project.run("main").id
    assign_name(open_store(RealFiles(), project.store), named, "release")
    git(project.tree, "checkout", "-q", "change")
    batches = _run_commits(project, KEEP_IN_CI + 2)
    assert _kept(project) == {named, *batches[-KEEP_IN_CI:]}


@pytest.mark.parametrize("settings", [b"[store]\nkeep = 50\n", b""])
def test_run_keeps_many_batches_if_configured_or_outside_of_ci(
    project: Project, settings: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not settings:
        monkeypatch.setenv("CI", "false")
    project.write({"codebatch.toml": settings})
    batches = _run_commits(project, KEEP_IN_CI + 2)
    assert _kept(project) == {*batches}


def test_last_batch_of_the_default_branch_survives_jobs_of_other_branches(project: Project) -> None:
    """Caches of some services are restored in any branch. The next push needs the batch, even from a later branch."""
    main = project.run("main").id
    git(project.tree, "checkout", "-q", "change")
    _run_commits(project, 4)
    git(project.tree, "checkout", "-qB", "other", "main~1")
    _run_commits(project, 4, "o")
    assert main in _kept(project)
    git(project.tree, "checkout", "-q", "main")
    project.commit({"b.py": b"x = 1\n"})
    project.commit({"c.py": SYNTAX_ERROR})
    git(project.tree, "update-ref", "refs/remotes/origin/main", "HEAD")
    project.run()
    checked = project.check(environment={"CI": "true"})
    assert base_of(checked).batch.id == main
    assert checked.has_passed is False


def test_stated_base_of_a_shallow_clone_survives(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    main = project.run("main")
    git(project.tree, "checkout", "-q", "change")
    git(project.tree, "update-ref", "-d", "refs/remotes/origin/main")
    monkeypatch.setenv("GITLAB_CI", "true")
    monkeypatch.setenv("CI_MERGE_REQUEST_TARGET_BRANCH_NAME", "main")
    monkeypatch.setenv("CI_MERGE_REQUEST_DIFF_BASE_SHA", main.about.commit)
    _run_commits(project, KEEP_IN_CI + 2)
    assert main.id in _kept(project)


def test_configuration_names_both_defaults(project: Project) -> None:
    rows = {name: (value, origin) for name, value, origin in load_configuration(project.tree).setting_rows(1)}
    assert rows["store"] == ({"keep": 50}, "default; 3 after a run in CI")
