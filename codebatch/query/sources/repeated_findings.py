"""A source in which a finding that several tasks report is one record (SPEC.md "Answers").

A linter that codebatch runs by default may also be a task of the user, or its report may be imported. Findings are
equal if rule, file, range and message are equal. The first task in plan order keeps the finding, with the most severe
severity. `also` names the other tasks. So all numbers of a batch agree, whichever command computes them.

Only shards are read in which two tasks have findings of the same rule.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterator, Mapping, Sequence
from functools import cached_property
from operator import attrgetter

import msgspec
from msgspec.structs import replace

from codebatch.errors import StoreCorrupt
from codebatch.index.keys import TermLookup
from codebatch.model.analysis.record_counting import count_lines
from codebatch.model.record import SEVERITIES, Diagnostic
from codebatch.model.task import BUILT_IN_TASKS
from codebatch.query.sources.sources import PartialShardCounts, RecordSource, ShardRecords
from codebatch.scheduling.outcome_counts import OutcomeCounts
from codebatch.store.results.outputs import MergedOutputs, ReadFrameCounts

_DIAGNOSTIC_START = b'{"kind":"diagnostic",'
_decoder = msgspec.json.Decoder(Diagnostic)
_encoder = msgspec.json.Encoder()


_finding_key: Callable[[Diagnostic], Hashable] = attrgetter(
    "path", "path_b64", "line", "column", "end_line", "end_column", "code", "message"
)
"""A function that returns the values that equal findings share."""


def merge_repeated_findings(lines_by_task: Mapping[str, bytes]) -> dict[str, bytes]:
    """Return the record lines of tasks, in plan order, with each finding in the first task that reports it.

    Raises ValueError for an invalid line.
    """
    found: dict[Hashable, list[tuple[str, Diagnostic]]] = {}
    for task, lines in lines_by_task.items():
        for line in lines.splitlines():
            if line.startswith(_DIAGNOSTIC_START):
                finding = _decoder.decode(line)
                found.setdefault(_finding_key(finding), []).append((task, finding))
    merged = {key: _merge(reports) for key, reports in found.items() if len({task for task, _ in reports}) > 1}
    if not merged:
        return dict(lines_by_task)
    return {task: b"".join(_merged_lines(task, lines, merged)) for task, lines in lines_by_task.items()}


def _merge(reports: Sequence[tuple[str, Diagnostic]]) -> tuple[str, Diagnostic]:
    """Return the first task that reports a finding, and the finding of all of its reports."""
    tasks = list(dict.fromkeys(task for task, _ in reports))
    severity = min((finding.severity for _, finding in reports), key=SEVERITIES.index)
    return tasks[0], replace(reports[0][1], severity=severity, also=tuple(tasks[1:]))


def _merged_lines(task: str, lines: bytes, merged: Mapping[Hashable, tuple[str, Diagnostic]]) -> Iterator[bytes]:
    for line in lines.splitlines(keepends=True):
        kept = merged.get(_finding_key(_decoder.decode(line))) if line.startswith(_DIAGNOSTIC_START) else None
        if kept is None:
            yield line
        elif kept[0] == task:
            yield _encoder.encode(kept[1]) + b"\n"


class MergingSource:
    """A source that merges equal findings of several tasks of another source, `unmerged`.

    If `merged_tasks` is set, only findings of these tasks are merged.
    """

    def __init__(self, unmerged: RecordSource, merged_tasks: Collection[str] | None = None) -> None:
        self.unmerged = unmerged
        self._merged_tasks = unmerged.task_names if merged_tasks is None else merged_tasks
        self._merged_shards: dict[int, dict[str, bytes]] = {}

    def merges(self, task: str) -> bool:
        """Return whether records of a task may differ from those of the unmerged source."""
        return task in self._sharing_tasks

    @property
    def description(self) -> str:
        return self.unmerged.description

    @property
    def outputs(self) -> MergedOutputs | None:
        return self.unmerged.outputs

    @property
    def task_names(self) -> tuple[str, ...]:
        return self.unmerged.task_names

    @property
    def project_tasks(self) -> tuple[str, ...]:
        return self.unmerged.project_tasks

    @property
    def is_done(self) -> bool:
        return self.unmerged.is_done

    @property
    def frames_read(self) -> ReadFrameCounts:
        return self.unmerged.frames_read

    def count_outcomes(self, tasks: Collection[str]) -> OutcomeCounts:
        return self.unmerged.count_outcomes(tasks)

    def files_done(self, tasks: Collection[str]) -> int | None:
        return self.unmerged.files_done(tasks)

    def iter_shards(self, task: str) -> Iterator[PartialShardCounts]:
        return self.unmerged.iter_shards(task)

    def iter_pieces(self, task: str, lookups: Sequence[TermLookup] = ()) -> Iterator[ShardRecords]:
        for index, piece in enumerate(self.unmerged.iter_pieces(task, lookups)):
            lines = self._shard_lines(index).get(task) if self.merges(task) else None
            yield piece if lines is None else _make_piece(lines, piece.uncovered_inputs)

    def item_lines(self, task: str, item: int) -> bytes | None:
        lines = self.unmerged.item_lines(task, item)
        if not lines or not self.merges(task):
            return lines
        by_task = {other: self.unmerged.item_lines(other, item) or b"" for other in self._sharing_tasks}
        return _merge_checked(by_task)[task]

    @cached_property
    def _sharing_tasks(self) -> tuple[str, ...]:
        """The tasks that have findings of the same rule as another task, in plan order."""
        codes_by_task = {
            task: set[str]().union(*(piece.counts.codes for piece in self.unmerged.iter_pieces(task)))
            for task in self.task_names
            if task in self._merged_tasks
        }
        return _tasks_with_shared_rules(codes_by_task)

    @cached_property
    def _sharing_pieces(self) -> list[dict[str, ShardRecords]]:
        """For each shard, the pieces of the tasks that share a rule with another task."""
        shards = zip(*(self.unmerged.iter_pieces(task) for task in self._sharing_tasks), strict=True)
        return [dict(zip(self._sharing_tasks, pieces, strict=True)) for pieces in shards]

    def _shard_lines(self, index: int) -> Mapping[str, bytes]:
        """Return the merged record lines of the tasks that share a rule in a shard, by task."""
        if index not in self._merged_shards:
            pieces = self._sharing_pieces[index]
            tasks = _tasks_with_shared_rules({task: piece.counts.codes for task, piece in pieces.items()})
            self._merged_shards[index] = _merge_checked({task: b"".join(pieces[task].read()) for task in tasks})
        return self._merged_shards[index]


def _tasks_with_shared_rules(codes_by_task: Mapping[str, Collection[str]]) -> tuple[str, ...]:
    """Return the tasks that have a code of another task."""
    tasks_of_codes = Counter(code for codes in codes_by_task.values() for code in codes)
    return tuple(task for task, codes in codes_by_task.items() if any(tasks_of_codes[code] > 1 for code in codes))


def _merge_checked(lines_by_task: Mapping[str, bytes]) -> dict[str, bytes]:
    try:
        return merge_repeated_findings(lines_by_task)
    except ValueError as error:
        raise StoreCorrupt(f"a record cannot be decoded: {error}") from error


def _make_piece(lines: bytes, uncovered_inputs: str) -> ShardRecords:
    return ShardRecords(count_lines(lines), lambda: iter((lines,)), uncovered_inputs)


def merging_source(source: RecordSource, tasks: Collection[str] | None = None) -> RecordSource:
    """Return a source that merges equal findings of several tasks, or only of some tasks of the source.

    Built-in tasks have no rule in common. So a source of these tasks alone is returned unchanged.
    """
    names = source.task_names if tasks is None else tasks
    return source if set(names) <= set(BUILT_IN_TASKS) else MergingSource(source, tasks)


def unmerged_source(source: RecordSource) -> RecordSource:
    """Return the source without merging."""
    return source.unmerged if isinstance(source, MergingSource) else source


def source_of_task(source: RecordSource, task: str) -> RecordSource:
    """Return a source with all findings of a task."""
    return source.unmerged if isinstance(source, MergingSource) and source.merges(task) else source


def outputs_of_task(source: RecordSource, task: str) -> MergedOutputs | None:
    """Return the outputs from which records of a task can be read directly, or None if there are none."""
    return None if isinstance(source, MergingSource) and source.merges(task) else source.outputs
