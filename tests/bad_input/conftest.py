"""The command line in an empty directory, older batches, and the manifest of a directory."""

from __future__ import annotations

import hashlib
import os
import stat
from pathlib import Path

import pytest

from tests.bad_input.bases import Bases, make_bases
from tests.support.command_line import CommandLine, make_many


@pytest.fixture
def codebatch(tmp_path: Path) -> CommandLine:
    """The command line in an empty directory."""
    return CommandLine(tmp_path)


@pytest.fixture(scope="session")
def _bases(tmp_path_factory: pytest.TempPathFactory) -> Bases:
    return make_bases(tmp_path_factory.mktemp("bases"))


@pytest.fixture
def bases(_bases: Bases, monkeypatch: pytest.MonkeyPatch) -> Bases:
    """A tree with older batches. The tree is the current directory, so its configuration applies."""
    monkeypatch.chdir(_bases.root / "tree")
    return _bases


@pytest.fixture(scope="session")
def digest_of_many(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The result digest of an undisturbed run over `make_many(..., 40)`, which disturbed runs must reach."""
    root = tmp_path_factory.mktemp("undisturbed")
    make_many(root / "many", 40)
    digest = CommandLine(root)("run", "many", "--json").json["result_digest"]
    assert isinstance(digest, str)
    return digest


def manifest(root: Path) -> dict[str, tuple[int, str]]:
    """Return the entries of a directory by path: mode, and digest or link target. Stores and `.git` are left out."""
    entries = {}
    for directory, directories, files in os.walk(root):
        directories[:] = [name for name in directories if name not in (".codebatch", ".git", "store")]
        for name in (*directories, *files):
            path = Path(directory, name)
            mode = path.lstat().st_mode
            content = os.readlink(path) if stat.S_ISLNK(mode) else ""
            if stat.S_ISREG(mode):
                content = hashlib.sha256(path.read_bytes()).hexdigest()
            entries[str(path.relative_to(root))] = (mode, content)
    return entries
