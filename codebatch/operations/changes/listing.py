"""The changes that a batch proposes, as an answer and as a patch."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from codebatch.model.change import ProposedChange
from codebatch.operations.changes.patch import file_patch
from codebatch.operations.queries.batch_query import Answer, BatchQuery
from codebatch.query.answers.changes import read_changes
from codebatch.query.completeness import tasks_completeness
from codebatch.query.filters.paths import PathPatterns
from codebatch.query.sources.records import BatchRecords


def find_changes(
    question: BatchQuery, tasks: Sequence[str] = (), path: PathPatterns = ""
) -> Answer[list[ProposedChange]]:
    """Return the changes that some tasks propose, by default all tasks, sorted by path and task.

    `path` is as in PathFilter. Raises TaskNotRun, InvalidInput or StoreCorrupt.
    """
    records = question.records
    chosen = tuple(dict.fromkeys(name for task in tasks or (None,) for name in records.choose_tasks(task)))
    patterns = path if isinstance(path, str) else tuple(path)
    changes = read_changes(records, chosen, patterns)
    return Answer(question=question, result=changes, completeness=tasks_completeness(records, chosen, path=patterns))


def executable_paths(records: BatchRecords, changes: Iterable[ProposedChange]) -> dict[bytes, bool]:
    """Return for each changed file of the snapshot whether it was executable. Raises StoreCorrupt."""
    wanted = {change.change.path for change in changes}
    return {entry.path: entry.executable for entry in records.snapshot.entries if entry.path in wanted}


def iter_patches(records: BatchRecords, changes: Sequence[ProposedChange]) -> Iterator[bytes]:
    """Yield the patch of each changed file, as `git apply` accepts it. Raises ObjectMissing or StoreCorrupt."""
    objects = records.store.objects()
    was_executable = executable_paths(records, changes)
    for change in (proposed.change for proposed in changes):
        yield file_patch(
            change.path,
            None if change.before is None else objects.read(change.before),
            None if change.after is None else objects.read(change.after),
            was_executable=was_executable.get(change.path, False),
            is_executable=change.executable,
        )
