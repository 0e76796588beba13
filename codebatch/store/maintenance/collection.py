"""Garbage collection of batches, then snapshots, then objects (SPEC.md "Garbage collection").

`plan_collection` only reads: it lists all data to remove. If an error occurs in this phase, nothing has been removed.
Then `execute_collection` performs these steps, while its caller holds the exclusive lock of the store
(`StoreDir.exclusive_lock`). Each step is on disk before the next begins:

1. Batches are renamed to hidden names. No remaining data refers to these batches.
2. Snapshots that no remaining batch refers to are renamed in the same way.
3. The hidden directories are removed, and the trees of removed work batches. After a kill, the next writer removes the
   directories (batches/leftovers.py).
4. Batches are settled: only their outputs stay (store/results/compaction.py).
5. Equal shard files are linked to each other (store/results/relinking.py).
6. Packs are removed or rewritten (store/objects/repacking.py).
7. Caches, and indexes of removed batches, are removed. They only save time.

So at any time, and after power loss, the remaining data refers only to existing data. If a batch or snapshot cannot be
read, its references are unknown. Then no snapshot and no object is removed.

In the store of a group, another user's files may have permissions that refuse a change. Then the rest is collected, and
`execute_collection` returns what could not be removed. If a batch stays for this reason, so do all snapshots and packs.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Callable, Collection, Iterator
from pathlib import Path

import msgspec
from msgspec.structs import replace

from codebatch.errors import StoreCorrupt, StoreError, StoreUnwritable, UnknownId
from codebatch.model.digest import DIGEST_PATTERN, Digest, digest_bytes
from codebatch.store import layout
from codebatch.store.batches.batch_directory import BATCH_ID_PATTERN, BatchDir, batch_ids, is_work
from codebatch.store.batches.pins import protected_ids
from codebatch.store.batches.source_places import RemovedSources
from codebatch.store.batches.store_directory import StoreDir
from codebatch.store.ids import SkipCallback
from codebatch.store.maintenance.retention import (
    EndStateReader,
    choose_old_batches,
    read_all_batches,
    settled_digest,
)
from codebatch.store.maintenance.work_references import (
    BatchTreeSettings,
    iter_change_set_objects,
    read_tree_settings,
    remove_batch_trees,
    tree_snapshots,
)
from codebatch.store.objects.referenced_objects import may_name_objects, objects_named_in
from codebatch.store.objects.repacking import RepackingPlan, choose_packs, repack_objects
from codebatch.store.results.compaction import compact_batch
from codebatch.store.results.outcomes import OutcomeRegisters
from codebatch.store.results.outputs import MergedOutputs, current_outputs
from codebatch.store.results.relinking import FileCopies, find_copies, replace_by_links
from codebatch.store.results.shard_survey import ShardName, iter_shard_names
from codebatch.store.snapshots.snapshots import load_snapshot, snapshot_ids

NS_PER_DAY = 24 * 3600 * 10**9
UNNAMED_DAYS_MAX = 14
"""Maximum age in days of a snapshot or stat cache that no batch refers to."""


class CollectionPlan(msgspec.Struct, frozen=True, kw_only=True):
    """A plan of one garbage collection: the data to remove.

    - `abandoned`: the removed batches whose source directory was removed, with this directory.
    - `to_settle`: the batches of which only the outputs stay.
    - `trees`: the trees of removed batches.
    - `copies`: groups of equal shard files, to be linked to each other.
    - `packs`: None if this collection does not include objects, or if the needed objects are unknown.
    """

    to_settle: list[tuple[BatchDir, Digest]] = msgspec.field(default_factory=list)
    batches: list[Path] = msgspec.field(default_factory=list)
    abandoned: dict[str, bytes] = msgspec.field(default_factory=dict)
    snapshots: list[Path] = msgspec.field(default_factory=list)
    caches: list[Path] = msgspec.field(default_factory=list)
    trees: list[BatchTreeSettings] = msgspec.field(default_factory=list)
    indexes: list[Path] = msgspec.field(default_factory=list)
    terms: list[Path] = msgspec.field(default_factory=list)
    copies: list[FileCopies] = msgspec.field(default_factory=list)
    packs: RepackingPlan | None = None


class UnremovedData(msgspec.Struct, frozen=True, kw_only=True):
    """Data that a garbage collection could not remove, because permissions of its files refuse it.

    `name` is the ID of a batch or snapshot, or the path of a file or directory in the store.
    """

    name: str
    reason: str


def plan_collection(
    store: StoreDir,
    *,
    keep: int,
    now_ns: int,
    on_skipped: SkipCallback,
    spared: Collection[str] = (),
    source_filter: tuple[bytes, ...] | None = None,
    with_objects: bool | None = True,
    with_copies: bool = False,
    work_ended: EndStateReader = lambda _: None,
    is_needed: Callable[[BatchDir], bool] = lambda _: False,
) -> CollectionPlan:
    """Choose what to remove, without changing anything. Raises StoreUntrusted.

    Batches with equal sources, paths and pipeline form a group. Batches that were run for a comparison form groups of
    their own. In each group, the `keep` latest COMPLETED batches stay, and the `keep` latest batches in other states.
    These batches stay as well:

    - batches that have not ended, and the bases of such batches
    - pinned, named or held batches
    - batches with an ID in `spared`
    - if `source_filter` is given: batches with other sources

    If their source was removed, all batches are removed except bases and pinned, named, held or spared ones, with their
    snapshots and caches. COMPLETED batches that stay are settled, unless they are in `spared`.

    - `with_objects`: collect objects too. None means: collect objects if the last collection of objects was at least a
      day ago.
    - `with_copies`: also read shard files to find equal ones.
    - `work_ended` returns the state of a work batch. Work batches are never settled.
    - `is_needed` returns whether an old batch stays nevertheless. It gets the latest batch first.
    - `on_skipped` is called with a message for each damaged file.
    """
    pinned = protected_ids(store)
    batches, is_all_known = read_all_batches(store, on_skipped)
    sources = RemovedSources(store.root, now_ns)
    gone = {batch.id for batch in batches if sources.has(batch.about.sources, batch.about.place)}
    old = choose_old_batches(batches, keep, pinned, source_filter, gone, work_ended)
    removed = [batch for batch in old if batch.id not in spared and not is_needed(batch)]
    removed_ids = {batch.id for batch in removed}
    remaining = [batch for batch in batches if batch.id not in removed_ids]
    to_settle = [(batch, digest) for batch in remaining if batch.id not in spared and (digest := settled_digest(batch))]
    abandoned = [batch for batch in removed if batch.id in gone]
    plan = CollectionPlan(
        batches=[batch.root for batch in removed],
        abandoned={batch.id: batch.about.sources[0] for batch in abandoned},
        to_settle=to_settle,
        copies=find_copies(store.files, _shard_names(remaining, to_settle)) if with_copies else [],
        indexes=list(_indexes_to_remove(store, {*batch_ids(store)} - removed_ids)),
    )
    if not is_all_known:
        return plan
    try:
        trees = read_tree_settings(remaining)
        plan.trees.extend(read_tree_settings(removed))
    except StoreError as error:
        on_skipped(f"neither snapshots nor objects were removed, as it is unknown which are needed: {error.message}")
        return plan
    referenced = {batch.about.snapshot_id for batch in remaining} | pinned | tree_snapshots(trees)
    names = snapshot_ids(store.files, store.root)
    plan.snapshots.extend(_old_snapshots(store, [name for name in names if name not in referenced], abandoned, now_ns))
    remaining_snapshots = sorted({*names} - {path.name for path in plan.snapshots})
    plan.caches.extend(_old_caches(store, remaining, abandoned, now_ns))
    if not (_is_object_collection_due(store, now_ns) if with_objects is None else with_objects):
        return plan
    plan.terms.extend(_terms_to_remove(store, remaining))
    needed = _needed_objects(store, remaining, remaining_snapshots, on_skipped)
    return plan if needed is None else replace(plan, packs=choose_packs(store.objects(), needed))


def execute_collection(store: StoreDir, going: CollectionPlan, on_skipped: SkipCallback) -> list[UnremovedData]:
    """Remove the data that `plan_collection` chose. Return the data that could not be removed.

    The caller must hold the exclusive lock of the store from `plan_collection` to the end of this call. On return
    everything else is removed durably. Files that another program has removed in between are skipped. If
    StoreUnwritable is raised, some data may have been removed.
    """
    files = store.files
    unremoved: list[UnremovedData] = []
    for paths in (going.batches, going.snapshots):
        for path in () if unremoved else paths:
            with _noting_refusal(path.name, unremoved):
                files.retire(path)
        if paths:
            files.sync_directory(paths[0].parent)
    staying = {each.name for each in unremoved}
    for path in going.indexes:  # Readers find an index complete or not at all.
        with _noting_refusal(str(path.relative_to(store.root)), unremoved):
            files.retire(path)
    for path in store.unfinished_directories():
        with _noting_refusal(str(path.relative_to(store.root)), unremoved):
            files.remove_tree(path)
    remove_batch_trees(store, [each for each in going.trees if each.batch_id not in staying])
    for batch, result_digest in going.to_settle:
        with contextlib.suppress(FileNotFoundError), _noting_refusal(batch.id, unremoved):
            compact_batch(batch, result_digest)
    with _noting_refusal(layout.BATCHES, unremoved):
        replace_by_links(store, going.copies)
    if going.packs is not None and not staying:
        with _noting_refusal(layout.OBJECTS, unremoved):
            for pack in repack_objects(store.objects(), going.packs):
                on_skipped(
                    f"{pack}{layout.PACK_SUFFIX} was not removed: it contains the only copy of an object "
                    "that is still needed, and this copy is damaged"
                )
            files.write_volatile(store.root / layout.CACHE / layout.OBJECTS_COLLECTED, b"")
    for path in (*going.caches, *going.terms):
        with _noting_refusal(str(path.relative_to(store.root)), unremoved):
            files.remove(path)
    return unremoved


@contextlib.contextmanager
def _noting_refusal(name: str, unremoved: list[UnremovedData]) -> Iterator[None]:
    """If permissions refuse the removal of one thing, add it to `unremoved`. Any other StoreUnwritable is raised."""
    try:
        yield
    except StoreUnwritable as error:
        number = getattr(error.__cause__, "errno", None)
        if number not in (errno.EACCES, errno.EPERM):
            raise
        unremoved.append(UnremovedData(name=name, reason=os.strerror(number)))


def _shard_names(remaining_batches: list[BatchDir], to_settle: list[tuple[BatchDir, Digest]]) -> Iterator[ShardName]:
    """Yield the names of the shard files that remain after the collection.

    Settling a batch removes its reused shard files, because its outputs contain the same results. So these names are
    omitted.
    """
    settling = {batch.id for batch, _ in to_settle}
    return (
        name for name in iter_shard_names(remaining_batches) if name.size is not None or name.batch.id not in settling
    )


def _old_snapshots(store: StoreDir, unreferenced: list[str], abandoned: list[BatchDir], now_ns: int) -> Iterator[Path]:
    """Yield the old snapshots, and those that were not taken again after the last abandoned batch of them."""
    needed_until: dict[str, int] = {batch.about.snapshot_id: batch.about.created_at_ns for batch in reversed(abandoned)}
    for name in unreferenced:
        path = store.root / layout.SNAPSHOTS / name
        if _was_modified_before(store, path, needed_until.get(name, 0), now_ns):
            yield path


def _was_modified_before(store: StoreDir, path: Path, end_ns: int, now_ns: int) -> bool:
    """Return whether a path was last modified more than UNNAMED_DAYS_MAX days ago, or not after `end_ns`.

    False for links or missing paths.
    """
    status = store.files.stat(path)
    return (
        status is not None
        and not stat.S_ISLNK(status.st_mode)
        and (now_ns - status.st_mtime_ns > UNNAMED_DAYS_MAX * NS_PER_DAY or status.st_mtime_ns <= end_ns)
    )


def _old_caches(store: StoreDir, remaining: list[BatchDir], abandoned: list[BatchDir], now_ns: int) -> Iterator[Path]:
    """Yield the caches that no batch names and that are old or of a removed source directory."""
    named = {name for batch in remaining for name in _cache_names(batch)}
    unneeded = {name for batch in abandoned for name in _cache_names(batch)} - named
    stat_caches = {batch.about.stat_cache for batch in remaining}
    for name in store.files.listing(store.root / layout.CACHE):
        path = store.root / layout.CACHE / name
        is_cache = layout.STAT_CACHE_PATTERN.match(name) or layout.RESULT_CACHE_PATTERN.match(name)
        if is_cache and name not in stat_caches and (name in unneeded or _was_modified_before(store, path, 0, now_ns)):
            yield path


def _cache_names(batch: BatchDir) -> Iterator[str]:
    """Yield the names of the caches of a batch and of its source directories."""
    yield batch.about.stat_cache
    yield layout.headline_cache_name(digest_bytes(batch.id.encode()))
    for directory in {*batch.about.sources, batch.about.place.work_tree if batch.about.place else b""}:
        yield layout.churn_cache_name(digest_bytes(directory))
        yield layout.durations_cache_name(digest_bytes(directory))


def _indexes_to_remove(store: StoreDir, staying: Collection[str]) -> Iterator[Path]:
    for name in store.files.listing(store.root / layout.INDEXES):
        if BATCH_ID_PATTERN.match(name) and name not in staying:
            yield store.root / layout.INDEXES / name


def _terms_to_remove(store: StoreDir, batches: list[BatchDir]) -> Iterator[Path]:
    """Yield each terms file whose shard file is in no readable batch. If needed later, the file is built again."""
    directory = store.root / layout.INDEXES / layout.TERMS
    names = [name for name in store.files.listing(directory) if DIGEST_PATTERN.match(name)]
    needed = {name.digest for name in iter_shard_names(batches)} if names else set()
    return (directory / name for name in names if name not in needed)


def _is_object_collection_due(store: StoreDir, now_ns: int) -> bool:
    """Return whether the last collection of objects is at least a day ago.

    If there was none, the creation of the store counts. Also true if that time is in the future, because the clock was
    set back.
    """
    last_collection = store.files.stat(store.root / layout.CACHE / layout.OBJECTS_COLLECTED)
    since = last_collection or store.files.stat(store.root / layout.STORE_FILE)
    return since is None or not 0 <= now_ns - since.st_mtime_ns < NS_PER_DAY


def _needed_objects(
    store: StoreDir, batches: list[BatchDir], snapshots: list[str], on_skipped: SkipCallback
) -> set[bytes] | None:
    """Return the digests of the objects that the snapshots and the records of the batches name.

    Return None if a snapshot or a batch cannot be read.
    """
    names: set[str] = set()
    try:
        for snapshot_id in snapshots:
            names |= load_snapshot(store.files, store.root, snapshot_id).object_digests()
        for batch in batches:
            names.update(iter_record_objects(store, batch))
        return {bytes.fromhex(name) for name in names}
    except (StoreError, UnknownId) as error:
        on_skipped(f"no objects were removed, because it is unknown which are needed: {error.message}")
    except ValueError as error:  # A name is not a digest.
        on_skipped(f"no objects were removed, because it is unknown which are needed: {error}")
    return None


def iter_record_objects(store: StoreDir, batch: BatchDir) -> Iterator[str]:
    """Yield the digests of the objects that a batch needs: imported files, and objects that records name.

    For a work batch, these are the change sets of all attempts, and the contents that they name.

    Raises StoreCorrupt.

    If all work of the batch has results, only the merged records are read. Otherwise the work may be continued or
    repeated, so the records of all outcomes are read too. Imported files are needed to repeat their tasks.
    """
    yield from batch.about.imports.values()
    if is_work(batch):
        yield from iter_change_set_objects(store, batch)
        return
    try:
        yield from _iter_named_objects(batch)
    except ValueError as error:
        raise StoreCorrupt(f"records of batch {batch.id} cannot be read: {error}") from error


def _iter_named_objects(batch: BatchDir) -> Iterator[str]:
    outputs = current_outputs(batch)
    if outputs is not None:
        yield from _iter_output_objects(outputs)
        tally = outputs.manifest.count_outcomes()
        if tally.results == tally.planned:
            return
    outcomes = OutcomeRegisters(batch.files, batch.root)
    for commit in outcomes.scan_new().commits:
        for outcome in commit.outcomes:
            if may_name_objects(outcome.counts):
                for part in outcome.parts or (outcome,):
                    yield from objects_named_in(b"".join(outcomes.iter_items(commit.segment, part)))


def _iter_output_objects(outputs: MergedOutputs) -> Iterator[str]:
    for task in outputs.manifest.tasks:
        for index, shard in enumerate(task.shards):
            if may_name_objects(shard.counts):
                for lines in outputs.iter_shard(task, index):
                    yield from objects_named_in(lines)
