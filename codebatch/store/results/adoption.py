"""Reuse of a whole batch: a new batch with the results of a COMPLETED one with an equal plan (SPEC.md "Batches").

Equal trees have equal results, in any directory and at any time. But batch.json of the older batch may have another
source and another time than this `run`. So `run` creates a new batch. The files of the new batch are hard links, so
this costs little.
"""

from __future__ import annotations

import stat
from pathlib import Path

from msgspec.structs import replace

from codebatch.model.digest import DIGEST_PATTERN
from codebatch.model.outcome import first_uncovered_input
from codebatch.store import layout
from codebatch.store.batches.batch_directory import NO_CHECKOUT, BatchDir, Checkout, building_batch, new_batch_id
from codebatch.store.batches.source_places import locate_source
from codebatch.store.batches.store_directory import StoreDir
from codebatch.store.results.outcomes import OutcomeRegisters
from codebatch.store.results.outputs import Manifest
from codebatch.store.sharing import hardlink_or_copy
from codebatch.system.files.files import StoreFiles

# Outcomes are linked before the segments with their records, because a concurrent `resume` of the older batch writes a
# segment before its outcomes.
_LINKED_DIRECTORIES = (layout.JOURNAL, layout.OUTCOMES, layout.RESULTS)


def is_adoptable(batch: BatchDir, manifest: Manifest) -> bool:
    """Return whether a new batch may take all results of a batch.

    True if the cache keys cover all inputs of all its results, including results that are not merged yet.
    """
    if manifest.has_inputs_outside_key:
        return False
    tally = manifest.count_outcomes()
    if tally.results == tally.planned:
        return True
    return not any(
        first_uncovered_input(commit.outcomes)
        for commit in OutcomeRegisters(batch.files, batch.root).scan_new().commits
    )


def adopt_batch(
    store: StoreDir,
    batch: BatchDir,
    *,
    sources: tuple[bytes, ...],
    stat_cache: str,
    checkout: Checkout = NO_CHECKOUT,
    at_ns: int,
) -> BatchDir:
    """Create a batch with the plan and the results of an older batch.

    `sources` and `stat_cache` are those of the new batch.

    No process may be working on the older batch. Its files are never changed after they were written, so both batches
    share them by hard links. If a file has the maximum number of links, it is copied. On return the new batch is on
    disk.
    """
    about = replace(
        batch.about,
        batch_id=new_batch_id(store, at_ns),
        sources=sources,
        place=locate_source(sources, store.root),
        stat_cache=stat_cache,
        commit=checkout.commit,
        is_clean=checkout.is_clean,
        for_comparison=False,
        created_at_ns=at_ns,
    )
    files = store.files
    names = files.listing(batch.root / layout.OUTPUTS)
    outputs = [f"{layout.OUTPUTS}/{name}" for name in names if DIGEST_PATTERN.match(name)]
    with building_batch(store, about) as root:
        for directory in (*_LINKED_DIRECTORIES, *outputs):
            _link_all_files(files, batch.root / directory, root / directory)
        files.sync_directory(root / layout.OUTPUTS)
        hardlink_or_copy(files, batch.root / layout.PLAN_FILE, root / layout.PLAN_FILE)
        if files.size(batch.root / layout.SETTLED_FILE) is not None:
            hardlink_or_copy(files, batch.root / layout.SETTLED_FILE, root / layout.SETTLED_FILE)
    return BatchDir(files, store.batches / about.batch_id, about)


def _link_all_files(files: StoreFiles, source: Path, target: Path) -> None:
    """Link or copy every file of a directory, recursively.

    On return, everything in `target` is synced. The name of `target` itself is not: sync its parent directory.
    """
    files.make_directory(target)
    for name in files.listing(source):
        status = files.stat(source / name)
        if status is not None and stat.S_ISREG(status.st_mode):  # Other file types are not created by codebatch.
            hardlink_or_copy(files, source / name, target / name)
        elif status is not None and stat.S_ISDIR(status.st_mode):
            _link_all_files(files, source / name, target / name)
    files.sync_directory(target)
