"""Isolated tasks from the command line: what `work run` prints, and the changes that follow."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.support.command_line import CommandLine, check_schema

LIST = """
strategy = "parallel"
[defaults]
isolation = "worktree"
[trees]
directory = "../trees"
[tasks.one]
run = "echo 1 >> a.txt"
[tasks.two]
run = "echo 2 >> a.txt"
needs = ["one"]
[tasks.root]
run = "cat a.txt"
isolation = "none"
needs = ["two"]
"""


@pytest.fixture
def project(tmp_path: Path) -> CommandLine:
    """A repository with a task list, whose trees are beside it."""
    root = tmp_path / "project"
    root.mkdir()
    (root / "work.toml").write_text(LIST)
    (root / "a.txt").write_text("a\n")
    codebatch = CommandLine(root)
    codebatch.shell("git init -q . && git add . && git -c user.name=n -c user.email=n@n commit -qm m")
    return codebatch


def test_isolated_tasks_change_nothing_until_apply(project: CommandLine, tmp_path: Path) -> None:
    file = tmp_path / "project" / "a.txt"
    file.write_text("a\nmine\n")
    ended = project("work", "run")
    batch = project("status", "--json").json["batch_id"]
    assert "1 uncommitted change in" in ended.notes
    assert f"2 changes of 2 tasks not applied; next: codebatch changes --batch {batch}" in ended.notes
    assert file.read_text() == "a\nmine\n"
    assert project("work", "log", "root").text == "a\nmine\n"
    assert [line.split()[:2] for line in project("changes").lines[1:]] == [["a.txt", "one"], ["a.txt", "two"]]
    assert project("apply", status=3).lines[0].startswith("refused  a.txt")
    file.write_text("a\n")
    project("apply")
    assert file.read_text() == "a\n1\n2\n"
    assert "not applied" not in project("status").text


LOSSY = """
strategy = "parallel"
[defaults]
isolation = "copy"
[trees]
directory = "../trees"
[tasks.one]
run = "mkfifo pipe; echo 1 > new.txt; echo 2 > x.o"
[tasks.two]
run = "mkfifo socket"
"""


def test_work_that_is_not_recorded_is_named_everywhere(project: CommandLine, tmp_path: Path) -> None:
    (tmp_path / "project" / "work.toml").write_text(LOSSY)
    (tmp_path / "project" / ".gitignore").write_text("*.o\n")
    ended = project("work", "run", status=3)
    batch = project("status", "--json").json["batch_id"]
    trees = next((tmp_path / "trees").glob(f"*/{batch}"))
    lines = [f"one: not recorded: pipe (special file); it is in {trees}/one.r1",
             f"two: not recorded: socket (special file); it is in {trees}/two.r1"]  # fmt: skip
    assert [line for line in ended.notes.splitlines() if "not recorded: " in line][2:] == lines
    assert "done" in ended.notes
    assert "not recorded: 1 path" in ended.notes
    assert "error: not all work of 2 tasks is recorded: one, two" in ended.notes
    assert (trees / "one.r1" / "pipe").exists()
    answer = project("changes", "--json", status=3).json
    check_schema(answer)
    assert (answer["complete"], [(row["path"], row["task"], row["reason"]) for row in answer["unrecorded"]]) == (
        False,
        [("pipe", "one", "special"), ("x.o", "one", "ignored"), ("socket", "two", "special")],
    )
    shown = project("changes", status=3)
    assert shown.notes.splitlines() == ["ignored, so not recorded: x.o (one)", *lines]
    status = project("status", "--json").json
    check_schema(status)
    assert [[row["path"] for row in task["unrecorded"]] for task in status["tasks"]] == [["pipe"], ["socket"]]
    assert status["unapplied"] == {"tasks": ["one"], "changes": 1, "unchanged": []}
    assert "not recorded: pipe (special file)" in project("status").text
    assert "done one" in (events := project("events").text)
    assert events.count("; not recorded: 1 path") == 2
    project("follow", status=3)
    applied = project("apply", "--json", "one", status=3)
    check_schema(applied.json)
    assert (applied.json["written"], [row["path"] for row in applied.json["unrecorded"]]) == (1, ["pipe"])
    assert lines[0] in applied.notes
    assert lines[1] not in applied.notes
    project("apply", "--reverse", "one")


def test_task_without_changes_but_ignored_files_has_nothing_to_apply(project: CommandLine, tmp_path: Path) -> None:
    (tmp_path / "project" / "work.toml").write_text(LOSSY.replace("mkfifo pipe; echo 1 > new.txt;", "true;"))
    (tmp_path / "project" / ".gitignore").write_text("*.o\n")
    project("work", "run", "one")
    assert project("status", "--json").json["unapplied"] == {"tasks": [], "changes": 0, "unchanged": ["one"]}
    assert project("changes").notes == "done, changed nothing: one\nignored, so not recorded: x.o (one)\n"


def test_link_into_the_project_refuses_the_run(project: CommandLine, tmp_path: Path) -> None:
    (tmp_path / "project" / "link").symlink_to(tmp_path / "project" / "a.txt")
    project.shell("git add . && git -c user.name=n -c user.email=n@n commit -qm n")
    assert "would change your own files: link -> " in project("work", "run", status=2).notes
    assert project("batch", "list", "--json").json == []


def test_project_whose_path_is_not_utf8(tmp_path: Path) -> None:
    root = Path(os.fsdecode(os.fsencode(tmp_path) + b"/q'\n\xe9"))
    root.mkdir()
    (root / "work.toml").write_text(LIST)
    (root / "a.txt").write_text("a\n")
    codebatch = CommandLine(root)
    codebatch.shell("git init -q . && git add . && git -c user.name=n -c user.email=n@n commit -qm m")
    codebatch("work", "run")
    codebatch("apply")
    assert (root / "a.txt").read_text() == "a\n1\n2\n"


def test_new_and_emptied_directories_are_applied_and_undone(project: CommandLine, tmp_path: Path) -> None:
    """The task deletes a directory, makes others, and replaces a file by a directory and a directory by a file."""
    root = tmp_path / "project"
    project.shell("mkdir -p old/deep lib && echo 1 > old/deep/1.txt && echo 2 > lib/2.txt && echo 3 > tool")
    (root / "work.toml").write_text(
        """
