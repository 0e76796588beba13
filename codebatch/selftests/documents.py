"""The self-tests `store-schema` and `objects`: documents and objects are intact."""

from __future__ import annotations

from codebatch.selftests.findings import SelftestFindings
from codebatch.selftests.subject import SelftestSubject
from codebatch.store import layout
from codebatch.store.batches.batch_directory import batch_ids, is_work, load_batch_snapshot, open_batch
from codebatch.store.batches.store_directory import StoreDir
from codebatch.store.maintenance.collection import iter_record_objects
from codebatch.store.objects.survey import survey_objects
from codebatch.store.results.outputs import current_outputs
from codebatch.store.results.untrusted import load_untrusted
from codebatch.store.snapshots.snapshots import load_snapshot, snapshot_ids
from codebatch.store.work.applications import ApplicationStore
from codebatch.store.work.requests import RequestStore
from codebatch.store.work.work_batches import read_work


def check_documents(subject: SelftestSubject, findings: SelftestFindings) -> None:
    """Check every document of the store: its format, its checksum, and whether it is in the right directory."""
    store = subject.store
    findings.count_checked("documents")
    with findings.recording_damage(layout.UNTRUSTED_FILE):
        load_untrusted(store)
    # Batches are listed first. A snapshot is published before its batch, so the snapshot of each batch is listed.
    for batch_id in batch_ids(store):
        with findings.recording_damage(f"{layout.BATCHES}/{batch_id}"):
            _check_batch_documents(store, batch_id, findings)
    for snapshot_id in snapshot_ids(store.files, store.root):
        with findings.recording_damage(f"{layout.SNAPSHOTS}/{snapshot_id}"):
            load_snapshot(store.files, store.root, snapshot_id).check()
            findings.count_checked("documents", 2)


def _check_batch_documents(store: StoreDir, batch_id: str, findings: SelftestFindings) -> None:
    batch = open_batch(store, batch_id)
    findings.count_checked("documents", 2)
    batch.plan()
    if current_outputs(batch) is not None:
        findings.count_checked("documents")
    if is_work(batch):
        read_work(batch)
        findings.count_checked("documents", 1 + len(RequestStore(batch.files, batch.root).read()))
        findings.count_checked("documents", len(ApplicationStore(batch.files, batch.root).read()))
    if store.files.stat(store.root / layout.SNAPSHOTS / batch.about.snapshot_id) is None:
        load_batch_snapshot(store, batch)


def check_objects(subject: SelftestSubject, findings: SelftestFindings) -> None:
    """Check that every object that a snapshot or a record names exists, and that its content has its digest."""
    store = subject.store
    referrers: dict[str, str] = {}
    for batch_id in batch_ids(store):
        with findings.recording_damage(f"{layout.BATCHES}/{batch_id}"):
            batch = open_batch(store, batch_id)
            referrers.update(dict.fromkeys(iter_record_objects(store, batch), batch_id))
    objects = store.objects()
    for snapshot_id in snapshot_ids(store.files, store.root):
        with findings.recording_damage(f"{layout.SNAPSHOTS}/{snapshot_id}"):
            snapshot = load_snapshot(store.files, store.root, snapshot_id, objects=objects)
            referrers.update(dict.fromkeys(snapshot.object_digests(), snapshot_id))
    for name, missing in survey_objects(objects, referrers, is_full=True):
        findings.count_checked("objects")
        with findings.recording_damage(referrers[name]):
            if missing is not None:
                raise missing
