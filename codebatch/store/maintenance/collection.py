"""Collecting what nobody needs any more: old batches, then snapshots, then objects (SPEC.md "Garbage collection").

Chosen is first, by reading alone, and all of it: what is unsound or foreign ends the command before anything has gone.
Then, for who has the store alone (`Store.alone`), in this order, each step on disk before the next one begins:

1. Batches get hidden names. Nothing that is left names them.
2. So do snapshots that no batch which is left names.
3. What is hidden is removed; whoever is killed before leaves it to the next one that writes (batches/leftovers.py).
4. Batches are settled (store/results/compaction.py).
5. Equal shard files become one (store/results/relinking.py).
6. Packs go, or are written anew (store/objects/repacking.py).
7. Stat caches go, and indexes of batches that are gone. They are only ever a loss of speed.

So at every instant, and after power loss, what is left names only what is there. What a batch or snapshot names that
cannot be read is not known: then no snapshot and no object goes.
"""

from __future__ import annotations

import contextlib
import stat
from collections import Counter
from collections.abc import Callable, Collection, Iterator
from pathlib import Path

import msgspec
from msgspec.structs import replace

from codebatch.errors import StoreCorrupt, StoreError, UnknownId
from codebatch.model.digest import DIGEST_PATTERN, Digest
from codebatch.scheduling.lifecycle import BatchState, batch_state
from codebatch.store import layout
from codebatch.store.batches.batches import BATCH_ID_PATTERN, BatchDir, batch_ids, is_work, open_batch
from codebatch.store.batches.holders import is_held
from codebatch.store.batches.pins import kept_ids
from codebatch.store.batches.store import StoreDir
from codebatch.store.ids import PassedOver
from codebatch.store.objects.referenced_objects import may_name_objects, objects_named_in
from codebatch.store.objects.repacking import Repacking, choose_packs, repack
from codebatch.store.results.compaction import can_compact, compact_batch, read_compacted
from codebatch.store.results.outcomes import Outcomes
from codebatch.store.results.outputs import Outputs, current_outputs
from codebatch.store.results.relinking import Copies, find_copies, relink
from codebatch.store.results.shard_survey import ShardName, shard_names_of
from codebatch.store.snapshots.snapshots import load_snapshot, snapshot_ids

DAY_NS = 24 * 3600 * 10**9
UNNAMED_DAYS_MAX = 14
"""How old a snapshot gets, or a stat cache, that no batch names."""

HowItEnded = Callable[[BatchDir], BatchState | None]
"""Tells the state of a work batch that nobody holds and that waits for no answer; None of one that is not over."""


def _not_known(_: BatchDir) -> None:
    return None


class CollectionPlan(msgspec.Struct, frozen=True, kw_only=True):
    """What nobody needs. `packs` is None where objects were not looked at, or it is not known which are needed.

    Of the batches to settle, their outputs are all that stays. `copies` need not be there twice.
    """

    to_settle: list[tuple[BatchDir, Digest]] = msgspec.field(default_factory=list)
    batches: list[Path] = msgspec.field(default_factory=list)
    snapshots: list[Path] = msgspec.field(default_factory=list)
    stat_caches: list[Path] = msgspec.field(default_factory=list)
    indexes: list[Path] = msgspec.field(default_factory=list)
    terms: list[Path] = msgspec.field(default_factory=list)
    copies: list[Copies] = msgspec.field(default_factory=list)
    packs: Repacking | None = None


def choose(
    store: StoreDir,
    *,
    keep: int,
    now_ns: int,
    passed_over: PassedOver,
    spared: Collection[str] = (),
    of: tuple[bytes, ...] | None = None,
    with_objects: bool | None = True,
    with_copies: bool = False,
    work_ended: HowItEnded = _not_known,
) -> CollectionPlan:
    """What may go: a look, which changes nothing.

    Of batches that have ended, those stay that are among the `keep` latest COMPLETED of their source, paths and
    pipeline, or among as many others; that are pinned or named, held, bases of one that is not over, or `spared` by
    their ids; and, where it is given, those that are not `of` a source. All others stay. COMPLETED ones are settled,
    but for those that are spared. Batches that were run for a comparison are counted apart.
    `with_objects`: None is once a day. `with_copies`: equal shard files are found too, which takes reading them.
    `work_ended` judges work batches, which are never settled.
    `passed_over` is told what is damaged. Raises StoreUntrusted.
    """
    pinned = kept_ids(store)
    batches, is_all_known = _read_batches(store, passed_over)
    old = _old_batches(batches, keep, pinned, of, work_ended)
    going = [batch for batch in old if batch.id not in spared]
    left = [batch for batch in batches if batch not in going]
    to_settle = [(each, digest) for each in left if each.id not in spared and (digest := _settled_digest(each))]
    found = CollectionPlan(
        batches=[batch.root for batch in going],
        to_settle=to_settle,
        copies=find_copies(store.files, _shard_names(left, to_settle)) if with_copies else [],
        indexes=list(_indexes_but_of(store, {*batch_ids(store)} - {batch.id for batch in going})),
    )
    if not is_all_known:
        return found
    named = {batch.about.snapshot_id for batch in left} | pinned
    staying = []
    for name in snapshot_ids(store.files, store.root):
        path = store.root / layout.SNAPSHOTS / name
        if name not in named and _is_old(store, path, now_ns):
            found.snapshots.append(path)
        else:
            staying.append(name)
    found.stat_caches.extend(_old_stat_caches(store, {batch.about.stat_cache for batch in left}, now_ns))
    if with_objects is None:
        with_objects = _is_due(store, now_ns)
    if with_objects:
        found.terms.extend(_terms_but_of(store, left))
    needed = _needed_objects(store, left, staying, passed_over) if with_objects else None
    if needed is None:
        return found
    return replace(found, packs=choose_packs(store.objects(), needed))


