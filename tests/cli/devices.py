"""Device nodes for tests, so that no test uses a device of the machine as a target."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest


def make_device(path: Path, like: str) -> Path:
    """Create a node of the same device as another. Skip the test if this is not permitted."""
    try:
        os.mknod(path, stat.S_IFCHR | 0o666, os.stat(like).st_rdev)
    except PermissionError:
        pytest.skip("this user may not make device nodes")
    return path