[trees]
directory = "../trees"
[tasks.move]
isolation = "worktree"
run = '''
mkdir -p new/f/g && mv old/deep/1.txt new/f/g && rm -r old
rm -r lib && echo one > lib
rm tool && mkdir tool && echo two > tool/main.txt && ln -s main.txt tool/link
'''
"""
    )
    project.shell("git add . && git -c user.name=n -c user.email=n@n commit -qm n")
    project("work", "run")
    before = listing(root)
    project.shell("git worktree add -q ../other && codebatch changes --patch | git -C ../other apply")
    project("apply")
    after = listing(root)
    assert {"lib", "new/", "new/f/", "new/f/g/", "new/f/g/1.txt", "tool/", "tool/link", "tool/main.txt"} < after
    assert not {"lib/", "old/", "old/deep/", "tool"} & after
    assert listing(tmp_path / "other") == after
    project("apply", "--reverse")
    assert listing(root) == before
    project.shell("git diff --exit-code")


def listing(root: Path) -> set[str]:
    """Return the files and directories of a project, except those of git and codebatch."""
    found = {f"{path.relative_to(root)}{'/' if path.is_dir() else ''}" for path in root.rglob("*")}
    return {name for name in found if not name.startswith((".git", ".codebatch"))}


def test_dry_run_shows_the_isolation(project: CommandLine) -> None:
    ended = project("work", "run", "--dry-run")
    assert [line.split()[-1] for line in ended.lines[1:5]] == ["isolation", "worktree", "worktree", "-"]
    answer = project("work", "run", "--dry-run", "--json").json
    check_schema(answer)
    assert [task["isolation"] for task in answer["tasks"]] == ["worktree", "worktree", None]


def test_dry_run_without_isolation_has_no_such_column(project: CommandLine, tmp_path: Path) -> None:
    (tmp_path / "project" / "work.toml").write_text('[tasks.a]\nrun = "true"\n')
    assert "isolation" not in project("work", "run", "--dry-run").text


def test_repository_without_a_commit_makes_no_batch(tmp_path: Path) -> None:
    (tmp_path / "work.toml").write_text(LIST)
    codebatch = CommandLine(tmp_path)
    codebatch.shell("git init -q .")
    ended = codebatch("work", "run", status=2)
    assert "needs a commit" in ended.notes
    assert "make a commit first" in ended.notes
    assert codebatch("batch", "list", "--json").json == []
