"""Arguments of `run`, and its action if there is already a batch."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

import codebatch_workers
from tests.support.command_line import CommandLine, Ended, make_project, wait_until, write, write_own_task


@pytest.fixture
def codebatch(tmp_path_factory: pytest.TempPathFactory) -> CommandLine:
    """The command line in a directory with a project."""
    codebatch = CommandLine(tmp_path_factory.mktemp("run"))
    make_project(codebatch.directory / "project")
    return codebatch


def paths_of(codebatch: CommandLine, ended: Ended) -> list[str]:
    """Return the paths of the batch that a run reports."""
    rows = codebatch("files", "--batch", ended.json["batch_id"], "--json").records
    return [row.get("path", "?") for row in rows]


def test_include_and_exclude_select_files(codebatch: CommandLine) -> None:
    only = codebatch("run", "project", "--json", "--include", "*.py", "--exclude", "src/broken.py")
    assert paths_of(codebatch, only) == ["Grüße, Welt.py", "?", "src/main.py"]
    without = codebatch("run", "project", "--json", "--exclude", "src/", "--exclude", "*.bin", "--exclude", "caf*")
    assert paths_of(codebatch, without)[1:] == ["data.json", "native/main.c", "web/app.js", "web/types.ts"]


def test_one_file_can_be_run(codebatch: CommandLine) -> None:
    assert paths_of(codebatch, codebatch("run", "project/src/main.py", "--json")) == ["main.py"]
    assert codebatch("inspect", "project/src/main.py").lines


def test_run_of_several_roots_has_paths_relative_to_their_common_parent(codebatch: CommandLine) -> None:
    ended = codebatch("run", "project/src", "project/web/app.js", "--json")
    assert paths_of(codebatch, ended) == ["src/broken.py", "src/main.py", "web/app.js"]
    assert codebatch("inspect", "project/src/main.py").stdout == codebatch("inspect", "src/main.py").stdout
    assert codebatch("run", "project/web/app.js", "project/src", "--json").json["action"] == "up to date"


def test_second_run_is_up_to_date_until_the_tree_changes(codebatch: CommandLine) -> None:
    first = codebatch("run", "project", "--json").json
    assert (first["action"], first["success"]) == ("new", True)
    again = codebatch("run", "project", "--json", "-v")
    of_the_run = {"seconds": 0, "action": "", "executed": 0}
    assert again.json | of_the_run == first | of_the_run
    assert (again.json["executed"], first["executed"]) == (0, 36)
    assert again.json["action"] == "up to date"
    assert "nothing to do" in again.notes
    write(codebatch.directory / "project" / "new.py", "y = 2\n")
    changed = codebatch("run", "project", "--json").json
    assert (changed["action"], changed["files"]) == ("new", 10)
    (codebatch.directory / "project" / "new.py").unlink()
    back = codebatch("run", "project", "--json")
    assert back.json["result_digest"] == first["result_digest"]
    assert (back.json["action"], back.json["batch_id"] > changed["batch_id"]) == ("up to date", True)
    assert back.notes.splitlines()[-1] == "next: codebatch findings"


def test_run_with_batch_option_resumes_the_planned_batch(codebatch: CommandLine) -> None:
    first = codebatch("run", "project", "--json", "--task", "parse").json
    write(codebatch.directory / "project" / "new.py", "y = 2\n")
    ended = codebatch("run", "--batch", "latest", "--json").json
    assert (ended["batch_id"], ended["status"], ended["files"]) == (first["batch_id"], "COMPLETED", 9)
    assert codebatch("run", "project", "--json").json["files"] == 10


def test_installation_with_other_task_code_cannot_resume_a_batch(codebatch: CommandLine, tmp_path: Path) -> None:
    """The other installation is a copy of the package that implements the tasks, with one more line."""
    batch_id = codebatch("run", "project", "--task", "parse", "--json").json["batch_id"]
    package = Path(codebatch_workers.__file__).parent
    shutil.copytree(package, tmp_path / "codebatch_workers", ignore=shutil.ignore_patterns("__pycache__"))
    with open(tmp_path / "codebatch_workers" / "tasks" / "lint.py", "a", encoding="utf-8") as file:
        file.write("# another release\n")
    other = CommandLine(codebatch.directory, {"PYTHONPATH": str(tmp_path)})
    for command in ("run --batch latest", "resume", "run-shard --task parse --shard="):
        error = other(*command.split(), "--json", status=2).error
        assert error["code"] == "tool_mismatch", command
        assert "implementation_digest" in error["message"]
        assert "codebatch run PATH" in error["hint"]
    assert other("status", "--json").json["batch_id"] == batch_id, "reading must work in any installation"
    assert codebatch("run", "--batch", "latest", "--json").json["status"] == "COMPLETED"


def test_run_fails_if_the_installation_is_replaced_meanwhile(codebatch: CommandLine, tmp_path: Path) -> None:
    """A task replaces the installation and ends its worker.

    The next worker then runs other code than the planning process.
    """
    package = tmp_path / "installed" / "codebatch_workers"
    shutil.copytree(Path(codebatch_workers.__file__).parent, package, ignore=shutil.ignore_patterns("__pycache__"))
    replaced = package / "tasks" / "lint.py"
    write_own_task(
        codebatch.directory,
        "replacing",
        f"import os\ndef task(file):\n    open({str(replaced)!r}, 'a').write('# another release\\n')\n    os.abort()\n",
    )
    installed = CommandLine(codebatch.directory, {"PYTHONPATH": str(package.parent)})
    ended = installed("run", "project", "-j", "1", "--json", status=2)
    assert ended.error["code"] == "tool_mismatch"
    assert "different implementation_digest" in ended.error["message"]


def test_run_fails_but_retains_results_if_a_local_task_is_edited(codebatch: CommandLine) -> None:
    edits = "    open(__file__, 'a').write('# edited\\n')\n    os.abort()\n"
    task = write_own_task(codebatch.directory, "edited", f"import os\ndef task(file):\n{edits}")
    ended = codebatch("run", "project", "-j", "1", "--json", status=2)
    assert ended.error["code"] == "tool_mismatch"
    assert "planned with another version of edited" in ended.error["message"]
    write(task, "def task(file):\n    return []\n")
    answer = codebatch("run", "project", "--json").json
    fresh = codebatch("run", "project", "--json", "--store", "anew").json
    assert (answer["status"], answer["result_digest"]) == ("COMPLETED", fresh["result_digest"])


def test_again_creates_a_new_batch_with_the_same_result(codebatch: CommandLine) -> None:
    first = codebatch("run", "project", "--json").json
    again = codebatch("run", "project", "--again", "--json").json
    assert again["batch_id"] != first["batch_id"]
    assert again["result_digest"] == first["result_digest"]
    assert codebatch("status", "--batch", "latest~1", "--json").json["batch_id"] == first["batch_id"]


def test_number_of_workers_does_not_affect_the_result_digest(codebatch: CommandLine) -> None:
    (codebatch.directory / "codebatch.toml").write_text("[shard]\nfiles_average = 2\nfiles_min = 1\nfiles_max = 3\n")
    one, three = (codebatch("run", "project", "--again", "-j", jobs, "--json").json for jobs in ("1", "3"))
    assert one["result_digest"] == three["result_digest"]


def test_pipeline_option_selects_the_tasks(codebatch: CommandLine) -> None:
    parsed = codebatch("run", "project", "--pipeline", "parse", "--json").json
    assert [task["task_id"] for task in codebatch("tasks", "--json").json] == ["parse"]
    whole = codebatch("run", "project", "--json").json
    assert whole["snapshot_id"] == parsed["snapshot_id"]
    assert whole["batch_id"] != parsed["batch_id"]


def test_store_stats_reports_the_size_of_the_store(codebatch: CommandLine) -> None:
    codebatch("run", "project")
    stats = codebatch("store-stats", "--json").json
    files = {path.lstat().st_ino: path.lstat().st_size for path in _files(codebatch.directory / ".codebatch")}
    assert stats["bytes"] == sum(files.values()) == sum(part["bytes"] for part in stats["parts"].values())
    assert (stats["batches"], stats["snapshots"], stats["pinned"]) == (1, 1, [])
    assert {"objects", "batches/outputs", "snapshots"} <= stats["parts"].keys()


def _files(directory: Path) -> Iterator[Path]:
    return (path for path in directory.rglob("*") if path.is_symlink() or not path.is_dir())


def test_files_why_names_the_rule(codebatch: CommandLine) -> None:
    write(codebatch.directory / "project" / ".codebatchignore", "*.ts\n")
    left_out = codebatch("files", "--why", "project/web/types.ts", "--json").json
    assert (left_out["path"], left_out["included"]) == ("project/web/types.ts", False)
    assert ".codebatchignore:1:*.ts" in left_out["rule"]
    assert codebatch("files", "--why", "project/web/app.js", "--json").json["included"] is True
    excluded = codebatch("files", "--why", "project/web/app.js", "--exclude", "web/")
    assert "excluded" in excluded.lines[0]
    assert "does not exist" in codebatch("files", "--why", "project/nowhere.py").lines[0]
    assert "does not exist" in codebatch("files", "--why", "/nowhere", status=2).notes
    outside = codebatch("files", "--why", "../web/app.js", status=2, cwd=codebatch.directory / "project" / "src")
    assert "is outside the analysed project" in outside.notes


@pytest.mark.parametrize("count", [2, pytest.param(8, marks=pytest.mark.slow)])
def test_concurrent_runs_share_one_batch(codebatch: CommandLine, count: int) -> None:
    make_project(codebatch.directory / "tree")
    arguments = ("run", "tree", "--store", "store", "--json", "-j", "1")
    answers = [codebatch.finish(one).json for one in [codebatch.start(*arguments) for _ in range(count)]]
    assert {answer["status"] for answer in answers} == {"COMPLETED"}
    assert len({answer["result_digest"] for answer in answers}) == 1
    assert len({answer["batch_id"] for answer in answers}) == 1
    assert len(codebatch("batch", "list", "--store", "store", "--json").json) == 1
    assert [answer["action"] for answer in answers].count("new") == 1


@pytest.mark.parametrize(
    "moment", ["store.json", "snapshots/snap-*", "locks/batches", "batches/.*.tmp", "batches/batch-*"]
)
def test_killed_concurrent_run_leaves_one_batch_to_the_others(codebatch: CommandLine, moment: str) -> None:
    make_project(codebatch.directory / "tree")
    arguments = ("run", "tree", "--store", "store", "--json", "-j", "1")
    first, *others = [codebatch.start(*arguments) for _ in range(3)]
    wait_until(lambda: any((codebatch.directory / "store").glob(moment)) or first.poll() is not None, moment)
    first.kill()
    first.communicate()
    answers = [codebatch.finish(one).json for one in others]
    assert {answer["status"] for answer in answers} == {"COMPLETED"}
    assert len({answer["batch_id"] for answer in answers}) == 1
    assert len(codebatch("batch", "list", "--store", "store", "--json").json) == 1
