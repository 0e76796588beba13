"""Pins: batches and snapshots that are kept until they are unpinned. An empty file `pins/<id>` each.

A name that a batch is given is a pin too, `pins/<id>@<name>`. It moves in one step, so that it is always somebody's.
"""

from __future__ import annotations

from codebatch.errors import AmbiguousId, UnknownId
from codebatch.store import layout
from codebatch.store.batches.batches import BATCH_ID_PATTERN, BatchId, batch_ids, check_name, given_names
from codebatch.store.batches.resolution import resolve_batch
from codebatch.store.batches.store import StoreDir
from codebatch.store.ids import PassedOver, latest_offset, resolve_prefix
from codebatch.store.snapshots.snapshots import snapshot_ids


def pinned_ids(store: StoreDir) -> list[str]:
    """What is pinned, be it there or not; sorted."""
    names = store.files.listing(store.root / layout.PINS)
    return [name for name in names if BATCH_ID_PATTERN.match(name) or layout.SNAPSHOT_ID_PATTERN.match(name)]


def pin(store: StoreDir, reference: str, passed_over: PassedOver | None = None) -> str:
    """Pin the batch or snapshot that a reference names; returns its id. On return the pin is on disk. Idempotent.

    To be called by who writes. Raises InvalidId, UnknownId or AmbiguousId.
    """
    if latest_offset(reference) is not None or reference.startswith("@"):
        found = str(resolve_batch(store, reference, passed_over).id)
    else:
        found = _resolve(reference, batch_ids(store), snapshot_ids(store.files, store.root))
    store.files.write_atomic(store.root / layout.PINS / found, b"")
    return found


def kept_ids(store: StoreDir) -> set[str]:
    """What is pinned or has a name, be it there or not."""
    return {*pinned_ids(store), *given_names(store).values()}


def give_name(store: StoreDir, batch_id: BatchId, name: str) -> BatchId | None:
    """Give a batch a name; returns the batch that had it until now, None where no other had. On return it is on disk.

    To be called by who writes. Raises InvalidId.
    """
    check_name(name)
    pins = store.root / layout.PINS
    with store.making_batch():
        before = given_names(store).get(name)
        if before is None:
            store.files.write_atomic(pins / f"{batch_id}@{name}", b"")
        elif before != batch_id:
            store.files.replace(pins / f"{before}@{name}", pins / f"{batch_id}@{name}")
            store.files.sync_directory(pins)
            return before
    return None


def unpin(store: StoreDir, reference: str, passed_over: PassedOver | None = None) -> str:
    """Take a pin away, or a name, `@NAME`; returns whose it was, or the name. On return that is on disk.

    Raises InvalidId, UnknownId or AmbiguousId.
    """
    if reference.startswith("@"):
        return _take_name(store, reference)
    known = pinned_ids(store)
    if latest_offset(reference) is not None:
        reference = resolve_batch(store, reference, passed_over).id
    batches = [name for name in known if BATCH_ID_PATTERN.match(name)]
    try:
        found = _resolve(reference, batches, [name for name in known if name not in batches])
    except UnknownId as error:
        raise UnknownId(f"{reference!r} is not pinned", hint="see: codebatch store-stats") from error
    store.files.remove(store.root / layout.PINS / found)
    store.files.sync_directory(store.root / layout.PINS)
    return found


def _take_name(store: StoreDir, reference: str) -> str:
    name = reference[1:]
    check_name(name)
    with store.making_batch():
        batch_id = given_names(store).get(name)
        if batch_id is None:
            raise UnknownId(f"no batch is named {reference}", hint="see: codebatch batch list")
        store.files.remove(store.root / layout.PINS / f"{batch_id}@{name}")
        store.files.sync_directory(store.root / layout.PINS)
    return reference


def _resolve(reference: str, batches: list[str], snapshots: list[str]) -> str:
    found = []
    for noun, known, prefix in (("batch", batches, "batch-"), ("snapshot", snapshots, "snap-")):
        try:
            found.append(resolve_prefix(reference, known, noun=noun, prefix=prefix))
        except UnknownId:
            continue
    if not found:
        raise UnknownId(
            f"no batch or snapshot {reference!r} in this store",
            hint="see: codebatch batch list; codebatch snapshot list",
        )
    if len(found) > 1:
        raise AmbiguousId(f"{reference!r} matches a batch and a snapshot", hint=f"one of: {', '.join(found)}")
    return found[0]
