"""Tests of ruff as a program: a missing answer is an error."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import pytest

from codebatch.model.record import Diagnostic
from codebatch_workers.api.protocols import BatchedFileTask, FileFailure
from codebatch_workers.lint.python import ruff as ruff_module
from codebatch_workers.lint.python.ruff import RuffError, RuffFinding, RuffRunner
from codebatch_workers.lint.python.ruff_project import ProjectRuffRunner
from tests.support.source_files import created, source


class FileRemovingRuff(RuffRunner):
    """A runner whose file is removed before ruff reads it."""

    def _call_ruff(self, directory: bytes, names: Sequence[bytes]) -> list[RuffFinding]:
        os.unlink(directory + b"/" + names[0])
        return super()._call_ruff(directory, names)


class FileRemovingProjectRuff(ProjectRuffRunner):
    """A project runner whose file is removed before ruff reads it."""

    def _call_ruff(self, directory: bytes, names: Sequence[bytes]) -> list[RuffFinding]:
        os.unlink(directory + b"/" + names[0])
        return super()._call_ruff(directory, names)


@pytest.mark.parametrize("make", [partial(FileRemovingRuff, ["F401"]), FileRemovingProjectRuff])
def test_file_unreadable_for_ruff_is_an_error(make: Callable[[Path], RuffRunner], tmp_path: Path) -> None:
    with pytest.raises(RuffError, match="E902"):
        make(tmp_path).check([source("a.py", "import os\n"), source("b.py", "import os\n")])


def test_failure_of_ruff_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(RuffError, match="ruff ended with 2"):
        RuffRunner(["NO1"], tmp_path).check([source("a.py", "import os\n")])


@pytest.fixture
def small_stack(monkeypatch: pytest.MonkeyPatch) -> None:
    """A limit of the larger stack that 100,000 brackets exceed, and 10,000 terms do not."""
    monkeypatch.setattr(ruff_module, "_STACK_BYTES", 24 << 20)


@pytest.mark.usefixtures("small_stack")
@pytest.mark.parametrize("make", [partial(RuffRunner, ["F401"]), ProjectRuffRunner])
def test_crash_of_ruff_concerns_only_the_file_that_causes_it(
    make: Callable[[Path], RuffRunner], tmp_path: Path
) -> None:
    deep = source("c.py", "import os\nx = " + "[" * 100_000 + "]" * 100_000 + "\n")
    sum_of_many = source("d.py", "import os\nx = " + "+".join(["1"] * 10_000) + "\n")
    files = [source("a.py", "import os\n"), source("b.py", "x = 1\n"), deep, sum_of_many, source("e.py", "import os\n")]
    ruff = make(tmp_path)
    found = [[finding.code for finding in answer if finding.code == "F401"] for answer in ruff.check(files)]
    assert found == [["F401"], [], [], ["F401"], ["F401"]]
    assert [ruff.is_uncheckable(file) for file in files] == [False, False, True, False, False]
    ruff.check([source("f.py", "x = 1\n")])
    assert not ruff.is_uncheckable(deep)


@pytest.mark.usefixtures("small_stack")
def test_lint_fails_only_for_the_file_on_which_ruff_crashes(tmp_path: Path) -> None:
    deep = source("a.py", "x = " + "[" * 100_000 + "]" * 100_000 + "\n")
    files = [source("b.py", "import os\n"), deep]
    parse, lint = created("parse", tmp_path), created("lint", tmp_path)
    assert isinstance(parse, BatchedFileTask)
    assert isinstance(lint, BatchedFileTask)
    (first, second) = lint.complete(files, [lint.run_file(file) for file in files])
    assert isinstance(first, list)
    assert [record.code for record in first if isinstance(record, Diagnostic)] == ["F401"]
    assert isinstance(second, FileFailure)
    assert second.evidence == "ruff crashes on this file, probably because its code is nested too deeply"
    assert all(isinstance(answer, list) for answer in parse.complete(files, [parse.run_file(file) for file in files]))


def test_ruff_answers_are_cached_for_a_single_further_request(tmp_path: Path) -> None:
    calls: list[Sequence[bytes]] = []

    class CountingRuff(RuffRunner):
        def _call_ruff(self, directory: bytes, names: Sequence[bytes]) -> list[RuffFinding]:
            calls.append(names)
            return super()._call_ruff(directory, names)

    one, two = source("a.py", "import os\n"), source("b.py", "import re\n")
    ruff = CountingRuff(["F401"], tmp_path)
    assert [[finding.code for finding in answer] for answer in ruff.check([one, two])] == [["F401"], ["F401"]]
    assert ruff.check([two, one])[0][0].message == "`re` imported but unused"
    assert len(calls) == 1
    ruff.select_rules(["E711"])
    ruff.check([one])
    assert calls[1:] == [[b"./a.py"]]


def test_long_file_lists_are_split_into_several_commands(tmp_path: Path) -> None:
    commands: list[int] = []

    class MeasuringRuff(RuffRunner):
        def _call_ruff(self, directory: bytes, names: Sequence[bytes]) -> list[RuffFinding]:
            commands.append(sum(map(len, names)))
            return super()._call_ruff(directory, names)

    deep = "/".join(["d" * 200] * 9)
    files = [source(f"{deep}/{number:03}.py", f"import os{number}\n") for number in range(60)]
    answers = MeasuringRuff(["F401"], tmp_path).check(files)
    assert [finding.message for answer in answers for finding in answer] == [
        f"`os{number}` imported but unused" for number in range(60)
    ]
    assert len(commands) == 2
    assert max(commands) <= 100_000
