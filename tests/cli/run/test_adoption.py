"""Results of one tree are used for an equal tree, in a separate batch (SPEC.md "Batches", adopts)."""

from __future__ import annotations

import shutil

import pytest

from tests.support.command_line import CommandLine, write, write_own_task

SOUND, BROKEN = "import os\n\nprint(os)\n", "x = (\n"


@pytest.fixture
def two_projects(codebatch: CommandLine) -> CommandLine:
    """Two equal projects and a shared store. Only the first project was analysed."""
    for name in ("one", "two"):
        write(codebatch.directory / name / "m.py", SOUND)
    codebatch.environment["CODEBATCH_STORE"] = str(codebatch.directory / "store")
    codebatch("run", "one")
    return codebatch


def test_equal_tree_elsewhere_gets_its_own_batch(two_projects: CommandLine) -> None:
    here = two_projects.directory / "two"
    ended = two_projects("run", ".", "--json", cwd=here).json
    assert ended["action"] == "up to date"
    assert two_projects("inspect", str(here / "m.py"), "--json", "--explain", cwd=here).json["stale"] is False
    write(here / "m.py", BROKEN)
    answer = two_projects("summary", "--json", cwd=here).json
    assert (answer["batch_id"], answer["stale"]) == (ended["batch_id"], True)
    notes = two_projects("errors", cwd=here).notes
    assert f"update them with: codebatch run {here}\n" in notes
    assert "where the current directory is not" not in notes


def test_latest_batch_is_of_the_tree_that_was_run_last(codebatch: CommandLine) -> None:
    """This happens when a user switches to another branch and back."""
    for text in (SOUND, BROKEN, SOUND):
        write(codebatch.directory / "m.py", text)
        codebatch("run", ".", status=0)
    answer = codebatch("query", "diagnostics", "--json")
    assert answer.records == []
    assert "stale" not in answer.notes
    assert len(codebatch("batch", "list", "--json").json) == 3
    codebatch("run", ".")
    assert len(codebatch("batch", "list", "--json").json) == 3, "a batch that is the latest must not be adopted again"


def test_up_to_date_run_of_other_paths_becomes_the_latest(codebatch: CommandLine) -> None:
    for name in ("a", "b"):
        write(codebatch.directory / name / "m.py", SOUND)
    codebatch("run", ".")
    codebatch("run", "a")
    for path, paths in ((".", []), ("a", ["a"])):
        ended = codebatch("run", path, "--json").json
        assert ended["action"] == "up to date"
        assert codebatch("batch", "show", "latest", "--json").json["paths"] == paths
        assert codebatch("status", "--json").json["batch_id"] == ended["batch_id"]


def test_batch_stores_its_own_patterns_if_they_select_the_same_files(codebatch: CommandLine) -> None:
    write(codebatch.directory / "m.py", SOUND)
    codebatch("run", ".", "--include", "*.py")
    assert codebatch("run", ".", "--json").json["action"] == "up to date"
    write(codebatch.directory / "n.js", BROKEN)
    assert codebatch("summary", "--json").json["stale"] is True


def test_adopted_batch_resumes_without_the_original_batch(two_projects: CommandLine) -> None:
    heal = f"    assert os.path.exists({str(two_projects.directory / 'healed')!r})\n    return []\n"
    write_own_task(two_projects.directory, "judge", f"import os\ndef task(file):\n{heal}")
    first = two_projects("run", "one", "--json", status=3).json["batch_id"]
    two_projects("run", "two", status=3)
    here = two_projects.directory / "two"
    second = two_projects("batch", "show", "--json", cwd=here).json["batch_id"]
    assert second != first
    shutil.rmtree(two_projects.directory / "store" / "batches" / first)
    assert "AssertionError" in two_projects("errors", cwd=here).text
    write(two_projects.directory / "healed", "")
    assert two_projects("resume", "--json", cwd=here).json["status"] == "COMPLETED"
    assert two_projects("summary", "--json", cwd=here).json["complete"] is True


def test_pending_batch_of_an_equal_tree_is_completed_and_adopted(two_projects: CommandLine) -> None:
    write(two_projects.directory / "one" / "n.py", SOUND)
    two_projects("batch", "init", "--snapshot", two_projects("snapshot", "one", "--json").json["snapshot_id"])
    write(two_projects.directory / "two" / "n.py", SOUND)
    ended = two_projects("run", "two", "--json").json
    shown = two_projects("batch", "show", "--json", cwd=two_projects.directory / "two").json
    assert (shown["batch_id"], shown["source"]) == (ended["batch_id"], str(two_projects.directory / "two"))
    assert (shown["status"], ended["status"]) == ("COMPLETED", "COMPLETED")
