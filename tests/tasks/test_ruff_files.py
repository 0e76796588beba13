"""What lint takes of a tree into its configuration: ruff's files, where they are wanted and the project's own."""

from __future__ import annotations

from functools import partial

import msgspec
import pytest

from codebatch.coordinator.planning import prepare_tasks
from codebatch.errors import InvalidConfiguration
from codebatch.model.task import Json, SnapshotView
from codebatch.system.task_catalogue import TaskCatalogue
from codebatch_workers.lint.config import LintConfig
from codebatch_workers.lint.ruff_files import with_ruff_files
from tests.tasks.support import Snapshot

_WANTED = {"ruff": {"config": "project"}}
_FILES = {
    "a/pyproject.toml": b'[tool.ruff]\nextend = "../base.toml"\n',
    "base.toml": b'extend = "more/last.toml"\n',
    "more/last.toml": b"line-length = 40\n",
    "b/.ruff.toml": b"not TOML",
    "c/pyproject.toml": b"[project]\n",
    "d/other.toml": b"",
}


def prepared(*files: str) -> dict[str, str]:
    snapshot = Snapshot(content={path: _FILES[path] for path in files or _FILES})
    config, note = with_ruff_files(msgspec.convert(_WANTED, LintConfig), lambda: snapshot)
    assert (config.ruff.config, note) == ("project", "")
    return config.ruff.files


def test_files_of_ruff_are_taken_with_those_that_they_extend() -> None:
    assert prepared() == {path: _FILES[path].decode() for path in sorted(set(_FILES) - {"d/other.toml"})}


def test_file_that_extends_one_outside_is_refused() -> None:
    with pytest.raises(InvalidConfiguration, match=r"extends more/last\.toml, which is not in the snapshot"):
        prepared("a/pyproject.toml", "base.toml")


def test_file_whose_path_is_no_utf8_is_passed_over() -> None:
    snapshot = Snapshot(b"e\xff/ruff.toml", content={"ruff.toml": b""})
    config, _ = with_ruff_files(msgspec.convert(_WANTED, LintConfig), lambda: snapshot)
    assert config.ruff.files == {"ruff.toml": ""}


def _unwanted() -> SnapshotView:
    raise AssertionError("the snapshot is not asked for")


def test_pinned_rules_ask_for_no_snapshot() -> None:
    written: dict[str, dict[str, Json]] = {"lint": {"off": ["todo-comment"]}, "other": {"x": 1}}
    plain, notes = prepare_tasks(TaskCatalogue(), ("parse", "lint"), written, _unwanted)
    assert (plain["lint"]["off"], plain["other"], notes) == (("todo-comment",), {"x": 1}, [])


def test_elsewhere_the_rules_are_pinned_and_that_is_said() -> None:
    assert prepare_tasks(TaskCatalogue(), ("parse",), {"lint": _WANTED}, None) == ({"lint": _WANTED}, [])
    elsewhere, notes = prepare_tasks(TaskCatalogue(), ("lint",), {"lint": _WANTED}, None)
    assert (elsewhere["lint"]["ruff"], notes) == ({"config": "pinned", "files": {}}, ["ruff: the pinned rules"])


def test_what_only_the_project_can_turn_on_is_refused_elsewhere() -> None:
    prepare = partial(prepare_tasks, TaskCatalogue(), ("lint",), {"lint": {**_WANTED, "off": ["D103"]}})
    prepare(Snapshot)
    with pytest.raises(InvalidConfiguration, match=r"\[tasks\.lint\]: lint has no rule 'D103'"):
        prepare(None)
