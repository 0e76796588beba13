"""Reading of documents that cannot be replaced. If one is damaged, raise `store_corrupt` with its path.

These are the documents of snapshots, batches, outputs and plans. Elsewhere, a damaged holder file counts as a dead
holder, and a damaged commit as missing (batches/holders.py, results/outcomes.py). batches/store.py reads store.json.
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
    """Read a file and decode it. `decode` raises ValueError for invalid data (model/documents.py).

    Raises CorruptFile with the hint if the data is invalid. If the file is missing, raises FileNotFoundError, and the
    caller decides what this means.
    """
    try:
        return decode(read_document_bytes(files, path))
    except ValueError as error:
        raise CorruptFile(str(path), f"is damaged: {error}", hint=hint) from error


def read_document_bytes(files: FileReader, path: Path | str) -> bytes:
    """Return the bytes of a document. Raises FileNotFoundError, and DocumentError if the file is too long."""
    data = files.read_range(path, 0, DOCUMENT_BYTES_MAX + 1)
    if len(data) > DOCUMENT_BYTES_MAX:
        raise DocumentError(f"it is longer than {DOCUMENT_BYTES_MAX} bytes")
    return data
