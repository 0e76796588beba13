"""`explain-miss` explains for each result why it was executed, by comparison with earlier runs."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.cli.run.test_own_tasks import COUNT
from tests.support.command_line import CommandLine, make_modules, set_apart, write, write_own_task

SHARDS = "[shard]\nfiles_average = 4\nfiles_min = 4\nfiles_max = 4\n"
FILES = 12


@pytest.fixture
def project(codebatch: CommandLine) -> CommandLine:
    write(codebatch.directory / "codebatch.toml", SHARDS)
    make_modules(codebatch.directory / "tree", FILES)
    set_apart(codebatch, "tree")
    codebatch("run", "tree")
    return codebatch


def explain(codebatch: CommandLine, *words: str) -> dict[str, tuple[int, int, dict[str, int]]]:
    """Return by task: the number of executed and of reused results, and counts by cause and name."""
    answer: dict[str, Any] = codebatch("explain-miss", "--json", *words).json
    return {
        task["task"]: (
            task["executed"],
            task["reused"],
            {f"{reason['cause']} {reason['name']}".strip(): reason["count"] for reason in task["reasons"]},
        )
        for task in answer["tasks"]
    }


def test_explain_miss_lists_the_reasons_of_each_task(project: CommandLine) -> None:
    tree = project.directory / "tree"
    assert explain(project)["lint"] == (FILES, 0, {"no_older_batch": FILES})
    write(project.directory / "codebatch.toml", SHARDS + "[tasks.lint]\noff = ['F401']\n")
    write(tree / "m01.py", "import sys\n")
    os.chmod(tree / "m02.py", 0o755)
    write(tree / "new.py", "")
    write(tree / ".gitattributes", "m03.py linguist-generated\n")
    answer = project("run", "tree", "--json").json
    explained = explain(project)
    one_each = {"content": 1, "file_mode": 1, "context attributes": 1, "new_file": 2}
    for task in ("parse", "analyze", "symbols"):
        assert explained[task] == (5, FILES - 3, one_each), task
    assert explained["lint"] == (FILES + 2, 0, {"setting off": FILES, "new_file": 2})
    assert explained["duplicates"] == (1, 0, {"files": 1})
    of_files = [explained[task] for task in ("parse", "analyze", "symbols", "lint")]
    assert (sum(one[0] for one in of_files), sum(one[1] for one in of_files)) == (answer["executed"], answer["reused"])
    assert explain(project, "m01.py", "--task", "lint") == {"lint": (1, 0, {"setting off": 1})}
    assert explain(project, "latest", "m04.py", "--task", "parse") == {"parse": (0, 1, {})}
    lines = project("explain-miss", "--task", "lint").lines
    assert lines[0] == "lint: 14 executed, 0 reused"
    assert lines[1].startswith('  12: setting off [] -> ["F401"] (batch-')
    assert lines[1].endswith("): m00.py, m01.py, m02.py and 9 more")


def _remove_batch(batch: Path) -> None:
    shutil.rmtree(batch)


def _damage_plan(batch: Path) -> None:
    write(batch / "plan.json", "{}")


@pytest.mark.parametrize("harm", [_remove_batch, _damage_plan])
def test_explain_miss_reports_an_unreadable_base_as_unknown(project: CommandLine, harm: Callable[[Path], None]) -> None:
    write(project.directory / "tree" / "m01.py", "import sys\n")
    project("run", "tree")
    harm(min(project.directory.glob(".codebatch/batches/batch-*")))
    (parse,) = project("explain-miss", "--task", "parse", "--json").json["tasks"]
    assert (parse["executed"], parse["reused"]) == (1, FILES - 1)
    assert [reason["cause"] for reason in parse["reasons"]] == ["unknown"]
    (lint,) = project("explain-miss", "m01.py", "--task", "lint", "--json").json["tasks"]
    assert (lint["executed"], lint["reasons"][0]["cause"]) == (0, "unknown")
    project("run", "tree", "--again")
    assert explain(project)["parse"] == (FILES, 0, {"no_older_batch": FILES})


def test_explain_miss_reports_a_damaged_result_of_a_base(project: CommandLine) -> None:
    (path,) = project.directory.glob(".codebatch/batches/*/outputs/*/parse/000001-*")
    data = bytearray(path.read_bytes())
    data[9] ^= 1
    path.write_bytes(data)
    write(project.directory / "tree" / "m00.py", "import sys\n")
    project("run", "tree")
    assert explain(project)["parse"] == (5, FILES - 5, {"content": 1, "damaged": 4})
    assert explain(project)["lint"] == (1, FILES - 1, {"content": 1})


def test_explain_miss_of_a_settled_batch_does_not_need_its_bases(project: CommandLine) -> None:
    write(project.directory / "tree" / "m00.py", "import sys\n")
    project("run", "tree")
    write(project.directory / "codebatch.toml", SHARDS + "[tasks.lint]\noff = ['F401']\n")
    project("run", "tree")
    explained = explain(project)
    assert (explained["parse"], explained["duplicates"]) == ((0, FILES, {}), (0, 1, {}))
    assert explained["lint"] == (FILES, 0, {"setting off": FILES})
    for batch in project.directory.glob(".codebatch/batches/*"):
        shutil.rmtree(batch / "outcomes", ignore_errors=True)  # Older batches are settled already.
        shutil.rmtree(batch / "results", ignore_errors=True)
    assert explain(project) == explained
    assert explain(project, "latest~1", "--task", "parse") == {"parse": (1, FILES - 1, {"content": 1})}
    for batch in sorted(project.directory.glob(".codebatch/batches/*"))[:-1]:
        shutil.rmtree(batch)
    assert explain(project)["parse"][:2] == explained["parse"][:2]
    assert explain(project)["lint"][:2] == explained["lint"][:2]


def test_explain_miss_reports_failed_results_and_reruns(codebatch: CommandLine) -> None:
    write(codebatch.directory / "tree" / "a.py", "import os\n" * 15_000)
    write(codebatch.directory / "tree" / "b.py", "import os\n")
    codebatch("run", "tree", "--file-seconds", "0.01", status=3)
    task = first_failed(codebatch)
    write(codebatch.directory / "tree" / "c.py", "")
    codebatch("run", "tree", "--json")
    (explained,) = codebatch("explain-miss", "a.py", "--task", task, "--json").json["tasks"]
    assert (explained["reasons"][0]["cause"], explained["reasons"][0]["name"]) == ("no_result", "failed")
    write(codebatch.directory / "tree" / "a.py", "import sys\n" * 15_000)
    codebatch("run", "tree", "--file-seconds", "0.01", status=3)
    task = first_failed(codebatch)
    assert explain(codebatch, "a.py", "--task", task) == {task: (1, 0, {"content": 1})}
    codebatch("resume")
    assert explain(codebatch, "a.py", "--task", task) == {task: (1, 0, {"retry_after_failure": 1})}


def first_failed(codebatch: CommandLine) -> str:
    """Return the first task that failed for a file. A time limit may hit any of them."""
    failed = (str(row["task_id"]) for row in codebatch("tasks", "--json").json if row["files_failed"])
    return next(failed)


def test_explain_miss_accepts_custom_tasks_and_rejects_invalid_arguments(codebatch: CommandLine) -> None:
    write_own_task(codebatch.directory, "words", COUNT)
    write(codebatch.directory / "tree" / "a.py", "x = 1\n")
    codebatch("run", "tree")
    write(codebatch.directory / "tree" / "b.py", "x = 1\n")
    codebatch("run", "tree")
    assert explain(codebatch, "--task", "words") == {"words": (1, 1, {"new_file": 1})}
    for words in (["no.py"], ["a.py", "--task", "duplicates"], ["a", "b", "c"], ["batch-1", "a.py"], ["--task", "no"]):
        codebatch("explain-miss", *words, status=2)
