"""Real codebases that we did not write, from PyPI: downloaded once into a cache, unpacked once.

`CODEBATCH_TEST_CORPORA` names the cache; the default is below the user's cache directory. A corpus that cannot be had
fails the test that needs it: a proof on real code that silently did not run is none.
"""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
import tarfile
from pathlib import Path

DJANGO = ("Django", "5.2.8")


def corpora_directory() -> Path:
    """Where corpora are kept."""
    named = os.environ.get("CODEBATCH_TEST_CORPORA")
    home = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache"))
    cache = Path(named) if named else home / "codebatch-corpora"
    cache.mkdir(parents=True, exist_ok=True)
    return cache


def sdist(name: str, version: str) -> Path:
    """The directory of a source distribution, unpacked. One process downloads, the others wait for it."""
    cache = corpora_directory()
    target = cache / f"{name}-{version}"
    with open(cache / ".lock", "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not target.is_dir():
            _download(name, version, cache, target)
    return target


def _download(name: str, version: str, cache: Path, target: Path) -> None:
    downloads = cache / "downloads" / target.name
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-binary", ":all:"]
    subprocess.run([*command, "-d", downloads, f"{name}=={version}"], check=True)
    (archive,) = downloads.glob("*.tar.gz")
    unpacking = cache / f".{target.name}.{os.getpid()}"
    with tarfile.open(archive) as tar:
        members = [member for member in tar.getmembers() if member.isfile() or member.isdir()]
        for member in members:
            if member.name.startswith("/") or ".." in Path(member.name).parts:
                raise ValueError(f"{archive} holds an unsafe path: {member.name}")
        tar.extractall(unpacking, members=members)
    (root,) = unpacking.iterdir()
    root.rename(target)
    unpacking.rmdir()
