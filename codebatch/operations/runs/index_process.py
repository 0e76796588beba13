"""A process that builds the index of a merged batch: `python -m codebatch.operations.runs.index_process PARENT STORE
BATCH PIECES`.

A run starts it, and meanwhile counts its results. PARENT is the pid of the run, and PIECES the directory with the word
segments that other processes have built. The exit status is 0 only if the index is complete.
"""

from __future__ import annotations

import contextlib
import gc
import sys
from pathlib import Path

from codebatch.errors import StoreCorrupt, StoreError
from codebatch.operations.runs.indexing import build_index
from codebatch.store.batches.batch_directory import open_batch
from codebatch.store.batches.store_directory import open_store
from codebatch.system.files.files import RealFiles
from codebatch.system.processes.processes import die_with_parent


def build_index_from_pieces(store_root: Path, batch_id: str, pieces: Path) -> None:
    """Build the index of a batch. Raises CodebatchError, also if data is damaged that an index may lack."""
    store = open_store(RealFiles(), store_root)

    def read_piece(name: str) -> bytes | None:
        with contextlib.suppress(FileNotFoundError, StoreError):
            return store.files.read(pieces / name)
        return None

    build_index(store, open_batch(store, batch_id), note=_refuse_damage, read_piece=read_piece)


def _refuse_damage(note: str) -> None:
    """Refuse an index that lacks damaged data: the run builds it and shows the note."""
    raise StoreCorrupt(note)


if __name__ == "__main__":
    _parent, _store, _batch, _pieces = sys.argv[1:]
    die_with_parent(int(_parent))
    gc.set_threshold(50_000, 20, 50)
    build_index_from_pieces(Path(_store), _batch, Path(_pieces))
