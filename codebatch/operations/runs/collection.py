"""Storage statistics of a store, and garbage collection of unreferenced data."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from functools import cache, partial
from itertools import islice
from pathlib import Path

import msgspec
from msgspec.structs import replace

from codebatch.errors import StoreError, StoreInUse, StoreUnwritable, UnknownId
from codebatch.git.ancestry import Repository
from codebatch.model.entry import display_path
from codebatch.operations import NoteCallback, ignore_note
from codebatch.operations.comparison.revisions import has_clean_scope
from codebatch.operations.history.branch_point import find_needed_commits
from codebatch.operations.history.checkouts import find_source_repository
from codebatch.operations.history.ci_services import CiChange
from codebatch.scheduling.lifecycle import BatchState, CommandState
from codebatch.store import layout
from codebatch.store.batches.batch_directory import BatchDir, batch_ids, is_work, iter_batches, read_batch_names
from codebatch.store.batches.holders import has_live_holder
from codebatch.store.batches.pins import pinned_ids
from codebatch.store.batches.store_directory import StoreDir
from codebatch.store.maintenance.collection import (
    CollectionPlan,
    UnremovedData,
    execute_collection,
    plan_collection,
)
from codebatch.store.results.compaction import REMOVED_DIRECTORIES
from codebatch.store.snapshots.snapshots import snapshot_ids
from codebatch.system.clock import wall_ns
from codebatch.system.files.disk_usage import iter_files, reclaimable_bytes
from codebatch.system.files.locked_directories import ENGINE_PREFIX, VERIFY_PREFIX, remove_orphaned_directories


class UnappliedBatch(msgspec.Struct, frozen=True, kw_only=True):
    """An old batch that is kept because `apply` has not written changes of its tasks.

    `tasks` and `changes` are the numbers of these tasks and changes.
    """

    batch_id: str
    tasks: int
    changes: int


class CollectionResult(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a garbage collection, or of its dry run.

    - `removed_sources`: source directories that were removed, so that their batches were removed too.
    - `settled`: batches of which only the outputs are kept.
    - `packs`: packs that were removed.
    - `packs_rewritten`: packs that were rewritten, because they had live and dead objects.
    - `objects`: removed objects.
    - `relinked`, `relinked_bytes`: the number and size of duplicate shard files that were replaced by hard links.
    - `freed_bytes`: the total size of files that lost their last name.
    - `unapplied`: batches that were kept because of changes that are not applied.
    - `unremoved`: data that was to be removed, and stays because permissions of its files refuse it.
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
    removed_sources: tuple[str, ...] = ()
    unapplied: tuple[UnappliedBatch, ...] = ()
    unremoved: tuple[UnremovedData, ...] = ()

    @property
    def is_nothing(self) -> bool:
        """Whether no batch, snapshot or object was removed. Replaced duplicates and settled batches do not count."""
        return not (self.batches or self.snapshots or self.packs or self.packs_rewritten)

    @property
    def unremoved_text(self) -> str:
        """The names of the data that could not be removed, and the first reason. At least one name is required."""
        first, *further = self.unremoved
        return f"{first.name}{f' and {len(further):,} more' if further else ''}: {first.reason}"


class StoreStats(msgspec.Struct, frozen=True, kw_only=True):
    """The files and bytes of a store by part.

    Each file is counted once; `shared_bytes` is the space that hard links save.
    """

    bytes: int
    shared_bytes: int
    parts: dict[str, tuple[int, int]]
    batches: int
    snapshots: int
    pinned: tuple[str, ...]
    batch_names: dict[str, str]


def collect_garbage(
    store: StoreDir,
    *,
    keep: int,
    is_dry: bool = False,
    removes_unapplied: bool = False,
    note: NoteCallback = ignore_note,
) -> CollectionResult:
    """Remove old batches and unreferenced data, and replace equal shard files by hard links.

    `keep` is the number of COMPLETED batches to keep for each combination of source, paths and pipeline. With `is_dry`,
    nothing is removed, and the result describes what would be removed. Task lists with changes that are not applied are
    kept, unless `removes_unapplied` is set.

    Temporary directories of killed processes are removed too. Without `is_dry`, StoreInUse is raised immediately if
    another process writes to the store. Raises StoreUntrusted or StoreUnwritable.
    """
    unapplied: list[UnappliedBatch] = []
    is_needed = _nothing_needed if removes_unapplied else partial(_has_unapplied_changes, store, unapplied)
    if is_dry:
        result = _summarize_plan(_choose_all(store, keep, note, is_needed))
    else:
        remove_orphaned_directories(ENGINE_PREFIX, VERIFY_PREFIX)
        with store.exclusive_lock():
            result = _collect_planned(store, _choose_all(store, keep, note, is_needed), note)
    return replace(result, unapplied=tuple(unapplied))


def _choose_all(
    store: StoreDir, keep: int, note: NoteCallback, is_needed: Callable[[BatchDir], bool]
) -> CollectionPlan:
    return plan_collection(
        store,
        keep=keep,
        now_ns=wall_ns(),
        on_skipped=note,
        with_copies=True,
        work_ended=partial(_read_end_state, store),
        is_needed=is_needed,
    )


def _nothing_needed(_: BatchDir) -> bool:
    return False


def _has_unapplied_changes(store: StoreDir, unapplied: list[UnappliedBatch], batch: BatchDir) -> bool:
    """Return whether a batch is a work batch with changes that are not applied. Such batches are added to `unapplied`.

    True also if the state of a work batch cannot be read.
    """
    if not is_work(batch):
        return False
    # Deferred, because only stores with work batches need it.
    from codebatch.query.status.unapplied_changes import read_unapplied_changes
    from codebatch.query.status.work_status import read_work_status

    try:
        changes = read_unapplied_changes(store, batch, read_work_status(store, batch))
    except (StoreError, UnknownId):
        return True
    if changes.tasks:
        unapplied.append(UnappliedBatch(batch_id=batch.id, tasks=len(changes.tasks), changes=changes.changes))
    return bool(changes.tasks)


def _read_end_state(store: StoreDir, batch: BatchDir) -> BatchState | None:
    """Return the final state of a work batch that has no open tasks or questions and no live process.

    Return None for all other batches, including batches whose state cannot be read.
    """
    from codebatch.query.status.work_status import (
        read_work_status,  # Deferred, because only stores with work batches need it and the import takes 5 ms.
    )

    try:
        work_status = read_work_status(store, batch)
    except (StoreError, UnknownId):
        return None
    is_waiting = CommandState.BLOCKED.value in work_status.counts
    return work_status.state if work_status.state.is_final and not is_waiting and not has_live_holder(batch) else None


def collect_garbage_after_run(
    store: StoreDir, *, keep: int, ran: BatchDir, note: NoteCallback, change: CiChange | None = None
) -> CollectionResult | None:
    """Collect garbage at the end of a run, like `collect_garbage`, but only batches of the same source as `ran`.

    For other sources, another number of batches to keep may be configured. The batch `ran` and the latest batch are
    always kept, even if the clock was set back. Objects are collected at most once a day.

    `change` is set if `keep` is the small default of CI. Then the batches that the next checks need as a base are kept
    too, and all work batches.

    Return None if nothing was collected, and note the reason. There is no note if another process is writing to the
    store, unless old batches have accumulated, because a later run collects them.
    """
    try:
        collected = _try_collect_after_run(store, keep, ran, change)
    except StoreError as error:
        note(f"old batches were not removed: {error.message}")
        return None
    if collected is not None and collected.unremoved:
        note(f"not removed: {collected.unremoved_text}")
    return collected


def _try_collect_after_run(
    store: StoreDir, keep: int, ran: BatchDir, change: CiChange | None
) -> CollectionResult | None:
    spared = {ran.id, *(batch.id for batch in islice(iter_batches(store), 1)), *batch_ids(store)[-1:]}
    needed = cache(lambda: set() if change is None else _find_needed_batches(store, ran, change))

    def is_needed_in_ci(batch: BatchDir) -> bool:
        return is_work(batch) or batch.id in needed()

    plan = partial(
        plan_collection,
        store,
        keep=keep,
        now_ns=wall_ns(),
        on_skipped=ignore_note,
        spared=spared,
        source_filter=ran.about.sources,
        with_objects=None,
        work_ended=partial(_read_end_state, store),
        is_needed=partial(_has_unapplied_changes, store, []) if change is None else is_needed_in_ci,
    )
    with contextlib.ExitStack() as stack:
        try:
            stack.enter_context(store.exclusive_lock())
        except (StoreInUse, StoreUnwritable) as error:
            # A later run collects the garbage, unless other processes write all the time, or this user never may.
            if len(plan().batches) > (keep if isinstance(error, StoreInUse) else 0):
                raise
            return None
        return _collect_planned(store, plan(), ignore_note)


def _find_needed_batches(store: StoreDir, ran: BatchDir, change: CiChange) -> set[str]:
    """Return the IDs of the batches that the next checks need as their base."""
    repository_and_directory = find_source_repository(ran.about.sources)
    latest = {
        batch.about.commit: batch.id
        for batch in reversed([*iter_batches(store)])
        if batch.about.pipeline == ran.about.pipeline and has_clean_scope(batch.about, ran.about)
        if not batch.about.for_comparison
    }
    if repository_and_directory is None:
        return set()
    needed = find_needed_commits(ran, Repository(*repository_and_directory), change, latest)
    return {latest[commit] for commit in needed & latest.keys()}


def _collect_planned(store: StoreDir, plan: CollectionPlan, note: NoteCallback) -> CollectionResult:
    """Execute a plan, and return the summary of the plan without the data that could not be removed."""
    planned = _summarize_plan(plan)
    unremoved = execute_collection(store, plan, note)
    if not unremoved:
        return planned
    refused = {each.name for each in unremoved}

    def existing(paths: list[Path]) -> list[Path]:
        return [path for path in paths if store.files.stat(path) is not None]

    left = CollectionPlan(
        batches=existing(plan.batches),
        snapshots=existing(plan.snapshots),
        to_settle=[(batch, digest) for batch, digest in plan.to_settle if batch.id in refused],
        indexes=[*existing(plan.indexes), *store.unfinished_directories()],
        terms=existing([*plan.terms, *plan.caches]),
        copies=plan.copies if layout.BATCHES in refused else [],
        packs=plan.packs if layout.OBJECTS in refused or existing([*plan.batches, *plan.snapshots]) else None,
    )
    stays = _summarize_plan(left)
    return replace(
        planned,
        batches=tuple(name for name in planned.batches if name not in stays.batches),
        snapshots=tuple(name for name in planned.snapshots if name not in stays.snapshots),
        settled=tuple(name for name in planned.settled if name not in stays.settled),
        packs=planned.packs - stays.packs,
        packs_rewritten=planned.packs_rewritten - stays.packs_rewritten,
        objects=planned.objects - stays.objects,
        relinked=planned.relinked - stays.relinked,
        relinked_bytes=planned.relinked_bytes - stays.relinked_bytes,
        freed_bytes=max(0, planned.freed_bytes - stays.freed_bytes),
        unremoved=tuple(unremoved),
    )


def _summarize_plan(plan: CollectionPlan) -> CollectionResult:
    packs = plan.packs
    unsettled = [batch.root / name for batch, _ in plan.to_settle for name in REMOVED_DIRECTORIES]
    roots = [*plan.batches, *plan.snapshots, *plan.indexes, *unsettled]
    copies = [name for copy in plan.copies for name in copy.names]
    freed_bytes, relinked_bytes = reclaimable_bytes(roots, copies)
    _, cache_bytes = reclaimable_bytes((), [*plan.terms, *plan.caches])
    return CollectionResult(
        removed_sources=tuple(sorted(map(display_path, {*plan.abandoned.values()}))),
        settled=tuple(sorted(batch.id for batch, _ in plan.to_settle)),
        batches=tuple(sorted(path.name for path in plan.batches)),
        snapshots=tuple(sorted(path.name for path in plan.snapshots)),
        packs=len(packs.removed) - packs.rewritten if packs else 0,
        packs_rewritten=packs.rewritten if packs else 0,
        objects=packs.dead if packs else 0,
        relinked=len(copies),
        relinked_bytes=relinked_bytes,
        freed_bytes=freed_bytes + relinked_bytes + cache_bytes + (packs.dead_bytes if packs else 0),
    )


def read_store_stats(store: StoreDir) -> StoreStats:
    """Return the storage statistics. A file with several names is counted once, under the name that is listed first."""
    parts: dict[str, tuple[int, int]] = {}
    inodes: set[int] = set()
    shared_bytes = 0
    for path, status in iter_files(store.root):
        if status.st_ino in inodes:
            shared_bytes += status.st_size
            continue
        inodes.add(status.st_ino)
        part = _store_part(Path(path).relative_to(store.root))
        files, bytes_of_part = parts.get(part, (0, 0))
        parts[part] = (files + 1, bytes_of_part + status.st_size)
    return StoreStats(
        bytes=sum(bytes_of_part for _, bytes_of_part in parts.values()),
        shared_bytes=shared_bytes,
        parts=dict(sorted(parts.items())),
        batches=len(batch_ids(store)),
        snapshots=len(snapshot_ids(store.files, store.root)),
        pinned=tuple(pinned_ids(store)),
        batch_names=dict(read_batch_names(store)),
    )


def _store_part(path: Path) -> str:
    """Return the part of the store that a file belongs to: its top-level directory.

    For a file of a batch, it is `batches/` and the directory inside the batch. For a file at the top of the store, it
    is `.`.
    """
    if path.parts[0] == layout.BATCHES:
        return f"{layout.BATCHES}/{path.parts[2]}" if len(path.parts) > 3 else layout.BATCHES
    return path.parts[0] if len(path.parts) > 1 else "."
