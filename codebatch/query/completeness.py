"""Completeness of answers: how many of the results that a question needs exist."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING

import msgspec

from codebatch.errors import InvalidConfiguration
from codebatch.model.shard import PROJECT_PATH
from codebatch.model.task import BUILT_IN_TASKS
from codebatch.model.text.quantities import count_text, percentage_of
from codebatch.query.filters.filters import JsonRecord, RecordFilter, path_bytes
from codebatch.query.filters.paths import PathFilter, PathPatterns
from codebatch.query.missing_tasks import task_not_run_error
from codebatch.query.sources.records import BatchRecords

if TYPE_CHECKING:
    from codebatch.plugins.catalogue import TaskCatalogue

_KINDS_OF_ALL_FILES = frozenset(("duplicate", "metric"))
"""Kinds of records that can depend on all files. An `edge` depends only on the file in which it begins."""


class Completeness(msgspec.Struct, frozen=True, kw_only=True):
    """The completeness of an answer.

    - `planned`: the number of results that the answer needs.
    - `done`: how many of these results exist. Failures are included.
    - `failed`: how many of these results are failures. It is 0 if the answer lists the failures.
    - `failed_tasks`: the tasks that failed.
    - `lost`: the number of files that could not be read.
    - `lacks_files`: whether the answer needs all files of the project, but the batch is restricted to paths.
    - `unfollowed`: if uses of the requested file are not resolved, because of its language, a text that says this.
      Otherwise empty.
    - `doubt`: if nothing was found, but files that were not analysed completely may contain results, a text that
      describes these files. Otherwise empty.
    - `files`: the number of files of the batch.
    - `files_done`: if the batch is running or was stopped, the number of files with all needed results. Otherwise None.
    """

    planned: int = 0
    done: int = 0
    failed: int = 0
    failed_tasks: tuple[str, ...] = ()
    lost: int = 0
    lacks_files: bool = False
    unfollowed: str = ""
    doubt: str = ""
    files: int = 0
    files_done: int | None = None

    @property
    def is_complete(self) -> bool:
        """Whether the answer is complete."""
        is_whole = not self.lacks_files and not self.unfollowed and not self.doubt
        return self.done == self.planned and not self.failed and not self.lost and is_whole

    def with_doubt(self, doubt: str) -> Completeness:
        """Return the completeness of an answer that found nothing, with the files that may contain results."""
        return msgspec.structs.replace(self, doubt=doubt)

    @property
    def progress(self) -> str:
        """If the batch is running or was stopped, a phrase such as `812 of 4,450 files done`.

        Empty if the batch has ended or all needed results exist.
        """
        if self.files_done is None or self.done == self.planned:
            return ""
        return f"{self.files_done:,} of {count_text(self.files, 'file')} done"

    @property
    def percent(self) -> float:
        """The percentage of needed results that exist, to one decimal, rounded down."""
        return percentage_of(max(self.done - self.failed - self.lost, 0), self.planned)

    @property
    def missing_text(self) -> str:
        """A description of what is missing; empty if the answer is complete."""
        messages: list[str] = []
        if self.done < self.planned:
            messages.append(f"{self.percent}% of the batch is done")
        if self.failed:
            messages.append(f"{self.failed:,} of {self.planned:,} results failed ({', '.join(self.failed_tasks)})")
        if self.lost:
            messages.append(f"{count_text(self.lost, 'file')} could not be read")
        if self.lacks_files:
            messages.append("the batch is restricted to a part of the project; files outside this part are not covered")
        if self.unfollowed:
            messages.append(self.unfollowed)
        if self.doubt:
            messages.append(self.doubt)
        return "; ".join(messages)


def tasks_completeness(
    records: BatchRecords,
    tasks: Collection[str],
    *,
    reports_failures: bool = False,
    path: PathPatterns = "",
    lacks_files: bool = False,
) -> Completeness:
    """Return the completeness of an answer that needs the results of some tasks.

    If `reports_failures` is set, failures are part of the answer and do not count as missing. With `path`, only
    failures of matching files count; `path` is as in PathFilter. If `lacks_files` is set, the answer needs all files of
    the project, but the batch is restricted to paths.
    """
    tally = records.source.count_outcomes(tasks)
    failed: dict[str, int] = {}
    if tally.failed and not reports_failures:
        failed = {task: count for task in sorted(tasks) if (count := _failure_count(records, task, path))}
    return Completeness(
        planned=tally.planned,
        done=tally.results + tally.failed,
        failed=sum(failed.values()),
        failed_tasks=tuple(failed),
        lacks_files=lacks_files,
        files=records.batch.about.items,
        files_done=records.source.files_done(tasks),
    )


def path_completeness(
    records: BatchRecords,
    by_task: Mapping[str, Sequence[JsonRecord] | None],
    answered: Collection[JsonRecord],
    *,
    lacks_files: bool = False,
) -> Completeness:
    """Return the completeness of an answer about one file.

    `by_task` has the records of each task, or None if the task has no result yet. `answered` are the records in the
    answer. `lacks_files` is as in `tasks_completeness`. A failure of a project task has no record in the file, but its
    result counts as missing.
    """
    failed = tuple(
        task
        for task, task_records in by_task.items()
        if _is_unreported_failure(records, task, task_records or (), answered)
    )
    done = sum(task_records is not None for task_records in by_task.values())
    return Completeness(
        planned=len(by_task),
        done=done,
        failed=len(failed),
        failed_tasks=failed,
        lacks_files=lacks_files,
        files=records.batch.about.items,
        files_done=records.source.files_done(tuple(by_task)),
    )


def misses_required_files(
    catalogue: Callable[[], TaskCatalogue], records: BatchRecords, tasks: Collection[str], kinds: Collection[str]
) -> bool:
    """Return whether an answer needs records that depend on all files of the project, but the batch has only some.

    A batch has only some files if it is restricted to paths. Only project tasks emit records that depend on all files:
    records of the kinds in _KINDS_OF_ALL_FILES.

    `tasks` are the tasks whose records the answer uses. `kinds` are the record kinds that the question names. If it
    names none, it may need such records only if it is about a single task.
    """
    if not records.batch.about.paths:
        return False  # This check comes first, because all others need the catalogue of tasks.
    named = _KINDS_OF_ALL_FILES & set(kinds) if kinds or len(tasks) > 1 else _KINDS_OF_ALL_FILES
    return bool(named) and bool(emitting_tasks(catalogue(), set(tasks) & set(records.source.project_tasks), named))


def emitting_tasks(catalogue: TaskCatalogue, tasks: Collection[str], kinds: Collection[str]) -> tuple[str, ...]:
    """Return the tasks that can emit records of some kinds. Without `kinds`, return all tasks."""
    return tuple(task for task in tasks if not kinds or _can_emit(catalogue, task, kinds))


def check_kinds(catalogue: Callable[[], TaskCatalogue], records: BatchRecords, kinds: Collection[str]) -> None:
    """Raise TaskNotRun for a kind of records that no task of the batch can emit.

    If the batch has records of the kind, the slow loading of the task catalogue is avoided.
    """
    for kind in kinds:
        pieces = (piece for task in records.task_names for piece in records.source.iter_pieces(task))
        if any(kind in piece.counts.kinds for piece in pieces):
            continue
        if not emitting_tasks(catalogue(), records.task_names, (kind,)):
            raise task_not_run_error(
                f"no task of the batch produces records of kind {kind!r}: it has only {', '.join(records.task_names)}",
                emitting_tasks(catalogue(), BUILT_IN_TASKS, (kind,)),
            )


def _can_emit(catalogue: TaskCatalogue, task: str, kinds: Collection[str]) -> bool:
    if "failure" in kinds:
        return True
    from codebatch.plugins.entry_points import describe_task  # Imported late: only questions with kinds need it.

    try:
        return any(kind in kinds for kind in describe_task(catalogue, task).records)
    except InvalidConfiguration:
        return True  # The task is custom or from another installation, so its record kinds are unknown.


def _is_unreported_failure(
    records: BatchRecords, task: str, task_records: Sequence[JsonRecord], answered: Collection[JsonRecord]
) -> bool:
    if task in records.source.project_tasks:
        return bool(records.counts(task).kinds.get("failure"))
    return any(record["kind"] == "failure" and record not in answered for record in task_records)


def _failure_count(records: BatchRecords, task: str, path: PathPatterns) -> int:
    failures = records.iter_records(task, RecordFilter(kinds=("failure",)), is_auxiliary=True)
    paths = PathFilter(path)
    return sum(paths.matches(record_path := path_bytes(record)) or record_path == PROJECT_PATH for record in failures)
