"""Documents on disk that nothing can stand in for: what is wrong with one is `store_corrupt` and names it.

So are read the documents of snapshots, batches and outputs, and plans. Damaged holders and commits count as the dead's
or as lost (batches/holders.py, results/outcomes.py). The store's own document is read in batches/store.py.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from codebatch.errors import CorruptFile
from codebatch.model.documents import DocumentError
from codebatch.system.files.file_reader import FileReader

DOCUMENT_BYTES_MAX = 256 << 20

T = TypeVar("T")


def read_document(files: FileReader, path: Path, decode: Callable[[bytes], T], *, hint: str) -> T:
    """Read a file through its decoder, which raises ValueError for what it refuses (model/documents.py).

    Raises CorruptFile with the hint, or FileNotFoundError: what a missing file means is the caller's to say.
    """
    try:
        return decode(read_document_bytes(files, path))
    except ValueError as error:
        raise CorruptFile(str(path), f"is damaged: {error}", hint=hint) from error


def read_document_bytes(files: FileReader, path: Path | str) -> bytes:
    """The bytes of a document's file. Raises FileNotFoundError, and DocumentError where it is too long for one."""
    data = files.read_range(path, 0, DOCUMENT_BYTES_MAX + 1)
    if len(data) > DOCUMENT_BYTES_MAX:
        raise DocumentError(f"it is longer than {DOCUMENT_BYTES_MAX} bytes")
    return data
