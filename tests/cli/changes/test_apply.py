"""Tests of the command `apply`: its answer, and the batches, stores and locations from which it writes nothing."""

from __future__ import annotations

import os
import shutil
import signal
from pathlib import Path

import pytest

from codebatch.model.digest import digest_bytes
from codebatch.model.record import FileChange
from codebatch.store.batches.pins import pinned_ids
from tests.changes.projects import Edits, make_changed_batch
from tests.changes.trees import TreeFile, read_tree
from tests.cli.changes.test_changes import EDITS, FILES
from tests.index.batches import make_saying
from tests.support.batches import make_batch
from tests.support.command_line import CommandLine, check_schema

AFTER = {b"a.py": b"one\nTWO\n", b"caf\xe9.py": b"1\n2\n", b"same.py": b"same\n"}


def contents(root: Path) -> dict[bytes, bytes]:
    """Return the content of each file of a project outside its store."""
    files = read_tree(root).items()
    return {path: file.content for path, file in files if not path.startswith((b".codebatch", b".git", b"no-home"))}


@pytest.fixture
def project(tmp_path: Path) -> CommandLine:
    """The command line in a project with a batch that proposes three changes."""
    make_changed_batch(tmp_path / ".codebatch", tmp_path, FILES, EDITS)
    return CommandLine(tmp_path)


def test_apply_prints_the_location_then_the_files(project: CommandLine, tmp_path: Path) -> None:
    ended = project("apply")
    location, next_, undo = ended.notes.splitlines()
    assert (location, next_) == (f"writing to {tmp_path}", "next: codebatch run .")
    assert ended.lines == ["written  a.py", r"written  caf\xe9.py", "written  d/b.py", "3 files written"]
    assert contents(tmp_path) == AFTER
    assert project("apply").lines == ["0 files written, 3 already applied"]
    ended = project(*undo.removeprefix("to undo this: codebatch ").split())
    assert ended.lines[-1] == "3 files written"
    assert contents(tmp_path) == FILES
    assert project("apply", "--reverse").lines == ["0 files written, 3 already undone"]


def test_next_command_in_a_git_work_tree_is_git_diff(project: CommandLine, tmp_path: Path) -> None:
    project.shell("git init -q .; echo .codebatch > .gitignore")
    assert project("apply").notes.splitlines()[1] == "next: git diff"
    (tmp_path / "d").mkdir(exist_ok=True)
    notes = project("apply", "--reverse", cwd=tmp_path / "d").notes
    assert notes.splitlines() == [f"writing to {tmp_path}", f"next: git -C {tmp_path} diff"]


def test_dry_run_lists_the_files_and_writes_nothing(project: CommandLine, tmp_path: Path) -> None:
    ended = project("apply", "--dry-run")
    assert ended.lines[0] == "to write a.py"
    assert ended.lines[-1] == "3 files can be written"
    assert ended.notes == f"checking files in {tmp_path}\n"
    assert contents(tmp_path) == FILES


def test_changed_file_is_refused_and_nothing_is_written_without_partial(project: CommandLine, tmp_path: Path) -> None:
    (tmp_path / "a.py").write_bytes(b"dirty\n")
    ended = project("apply", status=3)
    assert ended.lines == [
        "refused  a.py: its content is neither the old nor the new content of the change",
        "0 files written, 2 left out (other files were refused), 1 refused",
    ]
    assert ended.notes.splitlines()[-1] == "to write the other files, add --partial"
    assert contents(tmp_path) == {**FILES, b"a.py": b"dirty\n"}
    assert project("apply", "--dry-run", status=3).lines == ended.lines
    assert project("apply", "--partial", status=3).lines[-1] == "2 files written, 1 refused"
    assert contents(tmp_path) == {**AFTER, b"a.py": b"dirty\n"}


def test_json_has_one_row_for_each_file(project: CommandLine, tmp_path: Path) -> None:
    (tmp_path / "a.py").write_bytes(b"dirty\n")
    answer = project("apply", "--partial", "--json", status=3).json
    check_schema(answer)
    assert [row["state"] for row in answer["files"]] == ["refused", "written", "written"]
    assert {key: answer[key] for key in ("root", "written", "refused", "left_out", "applied")} == {
        "root": str(tmp_path), "written": 2, "refused": 1, "left_out": 0, "applied": 0,
    }  # fmt: skip
    assert [row["state"] for row in project("apply", "--json", status=3).json["files"]] == [
        "refused",
        "applied",
        "applied",
    ]


