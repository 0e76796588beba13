"""The place of the store that work trees of a repository share, as tables of repositories (SPEC.md "Projects")."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from codebatch.operations.project.projects import find_project, find_store, find_unused_store, new_store_place
from codebatch.store.batches.store_directory import create_store
from codebatch.system.files.files import RealFiles
from tests.support.command_line import UNPRIVILEGED, CommandLine, permissions_bind
from tests.support.git_repositories import git, make_repository


@pytest.fixture
def top(tmp_path: Path) -> Path:
    """A directory with the repository `main`, which has one commit."""
    make_repository(tmp_path / "main", [(1, {b"a.py": b"x = 1\n"})])
    git(tmp_path / "main", "reset", "-q", "--hard")
    return tmp_path.resolve()


def _link(top: Path, name: str = "linked", *, repository: str = "main") -> None:
    git(top / repository, "worktree", "add", "-q", "--detach", str(top / name))


def _bare(top: Path) -> None:
    git(top, "clone", "-q", "--bare", "main", "bare.git")
    _link(top, repository="bare.git")


def _hidden_bare(top: Path) -> None:
    """The layout of a directory that has only work trees: `.git` names the bare repository beside it."""
    git(top, "clone", "-q", "--bare", "main", "project/.bare")
    (top / "project" / ".git").write_text("gitdir: ./.bare\n")
    _link(top, "project/linked", repository="project")


def _separate(top: Path) -> None:
    git(top, "clone", "-q", "--separate-git-dir", "data", "main", "separate")
    _link(top, repository="separate")


def _submodule(top: Path) -> None:
    make_repository(top / "super", [(1, {b"b.py": b""})])
    git(top / "super", "-c", "protocol.file.allow=always", "submodule", "add", "-q", str(top / "main"), "sub")
    _link(top, repository="super/sub")


def _moved_main(top: Path) -> None:
    _link(top)
    (top / "main").rename(top / "moved")


def _moved_and_repaired_main(top: Path) -> None:
    _moved_main(top)
    git(top / "moved", "worktree", "repair", str(top / "linked"))


def _moved_bare(top: Path) -> None:
    _bare(top)
    (top / "bare.git").rename(top / "moved.git")


def _moved_tree(top: Path) -> None:
    _link(top, "before")
    (top / "before").rename(top / "linked")


def _moved_and_repaired_tree(top: Path) -> None:
    _moved_tree(top)
    git(top / "linked", "worktree", "repair")


def _moved_by_git(top: Path) -> None:
    _link(top, "before")
    git(top / "main", "worktree", "move", "../before", "../linked")


def _copied_tree(top: Path) -> None:
    _link(top, "before")
    shutil.copytree(top / "before", top / "linked", symlinks=True)


def _copied_submodule(top: Path) -> None:
    """A submodule has a file `.git` too, but it is not a linked work tree."""
    _submodule(top)
    shutil.rmtree(top / "linked")
    (top / "super" / "sub").rename(top / "super" / "worktrees")
    (top / "linked").symlink_to("super/worktrees")


MOVED = "if one of them was moved, run there: git worktree repair"
PLACES: dict[str, tuple[Callable[[Path], None], str, str, str]] = {
    "main work tree": (lambda top: None, "main", "main/.codebatch", ""),
    "linked": (_link, "linked", "main/.codebatch", ""),
    "nested": (lambda top: _link(top, "main/.trees/a"), "main/.trees/a", "main/.codebatch", ""),
    "bare": (_bare, "linked", "bare.git/codebatch", ""),
    "hidden bare": (_hidden_bare, "project/linked", "project/.bare/codebatch", ""),
    "separate git directory": (_separate, "linked", "data/codebatch", ""),
    "submodule": (_submodule, "linked", "super/sub/.codebatch", ""),
    "main moved": (_moved_main, "linked", "linked/.codebatch", "main: TOP/main does not exist"),
    "main moved and repaired": (_moved_and_repaired_main, "linked", "moved/.codebatch", ""),
    "bare moved": (_moved_bare, "linked", "linked/.codebatch", "bare.git: TOP/bare.git does not exist"),
    "moved": (_moved_tree, "linked", "linked/.codebatch", "main: git lists this work tree at another path"),
    "moved and repaired": (_moved_and_repaired_tree, "linked", "main/.codebatch", ""),
    "moved by git": (_moved_by_git, "linked", "main/.codebatch", ""),
    "copied": (_copied_tree, "linked", "linked/.codebatch", "main: git lists this work tree at another path"),
    "submodule with such a name": (_copied_submodule, "linked", "super/worktrees/.codebatch", ""),
}


@pytest.mark.parametrize(("make", "start", "place", "note"), PLACES.values(), ids=PLACES)
def test_new_store_is_shared_by_the_work_trees_of_a_repository(
    top: Path, monkeypatch: pytest.MonkeyPatch, make: Callable[[Path], None], start: str, place: str, note: str
) -> None:
    """Variables of git, which a hook has, change nothing."""
    make(top)
    for name in ("GIT_DIR", "GIT_WORK_TREE", "GIT_COMMON_DIR"):
        monkeypatch.setenv(name, str(top / "elsewhere"))
    project = find_project(top / start)
    name, _, problem = note.replace("TOP", str(top)).partition(": ")
    expected = f"this work tree does not share the store of {top}/{name}, because {problem}; {MOVED}" if note else ""
    assert new_store_place(project) == (top / place, expected)
    assert find_store(project) is None
    create_store(RealFiles(), top / place)
    assert find_store(find_project(top / start)) == top / place
    assert find_unused_store(project) is None


def _names(top: Path, start: str) -> tuple[str, str | None]:
    """Return the store and the unused store of a directory, relative to `top`."""
    project = find_project(top / start)
    used, unused = find_store(project), find_unused_store(project)
    assert used is not None
    return str(used.relative_to(top)), None if unused is None else str(unused.relative_to(top))


def test_shared_store_is_preferred_to_that_of_the_tree_and_a_nearer_one_to_both(top: Path) -> None:
    """The trees are those of a bare repository and of one with a main work tree."""
    _bare(top)
    _link(top, "other")
    (top / "linked" / "sub").mkdir()
    for place in ("linked/.codebatch", "other/.codebatch"):
        create_store(RealFiles(), top / place)
    assert _names(top, "linked") == ("linked/.codebatch", None)
    assert _names(top, "other") == ("other/.codebatch", None)
    for place in ("bare.git/codebatch", "main/.codebatch"):
        create_store(RealFiles(), top / place)
    assert _names(top, "linked/sub") == ("bare.git/codebatch", "linked/.codebatch")
    assert _names(top, "other") == ("main/.codebatch", "other/.codebatch")
    create_store(RealFiles(), top / "linked/sub/.codebatch")
    assert _names(top, "linked/sub") == ("linked/sub/.codebatch", None)
    assert _names(top, "main") == ("main/.codebatch", None)


def test_shared_store_is_found_in_its_bare_repository(top: Path) -> None:
    _bare(top)
    create_store(RealFiles(), top / "bare.git/codebatch")
    for start in ("bare.git", "bare.git/refs"):
        project = find_project(top / start)
        assert (project.kind, project.root, find_store(project)) == (
            "store",
            bytes(top / "bare.git"),
            top / "bare.git/codebatch",
        )


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a directory to another user")
def test_place_of_another_user_is_not_shared(top: Path) -> None:
    _link(top)
    os.chown(top / "main", 12345, 12345)
    place, note = new_store_place(find_project(top / "linked"))
    assert place == top / "linked/.codebatch"
    assert note.endswith(f"the shared place {top}/main/.codebatch belongs to another user")
    os.chown(top / "linked", 12345, 12345)
    assert new_store_place(find_project(top / "linked")) == (top / "main/.codebatch", ""), (
        "work trees that belong to one user, as in a container, share a store"
    )
    create_store(RealFiles(), top / "main/.codebatch")
    create_store(RealFiles(), top / "linked/.codebatch")
    os.chown(top / "main/.codebatch", 12345, 12345)
    assert _names(top, "linked") == ("linked/.codebatch", None)


def test_place_that_other_users_may_write_to_is_not_shared(top: Path) -> None:
    _link(top)
    (top / "main").chmod(0o777)
    create_store(RealFiles(), top / "main/.codebatch")
    place, note = new_store_place(find_project(top / "linked"))
    assert place == top / "linked/.codebatch"
    assert note.endswith("main/.codebatch is not used without --store: other users may write to it (mode 0777)")
    assert find_store(find_project(top / "linked")) is None


@permissions_bind
@pytest.mark.slow
def test_run_in_a_linked_work_tree_of_a_read_only_repository_has_a_store_of_its_own(top: Path) -> None:
    _link(top)
    (top / "main").chmod(0o555)
    codebatch = CommandLine(top / "linked", prefix=UNPRIVILEGED)
    notes = codebatch("run").notes
    (top / "main").chmod(0o755)
    assert f"created store: {top}/linked/.codebatch\n" in notes
    assert f"because the shared place {top}/main/.codebatch cannot be written\n" in notes


@pytest.mark.slow
def test_store_of_a_tree_whose_repository_comes_back_is_named(top: Path) -> None:
    """No batch is lost: both stores can be named, and CODEBATCH_STORE names one without a note."""
    _link(top)
    main, linked = (CommandLine(top / name) for name in ("main", "linked"))
    first = main("run", "--json").json["batch_id"]
    (top / "main").rename(top / "away")
    hint = linked("findings", "--json", status=4).error["hint"]
    assert f"share the store of {top}/main, because {top}/main does not exist" in hint
    created = linked("run", "--json")
    assert created.notes.splitlines()[:2] == [
        f"created store: {top}/linked/.codebatch",
        f"this work tree does not share the store of {top}/main, because {top}/main does not exist; {MOVED}",
    ]
    (top / "away").rename(top / "main")
    note = f"the store {top}/linked/.codebatch is not used, because all work trees of the repository share the store"
    again = linked("run", "--json")
    assert f"{note} {top}/main/.codebatch; to use it, add --store {top}/linked/.codebatch\n" in again.notes
    assert note in linked("findings").notes
    assert [row["batch_id"] for row in linked("batch", "list", "--json").json] == [first, again.json["batch_id"]]
    named = CommandLine(top / "linked", {"CODEBATCH_STORE": f"{top}/linked/.codebatch"})
    listed = named("batch", "list", "--json")
    assert ([row["batch_id"] for row in listed.json], listed.notes) == ([created.json["batch_id"]], "")
    assert "is not used" not in main("run").notes
