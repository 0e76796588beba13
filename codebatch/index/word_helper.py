"""A process that builds word segments beside a run: `python -m codebatch.index.word_helper PARENT OBJECTS REQUEST`.

PARENT is the pid of the process that started this one, and OBJECTS is the directory of packs. The file REQUEST has
ranges of contents (`encode_request`). Its directory gets the piece of each range. If a piece cannot be built, this
process ends, and the caller builds the index without the piece.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Sequence
from pathlib import Path

import msgspec

from codebatch.index.word_ranges import build_segments, encode_piece, piece_name
from codebatch.model.entry import Entry
from codebatch.store.objects.object_store import ObjectStore
from codebatch.system.files.files import RealFiles
from codebatch.system.processes.processes import die_with_parent


def encode_request(ranges: Sequence[Sequence[Entry]]) -> bytes:
    """Return the content of the file that requests the pieces of some ranges."""
    return msgspec.msgpack.encode(ranges)


def build_requested_pieces(objects_root: Path, request: Path) -> None:
    """Build the pieces that a file requests. Raises CodebatchError."""
    files = RealFiles()
    objects = ObjectStore(files, objects_root)
    for entries in msgspec.msgpack.decode(files.read(request), type=list[list[Entry]]):
        files.write_volatile(request.parent / piece_name(entries), encode_piece(build_segments(objects, entries)))


if __name__ == "__main__":
    _parent, _objects, _request = sys.argv[1:]
    die_with_parent(int(_parent))
    gc.set_threshold(50_000, 20, 50)
    build_requested_pieces(Path(_objects), Path(_request))
