"""`apply --branch`, and groups and samples of changes, for the isolated tasks of a task list."""

from __future__ import annotations

from pathlib import Path

import pytest

from codebatch.store.work.applications import ApplicationStore
from tests.changes import work_batches
from tests.changes.work_batches import IsolatedBatch, make_isolated_batch
from tests.support.command_line import CommandLine, check_schema
from tests.support.git_repositories import git

FILES = {b"a.py": b"a\n", b"d/b.py": b"b\n"}


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> IsolatedBatch:
    """A batch whose tasks `one`, `two` and `three` change a.py one after the other, and `other` changes it too."""
    git(tmp_path, "init", "-q", "-b", "main")
    git(tmp_path, "config", "user.name", "n")
    git(tmp_path, "config", "user.email", "n@n")
    (tmp_path / ".gitignore").write_text(".codebatch\nno-home\n")
    (tmp_path / "d").mkdir()
    for path, content in FILES.items():
        (tmp_path / path.decode()).write_bytes(content)
    git(tmp_path, "add", "--all")
    git(tmp_path, "commit", "-qm", "m")
    monkeypatch.setattr(work_batches, "BASE", git(tmp_path, "rev-parse", "HEAD"))
    made = make_isolated_batch(
        tmp_path / ".codebatch",
        tmp_path,
        ["two", "other", "one", "after", "bad"],
        needs=(("two", "one"), ("after", "other")),
    )
    made.end("one", {b"a.py": (b"a\n", b"1\n")})
    made.end("two", {b"a.py": (b"1\n", b"2\n")})
    made.end("other", {b"a.py": (b"a\n", b"o\n")})
    made.end("after", {b"new.py": (None, b"n\n")})
    made.end("bad", {b"d/b.py": (b"b\n", b"x\n")}, type_="failed")
    return made


def applied(made: IsolatedBatch) -> list[str]:
    return sorted(each.task for each in ApplicationStore(made.batch.files, made.batch.root).read_applied())


def test_branch_has_a_commit_for_each_task_that_fits(tmp_path: Path, made: IsolatedBatch) -> None:
    """Of `one` and `other`, the second that is committed does not fit. The task that needs it is left out too."""
    notes = CommandLine(tmp_path)("apply", "--branch", "new", status=3).notes
    subjects = git(tmp_path, "log", "--format=%s", "main..new").splitlines()
    answer = CommandLine(tmp_path)("apply", "--branch", "newer", "--json", status=3).json
    check_schema(answer)
    assert [commit["subject"] for commit in answer["commits"]] == subjects[::-1]
    refused = {row["task"] for row in answer["refused"]}
    done = {commit["task"] for commit in answer["commits"]}
    assert refused | done | set(answer["left_out"]) == {"one", "two", "other", "after"}
    assert f"left out because of refused files: {', '.join(answer['left_out'])};" in notes
    assert {"one", "two"} <= done or {"other", "after"} <= done
    lines = CommandLine(tmp_path)("apply", "--branch", "newest", "--dry-run", status=3).lines
    assert lines[: len(done)] == [f"commit  {subject}" for subject in subjects[::-1]]
    assert lines[-1] == f"{len(done)} commits with {len(done)} files can be made, 1 refused"
    assert applied(made) == sorted(done)
    assert (tmp_path / "a.py").read_bytes() == b"a\n"
    assert "bad" not in str(answer)


def test_chain_makes_one_commit_after_the_other(tmp_path: Path, made: IsolatedBatch) -> None:
    CommandLine(tmp_path)("apply", "two", "one", "--branch", "chain")
    assert git(tmp_path, "log", "--format=%s", "main..chain").splitlines() == ["two: Change a.py", "one: Change a.py"]
    assert git(tmp_path, "show", "chain:a.py") == "2"
    assert git(tmp_path, "show", "chain~1:a.py") == "1"
    (application,) = ApplicationStore(made.batch.files, made.batch.root).read()
    assert application.branch == "chain"
    assert applied(made) == ["one", "two"]


def test_dry_run_records_nothing(tmp_path: Path, made: IsolatedBatch) -> None:
    CommandLine(tmp_path)("apply", "one", "--branch", "x", "--dry-run")
    assert applied(made) == []


def test_owners_are_those_of_the_root(tmp_path: Path, made: IsolatedBatch) -> None:
    codebatch = CommandLine(tmp_path)
    assert "the root of the task list has no file" in codebatch("changes", "--by", "owner").notes
    (tmp_path / "CODEOWNERS").write_text("/d/ @team\n")
    lines = codebatch("changes", "--by", "owner").lines
    assert [line.split()[0] for line in lines] == ["owner", "@team", "no"]
    codebatch("apply", "--branch", "x", "--commit-per", "owner", status=3)
    assert " (no owner)" in git(tmp_path, "log", "--format=%s", "main..x")


def test_copies_have_no_commit(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q")
    made = make_isolated_batch(tmp_path / ".codebatch", tmp_path, ["one"], isolation="copy")
    made.end("one", {b"n": (None, b"n\n")})
    assert "its tasks worked in copies" in CommandLine(tmp_path)("apply", "--branch", "x", status=2).notes


def test_changes_by_directory_and_samples(tmp_path: Path, made: IsolatedBatch) -> None:
    codebatch = CommandLine(tmp_path)
    lines = codebatch("changes", "--by", "directory").lines
    assert [line.split() for line in lines] == [
        ["directory", "files", "added", "removed"], [".", "4", "4", "3"], ["d", "1", "1", "1"],
    ]  # fmt: skip
    check_schema(codebatch("changes", "--by", "task", "--json").json)
    ended = codebatch("changes", "--sample", "2")
    assert len(ended.lines) == 3
    assert "2 of 5 changes" in ended.notes
    assert codebatch("changes", "one", "two", "--patch", "--sample", "1").text.count("diff --git") == 1
