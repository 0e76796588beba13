"""A project that was run once, shared by the tests that only read."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.support.command_line import CommandLine, make_project


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    """A project, its store beside it, and the ids that its first run gave."""

    codebatch: CommandLine
    project: Path
    store: Path
    snapshot_id: str
    batch_id: str


@pytest.fixture(scope="session")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Ran:
    """Read-only for whoever uses it."""
    root = tmp_path_factory.mktemp("ran")
    codebatch = CommandLine(root)
    answer = codebatch("run", make_project(root / "project"), "--store", "store", "--json").json
    return Ran(
        codebatch=codebatch,
        project=root / "project",
        store=root / "store",
        snapshot_id=answer["snapshot_id"],
        batch_id=answer["batch_id"],
    )


@pytest.fixture
def codebatch(tmp_path: Path) -> CommandLine:
    """The command line in an empty directory."""
    return CommandLine(tmp_path)
