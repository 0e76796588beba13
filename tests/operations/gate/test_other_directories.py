"""The base of a check in a directory whose store has only batches of other directories, as after a restored cache."""

from __future__ import annotations

import copy
import os
import shutil
from pathlib import Path

import pytest

import codebatch
from codebatch.errors import NoBatch
from codebatch.git.repository import GitError
from codebatch.model.digest import Digest
from codebatch.model.entry import SnapshotId
from codebatch.operations.comparison.revisions import has_clean_scope
from codebatch.operations.gate.base_selection import NotCompared
from codebatch.store.batches.batch_directory import BatchDir, BatchFile, BatchId
from codebatch.store.batches.source_places import locate_source
from tests.operations.gate.conftest import SYNTAX_ERROR, base_of
from tests.support.git_project import Project
from tests.support.git_repositories import NOW, git, make_repository

pytestmark = pytest.mark.slow


def _elsewhere(project: Project, name: str = "clone", *, linked: bool = False) -> Project:
    """Return the project in another directory with the branch `change` checked out. Both share the store."""
    other = copy.copy(project)
    other.tree = project.tree.parent / name
    if linked:
        git(project.tree, "worktree", "add", "-q", "--detach", str(other.tree), "change")
        return other
    git(project.tree, "clone", "-q", ".", str(other.tree))
    git(other.tree, "config", "user.name", "n")
    git(other.tree, "config", "user.email", "n@n")
    git(other.tree, "update-ref", "refs/remotes/origin/main", "origin/main")
    git(other.tree, "remote", "set-head", "origin", "main")
    return other


def _checked_base(project: Project, environment: dict[str, str] | None = None) -> BatchDir:
    return base_of(project.check(environment=environment)).batch


@pytest.mark.parametrize("linked", [False, True])
def test_batch_of_another_work_tree_is_the_base(project: Project, linked: bool) -> None:
    main = project.run("main")
    git(project.tree, "checkout", "-q", "change")
    other = _elsewhere(project, linked=linked)
    other.commit({"b.py": SYNTAX_ERROR})
    other.run()
    checked = other.check()
    assert base_of(checked).batch.id == main.id
    assert checked.has_passed is False


def test_batch_of_a_fork_with_the_commit_is_the_base(project: Project) -> None:
    fork = _elsewhere(project, "fork")
    main = fork.run()
    fork.commit({"own.py": b"x = 1\n"})
    fork.run()
    project.commit({"b.py": SYNTAX_ERROR})
    project.run()
    assert _checked_base(project).id == main.id


def test_last_analysed_commit_is_found_in_another_directory(project: Project) -> None:
    """A service that does not state the head before a push needs the batch of the earlier job."""
    first = project.run("main")
    other = _elsewhere(project)
    other.commit({"b.py": b"x = 1\n"})
    other.commit({"c.py": SYNTAX_ERROR})
    git(other.tree, "update-ref", "refs/remotes/origin/main", "HEAD")
    other.run()
    assert _checked_base(other, {"BUILDKITE": "true"}).id == first.id


def test_nearest_batch_may_be_of_another_directory(project: Project) -> None:
    nearest = project.run("main")
    main = project.commit({".gitattributes": b"*.bin filter=lfs\n"})
    git(project.tree, "checkout", "-q", "-B", "change")
    other = _elsewhere(project)
    git(other.tree, "update-ref", "refs/remotes/origin/main", main)
    other.commit({"b.py": SYNTAX_ERROR})
    other.run()
    assert _checked_base(other).id == nearest.id


def test_repository_without_the_commit_is_not_the_base(project: Project, tmp_path: Path) -> None:
    """Another project has equal files, but other commits."""
    stranger = copy.copy(project)
    stranger.tree = tmp_path / "stranger"
    make_repository(stranger.tree, [(NOW + 7, {b"a.py": (project.tree / "a.py").read_bytes()})])
    git(stranger.tree, "reset", "-q", "--hard")
    foreign = stranger.run()
    project.commit({"b.py": SYNTAX_ERROR})
    project.run()
    base = _checked_base(project)
    assert base.id != foreign.id
    assert base.about.sources == (bytes(project.tree),)


