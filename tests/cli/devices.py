"""Device nodes of the test's own: no test names one of the machine's as a target."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest


def make_device(path: Path, like: str) -> Path:
    """Make a node of the same device as another. Skips the test if that is not permitted here."""
    try:
        os.mknod(path, stat.S_IFCHR | 0o666, os.stat(like).st_rdev)
    except PermissionError:
        pytest.skip("this user may not make device nodes")
    return path
