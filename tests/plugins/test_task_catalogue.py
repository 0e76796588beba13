"""Tests of the catalogue of tasks: two catalogues in one process are independent."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import msgspec
import pytest

from codebatch.coordinator.analysis.planning import check_overrides, check_tools, effective_config, resolve_tasks
from codebatch.errors import InvalidConfiguration, ToolMismatch
from codebatch.model.digest import Digest
from codebatch.model.entry import SnapshotId
from codebatch.model.plan import Plan, PlannedTask
from codebatch.model.shard import ShardRule
from codebatch.model.task import PIPELINES, CustomTaskLocation
from codebatch.operations.project.configuration import load_configuration
from codebatch.plugins.catalogue import TaskCatalogue
from codebatch.plugins.entry_points import clear_package_caches, describe_task, may_propose_changes


def _project(root: Path, *functions: str) -> TaskCatalogue:
    """Return the catalogue of a project whose custom tasks have the names of their functions."""
    root.mkdir()
    (root / "own.py").write_text(
        f"print({root.name!r})\n" + "".join(f"def {function}: return []\n" for function in functions)
    )
    names = [function.partition("(")[0] for function in functions]
    (root / "codebatch.toml").write_text("".join(f'[tasks.{name}]\npython = "own.py:{name}"\n' for name in names))
    return load_configuration(root).catalogue


def test_catalogues_of_two_projects_contain_only_their_own_tasks(tmp_path: Path) -> None:
    first, second = _project(tmp_path / "one", "words(file)", "late(file)"), _project(tmp_path / "other", "words(file)")
    assert first.custom_source("words").digest != second.custom_source("words").digest
    assert describe_task(first, "late").implementation == f"{tmp_path / 'one' / 'own.py'}:late"
    with pytest.raises(InvalidConfiguration, match="no installed package provides the task 'late'"):
        describe_task(second, "late")


def test_custom_project_task_needs_the_custom_file_tasks(tmp_path: Path) -> None:
    catalogue = _project(tmp_path / "one", "total(project)", "words(file)", "again(project)")
    assert describe_task(catalogue, "total").needs == (*PIPELINES["full"].tasks, "words")


def test_file_of_a_custom_task_is_loaded_once_per_task(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    catalogue = _project(tmp_path / "one", "words(file)", "late(file)")
    assert capfd.readouterr().err == ""
    check_overrides(catalogue, {"words": {}, "late": {}})
    for name in ("words", "late"):
        assert describe_task(catalogue, name).scope == "file"
        assert effective_config(catalogue, name, {}) == {}
    assert capfd.readouterr() == ("", "one\none\n"), "the file was not loaded exactly once for each task"


def test_custom_task_cannot_have_the_name_of_an_installed_task(tmp_path: Path) -> None:
    with pytest.raises(InvalidConfiguration, match="an installed package already provides a task 'parse'"):
        describe_task(_project(tmp_path / "one", "parse(file)"), "parse")


def _plan_custom_task(root: Path, settings: str = "", code: str = "") -> PlannedTask:
    """Return the plan of a custom task with the current files."""
    (root / "own.py").write_text(f"{code}\ndef words(file): return []\n")
    (root / "codebatch.toml").write_text(f'[tasks.words]\npython = "own.py:words"\n{settings}\n')
    clear_package_caches()
    return resolve_tasks(load_configuration(root).catalogue, ("parse", "words"))[1]


def test_key_of_a_custom_task_covers_its_declared_files(tmp_path: Path) -> None:
    (tmp_path / "words.txt").write_text("one")
    (tmp_path / "other.txt").write_text("one")
    settings = "files = ['words.txt', 'other.txt']"
    first = _plan_custom_task(tmp_path, settings)
    assert first.config == {}, "the files of a custom task are in its own configuration"
    (tmp_path / "words.txt").write_text("two")
    second = _plan_custom_task(tmp_path, settings)
    (tmp_path / "unread.txt").write_text("two")
    assert _plan_custom_task(tmp_path, "files = ['other.txt', 'words.txt']") == second
    assert _plan_custom_task(tmp_path, settings, "# code").key != second.key != first.key
    assert _plan_custom_task(tmp_path).implementation_digest != second.implementation_digest


def test_key_of_a_custom_task_does_not_depend_on_its_location(tmp_path: Path) -> None:
    for name in ("here", "there"):
        (tmp_path / name).mkdir()
    (parse,) = resolve_tasks(TaskCatalogue(), ("parse",))
    first, second = _plan_custom_task(tmp_path / "here"), _plan_custom_task(tmp_path / "there")
    assert first == second
    assert (first.tools, first.contexts) == (parse.tools, parse.contexts)


def test_key_of_a_custom_task_covers_the_function_name(tmp_path: Path) -> None:
    keys = set()
    for name in ("one", "two"):
        (tmp_path / "own.py").write_text("def one(file): return []\ndef two(file): return []\n")
        place = CustomTaskLocation(python=f"{tmp_path}/own.py:{name}")
        keys.add(resolve_tasks(TaskCatalogue({"words": place}), ("parse", "words"))[1].key)
    assert len(keys) == 2


def test_classes_in_the_file_of_a_custom_task_find_their_module(tmp_path: Path) -> None:
    code = "from __future__ import annotations\nfrom dataclasses import dataclass\n@dataclass\nclass Word:\n  text: str"
    assert _plan_custom_task(tmp_path, "", code).name == "words"


@pytest.mark.parametrize(
    ("settings", "code", "added"),
    [
        ("", "import os, pluggy._hooks\nfrom codebatch import run", {"pluggy"}),
        ("", "def f():\n  try: from pkg_resources import x\n  except ImportError: import nowhere", {"setuptools"}),
        ("tools = ['execnet']", "import pluggy", {"execnet"}),
        ("tools = []", "import pluggy", set()),
        ("tools = ['Tree_Sitter', 'execnet', 'ExecNet']", "", {"ExecNet"}),
    ],
)
def test_tools_of_a_custom_task_are_imported_or_declared(
    settings: str, code: str, added: set[str], tmp_path: Path
) -> None:
    assert set(_plan_custom_task(tmp_path, settings, code).tools) - set(_plan_custom_task(tmp_path).tools) == added


def test_requirements_of_a_tool_are_tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    requirements = {
        "one": [
            "Requires-Dist: two.of_it>=1; python_version > '3'",
            "Requires-Dist: missing",
            "Requires-Dist: four;extra=='x'",
        ],
        "two.of_it": ["Requires-Dist: three[x] (>=2)", "Requires-Dist: one"],
        "three": ["Requires-Dist: Two-of-It"],
        "four": [],
    }
    for name, lines in requirements.items():
        (tmp_path / "site" / f"{name}-1.0.dist-info").mkdir(parents=True)
        metadata = "\n".join([f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0", *lines])
        (tmp_path / "site" / f"{name}-1.0.dist-info" / "METADATA").write_text(metadata)
    monkeypatch.syspath_prepend(tmp_path / "site")
    clear_package_caches()
    tools = _plan_custom_task(tmp_path, "tools = ['one']").tools
    assert set(tools) - set(_plan_custom_task(tmp_path).tools) == {"one", "two.of_it", "three"}


def test_editable_installation_is_keyed_by_its_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The metadata of its distribution is in one directory, and the module in another."""
    for directory in ("site", "project"):
        (tmp_path / directory).mkdir()
        monkeypatch.syspath_prepend(tmp_path / directory)
    metadata = tmp_path / "site" / "edited_here-1.0.dist-info" / "METADATA"
    metadata.parent.mkdir()
    metadata.write_text("Metadata-Version: 2.1\nName: edited_here\nVersion: 1.0\n")
    digests = set()
    for place, value in (("project", 1), ("project", 2), ("site", 1), ("site", 2)):
        (tmp_path / place / "edited_here.py").write_text(f"x = {value}\n")
        if place == "site":
            (tmp_path / "project" / "edited_here.py").unlink(missing_ok=True)
        importlib.invalidate_caches()
        sys.modules.pop("edited_here", None)
        planned = _plan_custom_task(tmp_path, "", "import edited_here")
        assert planned.tools["edited_here"] == "1.0"
        digests.add(planned.implementation_digest)
    assert len(digests) == 3, "next to its metadata only the version of a package may count, not its files"


