"""What every scenario is given: trees, a scratch directory, how often to measure, and how to call codebatch."""

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
    """`scratch` is ours alone; whoever makes something big in it removes it again."""

    scratch: Path
    runs: int
    corpora: Sequence[Corpus]
    old_codebatch: Path | None = None
    histories: Sequence[History] = ()

    @property
    def runs_of_short(self) -> int:
        """Repetitions of what takes a tenth of a second: noise there is a greater part."""
        return self.runs * 5

    def codebatch(self, name: str, *arguments: str | Path, prepare: Callable[[], None] = lambda: None) -> Side:
        """A call of the installed console script, outside of the tree it works on."""
        command = [str(Path(sys.executable).with_name("codebatch")), *map(str, arguments)]
        return Side(name=name, command=command, cwd=self.scratch, prepare=prepare)

    def probe(self, name: str, module: str, *arguments: str | Path, prepare: Callable[[], None] = lambda: None) -> Side:
        """A program of `bench.probes`."""
        command = [sys.executable, "-m", f"bench.probes.{module}", *map(str, arguments)]
        return Side(name=name, command=command, cwd=REPOSITORY, prepare=prepare)


Scenario = Callable[[Setting], Iterator[Row]]


def answer(side: Side) -> bytes:
    """What a command prints, unmeasured. Raises CalledProcessError where it fails."""
    side.prepare()
    done = subprocess.run(
        list(side.command), cwd=side.cwd, env={**environment(), **side.environment}, check=True, capture_output=True
    )
    return done.stdout


def without(path: Path) -> Callable[[], None]:
    """A preparation: a directory is not there."""
    return lambda: shutil.rmtree(path, ignore_errors=True)


def as_copy_of(template: Path, path: Path) -> Callable[[], None]:
    """A preparation: a directory is as another one is."""

    def prepare() -> None:
        shutil.rmtree(path, ignore_errors=True)
        shutil.copytree(template, path, symlinks=True)

    return prepare
