"""`store-schema` and `objects`: whether what stands in a store is what was written."""

from __future__ import annotations

from codebatch.selftests.findings import SelftestFindings
from codebatch.selftests.subject import Subject
from codebatch.store import layout
from codebatch.store.batches.batches import batch_ids, is_work, open_batch, snapshot_of
from codebatch.store.batches.store import StoreDir
from codebatch.store.maintenance.collection import objects_of_records
from codebatch.store.objects.survey import survey_objects
from codebatch.store.results.outputs import current_outputs
from codebatch.store.results.untrusted import load_untrusted
from codebatch.store.snapshots.snapshots import load_snapshot, snapshot_ids
from codebatch.store.work.requests import Requests
from codebatch.store.work.work_batches import read_work


def check_documents(subject: Subject, findings: SelftestFindings) -> None:
    """Every document decodes as the type of its format, with its checksum, and is of the thing that it lies in."""
    store = subject.store
    findings.count("documents")
    with findings.damage_told(layout.UNTRUSTED_FILE):
        load_untrusted(store)
    # Those first: whoever makes a batch has published its snapshot before.
    for batch_id in batch_ids(store):
        with findings.damage_told(f"{layout.BATCHES}/{batch_id}"):
            _check_batch(store, batch_id, findings)
    for snapshot_id in snapshot_ids(store.files, store.root):
        with findings.damage_told(f"{layout.SNAPSHOTS}/{snapshot_id}"):
            load_snapshot(store.files, store.root, snapshot_id).check()
            findings.count("documents", 2)


def _check_batch(store: StoreDir, batch_id: str, findings: SelftestFindings) -> None:
    batch = open_batch(store, batch_id)
    findings.count("documents", 2)
    batch.plan()
    if current_outputs(batch) is not None:
        findings.count("documents")
    if is_work(batch):
        read_work(batch)
        findings.count("documents", 1 + len(Requests(batch.files, batch.root).read()))
    if store.files.stat(store.root / layout.SNAPSHOTS / batch.about.snapshot_id) is None:
        snapshot_of(store, batch)


def check_objects(subject: Subject, findings: SelftestFindings) -> None:
    """Every object that a snapshot or a record names is in a pack, and has the bytes that its name is the hash of."""
    store = subject.store
    wanted: dict[str, str] = {}
    for batch_id in batch_ids(store):
        with findings.damage_told(f"{layout.BATCHES}/{batch_id}"):
            wanted.update(dict.fromkeys(objects_of_records(open_batch(store, batch_id)), batch_id))
    objects = store.objects()
    for snapshot_id in snapshot_ids(store.files, store.root):
        with findings.damage_told(f"{layout.SNAPSHOTS}/{snapshot_id}"):
            snapshot = load_snapshot(store.files, store.root, snapshot_id, objects=objects)
            wanted.update(dict.fromkeys(snapshot.objects(), snapshot_id))
    for name, missing in survey_objects(objects, wanted, is_full=True):
        findings.count("objects")
        with findings.damage_told(wanted[name]):
            if missing is not None:
                raise missing
