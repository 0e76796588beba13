"""The commands that add packages to the environment of this copy of codebatch, with the installer of this environment.

They name the missing packages, not an extra of codebatch. The name `codebatch` may mean nothing, or something else, in
the package index of the user, and the directory from which this copy was installed may have changed or be gone.
"""

from __future__ import annotations

import os
import re
import shlex
import sys
from collections.abc import Iterable
from importlib import metadata
from importlib.util import find_spec

_EXTRA_MARKER = re.compile(r"\bextra\s*==\s*['\"]([^'\"]+)")


def extra_command(extra: str, distribution: str = "codebatch") -> str:
    """Return the shell command that installs the packages of an extra of an installed distribution."""
    try:
        lines = metadata.requires(distribution) or []
    except metadata.PackageNotFoundError:
        lines = []
    packages = [
        package.strip()
        for package, _, marker in (line.partition(";") for line in lines)
        if (match := _EXTRA_MARKER.search(marker)) is not None and match[1] == extra
    ]
    return packages_command(packages or [f"{distribution}[{extra}]"])


def packages_command(packages: Iterable[str]) -> str:
    """Return the shell command that installs packages into the environment of this copy.

    pipx marks its environments, and knows each by the name of its directory. An environment that uv made has no pip.
    """
    if os.path.exists(os.path.join(sys.prefix, "pipx_metadata.json")):
        command = ["pipx", "inject", os.path.basename(sys.prefix)]
    elif find_spec("pip") is not None:
        command = [sys.executable, "-I", "-m", "pip", "install"]  # A pip.py of the current directory must not run.
    else:
        command = ["uv", "pip", "install", "--python", sys.executable]
    return shlex.join([*command, *packages])