def collect(store: StoreDir, going: CollectionPlan, passed_over: PassedOver) -> None:
    """Remove it. Only for who has had the store alone since it was chosen.

    On return it is gone, and will not come back with power. What somebody removes by hand meanwhile is passed over.
    Raises StoreUnwritable: then a part of it is gone.
    """
    files = store.files
    hidden = []
    for paths in (going.batches, going.snapshots):
        hidden += [gone for path in paths if (gone := files.retire(path)) is not None]
        if paths:
            files.sync_directory(paths[0].parent)
    for path in hidden:
        files.remove_tree(path)
    for batch, result_digest in going.to_settle:
        with contextlib.suppress(FileNotFoundError):
            compact_batch(batch, result_digest)
    relink(store, going.copies)
    if going.packs is not None:
        for pack in repack(store.objects(), going.packs):
            passed_over(
                f"{pack}{layout.PACK_SUFFIX} was not removed: it contains the only copy of an object "
                "that is still needed, and this copy is damaged"
            )
        files.write_volatile(store.root / layout.CACHE / layout.OBJECTS_COLLECTED, b"")
    for path in (*going.stat_caches, *going.terms):
        files.remove(path)
    for path in going.indexes:
        if (gone := files.retire(path)) is not None:  # Whoever reads it finds all of it or nothing.
            files.remove_tree(gone)


def _read_batches(store: StoreDir, passed_over: PassedOver) -> tuple[list[BatchDir], bool]:
    """Every batch that can be read, latest first, and whether that is all there are."""
    batches = []
    names = batch_ids(store)
    for batch_id in reversed(names):
        try:
            batches.append(open_batch(store, batch_id))
        except (StoreError, UnknownId) as error:
            passed_over(
                f"{batch_id} cannot be read, so neither this batch nor any snapshot was removed: {error.message}"
            )
    return batches, len(batches) == len(names)


def _old_batches(
    batches: list[BatchDir], keep: int, pinned: Collection[str], of: tuple[bytes, ...] | None, work_ended: HowItEnded
) -> list[BatchDir]:
    def group(batch: BatchDir) -> tuple[object, ...]:
        return batch.about.sources, batch.about.paths, batch.about.pipeline, batch.about.for_comparison

    bases = {
        base for batch in batches if batch.about.bases and _how_it_ended(batch) is None for base in batch.about.bases
    }
    sizes = Counter(map(group, batches))
    ended: Counter[tuple[object, ...]] = Counter()
    old = []
    for batch in batches:
        if (
            batch.id in pinned
            or batch.id in bases
            or sizes[group(batch)] <= keep
            or of not in (None, batch.about.sources)
        ):
            continue
        state = work_ended(batch) if is_work(batch) else _how_it_ended(batch)
        if state is None:
            continue
        alike = (*group(batch), state is BatchState.COMPLETED)
        ended[alike] += 1
        if ended[alike] > keep:
            old.append(batch)
    return old


def _shard_names(left: list[BatchDir], to_settle: list[tuple[BatchDir, Digest]]) -> Iterator[ShardName]:
    """The names of shard files that stay: what a batch took over goes as it is settled, and its outputs have it."""
    settling = {batch.id for batch, _ in to_settle}
    return (name for name in shard_names_of(left) if name.size is not None or name.batch.id not in settling)


def _how_it_ended(batch: BatchDir) -> BatchState | None:
    """The state of an analysis that is merged and that nobody holds; None of any other, and of what cannot be read."""
    try:
        if is_held(batch):
            return None
        if read_compacted(batch) is not None:
            return BatchState.COMPLETED
        outputs = current_outputs(batch)
    except (StoreError, UnknownId):
        return None
    return None if outputs is None else batch_state(outputs.manifest.tally(), is_started=True)


