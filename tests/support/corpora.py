"""Real codebases that we did not write, from PyPI, npm and Debian: downloaded once into a cache, unpacked once.

`CODEBATCH_TEST_CORPORA` names the cache; the default is below the user's cache directory. A corpus that cannot be had
fails the test that needs it: a proof on real code that silently did not run is none.
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
    """A package source does not give a corpus; the message names both."""


def corpora_directory() -> Path:
    """Where corpora are kept."""
    named = os.environ.get("CODEBATCH_TEST_CORPORA")
    home = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache"))
    cache = Path(named) if named else home / "codebatch-corpora"
    cache.mkdir(parents=True, exist_ok=True)
    return cache


def sdist(name: str, version: str) -> Path:
    """The directory of a source distribution from PyPI, unpacked."""
    return _had(f"{name}-{version}", lambda downloads, target: _from_pypi(f"{name}=={version}", downloads, target))


def npm(name: str, version: str) -> Path:
    """The directory of a package from npm, unpacked, without what it depends on. npm must be installed."""
    return _had(f"{name.replace('/', '-')}-{version}", lambda at, target: _from_npm(f"{name}@{version}", at, target))


def npm_installed(name: str, *requirements: str) -> Path:
    """A directory whose node_modules hold packages and what they depend on, by a name for them all."""

    def install(_downloads: Path, target: Path) -> None:
        command = ["npm", "install", "--silent", "--no-audit", "--no-fund", "--ignore-scripts", "--legacy-peer-deps"]
        _get(f"npm: {' '.join(requirements)}", [*command, "--prefix", str(target), *requirements])

    return _had(name, install)


def debian(name: str) -> Path:
    """The directory of a Debian package, unpacked, of whatever version apt gives: a security update replaces the last.

    apt must be installed.
    """
    return _had(name, lambda at, target: _from_debian(name, at, target))


def _had(name: str, fetch: Callable[[Path, Path], None]) -> Path:
    """The directory of a corpus. One process downloads, and others wait that need what is not there yet."""
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
        # What the lists name may have been replaced since they were fetched.
        _get(f"apt: the lists, for {name}", ["apt-get", "update", "--quiet"])
        _get(f"apt: {name}", command, cwd=downloads)
    archive = max(downloads.glob("*.deb"), key=lambda path: path.stat().st_mtime_ns)
    subprocess.run(["dpkg-deb", "--extract", archive, target], check=True)


def _get(what: str, command: Sequence[str], cwd: Path | None = None) -> None:
    """Download something. Raises CorpusNotHad, with its name and what the program said."""
    done = subprocess.run(command, cwd=cwd, check=False, capture_output=True, encoding="utf-8")
    if done.returncode != 0:
        raise CorpusNotHad(f"{what}: {done.stderr.strip() or f'status {done.returncode}'}")


def _unpack(downloads: Path, target: Path) -> None:
    """Unpack the archive in a directory, and take the one directory in it."""
    (archive,) = [*downloads.glob("*.tar.gz"), *downloads.glob("*.tgz")]
    whole = target.with_name(f"{target.name}.whole")
    with tarfile.open(archive) as tar:
        members = [member for member in tar.getmembers() if member.isfile() or member.isdir()]
        for member in members:
            if member.name.startswith("/") or ".." in Path(member.name).parts:
                raise ValueError(f"{archive} holds an unsafe path: {member.name}")
        tar.extractall(whole, members=members)
    (root,) = whole.iterdir()
    root.rename(target)
    whole.rmdir()