def test_key_of_a_custom_task_covers_imports_without_distribution(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "path").mkdir()
    monkeypatch.syspath_prepend(tmp_path / "path")
    keys = set()
    for value in (1, 2):
        (tmp_path / "path" / "beside_all.py").write_text(f"x = {value}\n")
        keys.add(_plan_custom_task(tmp_path, "", "import beside_all").key)
    assert len(keys) == 2


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ("files = ['../words.txt']", "is outside the project"),
        ("files = ['none.txt']", "No such file"),
        ("files = ['.']", "not a regular file"),
        ("files = 'words.txt'", "Expected `array`, got `str`"),
        ("files = ['a\\u0000']", "`tools`, `files` or `reuse` of the task 'words'"),
        ("tools = ['no-such-tool']", "needs no-such-tool, which is not installed"),
        ("tools = [1]", "Expected `str`, got `int`"),
        ("reuse = 'no'", "Expected `bool`, got `str`"),
    ],
)
def test_invalid_key_settings_of_a_custom_task_are_rejected(settings: str, problem: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidConfiguration, match=problem):
        _plan_custom_task(tmp_path, settings.replace("'a\\u0000'", '"a\\u0000"'))


def test_batch_planned_by_a_version_with_other_settings_is_rejected() -> None:
    (parse,) = resolve_tasks(TaskCatalogue(), ("parse",))

    def check(task: PlannedTask) -> None:
        plan = Plan(
            digest=Digest(""),
            snapshot_id=SnapshotId(""),
            snapshot_digest=Digest(""),
            pipeline="parse",
            tasks=(task,),
            shard_rule=ShardRule(),
            shards=(),
            contexts={},
        )
        check_tools(TaskCatalogue(), plan)

    check(parse)
    with pytest.raises(ToolMismatch, match=r"another version of parse \(different config\)"):
        check(msgspec.structs.replace(parse, config={**parse.config, "gone": 1}))


