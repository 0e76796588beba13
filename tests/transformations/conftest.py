"""Fixtures for tests of tasks that propose changes."""

from __future__ import annotations

from pathlib import Path

import pytest

from codebatch_workers.lint.python.ruff import RuffRunner
from codebatch_workers.tasks.syntax_errors import SyntaxErrors
from tests.support.command_line import CommandLine


@pytest.fixture
def codebatch(tmp_path: Path) -> CommandLine:
    """The command line in an empty directory."""
    return CommandLine(tmp_path)


@pytest.fixture
def errors(tmp_path: Path) -> SyntaxErrors:
    """The finder of syntax errors that workers have."""
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    return SyntaxErrors(RuffRunner((), scratch))
