"""List the files that the latest batch parses and those that it passes to ruff.

Called as `python -m bench.probes.selection STORE OUT`. The selection comes from codebatch itself, so that the floor
works over exactly the same files.
"""

from __future__ import annotations

import sys
from pathlib import Path

import msgspec

from codebatch.model.entry import display_path
from codebatch.model.plan import plan_items
from codebatch.store.batches.resolution import resolve_batch
from codebatch.store.batches.store_directory import open_store
from codebatch.store.snapshots.snapshots import load_snapshot
from codebatch.system.files.files import RealFiles
from codebatch_workers.syntax.source import SourceFile


class Selection(msgspec.Struct, frozen=True):
    """Paths below the tree's root: parsed files by language, and files for ruff.

    Paths that are not UTF-8 are left out.
    """

    parsed: dict[str, list[str]]
    linted: list[str]
    files: int


def select(store_root: Path) -> Selection:
    """Return the selection of a store's latest batch."""
    files = RealFiles()
    store = open_store(files, store_root)
    plan = resolve_batch(store, None).plan()
    objects = store.objects()
    parsed: dict[str, list[str]] = {}
    linted: list[str] = []
    items = plan_items(load_snapshot(files, store.root, plan.snapshot_id).entries)
    for index, entry in enumerate(items):
        content = objects.read(entry.object, entry.size)
        source = SourceFile(entry.path, content, entry.executable, plan.item_contexts(index))
        path = display_path(entry.path)
        if path.encode() != entry.path:
            continue
        if source.is_parsed:
            parsed.setdefault(source.language, []).append(path)
        if source.language == "python" and source.file_class not in ("binary", "huge", "empty"):
            linted.append(path)
    return Selection(parsed, linted, len(items))


if __name__ == "__main__":
    Path(sys.argv[2]).write_bytes(msgspec.json.encode(select(Path(sys.argv[1]))))
