"""The self-tests of the index.

They check three properties: queries return equal answers with and without the index, a rebuilt index has equal content,
and building an index changes no other files.
"""

from __future__ import annotations

import hashlib
import heapq
import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from codebatch.index.build import build_generation
from codebatch.index.read import open_index
from codebatch.model.record_counts import add_counts
from codebatch.operations.runs.indexing import verify_index
from codebatch.query.filters.filters import JsonRecord, RecordFilter
from codebatch.query.sources.records import BatchRecords
from codebatch.selftests.findings import SelftestFindings
from codebatch.selftests.subject import SelftestSubject
from codebatch.store import layout
from codebatch.store.batches.store_directory import StoreDir
from codebatch.store.results.outputs import current_outputs

SAMPLE_QUERIES_MAX = 8


def check_index_answers(subject: SelftestSubject, findings: SelftestFindings) -> None:
    """Check that queries give the same records with and without the index.

    A sample of names, name prefixes and rule IDs is queried.
    """
    store, batch = subject.store, subject.batch
    if open_index(store, batch.id) is None:
        findings.skipped = f"batch {batch.id} has no index; build it with: codebatch index build --batch {batch.id}"
        return
    damage: list[str] = []
    with_index, without_index = BatchRecords(store, batch, damage.append), BatchRecords(store, batch)
    for option, filter_ in _sample_queries(without_index):
        findings.count_checked("questions")
        expected, actual = list(_matching_records(without_index, filter_)), list(_matching_records(with_index, filter_))
        if expected != actual:
            findings.add_failure(
                "the answer differs with the index",
                location=option,
                expected=f"{len(expected):,} records",
                actual=f"{len(actual):,} records",
                suggestion=f"rebuild it with: codebatch index build --rebuild --batch {batch.id}",
            )
    for message in damage:
        findings.add_failure(message)


def _sample_queries(records: BatchRecords) -> Iterator[tuple[str, RecordFilter]]:
    """Yield a sample of queries, each as options of `codebatch query` and as a filter."""
    symbols = _matching_records(records, RecordFilter(kinds=("symbol",)))
    names = _sample_texts({str(record["name"]) for record in symbols})
    for name in (*names, *sorted({f"{name[:1]}*" for name in names})):
        yield f"--name {name}", RecordFilter(names=(name,))
    for code in _sample_texts(add_counts(map(records.counts, records.task_names)).codes):
        yield f"--code {code}", RecordFilter(codes=(code,))


def _sample_texts(texts: Iterable[str]) -> list[str]:
    """Return a sample that depends only on the texts: those with the smallest digests."""
    return heapq.nsmallest(
        SAMPLE_QUERIES_MAX, texts, key=lambda text: hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()
    )


def _matching_records(records: BatchRecords, filter_: RecordFilter) -> Iterator[JsonRecord]:
    return (record for task in records.task_names for record in records.iter_records(task, filter_))


def check_index_is_optional(subject: SelftestSubject, findings: SelftestFindings) -> None:
    """Check without an index that the number of records found by queries equals the stored counts.

    Each kind and a sample of rule IDs is queried.
    """
    records = BatchRecords(subject.store, subject.batch)
    counts = add_counts(map(records.counts, records.task_names))
    queries = [(f"--kind {kind}", RecordFilter(kinds=(kind,)), count) for kind, count in counts.kinds.items()]
    queries += [
        (f"--code {code}", RecordFilter(codes=(code,)), counts.codes[code]) for code in _sample_texts(counts.codes)
    ]
    for option, filter_, expected in queries:
        findings.count_checked("questions")
        actual = sum(1 for _ in _matching_records(records, filter_))
        if actual != expected:
            findings.add_failure("the answer is incomplete", location=option, expected=expected, actual=actual)


def check_rebuilt_index(subject: SelftestSubject, findings: SelftestFindings) -> None:
    """Build an index from the records in memory, and check that the stored index has the same keys and values."""
    verified = verify_index(subject.store, subject.batch, subject.listener.note)
    findings.count_checked("shard files", verified.shard_files)
    findings.count_checked("terms", verified.terms)


def check_index_writes(subject: SelftestSubject, findings: SelftestFindings) -> None:
    """Check that building an index changes nothing in the store outside of indexes/.

    Other processes cannot write to the store during the check.
    """
    store, batch = subject.store, subject.batch
    outputs = current_outputs(batch)
    if outputs is None:
        findings.skipped = (
            f"batch {batch.id} has no merged results yet; resume it with: codebatch run --batch {batch.id}"
        )
        return
    with store.exclusive_lock():
        before = _file_states(store)
        build_generation(store, batch, outputs, subject.listener.note, rebuilds=True)
        after = _file_states(store)
    findings.count_checked("names", len(before))
    for name in sorted(before.keys() | after.keys()):
        if before.get(name) != after.get(name):
            findings.add_failure("it was added, removed or changed while an index was built", location=name)


def _file_states(store: StoreDir) -> dict[str, tuple[int, ...]]:
    """Return the state of each file and directory of the store outside of indexes/, by relative path.

    The state is mode, inode, length and time of change. So two equal results mean that no file was changed.
    """
    status_by_name: dict[str, tuple[int, ...]] = {}
    for directory, directories, files in os.walk(store.root):
        if Path(directory) == store.root:
            directories.remove(layout.INDEXES)
        for name in (*directories, *files):
            path = Path(directory, name)
            status = path.lstat()
            status_by_name[str(path.relative_to(store.root))] = (
                status.st_mode,
                status.st_ino,
                status.st_size,
                status.st_mtime_ns,
            )
    return status_by_name
