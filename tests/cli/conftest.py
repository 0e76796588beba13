"""A project with one batch, shared by tests that only read it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.support.command_line import CommandLine, make_project


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    """A project, its store, and the IDs of its first snapshot and batch."""

    codebatch: CommandLine
    project: Path
    store: Path
    snapshot_id: str
    batch_id: str


@pytest.fixture(scope="session")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Ran:
    """A project that was analysed once. Tests must not change it."""
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
