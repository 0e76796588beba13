"""The command line in an empty directory, and the promise that every test here ends with."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.process import CommandLine, make_many


@pytest.fixture
def codebatch(tmp_path: Path) -> CommandLine:
    """The command line in an empty directory."""
    return CommandLine(tmp_path)


@pytest.fixture(scope="session")
def digest_of_many(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The result digest of an undisturbed run over `make_many(..., 40)`, which every disturbed one must reach."""
    root = tmp_path_factory.mktemp("undisturbed")
    make_many(root / "many", 40)
    digest = CommandLine(root)("run", "many", "--json").json["result_digest"]
    assert isinstance(digest, str)
    return digest
