"""Real git repositories with chosen histories, made quickly by `git fast-import`."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path

NOW = 1_700_000_000
DAY = 24 * 60 * 60


def git(directory: Path, *arguments: str, given: bytes | None = None) -> str:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    environment |= {"GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_NOSYSTEM": "1"}
    completed = subprocess.run(
        ["git", *arguments], cwd=directory, env=environment, input=given, capture_output=True, check=True
    )
    return completed.stdout.decode().strip()


def make_repository(directory: Path, commits: Iterable[tuple[int, Mapping[bytes, bytes]]]) -> None:
    """Create a repository with one branch. Each commit has a time and its written files. The work tree stays empty."""
    directory.mkdir(parents=True, exist_ok=True)
    git(directory, "init", "-q", "-b", "main")
    stream: list[bytes] = []
    for at, files in commits:
        stream.append(b"commit refs/heads/main\ncommitter n <n@n> %d +0000\ndata 1\nm\n" % at)
        for path, content in files.items():
            quoted = b'"%b"' % path.replace(b"\\", b"\\\\").replace(b'"', b'\\"').replace(b"\n", b"\\n")
            stream.append(b"M 100644 inline %b\ndata %d\n%b\n" % (quoted, len(content), content))
    git(directory, "fast-import", "--quiet", given=b"".join(stream))
