"""Tests of changes that a gate refuses, in `changes` and `apply`."""

from __future__ import annotations

from pathlib import Path

import pytest

from codebatch.model.change import ChangeRefusal
from tests.changes.projects import Edits, make_changed_batch
from tests.support.command_line import CommandLine, check_schema

FILES = {b"a.py": b"one\n", b"b.py": b"two\n", b"c.py": b"three\n"}
EDITS: Edits = {"parse": {b"a.py": b"1\n", b"b.py": b"2\n"}, "lint": {b"c.py": b"3\n"}}
REFUSED = {b"b.py": ChangeRefusal(gate="parse", evidence="1 syntax error more")}


@pytest.fixture
def project(tmp_path: Path) -> CommandLine:
    """The command line in a project with three proposed changes, one of which is refused."""
    make_changed_batch(tmp_path / ".codebatch", tmp_path, FILES, EDITS, refused=REFUSED)
    return CommandLine(tmp_path)


def contents(root: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in root.glob("*.py")}


def test_table_and_json_show_the_gate_and_the_evidence(project: CommandLine) -> None:
    assert [line.split() for line in project("changes").lines] == [
        ["path", "task", "added", "removed", "refused"],
        ["a.py", "parse", "1", "1"],
        ["b.py", "parse", "1", "1", "parse:", "1", "syntax", "error", "more"],
        ["c.py", "lint", "1", "1"],
    ]
    assert len(project("changes", "--refused").lines) == 2
    assert project("changes", "lint", "--refused").notes == "no changes\n"
    answer = project("changes", "--json").json
    check_schema(answer)
    refusal = {"gate": "parse", "evidence": "1 syntax error more"}
    assert [row.get("refused") for row in answer["records"]] == [None, refusal, None]
    assert [row["path"] for row in project("changes", "--refused", "--json").records] == ["b.py"]


def test_patch_and_statistics_leave_refused_changes_out(project: CommandLine) -> None:
    patch = project("changes", "--patch")
    assert b"b.py" not in patch.stdout
    assert b"+1\n" in patch.stdout
    assert patch.notes == "1 refused change left out: see them with --refused\n"
    assert project("changes", "--stat").lines[-1] == "2 files changed, 2 lines added, 2 lines removed"
    refused = project("changes", "--patch", "--refused")
    assert (b"a.py" in refused.stdout, b"+2\n" in refused.stdout, refused.notes) == (False, True, "")
    assert project("changes", "--stat", "--refused").lines[0] == "b.py | 2 +-"


def test_apply_leaves_refused_changes_out_unless_they_are_requested(project: CommandLine, tmp_path: Path) -> None:
    ended = project("apply")
    assert ended.lines == [
        "written  a.py",
        "written  c.py",
        "left out b.py: refused by parse: 1 syntax error more",
        "2 files written, 1 left out by gates",
    ]
    assert "to apply the changes that gates refuse, add --refused" in ended.notes
    assert contents(tmp_path) == {"a.py": b"1\n", "b.py": b"two\n", "c.py": b"3\n"}
    answer = project("apply", "--json").json
    check_schema(answer)
    assert (answer["applied"], answer["left_out"], answer["refused"]) == (2, 1, 0)
    assert [row["state"] for row in answer["files"]] == ["applied", "left_out", "applied"]
    assert answer["files"][1]["reason"] == "refused by parse: 1 syntax error more"
    assert project("apply", "--refused").lines == ["written  b.py", "1 file written, 2 already applied"]
    assert contents(tmp_path)["b.py"] == b"2\n"


def test_undoing_is_not_held_back_by_gates(project: CommandLine, tmp_path: Path) -> None:
    project("apply", "--refused")
    assert project("apply", "--reverse", "--dry-run").lines[-1] == "3 files can be written"
    assert project("apply", "--reverse").lines[-1] == "3 files written"
    assert contents(tmp_path) == {name.decode(): content for name, content in FILES.items()}
    project("apply")
    assert project("apply", "--reverse").lines[-1] == "2 files written, 1 already undone"


def test_exit_status_says_that_a_refused_change_may_not_be_undone(project: CommandLine, tmp_path: Path) -> None:
    """Its file was edited. Whether it was applied before is unknown."""
    project("apply")
    (tmp_path / "b.py").write_bytes(b"edited\n")
    assert project("apply", "--reverse", status=3).lines[-1] == "2 files written, 1 left out by gates"
    assert contents(tmp_path) == {"a.py": b"one\n", "b.py": b"edited\n", "c.py": b"three\n"}


def test_undone_change_of_another_task_restores_the_file(tmp_path: Path) -> None:
    edits: Edits = {"parse": {b"b.py": b"2\n"}, "lint": {b"b.py": b"3\n", b"c.py": b"3\n"}}
    refusals = {b"b.py": ChangeRefusal(gate="parse", evidence="1 syntax error more")}
    make_changed_batch(tmp_path / ".codebatch", tmp_path, FILES, edits, refused=refusals)
    codebatch = CommandLine(tmp_path)
    codebatch("apply")
    assert codebatch("apply", "--reverse", status=3).lines[-1] == "1 file written, 2 left out by gates"
    codebatch("apply", "lint", "--refused")
    assert codebatch("apply", "--reverse", "lint").lines[-1] == "2 files written"
    assert contents(tmp_path) == {name.decode(): content for name, content in FILES.items()}


def test_dry_run_and_refused_files_do_not_mix_with_gates(project: CommandLine, tmp_path: Path) -> None:
    assert project("apply", "--dry-run").lines == [
        "to write a.py",
        "to write c.py",
        "left out b.py: refused by parse: 1 syntax error more",
        "2 files can be written, 1 left out by gates",
    ]
    (tmp_path / "a.py").write_bytes(b"edited\n")
    ended = project("apply", status=3)
    assert ended.lines[-1].startswith("0 files written, 1 left out by gates, 1 left out (")
    assert "to write the other files, add --partial" in ended.notes
    (tmp_path / "c.py").write_bytes(b"edited\n")
    assert "--partial" not in project("apply", status=3).notes


def test_refused_changes_of_one_file_conflict_only_if_they_are_requested(tmp_path: Path) -> None:
    edits: Edits = {"parse": {b"b.py": b"2\n"}, "lint": {b"b.py": b"1\n"}}
    make_changed_batch(tmp_path / ".codebatch", tmp_path, FILES, edits, refused=REFUSED)
    project = CommandLine(tmp_path)
    assert project("apply", "--dry-run", status=1).lines[-1] == "0 files can be written, 2 left out by gates"
    assert project("changes", "--patch").stdout == b""
    assert "several tasks change 1 file" in project("apply", "--refused", status=2).notes
    assert "several tasks change 1 file" in project("changes", "--refused", "--patch", status=2).notes
