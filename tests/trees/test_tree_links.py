"""Links by which a command could leave its tree: it does not start if one leads to files of the user."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from codebatch.model.work.trees import TreeInput
from codebatch.store.work.tree_links import ProjectDirectories
from codebatch_workers.commands.attempt import AttemptResult
from codebatch_workers.commands.tree_bases import TreeNotMade
from tests.support.git_repositories import git
from tests.trees.places import Kind, isolated, make_tree_place, needing, write_files
from tests.trees.test_tree_maker import make_maker, make_tree

KINDS = pytest.mark.parametrize("kind", ["worktree", "copy"])

TARGETS = {
    "a": False,
    ".": False,
    "sub/..": False,
    "missing": False,
    "sub/back/a": False,
    "{tmp}/outside": False,
    "{tmp}/outside/missing": False,
    "/dev/null": False,
    "../../../elsewhere": False,
    "../missing": False,
    "loop": False,
    "{tmp}/project/a": True,
    "{tmp}/project": True,
    "{tmp}/project/missing/x": True,
    "{tmp}/project/.git/hooks": True,
    "{tmp}/outside/../project/sub": True,
    "{tmp}/outside/into": True,
    "{tmp}/outside/directory/a": True,
    "../../../../project/a": True,
    "chain": True,
    "{tmp}": True,
    "/": True,
    "..": True,
    "../..": True,
    "../b.r1/x": True,
    "../b.r1": True,
    "../../other-batch/c.r12": True,
}


@pytest.mark.parametrize(("target", "is_leading"), TARGETS.items())
def test_link_may_lead_neither_to_the_project_nor_to_other_trees(tmp_path: Path, target: str, is_leading: bool) -> None:
    project, tree, outside = tmp_path / "project", tmp_path / "trees/store/batch/a.r1", tmp_path / "outside"
    write_files(project, {"a": b"", "sub/b": b"", ".git/HEAD": b""})
    write_files(tree, {"a": b"", "sub/b": b""})
    outside.mkdir()
    (tree / "sub/back").symlink_to("..")
    (tree / "loop").symlink_to("loop")
    (outside / "into").symlink_to("../project/a")
    (outside / "directory").symlink_to(project)
    (tree / "chain").symlink_to("sub/next")
    (tree / "sub/next").symlink_to(project / "a")
    (tree / "link").symlink_to(target.format(tmp=tmp_path))
    found = ProjectDirectories(bytes(project)).find_leading_links(bytes(tree), [b"link"])
    assert [link.path for link in found] == [b"link"] * is_leading


def test_project_under_another_path_is_recognised(tmp_path: Path) -> None:
    """The path of the project has a link, as a bind mount has another path too."""
    write_files(tmp_path, {"real/a": b"", "trees/s/b/a.r1/x": b""})
    (tmp_path / "alias").symlink_to("real")
    tree = tmp_path / "trees/s/b/a.r1"
    (tree / "link").symlink_to(tmp_path / "real/a")
    assert ProjectDirectories(bytes(tmp_path / "alias")).find_leading_links(bytes(tree), [b"link"])


def test_main_work_tree_and_git_directory_belong_to_the_project(tmp_path: Path) -> None:
    write_files(tmp_path, {"main/a": b"", "trees/s/b/a.r1/x": b""})
    git(tmp_path / "main", "init", "-q", "--separate-git-dir", str(tmp_path / "git"))
    git(tmp_path / "main", "-c", "user.name=n", "-c", "user.email=n@n", "commit", "-q", "--allow-empty", "-m", "m")
    git(tmp_path / "main", "worktree", "add", "-q", "--detach", str(tmp_path / "linked"))
    tree = tmp_path / "trees/s/b/a.r1"
    (tree / "hooks").symlink_to(tmp_path / "git/hooks")
    for project in ("main", "linked"):
        assert ProjectDirectories(bytes(tmp_path / project)).find_leading_links(bytes(tree), [b"hooks"])
    write_files(tmp_path, {"plain/a": b""})
    git(tmp_path / "plain", "init", "-q")
    git(tmp_path / "plain", "-c", "user.name=n", "-c", "user.email=n@n", "commit", "-q", "--allow-empty", "-m", "m")
    git(tmp_path / "plain", "worktree", "add", "-q", "--detach", str(tmp_path / "second"))
    (tree / "main").symlink_to(tmp_path / "plain/a")
    assert ProjectDirectories(bytes(tmp_path / "second")).find_leading_links(bytes(tree), [b"main"])


@KINDS
def test_tree_with_a_link_into_the_project_is_not_made(tmp_path: Path, kind: Kind) -> None:
    (tmp_path / "root").mkdir()
    (tmp_path / "root/l").symlink_to(tmp_path / "root/a")
    place = make_tree_place(tmp_path, isolated("true", kind=kind))
    with pytest.raises(TreeNotMade, match=r"its links lead to your own files.*: l -> .*/root/a\n") as raised:
        make_tree(make_maker(place), kind)
    assert raised.value.is_final
    assert place.names() == []


@KINDS
def test_link_that_the_settings_share_is_kept(tmp_path: Path, kind: Kind) -> None:
    (tmp_path / "root").mkdir()
    (tmp_path / "root/l").symlink_to(tmp_path / "root/a")
    place = make_tree_place(tmp_path, isolated("true", kind=kind), links=(b"l",))
    notes: list[str] = []
    tree = make_maker(place).make(kind, "a", 1, TreeInput(), notes.append, lambda: True)
    assert os.readlink(tree.root / "l") == str(tmp_path / "root/a")
    assert notes == []


def change_absolute_link(root: Path, tree: Path) -> None:
    (tree / "link").symlink_to(root / "a")


def change_link_through_another(root: Path, tree: Path) -> None:
    (tree / "sub/up").symlink_to(root)
    (tree / "link").symlink_to("sub/up/a")


@KINDS
@pytest.mark.parametrize("change", [change_absolute_link, change_link_through_another])
def test_link_that_an_earlier_task_made_is_found(
    tmp_path: Path, kind: Kind, change: Callable[[Path, Path], None]
) -> None:
    place = make_tree_place(tmp_path, isolated("true", kind=kind), isolated("true", "b", kind=kind))
    maker = make_maker(place)
    tree = make_tree(maker, kind)
    change(place.root, tree.root)
    changes = tree.finish(AttemptResult(type="result"), print).changes
    tree.lock.release()
    with pytest.raises(TreeNotMade, match="link -> "):
        maker.make(kind, "b", 1, needing(a=changes), print, lambda: True)


def test_needed_changes_that_lack_work_are_noted(tmp_path: Path) -> None:
    place = make_tree_place(tmp_path, isolated("true"), isolated("true", "b"))
    maker = make_maker(place)
    tree = make_tree(maker)
    os.mkfifo(tree.root / "fifo")
    changes = tree.finish(AttemptResult(type="result"), print).changes
    notes: list[str] = []
    needs = maker.make("worktree", "b", 1, needing(a=changes), notes.append, lambda: True)
    assert notes == ["the changes of a lack fifo (special file)"]
    needs.lock.release()


@KINDS
def test_files_with_several_hard_links_are_copied(tmp_path: Path, kind: Kind) -> None:
    (tmp_path / "root").mkdir()
    (tmp_path / "root/a").write_bytes(b"a\n")
    os.link(tmp_path / "root/a", tmp_path / "root/b")
    place = make_tree_place(tmp_path, isolated("true", kind=kind), files={})
    tree = make_tree(make_maker(place), kind)
    assert [(tree.root / name).stat().st_nlink for name in "ab"] == [1, 1]


def test_git_ignores_shared_links_and_what_the_user_ignores(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_files(tmp_path, {"settings/git/ignore": b"*.bak", "root/node_modules/x": b"", "root/a [b]*/x": b""})
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "settings"))
    ignored = b"node_modules/\na ?b?*/\n"
    place = make_tree_place(
        tmp_path, isolated("true"), files={".gitignore": ignored}, links=(b"node_modules", b"a [b]*")
    )
    tree = make_tree(make_maker(place))
    write_files(tree.root, {"x.bak": b"", "a b": b"", "node_modules2": b""})
    completed = subprocess.run(
        ["git", "status", "--short"],
        cwd=tree.root, env={**os.environ, **tree.variables({})}, capture_output=True, check=True, text=True,
    )  # fmt: skip
    assert completed.stdout.splitlines() == ['?? "a b"', "?? node_modules2"]
    assert git(place.root, "status", "--short") == ""


def test_git_does_not_look_above_a_copy_in_a_clean_environment(tmp_path: Path) -> None:
    """`clean_env` removes variables of the caller, but not those of the tree."""
    tree = make_tree(make_maker(make_tree_place(tmp_path, isolated("true", kind="copy"))), "copy")
    parent = str(tree.root.parent)
    assert tree.variables({})["GIT_CEILING_DIRECTORIES"] == parent
    assert tree.variables({"GIT_CEILING_DIRECTORIES": "/x"})["GIT_CEILING_DIRECTORIES"] == f"{parent}:/x"
