"""ruff as a tool: what it does not answer is no answer."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import pytest

from codebatch_workers.tasks.ruff import Finding, Ruff, RuffError
from codebatch_workers.tasks.ruff_project import ProjectRuff
from tests.tasks.support import source


class Losing(Ruff):
    """Somebody removes a file before ruff comes to it."""

    def _call(self, directory: bytes, names: Sequence[bytes]) -> list[Finding]:
        os.unlink(directory + b"/" + names[0])
        return super()._call(directory, names)


class LosingProject(ProjectRuff):
    """The same with a project's own configuration."""

    def _call(self, directory: bytes, names: Sequence[bytes]) -> list[Finding]:
        os.unlink(directory + b"/" + names[0])
        return super()._call(directory, names)


@pytest.mark.parametrize(
    "make", [partial(Losing, ["F401"]), partial(LosingProject, {"ruff.toml": "lint.select = ['F401']"})]
)
def test_file_that_ruff_cannot_read_is_no_file_without_findings(make: Callable[[Path], Ruff], tmp_path: Path) -> None:
    with pytest.raises(RuffError, match="E902"):
        make(tmp_path).check([source("a.py", "import os\n"), source("b.py", "import os\n")])


def test_ruff_that_fell_over_has_not_answered(tmp_path: Path) -> None:
    with pytest.raises(RuffError, match="ruff ended with"):
        Ruff(["F401"], tmp_path).check([source("a.py", "x = " + "[" * 50_000 + "]" * 50_000 + "\n")])


def test_answers_are_kept_for_who_asks_next_and_no_longer(tmp_path: Path) -> None:
    calls: list[Sequence[bytes]] = []

    class Counting(Ruff):
        def _call(self, directory: bytes, names: Sequence[bytes]) -> list[Finding]:
            calls.append(names)
            return super()._call(directory, names)

    one, two = source("a.py", "import os\n"), source("b.py", "import re\n")
    ruff = Counting(["F401"], tmp_path)
    assert [[each.code for each in answer] for answer in ruff.check([one, two])] == [["F401"], ["F401"]]
    assert ruff.check([two, one])[0][0].message == "`re` imported but unused"
    assert len(calls) == 1
    ruff.want(["E711"])
    ruff.check([one])
    assert calls[1:] == [[b"a.py"]]
