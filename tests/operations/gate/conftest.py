"""A project with a branch, for tests of the gate."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from codebatch.operations.gate.base_selection import ComparisonBase
from codebatch.operations.gate.quality_gate import CheckResult
from tests.support.git_project import Project
from tests.support.git_repositories import git
from tests.support.inline_workers import inline

MAIN = b"import os\n\n\ndef f(x):\n    return x is 1\n"
RULE = b"""\
[[tasks.lint.rules]]
id = "no-is"
language = "python"
pattern = "return $X"
message = "m"
severity = "error"
bad = ["def f(x):\\n    return x\\n"]
good = ["x = 1\\n"]
"""
SYNTAX_ERROR = b"def f(:\n"


@pytest.fixture(autouse=True)
def _inline() -> Iterator[None]:
    with inline():
        yield


def base_of(checked: CheckResult) -> ComparisonBase:
    assert isinstance(checked.base, ComparisonBase), checked.base
    return checked.base


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """Two commits on the default branch, and a branch on which a third commit adds an error."""
    project = Project(tmp_path, [{b"a.py": b"import re\n"}, {b"a.py": MAIN}])
    git(project.tree, "checkout", "-qb", "change")
    return project
