"""`task test` detects a task that depends on more than its file."""

from __future__ import annotations

import pytest

from tests.support.command_line import CommandLine, write

CODE = """
from codebatch.model.record import Metric

n = 0

def said(file, value):
    yield Metric(path=file.path.decode(), metric="same", value=1)
    yield Metric(path=file.path.decode(), metric="m", value=value)

def sound(file):
    return said(file, len(file.utf8))

def seeded(file):
    return said(file, hash("x") % 1000)

def counting(file):
    global n
    n += 1
    return said(file, n)

def hasty(file):
    raise ValueError("no")

def total(project):
    yield from said(project.files[0], sum(hash(entry.text) % 10 for entry in project.files))
"""


@pytest.fixture
def project(codebatch: CommandLine) -> CommandLine:
    write(codebatch.directory / "tools" / "own.py", CODE)
    names = ("sound", "seeded", "counting", "hasty", "total")
    tasks = (f"[tasks.{name}]\npython = 'tools/own.py:{name}'\n" for name in names)
    write(codebatch.directory / "codebatch.toml", "".join(tasks))
    for number in range(12):
        write(codebatch.directory / "src" / f"{number:02}.txt", f"{number}\n")
    return codebatch


def test_task_test_of_a_deterministic_task_reports_no_difference(project: CommandLine) -> None:
    before = sorted(project.directory.iterdir())
    report = project("task", "test", "sound", "src", "--json").json
    assert report == {
        "schema": "codebatch.task-test/1", "task": "sound", "files": 12, "records": 24, "failures": 0,
        "differences": [], "different": 0,
    }  # fmt: skip
    assert sorted(project.directory.iterdir()) == before


@pytest.mark.parametrize(("name", "files"), [("seeded", 12), ("counting", None), ("total", 1)])
def test_task_test_reports_differences_of_a_nondeterministic_task(
    project: CommandLine, name: str, files: int | None
) -> None:
    report = project("task", "test", name, "src", "-j", "1", "--json", status=1).json
    assert report["different"] >= 1
    assert files in (None, report["different"])
    for difference in report["differences"]:
        assert difference["first"] != difference["second"]
        assert '"metric":"m"' in difference["first"], "equal records must not be shown"
    assert project("task", "test", name, "src", "-j", "1", status=1).lines[-1].endswith("differ")


def test_task_that_is_called_for_no_file_is_not_tested(project: CommandLine) -> None:
    write(
        project.directory / "codebatch.toml",
        "[tasks.mine]\ncommand = ['true', '{files}']\nmatch = ['*.rb']\nrecords = 'gcc'\n",
    )
    ended = project("task", "test", "mine", "src", status=3)
    assert ended.lines == ["mine: 12 files, 0 records, identical"]
    assert "nothing tested: no file matches the settings `match` and `class` of [tasks.mine]\n" in ended.notes
    assert "mine was not called" in project("task", "try", "mine", "src/00.txt", status=3).notes
    write(project.directory / "src" / "a.rb", "x\n")
    project("task", "test", "mine", "src")
    project("task", "try", "mine", "src/a.rb")


def test_task_test_counts_repeated_failures_as_identical(project: CommandLine) -> None:
    assert project("task", "test", "hasty", "src", status=3).lines == [
        "hasty: 12 files, 12 records, identical", "12 results failed"
    ]  # fmt: skip


def test_task_test_rejects_unknown_tasks_and_empty_directories(project: CommandLine) -> None:
    assert project("task", "test", "none", "--json", status=2).error["code"] == "invalid_configuration"
    assert project("task", "test", "sound", "nowhere", "--json", status=2).error["code"] == "invalid_input"
    (project.directory / "empty").mkdir()
    assert project("task", "test", "sound", "empty", "--json", status=5).error["code"] == "nothing_to_do"
