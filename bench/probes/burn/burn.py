"""Work of a known size: a file contains a number, and that many blocks are hashed.

`python burn.py FILE ...` processes files; xargs and GNU parallel call it.
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
    """Hash as many blocks as the content of a file says."""
    with open(path, "rb") as file:
        return burn(file.read())


if __name__ == "__main__":
    for name in sys.argv[1:]:
        burn_file(name)
