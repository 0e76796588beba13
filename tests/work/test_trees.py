"""Isolated tasks in a task list, and the files with which their trees start."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

import pytest
from msgspec import UNSET
from msgspec.structs import replace

from codebatch.errors import InvalidInput
from codebatch.model.documents import DocumentError
from codebatch.model.work.command import CommandId
from codebatch.model.work.trees import TreeSettings
from codebatch.model.work.work_batch import Work, check_work
from codebatch.store.batches.store_directory import StoreDir, create_store
from codebatch.store.snapshots.snapshots import load_snapshot
from codebatch.store.work.work_batches import make_work_batch
from codebatch.system.files.files import RealFiles
from codebatch.work.control.batches import WorkBatch, load_work_batch
from codebatch.work.control.list_changes import list_changes, reload_list
from codebatch.work.control.listener import WorkListener
from codebatch.work.control.tree_base import record_tree_base
from codebatch.work.definition.settings import WorkOptions
from codebatch.work.definition.work_list import WorkList
from tests.support.git_repositories import git
from tests.work.reading import read, wrong

ISOLATED = '[tasks.a]\nrun = "x"\nisolation = "worktree"\n'


def trees(listed: WorkList) -> TreeSettings:
    """Return the settings of the trees of a list."""
    assert listed.work.trees is not UNSET
    return listed.work.trees


def isolations(listed: WorkList) -> dict[str, object]:
    return {command.id: command.isolation for command in listed.commands}


def test_task_overrides_the_isolation_of_the_defaults(tmp_path: Path) -> None:
    text = '[defaults]\nisolation = "copy"\n[tasks.a]\nrun = "x"\n[tasks.b]\nrun = "x"\nisolation = "none"\n'
    listed = read(tmp_path, f'{text}[tasks.c]\nrun = "x"\nisolation = "worktree"\n')
    assert isolations(listed) == {"a": "copy", "b": UNSET, "c": "worktree"}


def test_batch_without_isolated_tasks_has_no_trees(tmp_path: Path) -> None:
    listed = read(tmp_path, '[trees]\nkeep = "none"\n[tasks.a]\nrun = "x"\n')
    assert listed.work.trees is UNSET
    assert listed.notes == ("`[trees]` has no effect: no task sets `isolation`",)


@pytest.mark.parametrize(
    ("environ", "expected"),
    [
        ({"XDG_CACHE_HOME": "/caches", "HOME": "/home/ada"}, "/caches/codebatch/trees"),
        ({"XDG_CACHE_HOME": "caches", "HOME": "/home/ada"}, "/home/ada/.cache/codebatch/trees"),
        ({"HOME": "/home/ada"}, "/home/ada/.cache/codebatch/trees"),
    ],
)
def test_default_directory_is_below_the_caches_of_the_user(
    tmp_path: Path, environ: dict[str, str], expected: str
) -> None:
    assert trees(read(tmp_path, ISOLATED, WorkOptions(), **environ)) == TreeSettings(directory=expected.encode())


def test_settings_of_the_trees(tmp_path: Path) -> None:
    table = '[trees]\ndirectory = "~/trees"\nlink = ["node_modules/", "web/lib", "node_modules"]\nkeep = "none"\n'
    assert trees(read(tmp_path, table + ISOLATED)) == TreeSettings(
        directory=os.fsencode(Path("~/trees").expanduser()), links=(b"node_modules", b"web/lib"), keep="none"
    )


def test_relative_directory_is_below_the_file(tmp_path: Path) -> None:
    listed = read(tmp_path, f'[trees]\ndirectory = "../trees"\n{ISOLATED}')
    assert trees(listed).directory == os.fsencode(tmp_path.resolve().parent / "trees")


@pytest.mark.parametrize("path", ["/etc", "../other", "a/../b", "", ".", "a//b", ".git/hooks", ".GIT", ".codebatch"])
def test_link_outside_of_the_project_is_an_error(tmp_path: Path, path: str) -> None:
    ((message, hint),) = wrong(tmp_path, f"[trees]\nlink = ['{path}']\n{ISOLATED}")
    assert message.startswith("work.toml: [trees] has ")
    assert message.endswith(" in `link`, which is not the path of a directory of the project")
    assert hint is not None


def test_link_inside_a_link_is_an_error(tmp_path: Path) -> None:
    assert wrong(tmp_path, f"[trees]\nlink = ['lib', 'lib/a', 'lib-b']\n{ISOLATED}") == [
        ("work.toml: [trees] has 'lib/a' in `link`, which is inside another link", "remove 'lib/a'")
    ]


@pytest.mark.parametrize("directory", [".", "trees", "below/../trees"])
def test_directory_inside_the_project_is_an_error(tmp_path: Path, directory: str) -> None:
    ((message, hint),) = wrong(tmp_path, f"[trees]\ndirectory = '{directory}'\n{ISOLATED}")
    assert f"which is inside the project {tmp_path.resolve()}" in message
    assert hint is not None


def test_directory_inside_the_repository_of_the_root_is_an_error(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / "web").mkdir()
    with pytest.raises(Exception, match="which is inside the project"):
        read(tmp_path / "web", f'[trees]\ndirectory = "../trees"\n{ISOLATED}')


def test_unknown_values_are_errors(tmp_path: Path) -> None:
    ((message, _),) = wrong(tmp_path, '[tasks.a]\nrun = "x"\nisolation = "container"\n')
    assert message == 'work.toml: [tasks.a] sets `isolation` to \'container\', expected "none", "worktree" or "copy"'
    ((message, _),) = wrong(tmp_path, f'[trees]\nkeep = "all"\n{ISOLATED}')
    assert message == 'work.toml: [trees] sets `keep` to \'all\', expected "failed" or "none"'
    ((message, hint),) = wrong(tmp_path, f'[trees]\nlinks = ["a"]\n{ISOLATED}')
    assert (message, hint) == ("work.toml: [trees]: unknown setting 'links'", "did you mean 'link'?")


@pytest.fixture
def store(tmp_path: Path) -> StoreDir:
    return create_store(RealFiles(), tmp_path / "store")[0]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A directory outside of the store."""
    directory = tmp_path / "project"
    directory.mkdir()
    return directory


