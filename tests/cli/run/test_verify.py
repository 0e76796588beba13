"""`verify` executes a sample again and reports tasks with different results, which are then not reused."""

from __future__ import annotations

from pathlib import Path

import pytest

from codebatch.model.analysis.result_key import result_key
from codebatch.operations.project.stores import open_store
from codebatch.store.batches.resolution import resolve_batch
from codebatch.store.results.untrusted import UntrustedKey, distrust_keys, load_untrusted
from tests.cli.run.test_explain_miss import FILES, SHARDS, explain
from tests.support.command_line import CommandLine, make_modules, set_apart, write, write_own_task

FICKLE = """
from pathlib import Path
from codebatch.model.record import Metric
def task(file):
    mood = Path({mood!r}).read_text()
    if mood == "bad" and file.path == b"m03.py":
        raise ValueError("no")
    value = len(mood) if file.path == b"m05.py" else 1
    yield Metric(path=file.path.decode(), metric="same", value=1)
    yield Metric(path=file.path.decode(), metric="mood", value=value)
"""


@pytest.fixture
def project(codebatch: CommandLine) -> CommandLine:
    write(codebatch.directory / "codebatch.toml", SHARDS)
    make_modules(codebatch.directory / "tree", FILES)
    set_apart(codebatch, "tree")
    return codebatch


def _names(root: Path) -> list[str]:
    return sorted(path.name for path in root.glob(".codebatch/batches/*"))


def test_verify_names_a_task_with_different_results(project: CommandLine) -> None:
    root = project.directory
    mood = write(root / "mood", "fine")
    write_own_task(root, "fickle", FICKLE.format(mood=str(mood)), SHARDS)
    project("run", "tree")
    before = _names(root)
    report_of_all = project("verify", "--sample", "100%", "--json").json
    assert (report_of_all["files"], report_of_all["results"], report_of_all["different"]) == (FILES, FILES * 7, 0), (
        "a full sample must include project tasks"
    )
    assert report_of_all["untrusted"] == []
    assert not (root / ".codebatch" / "untrusted.json").exists()
    mood.write_text("another")
    report = project("verify", "--sample", "99%", "--json", status=1).json
    assert (report["files"], report["results"], report["failed"]) == (FILES, FILES * 5, 0), (
        "a partial sample must not include project tasks"
    )
    assert report["differences"] == [
        {
            "task": "fickle",
            "path": "m05.py",
            "first": '{"kind":"metric","path":"m05.py","metric":"mood","value":4}',
            "second": '{"kind":"metric","path":"m05.py","metric":"mood","value":7}',
        }
    ]
    (caught,) = report["untrusted"]
    assert caught["task"] == "fickle"
    assert [entry.key for entry in load_untrusted(open_store(root / ".codebatch"))] == [caught["key"]]
    ended = project("verify", "latest", "--sample", "99.9", status=1)
    assert ended.lines[0] == "fickle: m05.py"
    assert ended.lines[-1] == "60 results for 12 files verified: 1 of them differ"
    mood.write_text("bad")
    report = project("verify", "--sample", "99%", "--json", status=1).json
    assert (report["failed"], report["different"]) == (1, 1)
    project("run", "tree", "--again", status=3)
    mood.write_text("fine")
    report = project("verify", "--sample", "99%", "--json", status=1).json
    assert (report["results"], report["failed"]) == (FILES * 5 - 1, 0), "a failed result must not be verified"
    write(root / "fickle.py", FICKLE.format(mood=str(mood)).replace("m05.py", "none"))
    project("run", "tree")
    mood.write_text("bad")
    ended = project("verify", "--sample", "100%", status=3)
    assert ended.lines[-1] == "1 result could not be produced again"
    assert (_names(root)[:1], len(_names(root))) == (before, 3), "verification left files behind"


def _distrust(project: CommandLine, task: str) -> str:
    store = open_store(project.directory / ".codebatch", project.directory / "tree")
    batch = resolve_batch(store, None)
    planned = next(planned for planned in batch.plan().tasks if planned.name == task)
    distrust_keys(store, [UntrustedKey(key=result_key(planned), task=task, batch_id=batch.id)])
    return result_key(planned)


def test_untrusted_task_is_executed_until_its_key_changes_or_it_is_trusted(project: CommandLine) -> None:
    changed = project.directory / "tree" / "m01.py"
    project("run", "tree")
    lint = _distrust(project, "lint")
    write(changed, "import sys\n")
    assert project("run", "tree", "--json").json["executed"] == 3 + FILES
    assert explain(project)["lint"] == (FILES, 0, {"content": 1, "untrusted lint": FILES - 1})
    write(project.directory / "codebatch.toml", SHARDS + "[tasks.lint]\noff = ['F401']\n")
    project("run", "tree")
    write(changed, "import ast\n")
    assert project("run", "tree", "--json").json["executed"] == 4, "a task with another key is trusted"
    write(project.directory / "codebatch.toml", SHARDS)
    assert lint.startswith(project("verify", "--trust", lint[:9], "--json").json["key"][:9])
    write(changed, "import re\n")
    assert project("run", "tree", "--json").json["executed"] == 4


def test_project_task_that_needs_an_untrusted_task_is_not_reused(project: CommandLine) -> None:
    project("run", "tree")
    needs = {row["task_id"]: row["depends_on"] for row in project("tasks", "--json").json}
    assert "analyze" in needs["duplicates"]
    assert "lint" not in needs["duplicates"]
    _distrust(project, "analyze")
    write(project.directory / "codebatch.toml", SHARDS + "[tasks.lint]\noff = ['F401']\n")
    for task in (
        "parse",
        "analyze",
        "symbols",
    ):  # Now the results could be reused, because all needed tasks have results.
        project("run", "tree", "--task", task)
    project("run", "tree")
    explained = explain(project)
    assert explained["duplicates"] == (1, 0, {"untrusted analyze": 1})
    assert explained["parse"] == (0, FILES, {})


def test_commands_report_a_damaged_list_of_untrusted_tasks(project: CommandLine) -> None:
    project("run", "tree")
    write(project.directory / ".codebatch" / "untrusted.json", "{}\n")
    write(project.directory / "tree" / "m01.py", "import sys\n")
    for command in (["run", "tree"], ["verify"], ["verify", "--trust", "a"], ["explain-miss"]):
        error = project(*command, "--json", status=4).error
        assert error["code"] == "store_corrupt"
        assert "untrusted.json" in error["message"]
        assert "remove the file" in error["hint"]
    project("run", "tree", "--no-cache")


def test_verify_rejects_incomplete_batches_and_invalid_arguments(project: CommandLine) -> None:
    project("run", "tree", "--task", "parse")
    assert project("verify", "--json", status=3).error["code"] == "batch_incomplete"
    for words in (["--sample", "0%"], ["--sample", "101"], ["--sample", "nan"], ["no"], ["latest", "--trust", "a"]):
        project("verify", *words, status=2)
    (project.directory / "empty").mkdir()
    project("run", "empty", "--allow-empty")
    assert project("verify", "--json", status=3).json["results"] == 0
    assert project("verify", status=3).lines == ["nothing verified: the sample has no results"]
