"""The changes that a batch proposes, as an answer and as a patch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

from codebatch.model.change import NOT_REWRITTEN_CODE, ProposedChange
from codebatch.model.text.quantities import count_text
from codebatch.operations.changes.patch import file_patch
from codebatch.operations.changes.removed_definitions import refuse_removed_definitions
from codebatch.operations.changes.sampling import edit_shape, sample_changes
from codebatch.operations.queries.batch_query import Answer, BatchQuery
from codebatch.query.answers.changes import read_changes
from codebatch.query.completeness import tasks_completeness
from codebatch.query.filters.filters import RecordFilter
from codebatch.query.filters.paths import PathFilter, PathPatterns
from codebatch.store.objects.object_store import ObjectStore


def find_changes(
    question: BatchQuery, tasks: Sequence[str] = (), path: PathPatterns = ""
) -> Answer[list[ProposedChange]]:
    """Return the changes that some tasks propose, by default all tasks, sorted by path and task.

    `path` is as in PathFilter. The gate `uses` is checked, for all changes of these tasks. A note counts the matches
    that rewrites leave out. Raises TaskNotRun, InvalidInput or StoreCorrupt.
    """
    records = question.records
    chosen = tuple(dict.fromkeys(name for task in tasks or (None,) for name in records.choose_tasks(task)))
    patterns = path if isinstance(path, str) else tuple(path)
    is_wanted = PathFilter(patterns).matches
    changes = [
        change
        for change in refuse_removed_definitions(question, read_changes(records, chosen))
        if is_wanted(change.change.path)
    ]
    not_rewritten = RecordFilter(kinds=("diagnostic",), codes=(NOT_REWRITTEN_CODE,), path=patterns)
    left_out = sum(1 for _ in records.iter_by_path(chosen, not_rewritten))
    if left_out:
        matches = count_text(left_out, "match", "matches")
        question.note(f"{matches} not rewritten: codebatch findings --code {NOT_REWRITTEN_CODE}")
    return Answer(question=question, result=changes, completeness=tasks_completeness(records, chosen, path=patterns))


def iter_patches(objects: ObjectStore, changes: Sequence[ProposedChange]) -> Iterator[bytes]:
    """Yield the patch of each changed file, as `git apply` accepts it. Raises ObjectMissing or StoreCorrupt."""
    for change in (proposed.change for proposed in changes):
        yield file_patch(
            change.path,
            None if change.before is None else objects.read(change.before),
            None if change.after is None else objects.read(change.after),
            was_executable=change.was_executable,
            is_executable=change.executable,
            is_link=change.kind == "link",
        )


def sample_stored_changes(objects: ObjectStore, proposed: Sequence[ProposedChange], count: int) -> list[ProposedChange]:
    """Return at most `count` changes of different directories and shapes. Raises ObjectMissing or StoreCorrupt."""
    return sample_changes(proposed, count, partial(edit_shape, read=objects.read))
