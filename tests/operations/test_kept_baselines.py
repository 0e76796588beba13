"""Tests of baselines: a finding that was not checked is not fixed, although only the baseline has it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

import codebatch
from codebatch.errors import BatchIncomplete
from codebatch.operations.export.export import make_export
from codebatch.operations.gate.baselines import create_baseline, diff_baseline, read_baseline, update_baseline
from codebatch.operations.gate.condition_inputs import parse_conditions
from codebatch.operations.gate.quality_gate import BaselineReference, GateChecker
from codebatch.operations.maintenance.cache_misses import explain_misses
from codebatch.operations.project.configuration import load_configuration
from codebatch.operations.runs.execution import ExecutionSettings, Listener
from codebatch.operations.runs.imports import import_into
from codebatch.plugins.catalogue import TaskCatalogue
from codebatch.store.batches.resolution import resolve_batch
from tests.support import inline_workers as inline

pytestmark = pytest.mark.slow

PROJECT_TASKS = ("dependencies", "duplicates")
TASK = """\
def task(file):
    if file.path != b"a.py":
        return
    if b"raise" in file.content:
        raise ValueError
    for number, line in enumerate(file.text.split("\\n"), 1):
        if "word" in line:
            yield codebatch_workers.api.Diagnostic(
                path=file.path.decode(), line=number, column=1, end_line=number, end_column=1, severity="error",
                code="C", message="m", tool="spelling" if "spelt" in line else "words",
            )


