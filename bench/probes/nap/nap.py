"""A custom task that only waits: as many seconds as the file says."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from codebatch_workers.api import SourceFile


def task(file: SourceFile) -> list[object]:
    """Wait as long as the file says. Return no records."""
    time.sleep(float(file.content))
    return []
