"""Pipelines of the configuration: their tasks, and the errors in their tables."""

from __future__ import annotations

import itertools
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codebatch.errors import InvalidConfiguration, InvalidInput
from codebatch.model.task import BUILT_IN_TASKS
from codebatch.operations.project.configuration import Configuration, load_configuration
from codebatch.operations.project.pipelines import (
    complete_tasks,
    find_pipeline,
    iter_pipelines,
    pipeline_names,
    pipelines_with,
)
from codebatch.plugins.catalogue import TaskCatalogue
from codebatch.plugins.entry_points import describe_task
from codebatch.plugins.isolated_tasks import isolated_catalogue
from codebatch.system.processes.forks import call_isolated

PLUGIN = Path(__file__).parent.parent / "support" / "plugin"
CUSTOM = "[tasks.words]\npython = 'words.py:task'\n[tasks.sum]\npython = 'words.py:total'\n"


@pytest.fixture
def plugin(monkeypatch: pytest.MonkeyPatch) -> None:
    """Install the package `spelling`."""
    monkeypatch.setattr(sys, "path", [*sys.path, str(PLUGIN)])


def configure(directory: Path, text: str, name: str = "codebatch.toml") -> Configuration:
    """Write a configuration file, and load it."""
    (directory / name).write_text(text)
    (directory / "words.py").write_text("def task(file): return []\ndef total(project): return []\n")
    return load_configuration(directory)


@pytest.mark.parametrize(
    ("text", "place", "message", "hint"),
    [
        ("[pipelines.full]\ntasks = ['parse']\n", ":1", "built-in pipeline has this name", "another name"),
        ("[pipelines.work]\ntasks = ['parse']\n", ":1", "task lists use this name", "another name"),
        ("[pipelines.Ci]\ntasks = ['parse']\n", ":1", "invalid name", "lower-case"),
        ("\n[pipelines.ci]\ntasks = []\n", ":2", "`tasks` is empty", "for example"),
        ("[pipelines.ci]\n", ":1", "missing required field `tasks`", "for example"),
        ("[pipelines.ci]\ntasks = 'parse'\n", ":1", "Expected `array`, got `str`", "for example"),
        ("[pipelines.ci]\ntasks = ['lint', 'parse', 'lint']\n", ":1", "task 'lint' is listed twice", "once"),
        ("[pipelines.ci]\ntaks = ['lint']\n", ":1", "unknown setting 'taks'", "did you mean 'tasks'?"),
        (
            "[pipelines.a]\ntasks = ['lint']\ndefault = true\n\n[ pipelines . 'b' ]\ntasks = ['lint']\ndefault = true",
            ":5",
            "`default` is true for the pipelines 'a' and 'b'",
            "remove one",
        ),
        (
            "pipeline = 'parse'\n[pipelines.a]\ntasks = ['parse']\ndefault = true\n",
            ":2",
            "cannot be used with the setting `pipeline`",
            "remove one",
        ),
        ("pipelines = {ci = {tasks = []}}\n", "", "`tasks` is empty", "for example"),
        ("[pipelines]\nci = 3\n", "", "it is not a table", "[pipelines.ci]"),
        ("pipelines = 3\n", "", "`pipelines` is not a table", "[pipelines.NAME]"),
    ],
)
def test_invalid_table_is_rejected_with_its_line(
    tmp_path: Path, text: str, place: str, message: str, hint: str
) -> None:
    with pytest.raises(InvalidConfiguration) as raised:
        configure(tmp_path, text)
    assert raised.value.message.startswith(f"{tmp_path}/codebatch.toml{place}: ")
    assert message in raised.value.message
    assert hint in str(raised.value.hint)


@pytest.mark.parametrize(
    ("tasks", "message", "hint"),
    [
        ("['parse', 'lnt']", "unknown task 'lnt'", "did you mean 'lint'?"),
        ("['zzz']", "unknown task 'zzz'", "one of: analyze, dependencies, "),
        ("['import']", "unknown task 'import'", "one of: "),
        ("['lint', 'hen']", "tasks egg, hen depend on one another in a cycle", "None"),
    ],
)
@pytest.mark.usefixtures("plugin")
def test_pipeline_with_invalid_tasks_is_rejected_with_its_line(
    tmp_path: Path, tasks: str, message: str, hint: str
) -> None:
    configuration = configure(tmp_path, f"jobs = 1\n[pipelines.ci]\ntasks = {tasks}\n")
    with pytest.raises(InvalidConfiguration) as raised:
        find_pipeline(configuration, "ci")
    assert raised.value.message == f"{tmp_path}/codebatch.toml:2: pipeline 'ci': {message}"
    assert hint in str(raised.value.hint)
    assert pipelines_with((), tmp_path) == []
    with pytest.raises(InvalidConfiguration):
        list(iter_pipelines(configuration))


def test_settings_in_both_files_are_refused_because_one_would_be_ignored(tmp_path: Path) -> None:
    configure(tmp_path, "jobs = 1\n")
    (tmp_path / "pyproject.toml").write_text("[tool.codebatch.work.tasks.a]\nrun = 'x'\n[tool.other]\nx = 1\n")
    assert load_configuration(tmp_path).settings.jobs == 1
    (tmp_path / "pyproject.toml").write_text("[tool.codebatch]\njobs = 2\n")
    with pytest.raises(
        InvalidConfiguration, match=r"codebatch\.toml and \[tool.codebatch\] of pyproject.toml"
    ) as raised:
        load_configuration(tmp_path)
    assert raised.value.hint == "move all settings to codebatch.toml"
    (tmp_path / "codebatch.toml").unlink()
    assert load_configuration(tmp_path).settings.jobs == 2