def recorded(store: StoreDir, listed: WorkList) -> tuple[Work, list[str]]:
    """Return the work of a new batch, and the notes for the user."""
    notes: list[str] = []
    with store.writing():
        return record_tree_base(store, listed, listed.work, notes.append), notes


def commit(directory: Path) -> str:
    """Make a commit of all files, and return its hash."""
    git(directory, "init", "-q")
    git(directory, "add", "--all")
    git(directory, "-c", "user.name=n", "-c", "user.email=n@n", "commit", "-q", "--allow-empty", "-m", "m")
    return git(directory, "rev-parse", "HEAD")


def test_worktrees_start_with_the_newest_commit(store: StoreDir, project: Path) -> None:
    (project / "web").mkdir()
    (project / "web" / "a.txt").write_text("a")
    head = commit(project)
    work, notes = recorded(store, read(project / "web", ISOLATED))
    assert work.trees is not UNSET
    assert (work.trees.base, work.trees.repository) == (head, os.fsencode(project.resolve()))
    assert work.trees.snapshot == ""
    assert work.trees.supports("worktree")
    assert not work.trees.supports("copy")
    assert notes == [f"1 uncommitted change in {project.resolve()} is not in the trees"]


def test_note_counts_the_uncommitted_changes(store: StoreDir, project: Path) -> None:
    for name in ("a", "b", ".gitignore"):
        (project / name).write_text("ignored\n")
    listed = read(project, ISOLATED)
    commit(project)
    assert recorded(store, listed)[1] == []
    (project / "a").write_text("changed")
    (project / "b").unlink()
    (project / "ignored").write_text("x")
    (project / "new").mkdir()
    (project / "new" / "1").write_text("x")
    (project / "new" / "2").write_text("x")
    assert recorded(store, listed)[1] == [f"3 uncommitted changes in {project.resolve()} are not in the trees"]


def test_worktree_needs_a_repository_with_a_commit(store: StoreDir, project: Path) -> None:
    listed = read(project, ISOLATED)
    with pytest.raises(InvalidInput, match="needs a git repository") as raised:
        recorded(store, listed)
    assert 'isolation = "copy"' in str(raised.value.hint)
    git(project, "init", "-q")
    with pytest.raises(InvalidInput, match="needs a commit") as raised:
        recorded(store, listed)
    assert "make a commit first" in str(raised.value.hint)


