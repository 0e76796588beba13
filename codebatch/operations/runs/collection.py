"""What a store holds, what of it is kept, and what goes."""

from __future__ import annotations

import contextlib
from functools import partial
from itertools import islice
from pathlib import Path

import msgspec

from codebatch.errors import StoreError, StoreInUse, StoreUnwritable, UnknownId
from codebatch.operations import Note, ignore_note
from codebatch.scheduling.lifecycle import BatchState, CommandState
from codebatch.store import layout
from codebatch.store.batches.batches import BatchDir, batch_ids, given_names, iter_batches
from codebatch.store.batches.holders import is_held
from codebatch.store.batches.pins import pinned_ids
from codebatch.store.batches.store import StoreDir
from codebatch.store.maintenance.collection import CollectionPlan, choose, collect
from codebatch.store.results.compaction import UNSETTLED
from codebatch.store.snapshots.snapshots import snapshot_ids
from codebatch.system.clock import wall_ns
from codebatch.system.files.disk_usage import iter_files, reclaimable_bytes


class Collected(msgspec.Struct, frozen=True, kw_only=True):
    """What went, or would go. Of the batches that were settled their outputs are left.

    `packs_rewritten` are those of which a part is kept, `objects` those that nobody needs. `relinked` names had copies
    of shard files that are there anyway, of `relinked_bytes`. `freed_bytes` are all of those that have no other name.
    """

    batches: tuple[str, ...]
    snapshots: tuple[str, ...]
    settled: tuple[str, ...]
    packs: int
    packs_rewritten: int
    objects: int
    relinked: int
    relinked_bytes: int
    freed_bytes: int

    @property
    def is_nothing(self) -> bool:
        """Whether nothing went that anybody could miss."""
        return not (self.batches or self.snapshots or self.packs or self.packs_rewritten)


class StoreStats(msgspec.Struct, frozen=True, kw_only=True):
    """What a store holds: files and bytes by part, each file once; `shared_bytes` are what hard links save."""

    bytes: int
    shared_bytes: int
    parts: dict[str, tuple[int, int]]
    batches: int
    snapshots: int
    pinned: tuple[str, ...]
    batch_names: dict[str, str]


def collect_garbage(store: StoreDir, *, keep: int, is_dry: bool = False, note: Note = ignore_note) -> Collected:
    """Remove old batches, what only they needed, and what nobody names, and have equal shard files be one file;
    `is_dry`: tell what that would be.

    `keep` is how many batches stay that are COMPLETED, of each source, paths and pipeline. Raises StoreInUse at once
    where somebody writes, but for a dry one; StoreUntrusted or StoreUnwritable.
    """
    if is_dry:
        return _told(_choose_all(store, keep, note))
    with store.alone():
        return _collect(store, _choose_all(store, keep, note), note)


def _choose_all(store: StoreDir, keep: int, note: Note) -> CollectionPlan:
    return choose(
        store,
        keep=keep,
        now_ns=wall_ns(),
        passed_over=note,
        with_copies=True,
        work_ended=partial(_work_ended, store),
    )


def _work_ended(store: StoreDir, batch: BatchDir) -> BatchState | None:
    """The state of a work batch of which nothing is open and nothing asked; None of any other, and where unknown."""
    from codebatch.query.status.work_status import (
        read_work_status,  # 5 ms that a store without work batches does without
    )

    try:
        stands = read_work_status(store, batch)
    except (StoreError, UnknownId):
        return None
    is_asking = CommandState.BLOCKED.value in stands.counts
    return stands.state if stands.state.is_final and not is_asking and not is_held(batch) else None


def tidy(store: StoreDir, *, keep: int, ran: BatchDir) -> Collected | None:
    """What `run` does at its end: as `collect_garbage`, but of the batches of the source that was run, and the objects
    once a day. What was run stays as it is, whatever the clock says by which its id was made, and so does the latest.

    How much of other sources is kept is for those to say that are run there. None where somebody else writes, or we may
    not. Raises StoreError.
    """
    with contextlib.ExitStack() as held:
        try:
            held.enter_context(store.alone())
        except (StoreInUse, StoreUnwritable):
            return None
        going = choose(
            store,
            keep=keep,
            now_ns=wall_ns(),
            passed_over=ignore_note,
            spared={ran.id, *(batch.id for batch in islice(iter_batches(store), 1)), *batch_ids(store)[-1:]},
            of=ran.about.sources,
            with_objects=None,
            work_ended=partial(_work_ended, store),
        )
        return _collect(store, going, ignore_note)


def _collect(store: StoreDir, going: CollectionPlan, note: Note) -> Collected:
    told = _told(going)
    collect(store, going, note)
    return told


def _told(going: CollectionPlan) -> Collected:
    packs = going.packs
    unsettled = [batch.root / name for batch, _ in going.to_settle for name in UNSETTLED]
    roots = [*going.batches, *going.snapshots, *going.indexes, *unsettled]
    copies = [name for each in going.copies for name in each.names]
    freed_bytes, relinked_bytes = reclaimable_bytes(roots, copies)
    _, terms_bytes = reclaimable_bytes((), going.terms)
    return Collected(
        settled=tuple(sorted(batch.id for batch, _ in going.to_settle)),
        batches=tuple(sorted(path.name for path in going.batches)),
        snapshots=tuple(sorted(path.name for path in going.snapshots)),
        packs=len(packs.given_up) - packs.rewritten if packs else 0,
        packs_rewritten=packs.rewritten if packs else 0,
        objects=packs.dead if packs else 0,
        relinked=len(copies),
        relinked_bytes=relinked_bytes,
        freed_bytes=freed_bytes + relinked_bytes + terms_bytes + (packs.dead_bytes if packs else 0),
    )


def stats_of(store: StoreDir) -> StoreStats:
    """What a store holds now. A file of several names counts where the first of them is met."""
    parts: dict[str, tuple[int, int]] = {}
    seen: set[int] = set()
    shared = 0
    for path, found in iter_files(store.root):
        if found.st_ino in seen:
            shared += found.st_size
            continue
        seen.add(found.st_ino)
        part = _part_of(Path(path).relative_to(store.root))
        files, held = parts.get(part, (0, 0))
        parts[part] = (files + 1, held + found.st_size)
    return StoreStats(
        bytes=sum(held for _, held in parts.values()),
        shared_bytes=shared,
        parts=dict(sorted(parts.items())),
        batches=len(batch_ids(store)),
        snapshots=len(snapshot_ids(store.files, store.root)),
        pinned=tuple(pinned_ids(store)),
        batch_names=dict(given_names(store)),
    )


def _part_of(path: Path) -> str:
    """The directory of the store that a file lies in; of a batch's file, that of the batch."""
    if path.parts[0] == layout.BATCHES:
        return f"{layout.BATCHES}/{path.parts[2]}" if len(path.parts) > 3 else layout.BATCHES
    return path.parts[0] if len(path.parts) > 1 else "."
