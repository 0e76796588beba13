"""How much of what a question asks for a batch can say, so that part of an answer is never taken for the whole."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING

import msgspec

from codebatch.errors import InvalidConfiguration, InvalidInput
from codebatch.model.shard import PROJECT_PATH
from codebatch.model.text.quantities import count_of, percent_of
from codebatch.query.filters.filters import JsonRecord, RecordFilter, path_bytes
from codebatch.query.filters.paths import PathFilter, Paths
from codebatch.query.sources.records import BatchRecords

if TYPE_CHECKING:
    from codebatch.plugins.catalogue import TaskCatalogue

_OF_ALL_FILES = frozenset(("duplicate", "metric"))
"""Not `edge`: where an import leads is told of the file that it stands in, whatever else is worked on."""


class Completeness(msgspec.Struct, frozen=True, kw_only=True):
    """The completeness of an answer.

    - `planned`: the number of results that the question needs.
    - `done`: the number of these results that have ended.
    - `failed`: the number of results that ended with a failure. It is 0 if the answer lists the failures.
      `failed_tasks` are the tasks of these results.
    - `lost`: the number of files that could not be read.
    - `lacks_files`: the answer needs all files of the project, but the batch is restricted to paths.
    - `unfollowed`: uses of a file that are unknown, because its language does not need an import for them; otherwise
      empty.
    - `files_done`: for a batch that is running or was stopped, the number of its `files` that have all needed results;
      otherwise None.
    """

    planned: int = 0
    done: int = 0
    failed: int = 0
    failed_tasks: tuple[str, ...] = ()
    lost: int = 0
    lacks_files: bool = False
    unfollowed: str = ""
    files: int = 0
    files_done: int | None = None

    @property
    def is_complete(self) -> bool:
        """Whether the answer is complete."""
        is_whole = not self.lacks_files and not self.unfollowed
        return self.done == self.planned and not self.failed and not self.lost and is_whole

    @property
    def progress(self) -> str:
        """If the batch is running, a phrase that describes its progress.

        Empty if the batch is not running or all needed results exist.
        """
        if self.files_done is None or self.done == self.planned:
            return ""
        return f"{self.files_done:,} of {count_of(self.files, 'file')} done"

    @property
    def percent(self) -> float:
        """The percentage of needed results that exist, to one decimal, rounded down."""
        return percent_of(max(self.done - self.failed - self.lost, 0), self.planned)

    @property
    def lacking(self) -> str:
        """A description of what is missing; empty if the answer is complete."""
        told: list[str] = []
        if self.done < self.planned:
            told.append(f"{self.percent}% of the batch is done")
        if self.failed:
            told.append(f"{self.failed:,} of {self.planned:,} results failed ({', '.join(self.failed_tasks)})")
        if self.lost:
            told.append(f"{count_of(self.lost, 'file')} could not be read")
        if self.lacks_files:
            told.append("the batch is restricted to a part of the project; files outside this part are not covered")
        if self.unfollowed:
            told.append(self.unfollowed)
        return "; ".join(told)


def completeness(
    records: BatchRecords,
    tasks: Collection[str],
    *,
    tells_failures: bool = False,
    path: Paths = "",
    lacks_files: bool = False,
) -> Completeness:
    """How complete a batch is for a question that needs some of its tasks.

    `tells_failures`: failures are part of the answer. `path`: only those matter at paths that it asks for, as a
    PathFilter has it. `lacks_files` is as in Completeness.
    """
    tally = records.source.tally(tasks)
    failed: dict[str, int] = {}
    if tally.failed and not tells_failures:
        failed = {task: count for task in sorted(tasks) if (count := _failures(records, task, path))}
    return Completeness(
        planned=tally.planned,
        done=tally.results + tally.failed,
        failed=sum(failed.values()),
        failed_tasks=tuple(failed),
        lacks_files=lacks_files,
        files=records.batch.about.items,
        files_done=records.source.files_done(tasks),
    )


def completeness_at(
    records: BatchRecords,
    by_task: Mapping[str, Sequence[JsonRecord] | None],
    told: Collection[JsonRecord],
    *,
    lacks_files: bool = False,
) -> Completeness:
    """How complete the answer about one file is: what each task says of it, None where it has not come to it.

    The failure of a project task is no file's, and yet what it would have said is missing.
    """
    failed = tuple(task for task, found in by_task.items() if _is_untold_failure(records, task, found or (), told))
    done = sum(found is not None for found in by_task.values())
    return Completeness(
        planned=len(by_task),
        done=done,
        failed=len(failed),
        failed_tasks=failed,
        lacks_files=lacks_files,
        files=records.batch.about.items,
        files_done=records.source.files_done(tuple(by_task)),
    )


def lacks_files(
    catalogue: Callable[[], TaskCatalogue], records: BatchRecords, tasks: Collection[str], kinds: Collection[str]
) -> bool:
    """Whether of what a question names some records rest on all files, and the batch is of some of them.

    Such records a task of project scope gives. The question names kinds, or the one task alone.
    """
    if not records.batch.about.paths:
        return False  # Before any declaration is loaded.
    named = _OF_ALL_FILES & set(kinds) if kinds or len(tasks) > 1 else _OF_ALL_FILES
    return bool(named) and bool(tasks_that_give(catalogue(), set(tasks) & set(records.source.project_tasks), named))


def tasks_that_give(catalogue: TaskCatalogue, tasks: Collection[str], kinds: Collection[str]) -> tuple[str, ...]:
    """The tasks whose records can be of some kinds; all of them where no kind is named."""
    return tuple(task for task in tasks if not kinds or _gives(catalogue, task, kinds))


def check_kinds(catalogue: Callable[[], TaskCatalogue], records: BatchRecords, kinds: Collection[str]) -> None:
    """Refuse a question for records that no task of the batch gives. Raises InvalidInput.

    Where counts know the kind no declaration is loaded, which takes 10 ms.
    """
    for kind in kinds:
        pieces = (piece for task in records.task_names for piece in records.source.iter_pieces(task))
        if any(kind in piece.counts.kinds for piece in pieces):
            continue
        if not tasks_that_give(catalogue(), records.task_names, (kind,)):
            raise InvalidInput(
                f"no task of the batch produces records of kind {kind!r}",
                hint=(
                    f"the batch has the tasks {', '.join(records.task_names)}; the pipeline `full` produces all kinds"
                ),
            )


def _gives(catalogue: TaskCatalogue, task: str, kinds: Collection[str]) -> bool:
    if "failure" in kinds:
        return True
    from codebatch.plugins.entry_points import describe_task  # 3 ms, and `summary` asks for no kind

    try:
        return any(kind in kinds for kind in describe_task(catalogue, task).records)
    except InvalidConfiguration:
        return True  # One of another installation's, or of the project's own: it may give any kind.


def _is_untold_failure(
    records: BatchRecords, task: str, found: Sequence[JsonRecord], told: Collection[JsonRecord]
) -> bool:
    if task in records.source.project_tasks:
        return bool(records.counts(task).kinds.get("failure"))
    return any(record["kind"] == "failure" and record not in told for record in found)


def _failures(records: BatchRecords, task: str, path: Paths) -> int:
    every = records.iter_records(task, RecordFilter(kinds=("failure",)), is_beside=True)
    paths = PathFilter(path)
    return sum(paths.matches(found := path_bytes(record)) or found == PROJECT_PATH for record in every)
