"""Documents on disk that nothing can stand in for: what is wrong with one is `store_corrupt` and names it.

So are read the documents of snapshots, batches and outputs, and plans. Damaged holders and commits count as the dead's
or as lost (store/holders.py, store/outcomes.py); the store's own document is read in store/store.py.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from codebatch.errors import CorruptFile
from codebatch.system.file_reader import FileReader

T = TypeVar("T")


def read_document(files: FileReader, path: Path, decode: Callable[[bytes], T], *, hint: str) -> T:
    """Read a file through its decoder, which raises ValueError for what it refuses (model/document.py).

    Raises CorruptFile with the hint, or FileNotFoundError: what a missing file means is the caller's to say.
    """
    data = files.read(path)
    try:
        return decode(data)
    except ValueError as error:
        raise CorruptFile(str(path), f"is damaged: {error}", hint=hint) from error
