"""Real trees, real git repositories and real stores for the tests of snapshots."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from codebatch.snapshotting.snapshot import SnapshotResult, SourceRules, take_snapshot
from codebatch.store.objects.object_store import ObjectStore
from codebatch.store.snapshots.snapshots import Snapshot, load_snapshot
from codebatch.system.files.files import RealFiles, StoreFiles

GIT_ENVIRONMENT = {
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_AUTHOR_NAME": "a",
    "GIT_AUTHOR_EMAIL": "a@example.org",
    "GIT_COMMITTER_NAME": "a",
    "GIT_COMMITTER_EMAIL": "a@example.org",
}


class Workbench:
    """A source tree and a store next to it."""

    def __init__(self, root: Path) -> None:
        self.files: StoreFiles = RealFiles()
        self.source = root / "source"
        self.source.mkdir()
        self.store = root / "store"

    def write(self, path: str, content: bytes | str = b"x\n") -> Path:
        target = self.source / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content.encode() if isinstance(content, str) else content)
        return target

    def git(self, *arguments: str, cwd: Path | None = None) -> str:
        if shutil.which("git") is None:
            pytest.skip("git is not installed")
        return subprocess.run(
            ["git", "-c", "protocol.file.allow=always", *arguments],
            cwd=cwd or self.source,
            env={**os.environ, **GIT_ENVIRONMENT},
            check=True,
            capture_output=True,
            text=True,
        ).stdout

    def commit(self, cwd: Path | None = None) -> None:
        self.git("init", "-q", cwd=cwd)
        self.git("add", "-A", cwd=cwd)
        self.git("commit", "-qm", "x", cwd=cwd)

    def take(
        self, *roots: Path, include: tuple[str, ...] = (), exclude: tuple[str, ...] = (), rehash: bool = False
    ) -> SnapshotResult:
        rules = SourceRules(include=include, exclude=exclude, rehash=rehash)
        return take_snapshot(self.files, self.store, roots or (self.source,), rules, now=lambda: 1_700_000_000.0)

    def load(self, result: SnapshotResult) -> Snapshot:
        return self.load_id(result.snapshot_id)

    def load_id(self, snapshot_id: str) -> Snapshot:
        return load_snapshot(self.files, self.store, snapshot_id)

    def paths(self, *roots: Path, include: tuple[str, ...] = (), exclude: tuple[str, ...] = ()) -> list[bytes]:
        return [entry.path for entry in self.load(self.take(*roots, include=include, exclude=exclude)).entries]

    def objects(self) -> ObjectStore:
        return ObjectStore(self.files, self.store / "objects")

    def settle(self) -> None:
        """Wait until the clock of the file system has passed everything in the tree, so that no file is racy."""
        newest = max(max(s.st_mtime_ns, s.st_ctime_ns) for s in map(os.lstat, [self.source, *self.source.rglob("*")]))
        probe = self.source.parent / "clock"
        for _ in range(10_000_000):
            probe.write_bytes(b"")
            if os.lstat(probe).st_mtime_ns > newest:
                return
        pytest.fail("the clock of the file system does not advance")


@pytest.fixture
def bench(tmp_path: Path) -> Workbench:
    return Workbench(tmp_path)


@pytest.fixture
def make_bench(tmp_path_factory: pytest.TempPathFactory) -> Callable[[], Workbench]:
    return lambda: Workbench(tmp_path_factory.mktemp("bench"))
