"""Source trees to measure on: corpora, copied to a scratch directory in the shape that a scenario needs."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.measuring import environment
from tests.support.corpora import DJANGO, sdist

MANY_FILES_MIN = 50_000
_SKIPPED_DIRECTORIES = frozenset({".git", ".codebatch", "__pycache__", "dist-packages", "site-packages"})
_PYTHON_SUFFIXES = frozenset({".py", ".pyi"})
_SOURCE_SUFFIXES = _PYTHON_SUFFIXES | {
    ".c", ".cc", ".cfg", ".cpp", ".css", ".cu", ".cuh", ".go", ".h", ".hpp", ".html", ".java", ".js", ".json", ".md",
    ".rs", ".rst", ".sh", ".toml", ".ts", ".txt", ".yaml", ".yml",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Corpus:
    """A source tree that other people wrote."""

    name: str
    root: Path


def corpora(directories: Sequence[Path], sdists: Sequence[tuple[str, str]]) -> list[Corpus]:
    """Return the named trees, or Django's source distribution if none was named."""
    named = [Corpus(directory.resolve().name, directory.resolve()) for directory in directories]
    chosen = sdists or ([] if named else [DJANGO])
    return named + [Corpus(f"{name} {version}", sdist(name, version)) for name, version in chosen]


def copy_without_git(corpus: Corpus, target: Path) -> Path:
    """Copy a corpus with its links and times, without any `.git` or store."""
    shutil.copytree(corpus.root, target, symlinks=True, ignore=shutil.ignore_patterns(".git", ".codebatch"))
    return target


@dataclass(frozen=True, slots=True, kw_only=True)
class CopiedSources:
    """The number and total size of copied source files."""

    files: int
    bytes: int


def copy_sources(sources: Sequence[Corpus], target: Path, *, files_max: int, bytes_max: int) -> CopiedSources:
    """Copy source files of several trees, such as site-packages, into one directory, up to a limit.

    Python files come first. Packages, the entries of a tree, are in the order of the hashes of their names, so that the
    selection is the same each time and most packages are complete. Symbolic links are left out, and so are directories
    of installed packages below a tree.
    """
    candidates = sorted(
        (path.suffix not in _PYTHON_SUFFIXES, hashlib.sha256(package.encode()).digest(), number, str(path), path)
        for number, corpus in enumerate(sources)
        for package, path in _iter_sources(corpus.root)
    )
    files = size = 0
    for _, _, number, _, path in candidates:
        length = (sources[number].root / path).stat().st_size
        if files == files_max or size + length > bytes_max:
            break
        copy = target / f"{number}" / path
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(sources[number].root / path, copy)
        files, size = files + 1, size + length
    return CopiedSources(files=files, bytes=size)


def _iter_sources(root: Path) -> Iterator[tuple[str, Path]]:
    """Yield each source file, relative to the root, with the name of the entry of the root that contains it."""
    for directory, names, files in os.walk(root):
        names[:] = [
            name
            for name in names
            if name not in {".git", ".codebatch", "__pycache__", "dist-packages", "site-packages"}
        ]
        for name in files:
            path = Path(directory, name)
            if path.suffix in _SOURCE_SUFFIXES and path.is_file() and not path.is_symlink():
                relative = path.relative_to(root)
                yield relative.parts[0], relative


def many_files(sources: Sequence[Corpus], target: Path, *, files_min: int = MANY_FILES_MIN) -> int:
    """Make a git work tree of at least `files_min` files, all in its index: copies of the corpora, side by side."""
    count = copies = 0
    while count < files_min:
        corpus = sources[copies % len(sources)]
        copies += 1
        count += count_files(copy_without_git(corpus, target / f"copy-{copies:03}"))
    make_work_tree(target)
    return count


def make_work_tree(root: Path) -> None:
    """Create a `.git` in a directory whose index contains every file."""
    for arguments in (["init", "--quiet"], ["add", "--all"]):
        subprocess.run(["git", *arguments], cwd=root, env=environment(), check=True, capture_output=True)


def count_files(root: Path) -> int:
    """Count the files below a directory, including links to files."""
    return sum(len(files) for _, _, files in os.walk(root))


@dataclass(frozen=True, slots=True, kw_only=True)
class Bytes:
    """The size of a directory: the sum of its files' sizes, and of the blocks that the disk allocates for them."""

    apparent: int
    on_disk: int


def bytes_below(root: Path) -> Bytes:
    """Return the size of the files below a directory. A file with several names counts once."""
    status_by_inode = {(status.st_dev, status.st_ino): status for status in _iter_status(root)}
    return Bytes(
        apparent=sum(status.st_size for status in status_by_inode.values()),
        on_disk=sum(status.st_blocks * 512 for status in status_by_inode.values()),
    )


def _iter_status(root: Path) -> Iterator[os.stat_result]:
    for directory, _, files in os.walk(root):
        for name in files:
            yield os.lstat(os.path.join(directory, name))
