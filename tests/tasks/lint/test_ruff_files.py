"""Tests of the context with ruff's configuration: for each file exactly the settings that ruff would read."""

from __future__ import annotations

import subprocess

import pytest
from ruff import find_ruff_bin  # type: ignore[import-untyped]  # it has no annotations

from codebatch.coordinator.analysis.planning import prepare_tasks, resolve_tasks
from codebatch.errors import InvalidConfiguration
from codebatch.model.task import JsonValue
from codebatch.model.text.toml import parse_toml
from codebatch.plugins.catalogue import TaskCatalogue
from codebatch_workers.lint.python.ruff_files import decode_ruff_files, ruff_files_context
from codebatch_workers.lint.python.ruff_project import DEFAULT_PYTHON_VERSION
from tests.support.source_files import Snapshot

_PROJECT_CONFIG: dict[str, JsonValue] = {"ruff": {"config": "project"}}
_FILES = {
    "a/pyproject.toml": b'[tool.ruff]\nextend = "../base.toml"\n',
    "a/x.py": b"",
    "base.toml": b'extend = "more/last.toml"\n',
    "more/last.toml": b"line-length = 40\n",
    "b/.ruff.toml": b"not TOML",
    "b/c/pyproject.toml": b"[project]\n",
    "b/c/x.txt": b"",
    "d/other.toml": b"",
    "x.py": b"",
}
_NONE_ABOVE = (b"ruff.toml", "")


def ruff_context(path: str, files: dict[str, bytes]) -> list[tuple[bytes, str]]:
    """Return the configuration of ruff for a file of a tree."""
    snapshot = Snapshot(content={path: b"", **files})
    context = ruff_files_context(snapshot)
    (entry,) = (candidate for candidate in snapshot.entries if candidate.path == path.encode())
    return list(decode_ruff_files(context(entry)))


def test_ruff_context_contains_configuration_above_and_extended() -> None:
    assert ruff_context("x.py", _FILES) == [_NONE_ABOVE]
    assert [path for path, _ in ruff_context("a/x.py", _FILES)] == [
        b"a/pyproject.toml", b"base.toml", b"more/last.toml", b"ruff.toml"
    ]  # fmt: skip
    assert ruff_context("b/c/x.txt", _FILES) == [(b"b/.ruff.toml", "not TOML"), _NONE_ABOVE]


def test_extending_a_file_outside_the_snapshot_is_rejected() -> None:
    with pytest.raises(InvalidConfiguration, match=r"extends more/last\.toml, which is not in the snapshot"):
        ruff_context("x.py", {path: content for path, content in _FILES.items() if path != "more/last.toml"})


@pytest.mark.parametrize(
    ("before", "after", "is_other"),
    [
        ("[project]\nversion = '1'\n[tool.ruff]\nfix = true\n", "[tool.ruff]\n# more\nfix=true\n[tool.black]\n", False),
        ("[project]\nversion = '1'\n", "", False),
        ("[project]\nrequires-python = '>=3.9'\n", "[project]\nrequires-python = '>=3.10'\n", True),
        ("[tool.ruff]\nfix = true\n", "[tool.ruff]\nfix = false\n", True),
        ("[tool.ruff]\n", "", True),
        ("[tool.ruff]\n", "tool.ruff = 3", True),
        ("tool = 1\n", "tool = 2\n", True),
        ("broken", "broken too", True),
    ],
)
def test_context_contains_only_settings_of_pyproject_that_ruff_uses(before: str, after: str, *, is_other: bool) -> None:
    context_before, context_after = (
        ruff_context("a/x.py", {"pyproject.toml": text.encode()}) for text in (before, after)
    )
    assert (context_before != context_after) == is_other


def test_rewritten_settings_are_equal_to_the_original() -> None:
    text = (
        '[project]\nrequires_python = ">=3.9"\n[tool.ruff]\n"a.b" = [1, -2.5e30, true, inf, 1979-05-27T07:32:00Z]\n'
        'quoted = "\\u0000\\u007f\\\\ \\" \\n ü𐀀"\n[[tool.ruff.tables]]\nx.y = {}\n[[tool.ruff.tables]]\n'
    )
    (_, written), *_ = ruff_context("x.py", {"pyproject.toml": text.encode()})
    assert parse_toml(written) == parse_toml(text)


def test_pinned_rules_need_no_ruff_context() -> None:
    catalogue = TaskCatalogue()
    contexts = {
        config: resolve_tasks(catalogue, ("parse", "lint"), {"lint": {"ruff": {"config": config}}})[1].contexts
        for config in ("pinned", "project")
    }
    assert set(contexts["project"]) - set(contexts["pinned"]) == {"ruff"}


def test_other_trees_use_the_pinned_rules_with_a_note() -> None:
    configured: dict[str, dict[str, JsonValue]] = {"lint": _PROJECT_CONFIG}
    assert prepare_tasks(TaskCatalogue(), ("parse",), configured, is_project=False) == (configured, [])
    prepared, notes = prepare_tasks(TaskCatalogue(), ("lint",), configured, is_project=True)
    assert (prepared["lint"]["ruff"], notes) == ({"config": "project"}, [])
    elsewhere, notes = prepare_tasks(TaskCatalogue(), ("lint",), configured, is_project=False)
    assert (elsewhere["lint"]["ruff"], notes) == ({"config": "pinned"}, ["ruff: the pinned rules"])


def test_rule_known_only_to_project_configuration_is_rejected_elsewhere() -> None:
    configured = {"lint": {**_PROJECT_CONFIG, "off": ["D103"]}}
    prepare_tasks(TaskCatalogue(), ("lint",), configured, is_project=True)
    with pytest.raises(InvalidConfiguration, match=r"\[tasks\.lint\]: unknown rule 'D103'"):
        prepare_tasks(TaskCatalogue(), ("lint",), configured, is_project=False)


def test_default_python_version_matches_ruff() -> None:
    shown = subprocess.run(
        [find_ruff_bin(), "check", "--isolated", "--show-settings"],
        input="",
        capture_output=True,
        check=False,
        text=True,
    )
    assert f"analyze.target_version = {DEFAULT_PYTHON_VERSION}\n" in shown.stdout