def test_worktree_needs_git(store: StoreDir, project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    listed = read(project, ISOLATED)
    commit(project)
    monkeypatch.setenv("PATH", str(project))
    with pytest.raises(InvalidInput, match="needs git, which is not installed"):
        recorded(store, listed)


def test_copies_start_with_a_snapshot_of_the_root(store: StoreDir, project: Path) -> None:
    (project / "a.txt").write_text("a")
    work, notes = recorded(store, read(project, ISOLATED.replace("worktree", "copy")))
    assert work.trees is not UNSET
    assert (work.trees.base, work.trees.repository, notes) == ("", b"", [])
    snapshot = load_snapshot(store.files, store.root, work.trees.snapshot)
    assert [entry.path for entry in snapshot.entries] == [b"a.txt", b"work.toml"]
    assert work.trees.supports("copy")
    assert not work.trees.supports("worktree")


def test_both_kinds_of_isolation_need_the_top_of_a_repository(store: StoreDir, project: Path) -> None:
    """Otherwise the paths of their changes would have different roots."""
    both = ISOLATED + '[tasks.b]\nrun = "x"\nisolation = "copy"\n'
    (project / "web").mkdir()
    (project / "web" / "a.txt").write_text("a")
    commit(project)
    with pytest.raises(InvalidInput, match="is not the top of a repository"):
        recorded(store, read(project / "web", both))
    work, _ = recorded(store, read(project, both))
    assert work.trees is not UNSET
    assert work.trees.supports("copy")
    assert work.trees.supports("worktree")


def test_note_names_needed_tasks_of_other_batches(store: StoreDir, project: Path) -> None:
    text = ISOLATED + '[tasks.b]\nrun = "x"\nisolation = "copy"\nneeds = ["a"]\n[tasks.c]\nrun = "x"\nneeds = ["a"]\n'
    for task, expected in ("b", ["a"]), ("c", []):
        _, notes = recorded(store, read(project, text, WorkOptions(tasks=[task], only=True)))
        assert [note.rpartition(": ")[2] for note in notes] == expected


def test_list_without_isolated_tasks_reads_nothing(
    store: StoreDir, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    listed = read(project, '[tasks.a]\nrun = "x"\n')
    monkeypatch.setattr("subprocess.Popen", lambda *_, **__: pytest.fail("a process was started"))
    assert recorded(store, listed) == (listed.work, [])
    assert not (store.root / "snapshots").exists() or not list((store.root / "snapshots").iterdir())


def batch_of(store: StoreDir, listed: WorkList) -> WorkBatch:
    work, _ = recorded(store, listed)
    return load_work_batch(store, make_work_batch(store, listed.commands, work, at_ns=1))


def test_commit_of_the_trees_is_not_a_change_of_the_list(store: StoreDir, project: Path) -> None:
    listed = read(project, ISOLATED)
    commit(project)
    assert list_changes(batch_of(store, listed)).is_nothing
    (project / "work.toml").write_text(f'[trees]\nkeep = "none"\n{ISOLATED}')
    assert list_changes(batch_of(store, listed)).settings == ("trees",)


@pytest.mark.parametrize("then", ["none", "copy"])
def test_reload_of_an_isolation_without_trees_is_refused(store: StoreDir, project: Path, then: str) -> None:
    listed = read(project, ISOLATED.replace("worktree", then))
    commit(project)
    batch = batch_of(store, listed)
    (project / "work.toml").write_text(ISOLATED)
    with pytest.raises(
        InvalidInput, match=r'the task a now has isolation = "worktree", and batch .* has no such trees'
    ):
        reload_list(batch, WorkListener())
    (project / "work.toml").write_text(ISOLATED.replace("worktree", then).replace('"x"', '"y"'))
    assert reload_list(batch, WorkListener()).changed == (CommandId("a"),)


@pytest.mark.parametrize(
    "changes",
    [{"directory": b"trees"}, {"links": (b"../x",)}, {"base": "main"}, {"base": ""}, {"repository": b"repository"}],
)
def test_invalid_settings_of_trees_are_damage(store: StoreDir, project: Path, changes: dict[str, object]) -> None:
    listed = read(project, ISOLATED)
    commit(project)
    work, _ = recorded(store, listed)
    assert work.trees is not UNSET
    assert work.trees.is_valid
    assert not replace(work.trees, **changes).is_valid


@pytest.mark.parametrize(("repository", "is_valid"), [(b"/a", True), (b"/a/b", True), (b"/", True), (b"/a/bc", False)])
def test_repository_contains_the_root(repository: bytes, is_valid: bool) -> None:
    trees = TreeSettings(directory=b"/t", repository=repository, base="0" * 40)
    work = Work(source="test", root=b"/a/b", order=(), trees=trees)
    with contextlib.nullcontext() if is_valid else pytest.raises(DocumentError, match="its trees"):
        check_work(work)
