"""Notes about the files with which the trees of a batch start, and links that are refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from codebatch.errors import InvalidInput
from codebatch.store.batches.store_directory import StoreDir, create_store
from codebatch.system.files.files import RealFiles
from codebatch.work.control.tree_base import record_tree_base
from codebatch.work.definition.settings import WorkOptions
from tests.support.git_repositories import git
from tests.trees.places import Kind, commit_all, write_files
from tests.work.reading import read

KINDS = pytest.mark.parametrize("kind", ["worktree", "copy"])


@pytest.fixture
def store(tmp_path: Path) -> StoreDir:
    return create_store(RealFiles(), tmp_path / "store")[0]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A directory outside of the store."""
    write_files(tmp_path, {"project/a": b"a\n", "project/web/b": b"b\n", "data/x": b""})
    git(tmp_path / "project", "init", "-q")
    return tmp_path / "project"


def start_notes(store: StoreDir, root: Path, kind: Kind, *, link: str = "[]") -> list[str]:
    """Return the notes at the start of a batch with isolated tasks."""
    text = f'[trees]\ndirectory = "../trees"\nlink = {link}\n[tasks.a]\nrun = "x"\nisolation = "{kind}"\n'
    directory = "../../trees" if root.name == "web" else "../trees"
    listed = read(root, text.replace("../trees", directory))
    top = root.parent if root.name == "web" else root
    commit_all(top)
    notes: list[str] = []
    with store.writing():
        record_tree_base(store, listed, listed.work, notes.append)
    return notes


LINKS = {
    "a": "",
    "../project/web": "link -> ../project/web",
    "../missing": "link -> ../missing",
    "web/../../x": "link -> web/../../x",
    "{tmp}/data": "link -> {tmp}/data",
    "{tmp}/data/x": "link -> {tmp}/data/x",
    "{tmp}/data/missing": "",
    "/dev/null": "",
}


@KINDS
@pytest.mark.parametrize(("target", "expected"), LINKS.items())
def test_links_that_lead_out_of_the_trees_are_noted(
    store: StoreDir, project: Path, kind: Kind, target: str, expected: str
) -> None:
    tmp = project.parent
    (project / "link").symlink_to(target.format(tmp=tmp))
    text = f"1 link leads out of the trees, so changes there are not isolated: {expected.format(tmp=tmp)}"
    assert start_notes(store, project, kind) == ([text] if expected else [])


@KINDS
@pytest.mark.parametrize("target", ["a", "web", "missing", ".", "..", ".git/hooks"])
def test_absolute_link_into_the_project_is_refused(store: StoreDir, project: Path, kind: Kind, target: str) -> None:
    (project / "web/link").symlink_to((project / target).resolve())
    with pytest.raises(InvalidInput, match=r"would change your own files: web/link -> ") as raised:
        start_notes(store, project, kind)
    assert raised.value.hint is not None
    assert "`link` of [trees]" in raised.value.hint
    assert start_notes(store, project, kind, link='["web/link"]') == []


def test_link_to_another_part_of_the_repository_is_refused(store: StoreDir, project: Path) -> None:
    (project / "web/link").symlink_to(project / "a")
    with pytest.raises(InvalidInput, match=r"own files: link -> "):
        start_notes(store, project / "web", "copy")
    with pytest.raises(InvalidInput, match=r"own files: web/link -> "):
        start_notes(store, project / "web", "worktree")
    assert start_notes(store, project / "web", "worktree", link='["link"]') == []


@KINDS
@pytest.mark.parametrize("root", [".", "web"])
def test_links_without_effect_are_noted(store: StoreDir, project: Path, kind: Kind, root: str) -> None:
    write_files(project, {".gitignore": b"lib\n", "lib/x": b"", "web/lib/x": b"", "own/x": b"", "web/own/x": b""})
    place = (project / root).resolve()
    own = "web/own" if kind == "worktree" and root == "web" else "own"
    assert start_notes(store, place, kind, link='["lib", "none", "own"]') == [
        f"`link` of [trees] has no effect for none: not found in {place}",
        f"`link` of [trees] has no effect for {own}: the trees have files of their own there",
    ]


def test_empty_submodules_are_noted(store: StoreDir, project: Path) -> None:
    write_files(project.parent, {"other/x": b""})
    git(project.parent / "other", "init", "-q")
    commit_all(project.parent / "other")
    for name in ("lib", "web/lib"):
        git(project, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", f"{project.parent}/other", name)
    assert start_notes(store, project, "worktree") == ["2 submodules are empty in the trees: lib, web/lib"]
    assert start_notes(store, project, "copy") == []


def test_needed_changes_that_the_batch_lacks_are_noted_for_isolated_tasks(store: StoreDir, project: Path) -> None:
    text = """
        trees.directory = "../trees"
        defaults.run = "x"
        tasks = { n = {}, m = {}, a = { needs = ["n"], isolation = "copy" }, b = { needs = ["m"] } }
    """
    listed = read(project, text, WorkOptions(tasks=("a", "b"), only=True))
    notes: list[str] = []
    with store.writing():
        record_tree_base(store, listed, listed.work, notes.append)
    assert notes == ["the trees do not have the changes of needed tasks that are not in the batch: n"]
