"""Reading of documents that no program can recreate. If one is damaged, raise `store_corrupt` with its path.

Documents of snapshots, batches, outputs and plans are read here. Other modules read other files: a damaged holder file
counts as a dead holder (batches/holders.py), and a damaged commit as missing (results/outcomes.py). batches/store.py
reads store.json.
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

    Raises CorruptFile with the hint if the data is invalid. Raises FileNotFoundError if the file is missing.
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
