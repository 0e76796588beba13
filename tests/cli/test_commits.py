"""Commits as sides of a comparison: their names, and when the tree of a commit is analysed."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import codebatch
from codebatch.cli import cli
from codebatch.cli.framework.exit import run_to_exit_status
from codebatch.coordinator.analysis.execution import RunOutcome
from codebatch.operations.runs.execution import ExecutionSettings
from tests.support.command_line import CommandLine, check_schema
from tests.support.git_project import Project
from tests.support.git_repositories import git, make_repository
from tests.support.inline_workers import inline, run

pytestmark = pytest.mark.slow

_A = b"import os\n"
_ERROR = b"def f(:\n"


class CommandOutput:
    """The output of a command."""

    def __init__(self, answer: str, notes: str) -> None:
        self.answer = answer
        self.notes = notes

    @property
    def json(self) -> Any:
        answer = json.loads(self.answer)
        check_schema(answer)
        return answer


class Commands:
    """The command line in the work tree of a project, run in this process."""

    def __init__(self, project: Project, capfd: pytest.CaptureFixture[str]) -> None:
        self.project = project
        self._capfd = capfd

    def __call__(self, *words: str, status: int = 0) -> CommandOutput:
        self._capfd.readouterr()
        returned = run_to_exit_status(cli, [*words[:1], "--store", str(self.project.store), *words[1:]])
        answer, notes = self._capfd.readouterr()
        assert returned == status, notes
        return CommandOutput(answer, notes)

    def batches(self) -> list[str]:
        return sorted(path.name for path in (self.project.store / "batches").glob("batch-*"))


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Project]:
    """A project with four commits. The newest commit adds an error in b.py and has a batch."""
    project = Project(tmp_path, [{b"a.py": b"x = 1\n"}, {b"a.py": _A}, {b"c.py": b"import re\n"}])
    monkeypatch.chdir(project.tree)
    with inline():
        project.commit({"b.py": _ERROR})
        project.run()
        yield project


@pytest.fixture
def commands(project: Project, capfd: pytest.CaptureFixture[str]) -> Commands:
    return Commands(project, capfd)


def _added(output: CommandOutput) -> list[tuple[str, str]]:
    return [(row["path"], row["code"]) for row in output.json["added"]]


def test_base_without_batch_is_analysed_once_outside_the_worktree(project: Project, commands: Commands) -> None:
    (head,) = commands.batches()
    (project.tree / "a.py").write_bytes(b"edited = 1\n")
    parent = git(project.tree, "rev-parse", "HEAD~1")
    stat_caches = sorted((project.store / "cache").glob("stat-*"))
    output = commands("check", "HEAD~1", "--json", status=1)
    assert sorted((project.store / "cache").glob("stat-*")) == stat_caches, "the scratch checkout left a stat cache"
    assert f"no batch of HEAD~1 (commit {parent[:12]}); analysing this commit with the tasks of {head}" in output.notes
    answer = output.json
    assert (answer["base"]["commit"], answer["base"]["is_clean"]) == (parent, True)
    assert [(row["path"], row["code"]) for row in answer["forbidden"]] == [("b.py", "syntax-error")]
    assert (project.tree / "a.py").read_bytes() == b"edited = 1\n"
    assert git(project.tree, "status", "--porcelain") == "M a.py"
    assert git(project.tree, "worktree", "list").count("\n") == 0
    again = commands("check", parent, "--json", status=1)
    assert again.json["base"] == answer["base"]
    assert "is run" not in again.notes


def test_diff_analyses_both_commits(project: Project, commands: Commands) -> None:
    output = commands("diff", "HEAD~3", "HEAD~1", "--json")
    assert _added(output) == [("a.py", "F401"), ("c.py", "F401")]
    assert output.json["complete"]
    assert len(commands.batches()) == 3
    assert output.notes.count("analysing this commit") == 2
    commit = git(project.tree, "rev-parse", "HEAD~2")
    assert f"no batch of commit {commit[:12]}; analysing this commit" in commands("diff", commit, "HEAD").notes
    assert "analysing this commit" not in commands("diff", "HEAD~3", "HEAD~1").notes


@pytest.mark.parametrize(
    ("words", "output"),
    [
        (("regressions", "HEAD~1", "HEAD"), "b.py:1:7: error syntax-error"),
        (("improvements", "HEAD~2", "HEAD~3"), "a.py:1:8: warning F401"),
        (("export", "github", "HEAD~1", "HEAD"), "::error file=b.py,line=1"),
        (("report", "-o", "-", "HEAD~1", "HEAD"), "syntax-error"),
        (("check", "HEAD", "HEAD~1"), "new-error              0      0  passed"),
    ],
)
def test_every_comparing_command_analyses_a_given_commit(
    words: tuple[str, ...], output: str, commands: Commands
) -> None:
    assert output in commands(*words).answer
    assert len(commands.batches()) > 1


def test_batches_of_commits_are_neither_latest_nor_its_predecessor(project: Project, commands: Commands) -> None:
    (first,) = commands.batches()
    project.write({"d.py": b"y = 1\n"})
    second = project.run().id
    commands("diff", "HEAD~2", "HEAD~3")
    answer = commands("diff", "--json").json
    assert (answer["old_batch_id"], answer["new_batch_id"]) == (first, second)


def test_checked_out_commit_that_is_run_becomes_a_predecessor(project: Project, commands: Commands) -> None:
    commands("check", "HEAD~1", status=1)
    for name in ("HEAD~1", "main"):
        git(project.tree, "checkout", "-q", name)
        project.run()
    answer = commands("diff", "--json").json
    with codebatch.open(project.store, project=project.tree) as store:
        assert store.batch(answer["old_batch_id"]).question.batch.about.commit == git(
            project.tree, "rev-parse", "main~1"
        )


def test_batch_with_the_same_tasks_is_preferred_to_a_later_batch(project: Project, commands: Commands) -> None:
    (head,) = commands.batches()
    git(project.tree, "checkout", "-q", "HEAD~1")
    same = project.run().id
    run(project.tree, project.store, pipeline="parse")
    git(project.tree, "checkout", "-q", "main")
    answer = commands("diff", "main~1", head, "--json").json
    assert answer["old_batch_id"] == same


def test_batch_of_a_commit_is_not_the_default_of_the_project(
    project: Project, commands: Commands, monkeypatch: pytest.MonkeyPatch
) -> None:
    """This holds even if the run of the project was interrupted and later only a part was analysed."""
    project.commit({"src/a.py": b"import os\n"})
    shutil.rmtree(project.store)
    with monkeypatch.context() as patch:
        patch.setattr(ExecutionSettings, "execute", lambda *_: RunOutcome(130, 0, 0))
        project.run()
    commands("check", "HEAD~1", status=3)
    part = run(project.tree / "src", project.store, configured=project.tree).batch
    with codebatch.open(project.store, project=project.tree) as store:
        assert store.batch(partial=True).id == part.id


@pytest.mark.parametrize(
    "name", ["HEAD~1", "HEAD^", "@~1", "other", "v1-ü", "refs/tags/v1-ü", "HEAD", "@", "HEAD^{/m}"]
)
def test_commit_can_be_given_by_any_git_name(name: str, project: Project, commands: Commands) -> None:
    git(project.tree, "branch", "other", "HEAD~1")
    git(project.tree, "tag", "-a", "-m", "m", "v1-ü", "HEAD~2")
    wanted = git(project.tree, "rev-parse", f"{name}^{{commit}}")
    project.write({"d.py": b"y = 1\n"})
    project.run()
    for named in (name, wanted, wanted[:9], wanted.upper()):
        assert commands("check", named, "--json", "--fail-on", "metric:complexity+9").json["base"]["commit"] == wanted


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("--output=hit", "invalid_id"),
        ("-h", "invalid_id"),
        ("--", "invalid_id"),
        ("", "invalid_id"),
        ("HEAD~1..HEAD", "invalid_id"),
        ("^HEAD", "invalid_id"),
        ("HEAD\n", "invalid_id"),
        ("HEAD:a.py", "invalid_id"),
        ("HEAD^{tree}", "invalid_id"),
        ("../../../etc/passwd", "invalid_id"),
        ("HEAD~999999999999999999999", "invalid_id"),
        ("\u202eHEAD", "invalid_id"),
        ("nosuch", "unknown_id"),
        ("0" * 40, "unknown_id"),
        ("x" * 5000, "invalid_id"),
    ],
)
def test_unknown_commit_name_is_rejected(name: str, code: str, project: Project, commands: Commands) -> None:
    for words in (("check", "--json", "--", name), ("diff", "--json", "--", name, "HEAD")):
        error = json.loads(commands(*words, status=2).notes)["error"]
        assert (error["code"], "no batch or commit" in error["message"]) == (code, True)
        assert len(error["message"]) < 200
    assert len(commands.batches()) == 1
    assert not (project.tree / "hit").exists()


def test_commit_range_gets_a_hint_to_give_both_ends(commands: Commands) -> None:
    assert "give both ends as arguments: HEAD~1 HEAD\n" in commands("diff", "HEAD~1...HEAD", status=2).notes


@pytest.mark.parametrize("name", ["latest", "batch-", "2"])
def test_name_of_a_batch_and_a_commit_resolves_to_the_batch_with_a_note(
    name: str, project: Project, commands: Commands
) -> None:
    (batch,) = commands.batches()
    name = {"batch-": batch[:14], "2": batch[6:14]}.get(name, name)
    git(project.tree, "branch", name, "HEAD~2")
    output = commands("diff", name, "latest", "--json")
    commit = git(project.tree, "rev-parse", "HEAD~2")
    assert output.json["old_batch_id"] == batch
    assert f"{name} refers to a batch and to a git commit ({commit[:12]}); using batch {batch}" in output.notes
    assert commands("diff", f"refs/heads/{name}", "latest", "--json").json["old_batch_id"] != batch
    assert "and to a git commit" not in commands("diff", batch, batch).notes


def test_name_of_several_batches_and_a_commit_resolves_to_the_commit(project: Project, commands: Commands) -> None:
    project.write({"d.py": b"y = 1\n"})
    project.run()
    git(project.tree, "branch", "batch", "HEAD~2")
    assert json.loads(commands("diff", "batch-", "--json", status=2).notes)["error"]["code"] == "ambiguous_id"
    output = commands("check", "batch", "--json", status=1)
    assert output.json["base"]["commit"] == git(project.tree, "rev-parse", "HEAD~2")


def test_interrupted_base_is_resumed(commands: Commands, project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """A killed run leaves a batch of the commit without results. This batch must not be used for the commit."""
    with monkeypatch.context() as patch:
        patch.setattr(ExecutionSettings, "execute", lambda *_: RunOutcome(130, 0, 0))
        assert "stopped before the base was analysed" in commands("diff", "HEAD~1", "HEAD", status=130).notes
    assert len(commands.batches()) == 2
    output = commands("diff", "HEAD~1", "HEAD", "--json")
    assert (output.json["complete"], _added(output)) == (True, [("b.py", "syntax-error")])
    assert len(commands.batches()) == 2


def test_batch_of_a_dirty_worktree_is_not_used_for_its_commit(project: Project, commands: Commands) -> None:
    git(project.tree, "checkout", "-q", "HEAD~1")
    project.write({"z.py": _ERROR})
    dirty = project.run().id
    (project.tree / "z.py").unlink()
    git(project.tree, "checkout", "-q", "main")
    project.write({"d.py": b"y = 1\n"})
    project.run()
    output = commands("diff", "HEAD~1", "latest", "--json")
    assert output.json["old_batch_id"] != dirty
    assert ("b.py", "syntax-error") in _added(output)


def test_commit_has_the_path_restriction_of_the_other_batch(
    tmp_path: Path, project: Project, commands: Commands
) -> None:
    project.commit({"src/a.py": b"import os\n", "lib/b.py": b"import re\n"})
    project.commit({"src/a.py": b"import sys\n", "lib/b.py": b"import json\n"})
    whole = project.run().id
    part = run(project.tree / "src", project.store, configured=project.tree).batch
    output = commands("diff", "HEAD~1", part.id, "--json")
    assert [(row["path"], row["state"]) for row in output.json["removed"]] == [("src/a.py", "fixed")]
    assert output.json["not_comparable"] == []
    assert ("lib/b.py", "F401") in _added(commands("diff", "HEAD~1", whole, "--json"))


def test_files_of_a_commit_are_selected_by_patterns_of_the_other_batch(project: Project, commands: Commands) -> None:
    """This includes a side that was analysed for a comparison, although only the work tree's batch has the patterns."""
    shutil.rmtree(project.store)
    commands("run", str(project.tree), "--exclude", "a.py", "-q")
    assert _added(commands("diff", "HEAD~3", "HEAD~1", "--json")) == [("c.py", "F401")]
    answer = commands("diff", "HEAD~2", "HEAD~1", "--json").json
    assert (answer["added"][0]["path"], answer["summary"]["total_changes"]) == ("c.py", 1)
    whole = run(project.tree, project.store).batch.id
    assert ("a.py", "F401") in _added(commands("diff", "HEAD~3", whole, "--json"))