import codebatch_workers.api
"""
CUSTOM_TASK = '[tasks.words]\npython = "words.py:task"\n'
ONE_OF_ESLINT = b'{"path":"a.py","message":"m","tool":"eslint"}\n'
ONE_OF_BANDIT = b'{"path":"a.py","message":"m","tool":"bandit"}\n'


class Project:
    """A tree with a store and a baseline next to it."""

    def __init__(self, root: Path) -> None:
        self.tree, self.store, self.baseline = root / "tree", root / "store", root / "known.jsonl"
        self.tree.mkdir()

    def write(self, **files: str) -> None:
        for name, text in files.items():
            (self.tree / name.replace("_", ".")).write_text(text)

    def run(self, pipeline: str | None = None) -> None:
        inline.run(self.tree, self.store, pipeline=pipeline)

    def take(self, data: bytes, task: str) -> None:
        execution = ExecutionSettings(configuration=load_configuration(self.tree), jobs=2)
        with codebatch.open(self.store, project=self.tree) as opened:
            start = resolve_batch(opened.store, None)
            import_into(execution, opened.store, start, [data], form="jsonl", task=task, listener=Listener())

    def create(self) -> int:
        with codebatch.open(self.store, project=self.tree) as opened:
            return create_baseline(opened.batch(), self.baseline).result

    def differences(self) -> tuple[int, int, int]:
        """Return the counts of new findings of the batch, and of gone and not comparable findings of the baseline.

        An update of the baseline must remove exactly the gone findings.
        """
        with codebatch.open(self.store, project=self.tree) as opened:
            batch = opened.batch(partial=True)
            before = read_baseline(self.baseline)
            comparison = diff_baseline(batch, before)[1]
            if batch.completeness.is_complete:
                original = self.baseline.read_bytes()
                update = update_baseline(batch, self.baseline).result
                assert (update.removed, update.not_comparable) == (comparison.gone, comparison.not_comparable)
                assert len(read_baseline(self.baseline)) == len(before) - comparison.gone
                self.baseline.write_bytes(original)
        return len(comparison.new), comparison.gone, comparison.not_comparable

    def tools_in_sarif(self) -> dict[str, int]:
        with codebatch.open(self.store, project=self.tree) as opened:
            data = make_export(opened.batch(), "sarif").result.data
        runs = json.loads(data)["runs"]
        return {run["tool"]["driver"]["name"]: len(run["results"]) for run in runs}


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Project]:
    with inline.inline():
        analysed = Project(tmp_path)
        analysed.write(a_py="import os\nx = 1  # word\n", b_py="import sys\n", words_py=TASK)
        yield analysed


def test_finding_of_a_task_that_did_not_run_is_not_fixed(project: Project) -> None:
    project.run()
    assert project.create() == 2
    project.run("parse")
    assert project.differences() == (0, 0, 2)
    (project.tree / "b.py").unlink()
    project.run("parse")
    assert project.differences() == (0, 1, 1), "a finding in a removed file is not gone"


def test_fixed_finding_is_absent_from_the_baseline_comparison(project: Project) -> None:
    project.run()
    project.create()
    project.write(a_py="x = 1\n")
    project.run()
    assert project.differences() == (0, 1, 0)


def test_findings_of_disabled_rules_or_excluded_files_are_hidden(project: Project) -> None:
    project.run()
    project.create()
    project.write(codebatch_toml='[tasks.lint]\noff = ["F401"]\n')
    project.run()
    assert project.differences() == (0, 0, 2)
    project.write(codebatch_toml='exclude = ["b.py"]\n')
    project.run()
    assert project.differences() == (0, 0, 1)


def test_finding_of_a_failed_task_is_not_fixed(project: Project) -> None:
    project.write(codebatch_toml=CUSTOM_TASK)
    project.run()
    assert project.create() == 3
    project.write(a_py="import os\nx = 1  # word raise\n")
    project.run()
    with (
        codebatch.open(project.store, project=project.tree) as opened,
        pytest.raises(BatchIncomplete, match=r"results\)$"),
    ):
        create_baseline(opened.batch(partial=True), project.baseline.with_name("other.jsonl"))
    assert not project.baseline.with_name("other.jsonl").exists()
    _, gone, unknown = project.differences()
    assert (gone, unknown) == (0, 1)


def test_missing_import_fixes_no_finding(project: Project) -> None:
    project.run()
    project.take(ONE_OF_ESLINT, "js")
    assert project.create() == 3
    project.run()
    assert project.differences() == (0, 0, 1)
    project.take(ONE_OF_BANDIT, "security")
    assert project.differences() == (1, 0, 1), "the import of bandit alone changed findings of eslint"
    project.take(b"", "js")
    assert project.differences() == (1, 1, 0)


def test_tool_of_a_custom_task_has_a_sarif_run_without_findings(project: Project) -> None:
    project.write(codebatch_toml=CUSTOM_TASK, a_py="x = 1  # word spelt\n")
    project.run()
    assert project.tools_in_sarif() == {"codebatch": 0, "ruff": 1, "spelling": 1, "words": 0}
    project.write(a_py="x = 2\n")
    project.run()
    assert project.tools_in_sarif() == {"codebatch": 0, "ruff": 1, "spelling": 0, "words": 0}


def test_baseline_within_the_tree_does_not_make_a_batch_stale(project: Project) -> None:
    project.run()
    project.baseline = project.tree / "known.jsonl"
    elsewhere = project.tree.with_name("elsewhere")
    elsewhere.symlink_to(project.tree)
    with codebatch.open(project.store, project=project.tree) as opened:
        batch = opened.batch()
        create_baseline(batch, elsewhere / "known.jsonl")
        assert batch.is_stale is False
        assert opened.batch().is_stale is True, "other queries must count the baseline as an added file"
        checker = GateChecker(
            opened, ExecutionSettings(configuration=load_configuration(project.tree), jobs=2), Listener(), {}
        )
        assert checker.check_baseline(parse_conditions(()), project.baseline).head.is_stale is False
        project.baseline.write_bytes(b"")
        batch = opened.batch()
        update_baseline(batch, project.baseline, accept_new=True)
        assert batch.is_stale is False
        project.write(b_py="import re\n")
        assert checker.check_baseline(parse_conditions(()), project.baseline).head.is_stale is True


def test_run_after_writing_a_baseline_executes_only_the_baseline_file(project: Project) -> None:
    project.run()
    project.baseline = project.tree / "known.jsonl"
    project.create()
    result = inline.run(project.tree, project.store)
    misses = explain_misses(result.store, result.batch, TaskCatalogue(), note=print)[0].tasks
    executed = {task.task: (task.reused, task.executed) for task in misses if task.task not in PROJECT_TASKS}
    assert {*executed.values()} == {(3, 1)}, executed
    assert project.differences() == (0, 0, 0)


def test_baseline_with_a_tool_that_no_task_runs_is_not_judged(project: Project) -> None:
    """A linter that is not installed is left out of the run. Its findings are then unknown, not accepted."""
    project.write(codebatch_toml=CUSTOM_TASK, words_py=TASK, a_py="word\n")
    project.run()
    project.create()
    project.write(codebatch_toml="")
    project.run()
    with codebatch.open(project.store, project=project.tree) as store:
        execution = ExecutionSettings(configuration=load_configuration(project.tree))
        for allow_incomparable, expected in ((False, (1, False)), (True, (0, True))):
            checker = GateChecker(store, execution, Listener(), {}, allow_incomparable)
            checked = checker.check_baseline(parse_conditions(["new"]), project.baseline)
            assert (checked.not_judged, checked.has_passed) == expected
            assert isinstance(checked.base, BaselineReference)
            assert checked.base.tools_not_run == ("words",)
