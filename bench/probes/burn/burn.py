"""Work of a known size: a file holds a number, and so many blocks are hashed. As a codebatch task, and as a function.

`python burn.py FILE ...` does it for files, as xargs and GNU parallel call it.
"""

from __future__ import annotations

import hashlib
import sys

from codebatch.model.task import TaskDeclaration

BLOCK = bytes(16 * 1024)

BURN = TaskDeclaration(
    name="burn", version="1", summary="hashes so many blocks", implementation="burn:create", records=("metric",)
)


def burn(content: bytes) -> int:
    """Hash as many blocks as the content says."""
    for _ in range(int(content)):
        hashlib.sha256(BLOCK).digest()
    return len(content)


def burn_file(path: str) -> int:
    """The same for a file."""
    with open(path, "rb") as file:
        return burn(file.read())


class Burn:
    """The task."""

    def run(self, file):  # type: ignore[no-untyped-def]
        """One metric a file."""
        from codebatch.model.record import Metric

        path, path_b64 = file.path_fields
        return [Metric(path=path, path_b64=path_b64, metric="bytes", value=burn(file.content))]


def create(_environment):  # type: ignore[no-untyped-def]
    """The factory."""
    return Burn()


if __name__ == "__main__":
    for name in sys.argv[1:]:
        burn_file(name)
