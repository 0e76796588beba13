"""Tests of the batch that a check chooses as its base, if the base commit or git is missing, or has several batches."""

from __future__ import annotations

from pathlib import Path

import pytest

from codebatch.operations.gate.base_selection import ComparisonBase
from tests.operations.gate.conftest import MAIN, RULE, SYNTAX_ERROR, base_of
from tests.support.git_project import Project
from tests.support.git_repositories import NOW, git, make_repository

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("is_checked_out", [True, False])
def test_nearest_batch_with_other_submodules_is_not_the_base(
    project: Project, tmp_path: Path, is_checked_out: bool
) -> None:
    """Otherwise, all findings in the submodule would be new or fixed."""
    make_repository(tmp_path / "mod", [(NOW, {b"m.py": b"import json\n"})])
    git(project.tree, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(tmp_path / "mod"), "mod")
    project.commit({})
    nearest = project.run()
    main = project.commit({".gitattributes": b"*.bin filter=lfs\n"})
    git(project.tree, "update-ref", "refs/remotes/origin/main", main)
    project.commit({"b.py": b"import json\n"})
    if not is_checked_out:
        git(project.tree, "submodule", "--quiet", "deinit", "-f", "mod")
    project.run()
    checked = project.check()
    assert checked.is_compared == is_checked_out
    if is_checked_out:
        assert base_of(checked).batch.id == nearest.id


def test_batch_of_the_base_with_the_tasks_of_head_is_preferred(project: Project) -> None:
    main = git(project.tree, "rev-parse", "HEAD")
    first = project.run()
    project.run(pipeline="parse")
    project.commit({"b.py": SYNTAX_ERROR})
    project.run()
    base = base_of(project.check())
    assert (base.batch.id, base.why) == (first.id, f"batch of commit {main[:12]}, the merge base with origin/HEAD")


def test_dirty_batch_does_not_represent_its_commit(project: Project) -> None:
    project.write({"a.py": b"import sys\n"})
    dirty = project.run()
    git(project.tree, "checkout", "-q", ".")
    project.commit({"b.py": SYNTAX_ERROR})
    project.run()
    base = base_of(project.check()).batch
    assert base.id != dirty.id
    assert base.about.commit == git(project.tree, "rev-parse", "main")


def test_base_outside_git_is_the_previous_batch(tmp_path: Path) -> None:
    project = Project(tmp_path, [{b"a.py": MAIN}])
    (project.tree / ".git").rename(tmp_path / "git")
    first = project.run()
    project.write({"b.py": SYNTAX_ERROR})
    project.run()
    assert base_of(project.check()).batch.id == first.id


def test_comparison_batch_is_not_the_previous_batch(tmp_path: Path) -> None:
    project = Project(tmp_path, [{b"a.py": MAIN}])
    (project.tree / ".git").rename(tmp_path / "git")
    first = project.run()
    project.write({"b.py": SYNTAX_ERROR})
    second = project.run()
    project.write({"codebatch.toml": RULE})
    project.run()
    assert base_of(project.check(base=first.id)).batch.about.snapshot_id == first.about.snapshot_id
    assert base_of(project.check()).batch.about.snapshot_id == second.about.snapshot_id


def test_previous_batch_is_before_head_and_of_its_pipeline(tmp_path: Path) -> None:
    project = Project(tmp_path, [{b"a.py": MAIN}])
    (project.tree / ".git").rename(tmp_path / "git")
    batches = []
    for number, pipeline in enumerate((None, "parse", None, None)):
        project.write({f"m{number}.py": b"x = %d\n" % number})
        batches.append(project.run(pipeline=pipeline))
    assert base_of(project.check()).batch.id == batches[2].id
    assert base_of(project.check(head=batches[2].id)).batch.id == batches[0].id


def test_last_analysed_commit_was_run_and_not_only_compared(project: Project) -> None:
    """A batch with uncommitted changes, and the base of an earlier comparison, do not count as analysed heads."""
    first = project.run("main~1")
    git(project.tree, "checkout", "-q", "main")
    for number in range(3):
        project.commit({f"m{number}.py": b"x = %d\n" % number})
    project.write({"m9.py": b"y = 1\n"})
    project.run()
    (project.tree / "m9.py").unlink()
    project.commit({"last.py": SYNTAX_ERROR})
    git(project.tree, "update-ref", "refs/remotes/origin/main", "HEAD")
    project.run()
    project.check(base=git(project.tree, "rev-parse", "HEAD~2"))
    for environment in ({}, {"BUILDKITE": "true"}):
        assert base_of(project.check(environment=environment)).batch.id == first.id
    assert isinstance(project.check(environment={"CI": "true"}).base, ComparisonBase)


def test_base_without_git_is_the_previous_batch(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    first = project.run()
    project.commit({"b.py": SYNTAX_ERROR})
    project.run()
    monkeypatch.setattr("codebatch.operations.history.checkouts.find_git", lambda: None)
    base = base_of(project.check())
    assert (base.batch.id, base.why) == (first.id, "the previous batch, because git is not available")


def test_batch_with_another_build_of_a_program_is_analysed_again(project: Project, tmp_path: Path) -> None:
    """The version is the same. So what only the new build finds in unchanged files is not new."""
    program = tmp_path / "linter"

    def build(word: str) -> None:
        program.write_text(f"#!/bin/sh\ngrep -n {word} a.txt | sed 's/:.*/:1: error: {word} [E]/;s/^/a.txt:/'\n")
        program.chmod(0o755)

    build("one")
    settings = f'[tasks.linter]\ncommand = ["{program}", "{{files}}"]\nmatch = ["*.txt"]\nrecords = "gcc"\n'
    main = project.commit({"codebatch.toml": settings.encode(), "a.txt": b"one\ntwo\n"})
    git(project.tree, "update-ref", "refs/remotes/origin/main", main)
    first = project.run()
    build("two")
    project.commit({"b.txt": b"x\n"})
    project.run()
    checked = project.check("new")
    assert base_of(checked).batch.id != first.id
    assert checked.has_passed


def test_commits_are_analysed_with_the_patterns_of_the_latest_run(project: Project) -> None:
    """Patterns of the command line are stored with the latest run only. Neither commit has a batch."""
    base = project.commit({"made.py": SYNTAX_ERROR})
    head = project.commit({"b.py": b"x = 1\n"})
    project.commit({"c.py": b"x = 1\n"})
    project.run(exclude=("made.py",))
    assert base_of(project.check(base=base, head=head)).batch.about.items == 1