def _settled_digest(batch: BatchDir) -> Digest | None:
    """The result digest of a batch of which something goes with settling; None of any other."""
    if not can_compact(batch) or _how_it_ended(batch) is not BatchState.COMPLETED:
        return None
    settled = read_compacted(batch)
    if settled is not None:
        return settled.result_digest
    with contextlib.suppress(UnknownId):
        outputs = current_outputs(batch)
        return outputs.manifest.result_digest if outputs is not None and outputs.is_all_there() else None
    return None


def _is_old(store: StoreDir, path: Path, now_ns: int) -> bool:
    """Whether nothing was changed there for so long that who wants it named it since. A link is nobody's of ours."""
    found = store.files.stat(path)
    return (
        found is not None and not stat.S_ISLNK(found.st_mode) and now_ns - found.st_mtime_ns > UNNAMED_DAYS_MAX * DAY_NS
    )


def _old_stat_caches(store: StoreDir, named: Collection[str], now_ns: int) -> Iterator[Path]:
    for name in store.files.listing(store.root / layout.CACHE):
        path = store.root / layout.CACHE / name
        is_ours = layout.STAT_CACHE_PATTERN.match(name) or layout.KEPT_PATTERN.match(name)
        if is_ours and name not in named and _is_old(store, path, now_ns):
            yield path


def _indexes_but_of(store: StoreDir, staying: Collection[str]) -> Iterator[Path]:
    for name in store.files.listing(store.root / layout.INDEXES):
        if BATCH_ID_PATTERN.match(name) and name not in staying:
            yield store.root / layout.INDEXES / name


def _terms_but_of(store: StoreDir, batches: list[BatchDir]) -> Iterator[Path]:
    """What is kept of shard files that no batch has any more; of one that cannot be read it is made anew."""
    directory = store.root / layout.INDEXES / layout.TERMS
    names = [name for name in store.files.listing(directory) if DIGEST_PATTERN.match(name)]
    needed = {each.digest for each in shard_names_of(batches)} if names else set()
    return (directory / name for name in names if name not in needed)


def _is_due(store: StoreDir, now_ns: int) -> bool:
    """Whether objects were looked at a day ago or longer, or the store was made then; a time to come, after which a
    clock was set back, is none.
    """
    looked_at = store.files.stat(store.root / layout.CACHE / layout.OBJECTS_COLLECTED)
    since = looked_at or store.files.stat(store.root / layout.STORE_FILE)
    return since is None or not 0 <= now_ns - since.st_mtime_ns < DAY_NS


def _needed_objects(
    store: StoreDir, batches: list[BatchDir], snapshots: list[str], passed_over: PassedOver
) -> set[bytes] | None:
    """What snapshots and records name; None where one of them cannot be read."""
    names: set[str] = set()
    try:
        for snapshot_id in snapshots:
            names |= load_snapshot(store.files, store.root, snapshot_id).objects()
        for batch in batches:
            names.update(objects_of_records(batch))
        return {bytes.fromhex(name) for name in names}
    except (StoreError, UnknownId) as error:
        passed_over(f"no objects were removed, because it is unknown which are needed: {error.message}")
    except ValueError as error:  # A name that is no digest.
        passed_over(f"no objects were removed, because it is unknown which are needed: {error}")
    return None


def objects_of_records(batch: BatchDir) -> Iterator[str]:
    """The objects that `ast` records name: merged ones, and where work is open or may be done again, all others too.

    So are the files that were imported: what is executed again is made of them. Raises StoreCorrupt.
    """
    yield from batch.about.imports.values()
    try:
        yield from _named_by_records(batch)
    except ValueError as error:
        raise StoreCorrupt(f"records of batch {batch.id} cannot be read: {error}") from error


def _named_by_records(batch: BatchDir) -> Iterator[str]:
    if is_work(batch):  # Its outcomes have no records.
        return
    outputs = current_outputs(batch)
    if outputs is not None:
        yield from _named_by_outputs(outputs)
        tally = outputs.manifest.tally()
        if tally.results == tally.planned:
            return
    outcomes = Outcomes(batch.files, batch.root)
    for commit in outcomes.scan().commits:
        for outcome in commit.outcomes:
            if may_name_objects(outcome.counts):
                for one in outcome.parts or (outcome,):
                    yield from objects_named_in(b"".join(outcomes.iter_items(commit.segment, one)))


def _named_by_outputs(outputs: Outputs) -> Iterator[str]:
    for task in outputs.manifest.tasks:
        for index, shard in enumerate(task.shards):
            if may_name_objects(shard.counts):
                for lines in outputs.iter_shard(task, index):
                    yield from objects_named_in(lines)
