"""What was found for one tree answers for an equal one in a batch of its own (SPEC.md "Batches", adopts)."""

from __future__ import annotations

import shutil

import pytest

from tests.support.command_line import CommandLine, write, write_own_task

SOUND, BROKEN = "import os\n\nprint(os)\n", "x = (\n"


@pytest.fixture
def two(codebatch: CommandLine) -> CommandLine:
    """Two equal projects and a store that is neither's; the first was run."""
    for name in ("one", "two"):
        write(codebatch.directory / name / "m.py", SOUND)
    codebatch.environment["CODEBATCH_STORE"] = str(codebatch.directory / "store")
    codebatch("run", "one")
    return codebatch


def test_equal_tree_elsewhere_gets_its_own_batch(two: CommandLine) -> None:
    here = two.directory / "two"
    ended = two("run", ".", "--json", cwd=here).json
    assert ended["action"] == "up to date"
    assert two("inspect", str(here / "m.py"), "--json", "--explain", cwd=here).json["stale"] is False
    write(here / "m.py", BROKEN)
    answer = two("summary", "--json", cwd=here).json
    assert (answer["batch_id"], answer["stale"]) == (ended["batch_id"], True)
    notes = two("errors", cwd=here).notes
    assert f"update them with: codebatch run {here}\n" in notes
    assert "where the current directory is not" not in notes


def test_latest_batch_is_of_the_tree_that_was_run_last(codebatch: CommandLine) -> None:
    """As when a branch is left and come back to."""
    for text in (SOUND, BROKEN, SOUND):
        write(codebatch.directory / "m.py", text)
        codebatch("run", ".", status=0)
    answer = codebatch("query", "diagnostics", "--json")
    assert answer.records == []
    assert "stale" not in answer.notes
    assert len(codebatch("batch", "list", "--json").json) == 3
    codebatch("run", ".")
    assert len(codebatch("batch", "list", "--json").json) == 3, "it is the latest by now"


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


def test_adopted_batch_resumes_without_the_original_batch(two: CommandLine) -> None:
    heal = f"    assert os.path.exists({str(two.directory / 'healed')!r})\n    return []\n"
    write_own_task(two.directory, "judge", f"import os\ndef task(file):\n{heal}")
    first = two("run", "one", "--json", status=3).json["batch_id"]
    two("run", "two", status=3)
    here = two.directory / "two"
    second = two("batch", "show", "--json", cwd=here).json["batch_id"]
    assert second != first
    shutil.rmtree(two.directory / "store" / "batches" / first)
    assert "AssertionError" in two("errors", cwd=here).text
    write(two.directory / "healed", "")
    assert two("resume", "--json", cwd=here).json["status"] == "COMPLETED"
    assert two("summary", "--json", cwd=here).json["complete"] is True


def test_pending_batch_of_an_equal_tree_is_completed_and_adopted(two: CommandLine) -> None:
    write(two.directory / "one" / "n.py", SOUND)
    two("batch", "init", "--snapshot", two("snapshot", "one", "--json").json["snapshot_id"])
    write(two.directory / "two" / "n.py", SOUND)
    ended = two("run", "two", "--json").json
    shown = two("batch", "show", "--json", cwd=two.directory / "two").json
    assert (shown["batch_id"], shown["source"]) == (ended["batch_id"], str(two.directory / "two"))
    assert (shown["status"], ended["status"]) == ("COMPLETED", "COMPLETED")
