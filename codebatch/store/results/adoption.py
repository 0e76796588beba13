"""The same work for another question: a batch whose results are those of one that has ended (SPEC.md "Batches").

Equal trees have equal results, wherever they lie and however often they come back. What `run` found for one tree would
answer for the place, the patterns and the instant of another; so it gets a batch of its own, which costs links only.
"""

from __future__ import annotations

import stat
from pathlib import Path

from msgspec.structs import replace

from codebatch.model.digest import DIGEST_PATTERN
from codebatch.model.outcome import first_unkeyed
from codebatch.store import layout
from codebatch.store.batches.batches import NO_CHECKOUT, BatchDir, Checkout, building_batch, new_batch_id
from codebatch.store.batches.store import StoreDir
from codebatch.store.results.outcomes import Outcomes
from codebatch.store.results.outputs import Manifest
from codebatch.store.sharing import hardlink_or_copy
from codebatch.system.files.files import Files

# An outcome before the segment that holds its records: who resumes the other batch meanwhile writes them the other way.
_LINKED = (layout.JOURNAL, layout.OUTCOMES, layout.RESULTS)


def is_adoptable(batch: BatchDir, manifest: Manifest) -> bool:
    """Whether no result of a merged batch rests on what is in no key, nor one that was not merged since."""
    if manifest.is_unkeyed:
        return False
    tally = manifest.tally()
    if tally.results == tally.planned:
        return True
    return not any(first_unkeyed(commit.outcomes) for commit in Outcomes(batch.files, batch.root).scan().commits)


def adopt_batch(
    store: StoreDir,
    batch: BatchDir,
    *,
    sources: tuple[bytes, ...],
    stat_cache: str,
    checkout: Checkout = NO_CHECKOUT,
    at_ns: int,
) -> BatchDir:
    """Make a batch of the same plan and results, of these sources as this stat cache knows them.

    Nobody may be at work on the one that is adopted. Files are shared by hard links, for all of them are write-once;
    one that gets no further name is copied. On return it is on disk.
    """
    about = replace(
        batch.about,
        batch_id=new_batch_id(store, at_ns),
        sources=sources,
        stat_cache=stat_cache,
        commit=checkout.commit,
        is_clean=checkout.is_clean,
        for_comparison=False,
        created_at_ns=at_ns,
    )
    files = store.files
    found = files.listing(batch.root / layout.OUTPUTS)
    outputs = [f"{layout.OUTPUTS}/{name}" for name in found if DIGEST_PATTERN.match(name)]
    with building_batch(store, about) as root:
        for directory in (*_LINKED, *outputs):
            _share_all(files, batch.root / directory, root / directory)
        files.sync_directory(root / layout.OUTPUTS)
        hardlink_or_copy(files, batch.root / layout.PLAN_FILE, root / layout.PLAN_FILE)
        if files.size(batch.root / layout.SETTLED_FILE) is not None:
            hardlink_or_copy(files, batch.root / layout.SETTLED_FILE, root / layout.SETTLED_FILE)
    return BatchDir(files, store.batches / about.batch_id, about)


def _share_all(files: Files, source: Path, target: Path) -> None:
    """Share every file of a directory, and of those in it. On return they are on disk, but for the directory's name."""
    files.make_directory(target)
    for name in files.listing(source):
        found = files.stat(source / name)
        if found is not None and stat.S_ISREG(found.st_mode):  # What is neither is none of ours.
            hardlink_or_copy(files, source / name, target / name)
        elif found is not None and stat.S_ISDIR(found.st_mode):
            _share_all(files, source / name, target / name)
    files.sync_directory(target)
