"""Objects, snapshots and trees that work batches refer to (SPEC.md "Garbage collection")."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from msgspec import UNSET

from codebatch.errors import StoreUntrusted
from codebatch.model.digest import Digest
from codebatch.model.entry import SnapshotId
from codebatch.model.work.trees import TreeSettings
from codebatch.store.batches.batch_directory import BatchDir, is_work
from codebatch.store.batches.store_directory import StoreDir, check_created_here
from codebatch.store.results.outcomes import OutcomeRegisters
from codebatch.store.work.change_sets import read_change_set
from codebatch.store.work.trees import remove_trees
from codebatch.store.work.work_batches import read_work


class BatchTreeSettings(NamedTuple):
    """The ID of a work batch with trees, and the settings of the trees."""

    batch_id: str
    trees: TreeSettings


def read_tree_settings(batches: Iterable[BatchDir]) -> list[BatchTreeSettings]:
    """Return the settings of the trees of work batches. Raises StoreCorrupt if work.json cannot be read."""
    settings = ((batch.id, read_work(batch).trees) for batch in batches if is_work(batch))
    return [BatchTreeSettings(batch_id, trees) for batch_id, trees in settings if trees is not UNSET]


def tree_snapshots(settings: Iterable[BatchTreeSettings]) -> set[SnapshotId]:
    """Return the snapshots with which trees start."""
    return {each.trees.snapshot for each in settings} - {SnapshotId("")}


def remove_batch_trees(store: StoreDir, settings: Iterable[BatchTreeSettings]) -> None:
    """Remove the trees of removed batches, unless the store was not created here.

    Otherwise a stranger could name the directories that are removed.
    """
    try:
        check_created_here(store)
    except StoreUntrusted:
        return
    for batch_id, trees in settings:
        remove_trees(store, batch_id, trees)


def iter_change_set_objects(store: StoreDir, batch: BatchDir) -> Iterator[str]:
    """Yield the digests of the change sets and outputs of all attempts of a work batch, and of their contents.

    Outputs of earlier batches that the batch uses are included.

    Raises StoreCorrupt if a change set cannot be read.
    """
    objects = store.objects()
    seen: set[Digest] = set()
    commits = OutcomeRegisters(batch.files, batch.root).scan_new().commits
    digests = [digest for commit in commits for one in commit.outcomes for digest in (one.changes, one.outputs)]
    for digest in (*digests, *(success.outputs for success in (read_work(batch).successes or {}).values())):
        if not digest or digest in seen:
            continue
        seen.add(digest)
        yield digest
        for listed in read_change_set(objects, digest).changes:
            yield from filter(None, (listed.change.before, listed.change.after))