def test_other_patterns_or_paths_or_changes_are_not_the_base(project: Project) -> None:
    project.commit({"sub/s.py": b"x = 1\n", "t/t.py": b"y = 1\n"})
    git(project.tree, "branch", "-qf", "main", "HEAD")
    unlike = [project.run(exclude=("t/",)), project.run(path="sub")]
    project.write({"a.py": b"import json\n"})
    unlike.append(project.run())
    git(project.tree, "checkout", "-q", ".")
    other = _elsewhere(project)
    other.commit({"b.py": SYNTAX_ERROR})
    other.run()
    base = _checked_base(other)
    assert base.about.sources == (bytes(other.tree),)
    assert base.id not in {batch.id for batch in unlike}


def test_equal_patterns_of_another_directory_are_comparable(project: Project) -> None:
    main = project.run("main", exclude=("t/",))
    git(project.tree, "checkout", "-q", "change")
    other = _elsewhere(project)
    other.commit({"b.py": SYNTAX_ERROR})
    other.run(exclude=("t/",))
    assert _checked_base(other).id == main.id


def test_without_git_a_batch_of_another_directory_is_not_the_base(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    project.run("main")
    other = _elsewhere(project)
    other.commit({"b.py": SYNTAX_ERROR})
    other.run()
    with monkeypatch.context() as patched:
        patched.setattr("codebatch.operations.history.checkouts.find_git", lambda: None)
        assert isinstance(other.check().base, NotCompared)
    shutil.rmtree(other.tree / ".git")
    other.write({"c.py": b"z = 1\n"})
    other.run()
    assert _checked_base(other).about.sources == (bytes(other.tree),)


def test_batch_of_another_directory_is_not_the_default_batch(project: Project) -> None:
    main = project.run("main")
    other = _elsewhere(project)
    with codebatch.open(project.store, project=other.tree) as store, pytest.raises(NoBatch) as caught:
        store.batch()
    assert f"{main.id} ({project.tree})" in str(caught.value.hint)


def test_directory_is_recorded_relative_to_the_work_tree(tmp_path: Path) -> None:
    top, inner = tmp_path / "top", tmp_path / "top" / "sub" / "inner"
    inner.mkdir(parents=True)
    git(top, "init", "-q")

    def directory(path: Path) -> bytes | None:
        place = locate_source((bytes(path),), tmp_path)
        assert place is not None
        return place.directory

    assert (directory(top), directory(inner), directory(tmp_path)) == (b"", b"sub/inner", None)
    (top / "sub" / ".git").mkdir()
    assert directory(inner) is None


def test_directories_of_one_commit_do_not_stand_for_each_other(tmp_path: Path) -> None:
    """Two projects in a monorepo may have equal paths, and one source may be the work tree or a directory of it."""
    for clone in ("one", "two"):
        for name in ("a", "b"):
            (tmp_path / clone / name).mkdir(parents=True)
        git(tmp_path / clone, "init", "-q")
    (tmp_path / "plain" / "a").mkdir(parents=True)

    def about(path: str) -> BatchFile:
        source = os.fsencode(tmp_path / path)
        return BatchFile(
            batch_id=BatchId("batch-20260102-030405-000000-c0ffee"),
            snapshot_id=SnapshotId("snap-59fe9e44ae5592c5"),
            pipeline="full",
            plan_digest=Digest("0" * 64),
            sources=(source,),
            place=locate_source((source,), tmp_path),
            commit="c0ffee",
            is_clean=True,
            created_at_ns=0,
            shards=0,
            items=0,
        )

    assert has_clean_scope(about("two/a"), about("one/a"))
    assert has_clean_scope(about("two"), about("one"))
    for other in ("one/b", "one", "plain/a", "plain"):
        assert not has_clean_scope(about("two/a"), about(other))
        assert not has_clean_scope(about(other), about("two/a"))
    assert not has_clean_scope(about("plain"), about("plain/a"))


def test_batch_of_another_part_is_not_the_base_of_a_commit_that_cannot_be_analysed(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two projects in a monorepo have batches of the same commit, each restricted to its directory."""
    project.commit({"one/m.py": b"x = 1\n", "two/m.py": b"y = 1\n"})
    git(project.tree, "branch", "-qf", "main", "HEAD")
    git(project.tree, "update-ref", "refs/remotes/origin/main", "HEAD")
    project.run(path="one")
    project.commit({"two/b.py": SYNTAX_ERROR})
    project.run(path="two")

    def refuse(*_: object) -> None:
        raise GitError("out of reach")

    monkeypatch.setattr("codebatch.operations.gate.base_runs.freeze_commit", refuse)
    assert isinstance(project.check().base, NotCompared)
