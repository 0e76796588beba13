"""The setting of every scenario: trees, a scratch directory, the number of turns, and calls of codebatch."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.histories import History
from bench.measuring import Side, environment
from bench.rows import Row
from bench.trees import Corpus

REPOSITORY = Path(__file__).resolve().parent.parent


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """Trees, the number of turns and a scratch directory for our use only.

    A scenario that makes large files there removes them.
    """

    scratch: Path
    runs: int
    corpora: Sequence[Corpus]
    old_codebatch: Path | None = None
    histories: Sequence[History] = ()
    jobs: Sequence[int] = ()

    @property
    def runs_of_short(self) -> int:
        """The number of turns of commands that take a tenth of a second, where noise has a larger share."""
        return self.runs * 5

    def codebatch(self, name: str, *arguments: str | Path, prepare: Callable[[], None] = lambda: None) -> Side:
        """Return a call of the installed console script, run outside of the tree that it works on."""
        command = [str(Path(sys.executable).with_name("codebatch")), *map(str, arguments)]
        return Side(name=name, command=command, cwd=self.scratch, prepare=prepare)

    def probe(self, name: str, module: str, *arguments: str | Path, prepare: Callable[[], None] = lambda: None) -> Side:
        """Return a call of a program of `bench.probes`."""
        command = [sys.executable, "-m", f"bench.probes.{module}", *map(str, arguments)]
        return Side(name=name, command=command, cwd=REPOSITORY, prepare=prepare)


Scenario = Callable[[Setting], Iterator[Row]]


def answer(side: Side) -> bytes:
    """Run a command unmeasured and return its output. Raises CalledProcessError if it fails."""
    side.prepare()
    done = subprocess.run(
        list(side.command), cwd=side.cwd, env={**environment(), **side.environment}, check=True, capture_output=True
    )
    return done.stdout


def without(path: Path) -> Callable[[], None]:
    """Return a preparation that removes a directory."""
    return lambda: shutil.rmtree(path, ignore_errors=True)


def as_copy_of(template: Path, path: Path) -> Callable[[], None]:
    """Return a preparation that makes a directory a copy of another."""

    def prepare() -> None:
        shutil.rmtree(path, ignore_errors=True)
        shutil.copytree(template, path, symlinks=True)

    return prepare
