"""Projects with a batch that proposes changes, made without a worker."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from msgspec import UNSET

from codebatch.model.change import ChangeRefusal
from codebatch.model.digest import digest_bytes
from codebatch.model.entry import path_fields
from codebatch.model.record import FileChange, Record
from codebatch.store.batches.batch_directory import BatchDir
from codebatch.store.batches.store_directory import StoreDir, create_store
from codebatch.store.objects.pack_writer import PackWriter
from codebatch.system.files.files import RealFiles
from tests.index.batches import make_saying

Edits = Mapping[str, Mapping[bytes, bytes | None]]
"""The new contents of files, by task. None: the file is deleted."""
NOTHING_REFUSED: Mapping[bytes, ChangeRefusal] = {}


def make_changed_batch(
    store_root: Path,
    source: Path,
    files: Mapping[bytes, bytes],
    edits: Edits,
    *,
    second: int = 0,
    sources: Sequence[bytes] = (),
    refused: Mapping[bytes, ChangeRefusal] = NOTHING_REFUSED,
    commit: str = "",
) -> tuple[StoreDir, BatchDir]:
    """Make a merged batch of a tree with these files, whose tasks propose these edits. The tasks are `parse` to `lint`.

    The files are written to `source`, and the store is created if it does not exist. `sources` are the recorded
    sources, by default `source`. `refused` has the changes that gates refuse, by path. `commit` is the recorded commit
    of the files.
    """
    store = create_store(RealFiles(), store_root)[0]
    for path, old in files.items():
        place = source / os.fsdecode(path)
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(old)
    with PackWriter(store.objects()) as writer:
        for by_path in edits.values():
            for content in by_path.values():
                if content is not None:
                    writer.add(content)
    said = {
        task: [
            _records(path, files[path], by_path[path], refused.get(path)) if path in by_path else ()
            for path in sorted(files)
        ]
        for task, by_path in edits.items()
    }
    sources = sources or (os.fsencode(source.resolve()),)
    batch = make_saying(store, len(files), said, second=second, contents=files, sources=sources, commit=commit)
    return store, batch


def _records(path: bytes, before: bytes, after: bytes | None, refusal: ChangeRefusal | None) -> tuple[Record, ...]:
    text, encoded = path_fields(path)
    change = FileChange(
        path=text,
        path_b64=encoded,
        before=digest_bytes(before),
        after=None if after is None else digest_bytes(after),
        added=0 if after is None else after.count(b"\n"),
        removed=before.count(b"\n"),
        refused_by=UNSET if refusal is None else refusal.gate,
        evidence="" if refusal is None else refusal.evidence,
    )
    return (change,)
