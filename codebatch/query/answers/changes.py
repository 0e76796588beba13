"""The changes of files that the tasks of a batch propose."""

from __future__ import annotations

from collections.abc import Iterable, Set

from msgspec import UNSET

from codebatch.errors import StoreCorrupt
from codebatch.model.change import ChangeRefusal, ProposedChange, TreeChange
from codebatch.model.digest import DIGEST_PATTERN, Digest
from codebatch.model.record import FileChange
from codebatch.query.fields import as_typed_record
from codebatch.query.filters.filters import JsonRecord, RecordFilter, path_bytes
from codebatch.query.sources.records import BatchRecords


def read_changes(records: BatchRecords, tasks: Iterable[str], path: str | tuple[str, ...] = "") -> list[ProposedChange]:
    """Return the changes that some tasks of a batch propose, sorted by path, then by the name of the task.

    `path` is as in PathFilter. Several tasks may propose changes of one file. Shards without such records are not read.
    The list has the changes of all existing results. For the missing results, see `tasks_completeness`. Raises
    StoreCorrupt.
    """
    record_filter = RecordFilter(kinds=("change",), path=path)
    found = [(task, record) for task in tasks for record in records.iter_records(task, record_filter)]
    executables = _executable_paths(records, {path_bytes(record) for _, record in found}) if found else set()
    changes = [_as_proposed_change(record, task, executables) for task, record in found]
    return sorted(changes, key=lambda proposed: (proposed.change.path, proposed.task))


def _executable_paths(records: BatchRecords, paths: Set[bytes]) -> set[bytes]:
    """Return which of some files of the snapshot are executable."""
    return {entry.path for entry in records.snapshot.entries if entry.executable and entry.path in paths}


def _as_proposed_change(record: JsonRecord, task: str, executables: Set[bytes]) -> ProposedChange:
    change = as_typed_record(record, FileChange)
    path, gate = path_bytes(record), change.refused_by
    return ProposedChange(
        change=TreeChange(
            path=path,
            before=_as_digest(change.before),
            after=None if change.after is None else _as_digest(change.after),
            was_executable=path in executables,
            executable=change.executable,
        ),
        task=task,
        added=change.added,
        removed=change.removed,
        refusal=None if gate is UNSET else ChangeRefusal(gate=gate, evidence=change.evidence),
    )


def _as_digest(text: str) -> Digest:
    if not DIGEST_PATTERN.match(text):
        raise StoreCorrupt(f"a change record has an invalid digest: {text[:80]!r}")
    return Digest(text)
