"""Work of a known size: a file holds a number, and so many blocks are hashed.

`python burn.py FILE ...` does it for files, as xargs and GNU parallel call it.
"""

from __future__ import annotations

import hashlib
import sys

BLOCK = bytes(16 * 1024)


def burn(content: bytes) -> int:
    """Hash as many blocks as the content says."""
    for _ in range(int(content)):
        hashlib.sha256(BLOCK).digest()
    return len(content)


def burn_file(path: str) -> int:
    """The same for a file."""
    with open(path, "rb") as file:
        return burn(file.read())


if __name__ == "__main__":
    for name in sys.argv[1:]:
        burn_file(name)
