"""Source trees to measure on: corpora of others, copied to a scratch directory in the shape a scenario needs."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.measuring import environment
from tests.support.corpora import DJANGO, sdist

MANY_FILES_MIN = 50_000


@dataclass(frozen=True, slots=True)
class Corpus:
    """A source tree that we did not write."""

    name: str
    root: Path


def corpora(directories: Sequence[Path], sdists: Sequence[tuple[str, str]]) -> list[Corpus]:
    """The trees that were named; Django's source distribution where none was."""
    named = [Corpus(directory.resolve().name, directory.resolve()) for directory in directories]
    wanted = sdists or ([] if named else [DJANGO])
    return named + [Corpus(f"{name} {version}", sdist(name, version)) for name, version in wanted]


def copy_without_git(corpus: Corpus, target: Path) -> Path:
    """A copy of a corpus with its links and times, without any `.git` or store."""
    shutil.copytree(corpus.root, target, symlinks=True, ignore=shutil.ignore_patterns(".git", ".codebatch"))
    return target


def many_files(sources: Sequence[Corpus], target: Path, *, files_min: int = MANY_FILES_MIN) -> int:
    """Make a git work tree of at least so many files, all in its index: the corpora again and again, side by side."""
    count = copies = 0
    while count < files_min:
        corpus = sources[copies % len(sources)]
        copies += 1
        count += count_files(copy_without_git(corpus, target / f"copy-{copies:03}"))
    make_work_tree(target)
    return count


def make_work_tree(root: Path) -> None:
    """Give a directory a `.git` whose index holds everything."""
    for arguments in (["init", "--quiet"], ["add", "--all"]):
        subprocess.run(["git", *arguments], cwd=root, env=environment(), check=True, capture_output=True)


def count_files(root: Path) -> int:
    """Files below a directory, links to them included."""
    return sum(len(files) for _, _, files in os.walk(root))


@dataclass(frozen=True, slots=True, kw_only=True)
class Bytes:
    """What a directory takes: the sum of its files' sizes, and of the blocks the disk gives to them."""

    apparent: int
    on_disk: int


def bytes_below(root: Path) -> Bytes:
    """What the files below a directory take; one with several names counts once."""
    found = {(status.st_dev, status.st_ino): status for status in _iter_status(root)}
    return Bytes(
        apparent=sum(status.st_size for status in found.values()),
        on_disk=sum(status.st_blocks * 512 for status in found.values()),
    )


def _iter_status(root: Path) -> Iterator[os.stat_result]:
    for directory, _, files in os.walk(root):
        for name in files:
            yield os.lstat(os.path.join(directory, name))