@pytest.mark.parametrize("text", [b"[codebatch.tasks]\nno equals sign\n", b"\xff\xfe"])
def test_damaged_entry_points_cause_an_error_that_names_the_package(
    text: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    directory = tmp_path / "broken-1.0.dist-info"
    directory.mkdir()
    (directory / "METADATA").write_text("Metadata-Version: 2.1\nName: broken\nVersion: 1.0\n")
    (directory / "entry_points.txt").write_bytes(text)
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(InvalidConfiguration, match=f"cannot be read: broken in {tmp_path}"):
        TaskCatalogue().installed  # noqa: B018 - the access reads the entry points


@pytest.mark.parametrize("kind", ["change", "metric"])
def test_installed_task_may_propose_changes_if_it_declares_them(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = f"declares_{kind}"
    directory = tmp_path / f"{name}-1.0.dist-info"
    directory.mkdir()
    (directory / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (directory / "entry_points.txt").write_text(f"[codebatch.tasks]\n{name} = {name}:task\n")
    (tmp_path / f"{name}.py").write_text(
        "from codebatch_workers.api import TaskDeclaration\n"
        f"task = TaskDeclaration(name={name!r}, version='1', summary='', implementation='x:y', records=({kind!r},))\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    assert may_propose_changes(TaskCatalogue(), name) == (kind == "change")
    assert not may_propose_changes(TaskCatalogue(), "parse")