def test_tasks_and_paths_restrict_the_changes(project: CommandLine, tmp_path: Path) -> None:
    assert project("apply", "symbols").lines == [r"written  caf\xe9.py", "1 file written"]
    assert project("apply", "--path", "/d").lines == ["written  d/b.py", "1 file written"]
    ended = project("apply", "lint")
    assert (ended.lines, ended.notes.splitlines()[-1]) == ([], "no changes")
    assert contents(tmp_path)[b"a.py"] == FILES[b"a.py"]


def test_file_that_two_tasks_change_is_an_error_that_names_both(tmp_path: Path) -> None:
    edits: Edits = {"parse": {b"a.py": b"1\n"}, "lint": {b"a.py": b"2\n"}}
    make_changed_batch(tmp_path / ".codebatch", tmp_path, FILES, edits)
    project = CommandLine(tmp_path)
    assert "several tasks change 1 file: a.py (lint, parse)" in project("apply", status=2).notes
    assert contents(tmp_path) == FILES
    assert project("apply", "lint").lines == ["written  a.py", "1 file written"]


def test_batch_is_pinned_by_apply_and_not_by_a_dry_run(tmp_path: Path) -> None:
    store, batch = make_changed_batch(tmp_path / ".codebatch", tmp_path, FILES, EDITS)
    project = CommandLine(tmp_path)
    project("apply", "--dry-run")
    assert pinned_ids(store) == []
    project("apply")
    assert pinned_ids(store) == [batch.id]


def test_incomplete_batch_is_not_applied(tmp_path: Path) -> None:
    store, _ = make_changed_batch(tmp_path / ".codebatch", tmp_path, FILES, EDITS)
    make_batch(store, sorted(FILES), shard_items=2, at_ns=10**10, contents=FILES, sources=(str(tmp_path).encode(),))
    ended = CommandLine(tmp_path)("apply", status=3)
    assert "is PENDING, and only a COMPLETED batch can be applied" in ended.notes
    assert contents(tmp_path) == FILES


def test_other_project_must_be_named(tmp_path: Path) -> None:
    """The store is named, so the batch may belong to a project in which the user does not stand."""
    project, other = tmp_path / "project", tmp_path / "other"
    other.mkdir()
    _, batch = make_changed_batch(project / ".codebatch", project, FILES, EDITS)
    codebatch = CommandLine(other)
    words = ("apply", "--store", project / ".codebatch", "--batch", batch.id)
    for directory in (other, tmp_path):
        ended = codebatch(*words, status=2, cwd=directory)
        assert f"belongs to project {project}, not to the current project" in ended.notes
        assert "--root DIR" in ended.notes
    assert contents(project) == FILES
    ended = codebatch(*words, "--root", "../project")
    assert f"writing to {project}" in ended.notes
    assert contents(project) == AFTER
    (project / "d").mkdir(exist_ok=True)
    codebatch("apply", "--reverse", cwd=project / "d")
    assert contents(project) == FILES


def test_batch_of_another_project_in_the_store_of_this_one_needs_a_root(tmp_path: Path) -> None:
    """The store was used for another project too, by a run with `--store`."""
    here, other = tmp_path / "here", tmp_path / "other"
    _, batch = make_changed_batch(here / ".codebatch", other, FILES, EDITS)
    ended = CommandLine(here)("apply", "--batch", batch.id, status=2)
    assert f"belongs to project {other}, not to the current project" in ended.notes
    assert contents(other) == FILES


@pytest.mark.parametrize("root", ["missing", "a.py", ".git/hooks", ".codebatch"])
def test_root_must_be_a_usable_directory(project: CommandLine, tmp_path: Path, root: str) -> None:
    (tmp_path / ".git/hooks").mkdir(parents=True)
    assert f"{tmp_path / root}" in project("apply", "--root", root, status=2).notes
    assert contents(tmp_path) == FILES