def test_root_and_empty_commits_are_analysed(project: Project, commands: Commands) -> None:
    """The cases are the root commit, a commit that changes nothing, and a commit without files."""
    root = git(project.tree, "rev-list", "--max-parents=0", "HEAD")
    assert commands("check", root, "--json", status=1).json["counts"]["new"] == 3
    project.commit({})
    assert commands("check", "HEAD~1", "HEAD", "--json").json["counts"]["unchanged"] == 3
    empty = git(project.tree, "commit-tree", "-m", "m", git(project.tree, "mktree", given=b""))
    assert commands("check", empty, "--json", status=1).json["counts"]["new"] == 3


def test_commit_that_cannot_be_analysed_needs_an_existing_batch(
    project: Project, commands: Commands, tmp_path: Path
) -> None:
    git(project.tree, "update-index", "--add", "--cacheinfo", f"160000,{git(project.tree, 'rev-parse', 'HEAD')},sub")
    git(project.tree, "commit", "-qm", "submodule")
    commit = git(project.tree, "rev-parse", "HEAD")
    git(project.tree, "rm", "-q", "--cached", "sub")
    git(project.tree, "commit", "-qm", "none")
    project.run()
    notes = commands("check", "HEAD~1", status=2).notes
    assert f"no batch of HEAD~1 (commit {commit[:12]}), and this commit cannot be analysed: " in notes
    assert "has submodules" in notes
    assert f"git checkout {commit[:12]} && codebatch run ." in notes

    git(tmp_path, "clone", "-q", str(project.tree), "clone")
    git(tmp_path / "clone", "checkout", "-q", commit)
    other = run(tmp_path / "clone", project.store).batch
    assert other.about.is_clean
    project.write({"d.py": b"y = 1\n"})
    project.run()
    output = commands("check", "HEAD~1", "--json")
    assert output.json["base"]["batch_id"] == other.id
    assert f"comparing with {other.id}, an existing batch of this commit" in output.notes


