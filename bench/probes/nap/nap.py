"""An own task that waits as many seconds as the file says, and does nothing."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from codebatch_workers.api import SourceFile


def task(file: SourceFile) -> list[object]:
    """Wait."""
    time.sleep(float(file.content))
    return []
