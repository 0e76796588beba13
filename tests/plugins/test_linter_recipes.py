"""Recipes of linters: each is a valid table, adapted to the project that gets it."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from codebatch.cli.output.markdown import read_help_page
from codebatch.errors import InvalidInput
from codebatch.model.command_table import CommandTable
from codebatch.operations.project.configuration import load_configuration
from codebatch.operations.project.linter_recipes import LINTER_RECIPES, find_recipe
from codebatch.operations.project.scaffolding import scaffold_command_task
from tests.support.command_line import write

UNKEYED_WITHOUT_LOCK = {"golangci-lint", "clippy"}


@pytest.mark.parametrize("tool", LINTER_RECIPES)
@pytest.mark.parametrize("settings", ["codebatch.toml", "pyproject.toml"])
def test_written_table_is_the_recipe(tmp_path: Path, tool: str, settings: str) -> None:
    header = {"codebatch.toml": "", "pyproject.toml": "[tool.codebatch]\n"}[settings]
    write(tmp_path / settings, header)
    made = scaffold_command_task(tmp_path, "linter", tool)
    assert (made.name, made.file, made.test, made.configuration) == ("linter", "", "", str(tmp_path / settings))
    table = load_configuration(tmp_path).catalogue.commands["linter"].table
    assert table == msgspec.convert(LINTER_RECIPES[tool].table, CommandTable, strict=True)
    assert bool(table.unkeyed_input) == (tool in UNKEYED_WITHOUT_LOCK)
    lines = made.text.splitlines()
    untried = "# The findings of this recipe were not compared with those of the linter."
    assert (untried in lines) == (tool == "golangci-lint")
    assert lines[0] == f"# {LINTER_RECIPES[tool].reason}"
    assert [line for line in lines if line.startswith("# Try it")] == [
        "# Try it on a file with: codebatch task try linter FILE"
    ]


def test_help_page_names_all_recipes_and_those_that_were_not_tried() -> None:
    page = " ".join(read_help_page("linters").split())
    names = [f"`{tool}`" for tool in LINTER_RECIPES]
    assert f"There are recipes for {', '.join(names[:-1])} and {names[-1]}." in page
    untried = [f"`{tool}`" for tool, recipe in LINTER_RECIPES.items() if not recipe.is_tried]
    assert f"except {' and '.join(untried)}." in page


@pytest.mark.parametrize("tool", LINTER_RECIPES)
def test_only_files_that_do_not_depend_on_others_are_checked_in_parts(tool: str) -> None:
    assert (LINTER_RECIPES[tool].table.get("scope") == "project") == (
        tool in {"mypy", "pyright", "eslint", "golangci-lint", "clippy"}
    )


def test_recipe_uses_what_is_installed_in_the_project(tmp_path: Path) -> None:
    plain = find_recipe("eslint").table_in(tmp_path)
    assert (plain["command"], plain.get("link"), plain.get("lock")) == (["eslint", "-f", "json", "."], None, None)
    write(tmp_path / "yarn.lock", "")
    assert "lock" not in find_recipe("eslint").table_in(tmp_path), "there is no link that it could determine"
    write(tmp_path / "node_modules" / ".bin" / "eslint", "")
    table = find_recipe("eslint").table_in(tmp_path)
    assert table["command"] == ["node_modules/.bin/eslint", "-f", "json", "."]
    assert (table["link"], table["lock"]) == (["node_modules"], ["yarn.lock"])
    write(tmp_path / "Cargo.lock", "")
    assert find_recipe("clippy").table_in(tmp_path)["lock"] == ["Cargo.lock"]


def test_recipe_without_lock_file_is_not_reused(tmp_path: Path) -> None:
    (tmp_path / "node_modules").mkdir()
    scaffold_command_task(tmp_path, "eslint", "eslint")
    reason = load_configuration(tmp_path).catalogue.unkeyed_input("eslint")
    assert reason == "link = ['node_modules'] without lock"


def test_unknown_tool_is_rejected_with_a_suggestion(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="no recipe for 'shelcheck', only for shellcheck, mypy, ") as raised:
        scaffold_command_task(tmp_path, "x", "shelcheck")
    assert raised.value.hint == "did you mean 'shellcheck'?"
    with pytest.raises(InvalidInput) as raised:
        scaffold_command_task(tmp_path, "x", "zz")
    assert raised.value.hint == "to write the table of another program: codebatch help linters"
    with pytest.raises(InvalidInput, match="because the task `lint` runs it by default") as raised:
        scaffold_command_task(tmp_path, "ruff", "ruff")
    assert '`ruff.config = "project"` in [tasks.lint]' in str(raised.value.hint)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["lint", "A", "taken"])
def test_name_of_another_task_is_rejected(tmp_path: Path, name: str) -> None:
    text = '[tasks.taken]\ncommand = ["true", "{file}"]\nrecords = "exit"\n'
    write(tmp_path / "codebatch.toml", text)
    with pytest.raises(InvalidInput):
        scaffold_command_task(tmp_path, name, "shellcheck")
    assert (tmp_path / "codebatch.toml").read_text(encoding="utf-8") == text


def test_inline_tables_of_the_configuration_are_not_changed(tmp_path: Path) -> None:
    write(tmp_path / "codebatch.toml", "tasks = {}\n")
    with pytest.raises(InvalidInput, match=r"cannot add \[tasks\.linter\]"):
        scaffold_command_task(tmp_path, "linter", "shellcheck")
