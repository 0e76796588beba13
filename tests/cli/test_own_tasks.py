"""Tasks of the project that the user stands in: five lines in a file, two in the configuration."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from codebatch_workers.examples import banned_words

from .process import CommandLine, write

COUNT = """
from codebatch.model.record import Metric
def task(file):
    path, path_b64 = file.path_fields
    yield Metric(path=path, path_b64=path_b64, metric="words", value=len(file.utf8.split()))
"""
SETTINGS = "[tasks.words]\npython = 'tools/words.py:task'\n"


def project(root: Path, code: str = COUNT, settings: str = SETTINGS) -> None:
    write(root / "codebatch.toml", settings)
    write(root / "tools" / "words.py", code)
    write(root / "src" / "a.txt", "one two\n")


def test_function_is_run_over_every_file_by_workers(codebatch: CommandLine) -> None:
    project(codebatch.directory)
    first = codebatch("run", "src", "-j", "2", "--json").json
    assert codebatch("query", "outputs", "--task", "words", "--json").json == [
        {"kind": "metric", "path": "a.txt", "metric": "words", "value": 2}
    ]
    assert codebatch("run", "src", "--json").json["action"] == "up to date"
    write(codebatch.directory / "tools" / "words.py", COUNT.replace("split()", "split()) + len('x'"))
    again = codebatch("run", "src", "--json").json
    assert again["batch_id"] != first["batch_id"]
    assert codebatch("query", "outputs", "--task", "words", "--json").json[0]["value"] == 3


def test_the_example_that_ships_works_as_it_is_documented(codebatch: CommandLine) -> None:
    settings = "[tasks.banned-words]\npython = 'tools/banned_words.py:task'\nwords = ['two']\n"
    project(codebatch.directory, settings=settings)
    shutil.copy(banned_words.__file__, codebatch.directory / "tools")
    write(codebatch.directory / "src" / "b.py", "s = 'a𐐀b'  # two\n")
    codebatch("run", "src")
    assert codebatch("query", "diagnostics", "--code", "banned-word").lines == [
        "a.txt:1:5: warning banned-word `two` [codebatch]",
        "b.py:1:14: warning banned-word `two` [codebatch]",
    ]
    (codebatch.directory / "codebatch.toml").write_text(settings.replace("words = ['two']", "words = [1]"))
    assert "Expected `str`, got `int`" in codebatch("run", "src", "--json", status=2).error["message"]


def test_failures_of_a_function_are_of_its_file_and_task_alone(codebatch: CommandLine) -> None:
    project(codebatch.directory, code="def task(file):\n    if file.path == b'b.txt': return [1]\n    return []\n")
    write(codebatch.directory / "src" / "b.txt", "b")
    assert codebatch("run", "src", "--json", status=3).stderr
    assert codebatch("query", "outputs", "--kind", "failure", "--json").json == [
        {"kind": "failure", "path": "b.txt", "task": "words", "reason": "exception"}
    ]


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ("[tasks.words]\npython = 'tools/words.py'\n", "no file and function"),
        ("[tasks.words]\npython = '../words.py:task'\n", "outside of the project"),
        ("[tasks.words]\npython = 'tools/none.py:task'\n", "which is no file"),
        ("[tasks.words]\npython = 'tools/words.py:none'\n", "cannot be loaded: AttributeError"),
        ("[tasks.words]\npython = 'tools/words.py:task'\nx = 1\n", "has no setting 'x'"),
        ("[tasks.lint]\npython = 'tools/words.py:task'\n", "an installed package declares the task 'lint'"),
        ("[tasks.W]\npython = 'tools/words.py:task'\n", "no name for a task"),
    ],
)
def test_task_that_cannot_be_is_refused_before_anything_is_written(
    codebatch: CommandLine, settings: str, problem: str
) -> None:
    project(codebatch.directory, settings=settings)
    assert problem in codebatch("run", "src", "--json", status=2).error["message"]
    assert not (codebatch.directory / ".codebatch").exists()


def test_tree_that_is_merely_analysed_brings_no_tasks(codebatch: CommandLine) -> None:
    project(codebatch.directory / "theirs", code="raise SystemExit('run')")
    assert codebatch("run", "theirs", "--json").json["status"] == "COMPLETED"
    assert b"words" not in codebatch("pipeline", "full", "--json").stdout


def test_configuration_shows_where_a_task_lies(codebatch: CommandLine) -> None:
    project(codebatch.directory)
    shown = codebatch("config", "show", "--json").json["tasks"]["value"]
    assert shown["words"]["python"].endswith("/tools/words.py:task")
