"""The same work for another question: a batch whose results are those of one that has ended (SPEC.md "Batches").

Equal trees have equal results, wherever they lie and however often they come back. What `run` found for one tree would
answer for the place, the patterns and the instant of another; so it gets a batch of its own, which costs links only.
"""

from __future__ import annotations

import stat
import uuid

from msgspec.structs import replace

from codebatch.model.digest import DIGEST_PATTERN
from codebatch.model.document import encode_document
from codebatch.store import layout
from codebatch.store.batches import Batch, make_batch_directories, new_batch_id
from codebatch.store.store import Store

# An outcome before the segment that holds its records: who resumes the other batch meanwhile writes them the other way.
_LINKED = (layout.JOURNAL, layout.OUTCOMES, layout.RESULTS)


def adopt_batch(store: Store, batch: Batch, *, sources: tuple[bytes, ...], stat_cache: str, at_ns: int) -> Batch:
    """Make a batch of the same plan and results, of these sources as this stat cache knows them.

    Nobody may be at work on the one that is adopted. Files are shared by hard links: all of them are write-once. On
    return it is on disk.
    """
    about = replace(
        batch.about, batch_id=new_batch_id(at_ns), sources=sources, stat_cache=stat_cache, created_at_ns=at_ns
    )
    files = store.files
    building = Batch(files, store.batches / f".{uuid.uuid4().hex}.tmp", about)
    found = (name for name, _ in files.listing(batch.root / layout.OUTPUTS))
    outputs = [f"{layout.OUTPUTS}/{name}" for name in found if DIGEST_PATTERN.match(name)]
    try:
        make_batch_directories(building)
        for directory in (*_LINKED, *outputs):
            files.make_directory(building.root / directory)
            for name, _ in files.listing(batch.root / directory):
                path = batch.root / directory / name
                found_there = files.stat(path)
                if found_there is not None and stat.S_ISREG(found_there.st_mode):  # Others are none of ours.
                    files.create_exclusive(path, building.root / directory / name)
            files.sync_directory(building.root / directory)
        files.sync_directory(building.root / layout.OUTPUTS)
        files.create_exclusive(batch.root / layout.PLAN_FILE, building.root / layout.PLAN_FILE)
        if files.size(batch.root / layout.SETTLED_FILE) is not None:
            files.create_exclusive(batch.root / layout.SETTLED_FILE, building.root / layout.SETTLED_FILE)
        files.write_new(building.root / layout.BATCH_FILE, encode_document(about))
        published = files.publish_directory(building.root, store.batches / about.batch_id)
    except BaseException:
        files.remove_tree(building.root)
        raise
    assert published, "a new batch id was taken"
    return Batch(files, store.batches / about.batch_id, about)
