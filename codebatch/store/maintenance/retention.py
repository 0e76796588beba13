"""The choice of the batches that a garbage collection removes (SPEC.md "Garbage collection")."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Callable, Collection, Iterable

from codebatch.errors import StoreError, UnknownId
from codebatch.model.digest import Digest
from codebatch.scheduling.lifecycle import BatchState, batch_state
from codebatch.store.batches.batch_directory import BatchDir, batch_ids, is_work, open_batch
from codebatch.store.batches.holders import has_live_holder
from codebatch.store.batches.store_directory import StoreDir
from codebatch.store.ids import SkipCallback
from codebatch.store.results.compaction import can_compact, read_compacted
from codebatch.store.results.outputs import current_outputs

EndStateReader = Callable[[BatchDir], BatchState | None]
"""A function that returns the state of a work batch that has ended.

It returns None if a process holds the batch, or the batch waits for an answer.
"""


def read_all_batches(store: StoreDir, on_skipped: SkipCallback) -> tuple[list[BatchDir], bool]:
    """Return every readable batch, latest first, and whether all batches are readable."""
    batches = []
    names = batch_ids(store)
    for batch_id in reversed(names):
        try:
            batches.append(open_batch(store, batch_id))
        except (StoreError, UnknownId) as error:
            on_skipped(
                f"{batch_id} cannot be read, so neither this batch nor any snapshot was removed: {error.message}"
            )
    return batches, len(batches) == len(names)


def choose_old_batches(
    batches: Iterable[BatchDir],
    keep: int,
    pinned: Collection[str],
    sources: tuple[bytes, ...] | None,
    gone: Collection[str],
    work_ended: EndStateReader,
) -> list[BatchDir]:
    """Return the batches that may be removed, of which no other batch needs results. `batches` are latest first.

    `gone` has the IDs of batches whose source directory was removed: only a pin or a live process protects them. Of
    other batches, only those with `sources` are removed, unless `sources` is None.
    """

    def retention_group(batch: BatchDir) -> tuple[object, ...]:
        return batch.about.sources, batch.about.paths, batch.about.pipeline, batch.about.for_comparison

    batches = list(batches)
    bases = {
        base
        for batch in batches
        if batch.about.bases and batch.id not in gone and _state_if_ended(batch) is None
        for base in batch.about.bases
    }
    sizes = Counter(map(retention_group, batches))
    ended: Counter[tuple[object, ...]] = Counter()
    old = []
    for batch in batches:
        if batch.id in pinned or batch.id in bases:
            continue
        if batch.id in gone:
            old += [] if _may_be_held(batch) else [batch]
            continue
        if sizes[retention_group(batch)] <= keep or sources not in (None, batch.about.sources):
            continue
        state = work_ended(batch) if is_work(batch) else _state_if_ended(batch)
        if state is None:
            continue
        group_and_success = (*retention_group(batch), state is BatchState.COMPLETED)
        ended[group_and_success] += 1
        if ended[group_and_success] > keep:
            old.append(batch)
    return old


def _may_be_held(batch: BatchDir) -> bool:
    """Return whether a process may work on a batch."""
    try:
        return has_live_holder(batch)
    except (StoreError, UnknownId):
        return True


def _state_if_ended(batch: BatchDir) -> BatchState | None:
    """Return the state of an analysis that has ended.

    None if a process holds the batch, or its outputs are not merged or not readable.
    """
    try:
        if has_live_holder(batch):
            return None
        if read_compacted(batch) is not None:
            return BatchState.COMPLETED
        outputs = current_outputs(batch)
    except (StoreError, UnknownId):
        return None
    return None if outputs is None else batch_state(outputs.manifest.count_outcomes(), is_started=True)


def settled_digest(batch: BatchDir) -> Digest | None:
    """Return the result digest of a batch that can be settled, or None if it cannot."""
    if not can_compact(batch) or _state_if_ended(batch) is not BatchState.COMPLETED:
        return None
    settled = read_compacted(batch)
    if settled is not None:
        return settled.result_digest
    with contextlib.suppress(UnknownId):
        outputs = current_outputs(batch)
        return outputs.manifest.result_digest if outputs is not None and outputs.is_complete() else None
    return None