def test_line_of_a_table_in_pyproject_is_known(tmp_path: Path) -> None:
    with pytest.raises(InvalidConfiguration, match=r"/pyproject\.toml:3: pipeline 'ci': `tasks` is empty"):
        configure(tmp_path, "[tool.codebatch]\njobs = 1\n[tool.codebatch.pipelines.ci]\ntasks = []\n", "pyproject.toml")


@pytest.mark.parametrize(
    ("tasks", "completed"),
    [
        ("['parse']", ("parse",)),
        ("['lint']", ("parse", "lint")),
        ("['duplicates', 'dependencies']", ("parse", "analyze", "symbols", "dependencies", "duplicates")),
        ("['words', 'lint']", ("parse", "lint", "words")),
        ("['sum']", (*BUILT_IN_TASKS, "words", "sum")),
        ("['spelling']", ("spelling",)),
        ("['errata']", ("spelling", "errata")),
        ("['errata', 'words', 'parse']", ("parse", "spelling", "errata", "words")),
    ],
)
@pytest.mark.usefixtures("plugin")
def test_needed_tasks_are_added_in_dependency_order(tmp_path: Path, tasks: str, completed: tuple[str, ...]) -> None:
    configuration = configure(tmp_path, f"[pipelines.ci]\ndescription = 'd'\ntasks = {tasks}\n{CUSTOM}")
    pipeline = find_pipeline(configuration, "ci")
    assert (pipeline.name, pipeline.summary, pipeline.tasks) == ("ci", "d", completed)


@pytest.mark.usefixtures("plugin")
def test_foreign_tasks_of_a_pipeline_are_loaded_in_one_fork(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    forks = []

    def count_fork(*arguments: Any, **options: Any) -> Any:
        forks.append(arguments)
        return call_isolated(*arguments, **options)

    monkeypatch.setattr("codebatch.plugins.isolated_tasks.call_isolated", count_fork)
    find_pipeline(configure(tmp_path, f"[pipelines.ci]\ntasks = ['words', 'spelling', 'sizes']\n{CUSTOM}"), "ci")
    assert len(forks) == 1


@given(st.lists(st.sampled_from(BUILT_IN_TASKS), min_size=1, unique=True))
def test_order_of_the_list_does_not_change_a_pipeline(tasks: list[str]) -> None:
    catalogue: TaskCatalogue = isolated_catalogue()
    completed = complete_tasks(catalogue, tasks)
    assert set(tasks) <= set(completed)
    assert completed == tuple(name for name in BUILT_IN_TASKS if name in completed)
    assert completed == complete_tasks(catalogue, tasks[::-1]) == complete_tasks(catalogue, completed)
    for place, name in enumerate(completed):
        assert set(describe_task(catalogue, name).needs) <= set(completed[:place])
    needs = itertools.chain.from_iterable(describe_task(catalogue, name).needs for name in completed)
    assert set(completed) == {*tasks, *needs}


@pytest.mark.parametrize(
    ("text", "default"),
    [
        ("", "full"),
        ("pipeline = 'ci'\n[pipelines.ci]\ntasks = ['lint']\n", "ci"),
        ("[pipelines.ci]\ntasks = ['lint']\ndefault = true\n", "ci"),
        ("[pipelines.ci]\ntasks = ['lint']\ndefault = false\n", "full"),
        ("pipeline = 'parse'\n[pipelines.ci]\ntasks = ['lint']\n", "parse"),
    ],
)
def test_default_pipeline_is_the_marked_one_or_the_setting(tmp_path: Path, text: str, default: str) -> None:
    configuration = configure(tmp_path, text)
    assert configuration.settings.pipeline == default
    assert find_pipeline(configuration, None).name == default
    origins = {name: origin for name, _, origin in configuration.setting_rows(1)}
    assert (origins["pipeline"] == "default") == (default == "full")


def test_full_contains_every_task_with_a_table(tmp_path: Path) -> None:
    configuration = configure(tmp_path, f"[pipelines.ci]\ntasks = ['lint']\n{CUSTOM}[tasks.lint]\noff = []\n")
    assert find_pipeline(configuration, "full").tasks == (*BUILT_IN_TASKS, "sum", "words")
    assert pipeline_names(configuration) == ("parse", "analyze", "full", "ci")
    assert [pipeline.name for pipeline in iter_pipelines(configuration)] == ["parse", "analyze", "full", "ci"]


def test_unknown_pipeline_suggests_a_pipeline_of_the_configuration(tmp_path: Path) -> None:
    table = "[pipelines.release]\ntasks = ['lint']\n"
    with pytest.raises(InvalidInput) as raised:
        find_pipeline(configure(tmp_path, table), "relase")
    assert (raised.value.message, raised.value.hint) == ("unknown pipeline 'relase'", "did you mean 'release'?")
    with pytest.raises(InvalidConfiguration, match=r"codebatch\.toml: unknown pipeline 'relase'"):
        find_pipeline(configure(tmp_path, "pipeline = 'relase'\n" + table), None)


def test_pipelines_with_a_task_begin_with_the_default(tmp_path: Path) -> None:
    configure(tmp_path, "[pipelines.ci]\ntasks = ['duplicates']\ndefault = true\n[pipelines.odd]\ntasks = ['zzz']\n")
    assert pipelines_with(("analyze",), tmp_path) == ["ci", "analyze", "full"]
    assert pipelines_with(("lint", "analyze"), tmp_path) == ["ci", "analyze", "full"]
    assert pipelines_with(("lint",), tmp_path) == ["full"]
    (tmp_path / "codebatch.toml").write_text("jbos = 1\n")
    assert pipelines_with(("lint",), tmp_path) == ["full"]
