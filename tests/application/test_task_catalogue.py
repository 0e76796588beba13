"""A catalogue is all that a process knows of tasks: two of them in one process know nothing of each other."""

from __future__ import annotations

from pathlib import Path

import pytest

from codebatch.application.configuration import load_configuration
from codebatch.errors import InvalidConfiguration
from codebatch.model.task import PIPELINES
from codebatch.system.plugins import load_declaration
from codebatch.system.task_catalogue import TaskCatalogue


def _project(root: Path, *functions: str) -> TaskCatalogue:
    """The catalogue of a project whose own tasks are named as their functions."""
    root.mkdir()
    (root / "own.py").write_text(f"print({root.name!r})\n" + "".join(f"def {each}: return []\n" for each in functions))
    names = [each.partition("(")[0] for each in functions]
    (root / "codebatch.toml").write_text("".join(f'[tasks.{name}]\npython = "own.py:{name}"\n' for name in names))
    return load_configuration(root).catalogue


def test_catalogues_of_two_projects_keep_to_their_own_tasks(tmp_path: Path) -> None:
    one, other = _project(tmp_path / "one", "words(file)", "late(file)"), _project(tmp_path / "other", "words(file)")
    mine, theirs = one.own_task("words"), other.own_task("words")
    assert mine is not None
    assert theirs is not None
    assert mine.digest != theirs.digest
    assert other.own_task("late") is None
    with pytest.raises(InvalidConfiguration, match="no installed package declares the task 'late'"):
        load_declaration(other, "late")


def test_own_project_task_needs_the_own_file_tasks_of_its_catalogue(tmp_path: Path) -> None:
    catalogue = _project(tmp_path / "one", "total(project)", "words(file)", "again(project)")
    assert load_declaration(catalogue, "total").needs == (*PIPELINES["full"].tasks, "words")


def test_file_of_an_own_task_runs_once_in_a_catalogue(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    catalogue = _project(tmp_path / "one", "words(file)")
    assert capfd.readouterr().err == ""
    assert catalogue.own_task("words") is catalogue.own_task("words")
    assert capfd.readouterr().err == "one\n"


def test_own_task_takes_no_installed_ones_name(tmp_path: Path) -> None:
    with pytest.raises(InvalidConfiguration, match="an installed package declares the task 'parse'"):
        load_declaration(_project(tmp_path / "one", "parse(file)"), "parse")
