"""The gates of the index: it costs no answer, none needs it, made anew it is the same, and its maker writes no more."""

from __future__ import annotations

import hashlib
import heapq
import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from codebatch.index.build import build
from codebatch.index.read import open_index
from codebatch.model.record_counts import add_counts
from codebatch.operations.runs.indexing import verify_index
from codebatch.query.filters.filters import JsonRecord, RecordFilter
from codebatch.query.sources.records import BatchRecords
from codebatch.selftests.findings import SelftestFindings
from codebatch.selftests.subject import Subject
from codebatch.store import layout
from codebatch.store.batches.store import StoreDir
from codebatch.store.results.outputs import current_outputs

QUESTIONS_OF_A_SORT_MAX = 8


def check_answers(subject: Subject, findings: SelftestFindings) -> None:
    """A sample of names, beginnings of names and codes is asked for with the index and without."""
    store, batch = subject.store, subject.batch
    if open_index(store, batch.id) is None:
        findings.skipped = f"batch {batch.id} has no index; build it with: codebatch index build --batch {batch.id}"
        return
    unsound: list[str] = []
    with_index, without = BatchRecords(store, batch, unsound.append), BatchRecords(store, batch)
    for option, asked in _questions(without):
        findings.count("questions")
        expected, actual = list(_answer(without, asked)), list(_answer(with_index, asked))
        if expected != actual:
            findings.fail(
                "the answer differs with the index",
                location=option,
                expected=f"{len(expected):,} records",
                actual=f"{len(actual):,} records",
                suggestion=f"rebuild it with: codebatch index build --rebuild --batch {batch.id}",
            )
    for told in unsound:
        findings.fail(told)


def _questions(records: BatchRecords) -> Iterator[tuple[str, RecordFilter]]:
    """What is asked, as an option of `query`, and the filter of it."""
    symbols = _answer(records, RecordFilter(kinds=("symbol",)))
    names = _sample({str(record["name"]) for record in symbols})
    for name in (*names, *sorted({f"{name[:1]}*" for name in names})):
        yield f"--name {name}", RecordFilter(names=(name,))
    for code in _sample(add_counts(map(records.counts, records.task_names)).codes):
        yield f"--code {code}", RecordFilter(codes=(code,))


def _sample(texts: Iterable[str]) -> list[str]:
    """The same few of the same texts."""
    return heapq.nsmallest(
        QUESTIONS_OF_A_SORT_MAX, texts, key=lambda text: hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()
    )


def _answer(records: BatchRecords, asked: RecordFilter) -> Iterator[JsonRecord]:
    return (record for task in records.task_names for record in records.iter_records(task, asked))


def check_optional(subject: Subject, findings: SelftestFindings) -> None:
    """Asked without an index, each kind and a sample of codes has as many records as are counted of it."""
    records = BatchRecords(subject.store, subject.batch)
    counts = add_counts(map(records.counts, records.task_names))
    asked = [(f"--kind {kind}", RecordFilter(kinds=(kind,)), count) for kind, count in counts.kinds.items()]
    asked += [(f"--code {code}", RecordFilter(codes=(code,)), counts.codes[code]) for code in _sample(counts.codes)]
    for option, filter_, expected in asked:
        findings.count("questions")
        actual = sum(1 for _ in _answer(records, filter_))
        if actual != expected:
            findings.fail("the answer is incomplete", location=option, expected=expected, actual=actual)


def check_rebuilt(subject: Subject, findings: SelftestFindings) -> None:
    """An index that is made anew of the records has the same keys and values. Nothing is written."""
    verified = verify_index(subject.store, subject.batch, subject.listener.note)
    findings.count("shard files", verified.shard_files)
    findings.count("terms", verified.terms)


def check_writes(subject: Subject, findings: SelftestFindings) -> None:
    """While an index is made, with nobody else in the store, nothing outside of indexes/ comes, goes or changes."""
    store, batch = subject.store, subject.batch
    outputs = current_outputs(batch)
    if outputs is None:
        findings.skipped = (
            f"batch {batch.id} has no merged results yet; resume it with: codebatch run --batch {batch.id}"
        )
        return
    with store.alone():
        before = _state(store)
        build(store, batch, outputs, subject.listener.note, is_anew=True)
        after = _state(store)
    findings.count("names", len(before))
    for name in sorted(before.keys() | after.keys()):
        if before.get(name) != after.get(name):
            findings.fail("it was added, removed or changed while an index was built", location=name)


def _state(store: StoreDir) -> dict[str, tuple[int, ...]]:
    """What lies in a store outside of indexes/: mode, inode, length and time of change."""
    found: dict[str, tuple[int, ...]] = {}
    for directory, directories, files in os.walk(store.root):
        if Path(directory) == store.root:
            directories.remove(layout.INDEXES)
        for name in (*directories, *files):
            path = Path(directory, name)
            about = path.lstat()
            found[str(path.relative_to(store.root))] = (about.st_mode, about.st_ino, about.st_size, about.st_mtime_ns)
    return found
