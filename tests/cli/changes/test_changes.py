"""Tests of the command `changes`: table, statistics, patch, JSON, and its refusals."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.changes.projects import Edits, make_changed_batch
from tests.support.command_line import CommandLine, check_schema

FILES = {b"a.py": b"one\ntwo\n", b"d/b.py": b"x\n", b"caf\xe9.py": b"1\n2\n3", b"same.py": b"same\n"}
EDITS: Edits = {
    "parse": {b"a.py": b"one\nTWO\n", b"d/b.py": None},
    "symbols": {b"caf\xe9.py": b"1\n2\n"},
}


@pytest.fixture
def project(tmp_path: Path) -> CommandLine:
    """The command line in a project with a batch that proposes three changes."""
    make_changed_batch(tmp_path / ".codebatch", tmp_path, FILES, EDITS)
    return CommandLine(tmp_path)


def test_table_has_path_task_and_counts(project: CommandLine) -> None:
    assert [line.split() for line in project("changes").lines] == [
        ["path", "task", "added", "removed"],
        ["a.py", "parse", "2", "2"],
        [r"caf\xe9.py", "symbols", "2", "2"],
        ["d/b.py", "parse", "0", "1"],
    ]


def test_changes_are_restricted_to_tasks_and_paths(project: CommandLine) -> None:
    assert len(project("changes", "symbols").lines) == 2
    assert len(project("changes", "symbols", "parse", "parse").lines) == 4
    assert [line.split()[0] for line in project("changes", "--path", "/d").lines] == ["path", "d/b.py"]
    ended = project("changes", "lint")
    assert (ended.lines, ended.notes) == ([], "no changes\n")
    assert "the batch has no task 'rename'" in project("changes", "rename", status=2).notes


def test_stat_has_a_bar_for_each_file(project: CommandLine) -> None:
    assert project("changes", "--stat").lines == [
        r"a.py       | 4 ++--",
        r"caf\xe9.py | 4 ++--",
        r"d/b.py     | 1 -",
        "3 files changed, 4 lines added, 5 lines removed",
    ]


def test_git_applies_the_printed_patch(project: CommandLine, tmp_path: Path) -> None:
    patch = project("changes", "--patch").stdout
    subprocess.run(["git", "apply", "-"], cwd=tmp_path, input=patch, check=True)
    assert (tmp_path / "a.py").read_bytes() == b"one\nTWO\n"
    assert not (tmp_path / "d/b.py").exists()
    assert project("changes", "lint", "--patch").stdout == b""


def test_json_has_one_row_for_each_change(project: CommandLine) -> None:
    answer = project("changes", "--json").json
    check_schema(answer)
    assert [(row.get("path"), row["task"], row["after"] is None) for row in answer["records"]] == [
        ("a.py", "parse", False),
        (None, "symbols", False),
        ("d/b.py", "parse", True),
    ]
    assert answer["complete"]


@pytest.mark.parametrize("other", ["--stat", "--json"])
def test_patch_excludes_other_formats(project: CommandLine, other: str) -> None:
    assert f"--patch cannot be used with {other}" in project("changes", "--patch", other, status=2).notes


def test_patch_of_a_file_that_two_tasks_change_is_refused(tmp_path: Path) -> None:
    edits: Edits = {"parse": {b"a.py": b"1\n"}, "lint": {b"a.py": b"2\n"}}
    make_changed_batch(tmp_path / ".codebatch", tmp_path, FILES, edits)
    project = CommandLine(tmp_path)
    notes = project("changes", "--patch", status=2).notes
    assert "several tasks change 1 file: a.py (lint, parse)" in notes
    assert len(project("changes").lines) == 3
    assert b"+2\n" in project("changes", "lint", "--patch").stdout


@pytest.mark.parametrize("command", ["changes", "apply"])
def test_completion_offers_the_tasks_of_the_batch(project: CommandLine, command: str) -> None:
    words = {"_CODEBATCH_COMPLETE": "bash_complete", "COMP_WORDS": f"codebatch {command} sy", "COMP_CWORD": "2"}
    assert CommandLine(project.directory, words)().lines == ["plain,symbols"]
    shutil.rmtree(project.directory / ".codebatch")
    assert "symbols" not in CommandLine(project.directory, words)().text


def test_sources_of_changes_are_explained(project: CommandLine) -> None:
    answer = project("explain", "changes", "--json").json
    assert answer["answer"] == "codebatch.changes/1"
    assert any("objects/*.pack" in source["paths"] for source in answer["reads"])


def test_groups_are_counted_by_task_owner_and_directory(tmp_path: Path) -> None:
    owners = {b"docs/CODEOWNERS": b"* @docs\n", b"CODEOWNERS": b"/d/ @team\n"}
    make_changed_batch(tmp_path / ".codebatch", tmp_path, {**FILES, **owners}, EDITS)
    project = CommandLine(tmp_path)
    rows = {
        by: [tuple(line.split()) for line in project("changes", "--by", by).lines]
        for by in ("task", "owner", "directory")
    }
    head = ("files", "added", "removed")
    assert rows == {
        "task": [("task", *head), ("parse", "2", "2", "3"), ("symbols", "1", "2", "2")],
        "owner": [("owner", *head), ("@team", "1", "0", "1"), ("no", "owner", "2", "4", "4")],
        "directory": [("directory", *head), (".", "2", "4", "4"), ("d", "1", "0", "1")],
    }
    answer = project("changes", "--by", "owner", "--json").json
    check_schema(answer)
    assert answer["schema"] == "codebatch.changes-by/1"
    assert [(row["group"], row["files"]) for row in answer["records"]] == [("@team", 1), (None, 2)]
    assert len(project("changes", "symbols", "--by", "task").lines) == 2
    ended = project("changes", "lint", "--by", "task")
    assert (ended.lines, ended.notes) == ([], "no changes\n")


def test_missing_and_large_owners_are_reported(project: CommandLine, tmp_path: Path) -> None:
    ended = project("changes", "--by", "owner")
    assert "the snapshot has no file .github/CODEOWNERS, CODEOWNERS, docs/CODEOWNERS" in ended.notes
    assert ended.lines[-1].split() == ["no", "owner", "3", "4", "5"]
    files = {**FILES, b".github/CODEOWNERS": b"#" * (3 << 20) + b"\n"}
    make_changed_batch(tmp_path / ".codebatch", tmp_path, files, EDITS, second=1)
    assert (
        ".github/CODEOWNERS has 3.1 MB, and at most 3.1 MB are read"
        in project("changes", "--by", "owner", status=2).notes
    )


def test_sample_has_the_changes_of_different_kinds(project: CommandLine) -> None:
    ended = project("changes", "--sample", "2")
    assert [line.split()[0] for line in ended.lines] == ["path", "a.py", "d/b.py"]
    assert ended.notes == "2 of 3 changes\n"
    assert b"a/a.py" in project("changes", "--sample", "1", "--patch").stdout
    assert project("changes", "--sample", "1", "--stat").lines[-1].startswith("1 file changed")
    assert len(project("changes", "--sample", "1", "--json").json["records"]) == 1
    assert project("changes", "--sample", "3").notes == ""
    assert project("changes", "lint", "--sample", "3").notes == "no changes\n"
    project("changes", "--sample", "0", status=2)


@pytest.mark.parametrize("other", [("--patch",), ("--stat",), ("--sample", "1")])
def test_groups_exclude_other_formats(project: CommandLine, other: tuple[str, ...]) -> None:
    assert f"--by cannot be used with {other[0]}" in project("changes", "--by", "task", *other, status=2).notes
