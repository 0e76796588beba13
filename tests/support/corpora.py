"""Real codebases by other authors, from PyPI, npm and Debian: downloaded once into a cache, and unpacked once.

`CODEBATCH_TEST_CORPORA` names the cache; the default is below the user's cache directory. If a corpus cannot be
downloaded, the test that needs it fails: a test on real code must not be skipped silently.
"""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
import tarfile
from collections.abc import Callable, Sequence
from pathlib import Path

DJANGO = ("Django", "5.2.8")


class CorpusNotHad(Exception):
    """A corpus cannot be downloaded. The message names the package source and the corpus."""


def corpora_directory() -> Path:
    """Return the directory of all corpora, and create it."""
    named = os.environ.get("CODEBATCH_TEST_CORPORA")
    home = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache"))
    cache = Path(named) if named else home / "codebatch-corpora"
    cache.mkdir(parents=True, exist_ok=True)
    return cache


def sdist(name: str, version: str) -> Path:
    """Return the directory of an unpacked source distribution from PyPI."""
    return _obtain(f"{name}-{version}", lambda downloads, target: _from_pypi(f"{name}=={version}", downloads, target))


def npm(name: str, version: str) -> Path:
    """Return the directory of an unpacked package from npm, without its dependencies. npm must be installed."""
    return _obtain(f"{name.replace('/', '-')}-{version}", lambda at, target: _from_npm(f"{name}@{version}", at, target))


def npm_installed(name: str, *requirements: str) -> Path:
    """Return a directory whose node_modules has packages and their dependencies. `name` names this set of packages."""

    def install(_downloads: Path, target: Path) -> None:
        command = ["npm", "install", "--silent", "--no-audit", "--no-fund", "--ignore-scripts", "--legacy-peer-deps"]
        _get(f"npm: {' '.join(requirements)}", [*command, "--prefix", str(target), *requirements])

    return _obtain(name, install)


def debian(name: str) -> Path:
    """Return the directory of an unpacked Debian package. apt must be installed.

    apt chooses the version, because a security update removes the previous version.
    """
    return _obtain(name, lambda at, target: _from_debian(name, at, target))


def _obtain(name: str, fetch: Callable[[Path, Path], None]) -> Path:
    """Return the directory of a corpus, and fetch it if it is missing. One process fetches at a time; others wait."""
    cache = corpora_directory()
    target = cache / name
    if target.is_dir():
        return target
    with open(cache / ".lock", "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not target.is_dir():
            downloads = cache / "downloads" / name
            downloads.mkdir(parents=True, exist_ok=True)
            unpacking = cache / f".{name}.{os.getpid()}"
            fetch(downloads, unpacking)
            unpacking.rename(target)
    return target


def _from_pypi(requirement: str, downloads: Path, target: Path) -> None:
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-binary", ":all:"]
    _get(f"PyPI: {requirement}", [*command, "-d", str(downloads), requirement])
    _unpack(downloads, target)


def _from_npm(requirement: str, downloads: Path, target: Path) -> None:
    _get(f"npm: {requirement}", ["npm", "pack", "--silent", "--pack-destination", str(downloads), requirement])
    _unpack(downloads, target)


def _from_debian(name: str, downloads: Path, target: Path) -> None:
    command = ["apt-get", "download", "--quiet", name]
    try:
        _get(f"apt: {name}", command, cwd=downloads)
    except CorpusNotHad:
        # The package may have been replaced since the package lists were fetched.
        _get(f"apt: the lists, for {name}", ["apt-get", "update", "--quiet"])
        _get(f"apt: {name}", command, cwd=downloads)
    archive = max(downloads.glob("*.deb"), key=lambda path: path.stat().st_mtime_ns)
    subprocess.run(["dpkg-deb", "--extract", archive, target], check=True)


def _get(corpus: str, command: Sequence[str], cwd: Path | None = None) -> None:
    """Download a corpus. Raises CorpusNotHad with the name of the corpus and the program's standard error."""
    completed = subprocess.run(command, cwd=cwd, check=False, capture_output=True, encoding="utf-8")
    if completed.returncode != 0:
        raise CorpusNotHad(f"{corpus}: {completed.stderr.strip() or f'status {completed.returncode}'}")


def _unpack(downloads: Path, target: Path) -> None:
    """Unpack the only archive in `downloads`, and move the only directory in it to `target`."""
    (archive,) = [*downloads.glob("*.tar.gz"), *downloads.glob("*.tgz")]
    unpacked = target.with_name(f"{target.name}.unpacked")
    with tarfile.open(archive) as tar:
        members = [member for member in tar.getmembers() if member.isfile() or member.isdir()]
        for member in members:
            if member.name.startswith("/") or ".." in Path(member.name).parts:
                raise ValueError(f"{archive} holds an unsafe path: {member.name}")
        tar.extractall(unpacked, members=members)
    (root,) = unpacked.iterdir()
    root.rename(target)
    unpacked.rmdir()