def test_commit_is_not_analysed_if_custom_tasks_have_changed(project: Project, commands: Commands) -> None:
    project.write(
        {
            "codebatch.toml": b"[tasks.own]\npython = 'own.py:task'\n",
            "own.py": b"def task(file):\n    return []\n",
        }
    )
    project.run()
    project.write({"own.py": b"def task(file):\n    return [][:0]\n"})
    notes = commands("diff", "HEAD~2", status=3).notes
    assert "HEAD~2 (commit" in notes
    assert "cannot be analysed" in notes
    assert "hint: analyse the files again first: codebatch run ." in notes


def test_unknown_commit_in_a_shallow_clone_gets_a_fetch_hint(
    project: Project, commands: Commands, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    git(tmp_path, "clone", "-q", "--depth=1", f"file://{project.tree}", "shallow")
    monkeypatch.chdir(tmp_path / "shallow")
    run(tmp_path / "shallow", project.store)
    notes = commands("check", "HEAD~1", status=2).notes
    assert "no batch or commit 'HEAD~1'" in notes
    assert "git fetch --unshallow" in notes


def test_diff_outside_of_a_worktree_accepts_only_batches(
    project: Project, commands: Commands, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bare, unborn, nowhere = (tmp_path / name for name in ("bare", "unborn", "nowhere"))
    git(tmp_path, "clone", "-q", "--bare", str(project.tree), "bare")
    make_repository(unborn, [])
    nowhere.mkdir()
    (batch,) = commands.batches()
    for place in (bare, unborn, nowhere):
        monkeypatch.chdir(place)
        assert "HEAD" in commands("check", "HEAD", batch, status=2).notes
        commands("check", batch, batch, status=3)
    nowhere.rmdir()
    assert "HEAD" in commands("diff", "HEAD", batch, status=2).notes
    commands("diff", batch, batch)


def test_commit_of_another_repository_is_rejected(
    project: Project, commands: Commands, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (batch,) = commands.batches()
    other = tmp_path / "other"
    make_repository(other, [(1, {b"o.py": b"import os\n"})])
    monkeypatch.chdir(other)
    notes = commands("diff", "HEAD", batch, status=2).notes
    assert f"the commit is not in the git repository of {project.tree}" in notes


def test_commit_is_not_analysed_in_the_base_store(project: Project, commands: Commands, tmp_path: Path) -> None:
    shutil.copytree(project.store, tmp_path / "base-store")
    base = ("--base-store", str(tmp_path / "base-store"))
    assert "no batch of HEAD~1" in commands("diff", "HEAD~1", "latest", *base, status=2).notes
    removed = commands("diff", "latest", "HEAD~1", *base, "--json").json["removed"]
    assert [row["code"] for row in removed] == ["syntax-error"]

    shutil.rmtree(tmp_path / "base-store")
    run(project.tree, tmp_path / "base-store", pipeline="parse")
    commands("diff", "latest", "HEAD~2", *base)
    with codebatch.open(project.store, project=project.tree) as store:
        assert store.side("HEAD~2").question.batch.about.pipeline == "full"


def test_commit_compared_with_a_snapshot_uses_the_tasks_of_latest(project: Project, commands: Commands) -> None:
    project.write({"d.py": b"y = 1\n"})
    snapshot = commands("snapshot", str(project.tree), "--json").json["snapshot_id"]
    answer = commands("diff", "HEAD~1", snapshot, "--kind", "file", "--json").json
    assert [row["path"] for row in answer["added"]] == ["b.py", "d.py"]


def test_python_side_finds_a_batch_and_check_analyses_the_commit(project: Project, commands: Commands) -> None:
    with (
        codebatch.open(project.store, project=project.tree) as store,
        pytest.raises(codebatch.UnknownId, match="no batch of HEAD~1"),
    ):
        store.side("HEAD~1")
    assert not codebatch.check("HEAD~1", store=project.store).has_passed
    with codebatch.open(project.store, project=project.tree) as store:
        assert store.side("HEAD~1").question.batch.about.commit == git(project.tree, "rev-parse", "HEAD~1")


def test_concurrent_checks_share_the_batch_of_the_base(codebatch: CommandLine, tmp_path: Path) -> None:
    project = Project(codebatch.directory, [{b"a.py": b"x = 1\n"}, {b"a.py": _A}])
    command = CommandLine(project.tree)
    command("run", ".", "-q", "--store", project.store)
    started = [command.start("check", "HEAD~1", "--json", "--store", project.store) for _ in range(2)]
    bases = [command.finish(process).json["base"]["batch_id"] for process in started]
    assert bases[0] == bases[1]
    assert len(os.listdir(project.store / "batches")) == 2