def test_store_from_elsewhere_needs_trust(tmp_path: Path) -> None:
    """A copied store was not created here, although the user names it."""
    original, project = tmp_path / "original", tmp_path / "project"
    make_changed_batch(original / "store", original, FILES, EDITS)
    shutil.copytree(original, project, symlinks=True)
    words = ("apply", "--store", project / "store", "--root", project)
    codebatch = CommandLine(tmp_path)
    ended = codebatch(*words, status=4)
    assert "nothing is written: the store" in ended.notes
    assert "review the changes with `codebatch changes --patch" in ended.notes
    assert (project / "a.py").read_bytes() == FILES[b"a.py"]
    codebatch(*words, "--trust")
    assert (project / "a.py").read_bytes() == AFTER[b"a.py"]
    assert (original / "a.py").read_bytes() == FILES[b"a.py"]


def test_batch_of_several_sources_needs_a_root(tmp_path: Path) -> None:
    store, _ = make_changed_batch(tmp_path / ".codebatch", tmp_path, FILES, EDITS)
    sources = (str(tmp_path / "one").encode(), str(tmp_path / "two").encode())
    make_changed_batch(tmp_path / ".codebatch", tmp_path, FILES, EDITS, second=1, sources=sources)
    project = CommandLine(tmp_path)
    latest = project("batch", "list", "--json").json[-1]["batch_id"]
    assert "the location of the files is not certain" in project("apply", "--batch", latest, status=2).notes
    assert store.root.exists()
    project("apply", "--batch", latest, "--root", ".")
    assert contents(tmp_path) == AFTER


def test_planted_changes_write_nothing_outside_the_tree_and_into_git(tmp_path: Path) -> None:
    """The records of a stranger name paths that no file of the snapshot has."""
    root, canary = tmp_path / "project", tmp_path / "canary"
    (root / ".git/hooks").mkdir(parents=True)
    canary.mkdir()
    (canary / "x").write_bytes(b"old\n")
    (root / "link").symlink_to(canary)
    planted = ["../canary/x", str(canary / "x"), "link/x", ".git/hooks/pre-commit", ".GIT/hooks/x", "d/../../canary/x"]
    store, _ = make_changed_batch(root / ".codebatch", root, {b"a.py": b"old\n"}, {"parse": {b"a.py": b"new\n"}})
    old, new = digest_bytes(b"old\n"), digest_bytes(b"new\n")
    records = [FileChange(path=path, before=old, after=new, added=1, removed=1) for path in planted]
    source = str(root).encode()
    make_saying(store, 1, {"parse": [records]}, second=1, contents={b"a.py": b"old\n"}, sources=(source,))
    codebatch = CommandLine(root)
    rows = codebatch("apply", "--partial", "--trust", "--json", status=3).json["files"]
    assert [row["path"] for row in rows if row["state"] == "refused"] == sorted(planted)
    assert read_tree(canary) == {b"x": TreeFile(b"old\n")}
    assert os.listdir(root / ".git/hooks") == []


@pytest.mark.slow
def test_apply_that_is_killed_is_completed_by_the_same_command(tmp_path: Path) -> None:
    """The process is killed as soon as a temporary file, a new content, or many of each are seen."""
    files = {b"%03d.py" % number: b"old\n" for number in range(500)}
    new = dict.fromkeys(files, b"new\n")
    make_changed_batch(tmp_path / ".codebatch", tmp_path, files, {"parse": new})
    project = CommandLine(tmp_path)

    def count(is_temporary: bool) -> int:
        if is_temporary:
            return sum(name.endswith(".tmp") for name in os.listdir(tmp_path))
        return sum(path.read_bytes() == b"new\n" for path in tmp_path.glob("*.py"))

    kills = 0
    for is_temporary, least in ((True, 1), (True, 250), (False, 1), (False, 250), (False, 400)):
        process = project.start("apply")
        while process.poll() is None and count(is_temporary) < least:
            pass
        process.kill()
        process.communicate()
        kills += process.returncode == -signal.SIGKILL
        left = contents(tmp_path)
        assert {*(left[path] for path in files)} <= {b"old\n", b"new\n"}
    assert kills >= 2
    project("apply")
    assert contents(tmp_path) == new
    assert not list(tmp_path.glob(".codebatch-*"))
