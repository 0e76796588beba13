"""Tests of the search for the project directory, as tables of trees (SPEC.md "Projects")."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from codebatch.model.project import ProjectRoot
from codebatch.operations.project.configuration import load_configuration
from codebatch.operations.project.projects import find_project
from codebatch.snapshotting.projects import iter_project_directories
from tests.support.command_line import CommandLine

GIT = ".git/HEAD"
SETTINGS = "codebatch.toml"
STORE = ".codebatch/store.json"


@pytest.mark.parametrize(
    ("files", "start", "root", "kind"),
    [
        ([f"p/{GIT}"], "p", "p", "git"),
        ([f"p/{GIT}"], "p/a/b", "p", "git"),
        ([f"p/{GIT}", f"p/a/{SETTINGS}", f"p/a/{STORE}"], "p/a/b", "p", "git"),
        ([f"p/{GIT}", f"p/a/{GIT}"], "p/a/b", "p/a", "git"),
        ([f"p/{SETTINGS}"], "p/a/b", "p", "settings"),
        (["p/pyproject.toml"], "p/a/b", "p/a/b", "unmarked"),
        ([f"p/{STORE}", f"{SETTINGS}"], "p/a/b", "p", "store"),
        ([f"p/a/{SETTINGS}", f"p/{STORE}"], "p/a/b", "p/a", "settings"),
        ([], "p/a/b", "p/a/b", "unmarked"),
        ([f"p/{GIT}", "p/.gitignore"], "p/out/b", "p", "ignored"),
        ([f"p/{GIT}", "p/.gitignore", f"p/out/{STORE}"], "p/out/b", "p/out", "store"),
        ([f"home/{GIT}"], "home/a", "home", "git"),
        ([f"home/{GIT}", "home/.gitignore"], "home/out/b", "home/out/b", "unmarked"),
        ([f"home/{STORE}", f"home/{SETTINGS}"], "home/a/b", "home/a/b", "unmarked"),
        ([f"open/{STORE}", f"open/{SETTINGS}"], "open/a/b", "open/a/b", "unmarked"),
        ([f"open/a/{STORE}"], "open/a/b", "open/a", "store"),
    ],
)
def test_project_root_is_found_from_a_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, files: list[str], start: str, root: str, kind: str
) -> None:
    tmp_path = tmp_path.resolve()
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    for path in ("open", start):
        (tmp_path / path).mkdir(parents=True, exist_ok=True)
    (tmp_path / "open").chmod(0o777)
    for path in files:
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text("out/\n" if path.endswith(".gitignore") else "")
    project = find_project(tmp_path / start)
    assert (os.fsdecode(project.root), project.kind) == (str(tmp_path / root), kind)
    (tmp_path / start / "file.py").touch()
    assert find_project(tmp_path / start / "file.py") == project


@pytest.mark.parametrize(
    ("files", "start", "note"),
    [
        ([f"open/{SETTINGS}"], "open/a/b", "TOP/open are not used, because other users may write to it (mode 0777)"),
        ([f"home/{SETTINGS}"], "home/a", "TOP/home are not used, because it is your home directory"),
        ([f"open/{SETTINGS}", f"open/a/{SETTINGS}"], "open/a/b", ""),
        ([f"open/{SETTINGS}"], "open", ""),
        ([f"open/{SETTINGS}", f"open/a/{GIT}"], "open/a/b", ""),
        (["open/pyproject.toml"], "open/a/b", ""),
    ],
)
def test_settings_that_a_search_does_not_reach_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, files: list[str], start: str, note: str
) -> None:
    tmp_path = tmp_path.resolve()
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    for path in ("open", start):
        (tmp_path / path).mkdir(parents=True, exist_ok=True)
    for path in files:
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text("")
    (tmp_path / "open").chmod(0o777)
    expected = note and f"the settings in {note}".replace("TOP", str(tmp_path))
    assert load_configuration(tmp_path / start).unread_note == expected


@pytest.mark.slow
def test_run_and_config_name_settings_that_are_not_used(tmp_path: Path) -> None:
    (tmp_path / "open" / "a").mkdir(parents=True)
    (tmp_path / "open" / SETTINGS).write_text("jobs = 1\n")
    (tmp_path / "open" / "a" / "a.py").write_text("x = 1\n")
    (tmp_path / "open").chmod(0o777)
    codebatch = CommandLine(tmp_path / "open" / "a")
    for words in (("run",), ("config", "show")):
        assert "are not used, because other users may write to it (mode 0777)\n" in codebatch(*words).notes


def test_link_to_a_directory_resolves_to_its_project(tmp_path: Path) -> None:
    (tmp_path / "p" / ".git").mkdir(parents=True)
    (tmp_path / "p" / "a").mkdir()
    (tmp_path / "link").symlink_to("p/a")
    assert find_project(tmp_path / "link").root == os.fsencode((tmp_path / "p").resolve())


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a directory to another user")
def test_project_search_ignores_markers_of_other_users(tmp_path: Path) -> None:
    for name in (".git", ".codebatch"):
        (tmp_path / "theirs" / name).mkdir(parents=True)
    (tmp_path / "theirs" / ".codebatch" / "store.json").touch()
    mine = tmp_path / "theirs" / "mine"
    mine.mkdir()
    for path in (tmp_path / "theirs", tmp_path / "theirs" / ".git"):
        os.chown(path, 12345, 12345)
    assert find_project(mine).kind == "unmarked"
    os.chown(mine, 12345, 12345)
    assert find_project(mine).kind == "git", (
        "a checkout that belongs entirely to another user, as in a container, was ignored"
    )


@pytest.mark.parametrize(
    ("kind", "start", "last", "known", "root"),
    [
        ("git", "/p/a/b", "", ["/p/a"], "/p"),
        ("ignored", "/p/a/b", "", ["/p/a", "/p"], "/p/a"),
        ("ignored", "/p/a/b", "", ["/"], "/p"),
        ("settings", "/p/a/b", "", ["/p/a"], "/p/a"),
        ("store", "/p/a/b", "", ["/"], "/p"),
        ("unmarked", "/p", "/", ["/"], "/"),
        ("unmarked", "/p", "/p", ["/"], "/p"),
    ],
)
def test_analysed_directory_outside_git_is_a_project(
    kind: str, start: str, last: str, known: list[str], root: str
) -> None:
    project = ProjectRoot(b"/p", start.encode(), kind, last=last.encode())  # type: ignore[arg-type]
    assert project.root_among({directory.encode() for directory in known}) == root.encode()


def test_project_search_ends_at_the_top_of_the_work_tree(tmp_path: Path) -> None:
    (tmp_path / "p" / ".git").mkdir(parents=True)
    below = tmp_path.resolve() / "p" / "a" / "b"
    below.mkdir(parents=True)
    directories = [os.fsdecode(directory) for directory in iter_project_directories(os.fsencode(below))]
    assert directories == [str(below), str(below.parent), str(below.parent.parent)]
