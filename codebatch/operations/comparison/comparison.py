"""Comparison of two batches. It finds regressions and improvements of the newer batch (SPEC.md "Comparison")."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Sequence
from functools import cached_property
from itertools import chain
from typing import get_args

import msgspec

from codebatch.compare.absence.reasons import AbsenceReasons
from codebatch.compare.batches import differing_records, read_task_records
from codebatch.compare.differences import Change, ComparedRecord, StateCounts, change_sort_key
from codebatch.compare.matching.finding_pairs import FindingsByPath, ReportedFinding, match_findings
from codebatch.compare.matching.trees import TreeComparison
from codebatch.compare.records import COMPARED_KINDS, compare_kind, is_absent_record, matching_groups
from codebatch.compare.states import ChangeState, matched_state, new_finding_state, old_finding_state
from codebatch.compare.tree_files import tree_file_from_entry
from codebatch.errors import InvalidInput
from codebatch.model.record import TAG_BY_TYPE, Diagnostic, Duplicate
from codebatch.operations.queries.batch_query import Answer, BatchQuery
from codebatch.operations.queries.unmatched_filters import nothing_read
from codebatch.query.answers.counting import count_records
from codebatch.query.completeness import check_kinds, emitting_tasks, tasks_completeness
from codebatch.query.filters.arguments import refuse_unknown
from codebatch.query.filters.filters import RecordFilter
from codebatch.query.sources.records import BatchRecords, merge_common_tasks, restrict_to_task
from codebatch.system.processes.garbage_collector import collector_paused

COMPARABLE_KINDS = ("diagnostic", *COMPARED_KINDS)
"""The record types that can be compared."""

CHANGE_STATES: tuple[ChangeState, ...] = get_args(ChangeState)
CHANGED_STATES = tuple(state for state in CHANGE_STATES if state != "unchanged")

_NO_FILTER = RecordFilter()
_TYPES_BY_KIND = {tag: type_ for type_, tag in TAG_BY_TYPE.items()}


class Comparison:
    """The changes between two batches. They are computed when they are first used.

    Example:

        changes = store.batch("latest").compare("latest~1").differences(("new",))
    """

    def __init__(
        self,
        old: Answer[None],
        new: Answer[None],
        kinds: Collection[str],
        record_filter: RecordFilter,
        task: str | None,
    ) -> None:
        self.old = old
        self.new = new
        self.trees = TreeComparison(*_views(old.question.records, new.question.records, task))
        self.kinds = kinds
        self._record_filter = record_filter
        self._has_no_filter = record_filter == _NO_FILTER
        self._task = task

    @property
    def is_complete(self) -> bool:
        """Whether the comparison is complete: both batches are complete, and no file that it had to read is missing."""
        return self.old.is_complete and self.new.is_complete and not self.trees.lost

    def reasons_for_nothing(self) -> Iterator[str]:
        """Return the reasons why an empty result proves nothing: HEAD has no files, or nothing can pass a filter."""
        return nothing_read((self.new.question, self.old.question), self._record_filter)

    def differences(self, states: Collection[ChangeState] = CHANGED_STATES) -> Iterator[Change]:
        """Return the changes in the given states, sorted by record type, path and location.

        Removed records are sorted by their old location. Unchanged records are included only if `unchanged` is one of
        the states. Raises InvalidInput or StoreCorrupt.
        """
        changes = [change for change in chain.from_iterable(self._by_kind.values()) if change.state in states]
        changes += self._untouched_records() if "unchanged" in states else ()
        changes.sort(key=change_sort_key)
        return iter(changes) if self._has_no_filter else filter(self._is_requested, changes)

    @cached_property
    def counts(self) -> StateCounts:
        """The number of changes in each state. Raises InvalidInput or StoreCorrupt."""
        state_counts: Counter[ChangeState] = Counter()
        for kind, all_changes in self._by_kind.items():
            requested = all_changes if self._has_no_filter else filter(self._is_requested, all_changes)
            state_counts.update([change.state for change in requested])
            present = [change for change in all_changes if not is_absent_record(change.new)]
            if not self._has_no_filter:
                present = [change for change in present if self._passes(self.trees.new, change.new)]
            state_counts["unchanged"] += self._count_untouched(kind, present)
        return {state: state_counts[state] for state in CHANGE_STATES}

    def _count_untouched(self, kind: str, changes: Sequence[Change]) -> int:
        """Return the number of unchanged records of a type in the new batch.

        This is the number of all requested records, minus the new records in `changes`.
        """
        new, record_filter = self.trees.new, msgspec.structs.replace(self._record_filter, kinds=(kind,))
        names = new.choose_tasks(self._task)
        if kind == "file":
            total = (
                len(new.items)
                if self._has_no_filter
                else sum(self._passes(new, tree_file_from_entry(entry)) for entry in new.items)
            )
            return total - len(changes)
        if kind == "duplicate":
            return len(
                matching_groups(new, names, record_filter)
                - {change.new.group for change in changes if isinstance(change.new, Duplicate)}
            )
        return count_records(new, names, record_filter, "kind").total - len(changes)

    def lines(self, path: bytes) -> Sequence[int] | None:
        """Return for each line of a file in the newer batch the matching line in the older batch.

        Lines are counted from 0. A line without a match has the value -1. Return None if the file does not exist in one
        of the batches or its content is missing. Raises StoreCorrupt.
        """
        old = self.trees.old_path(path)
        return None if old is None else self.trees.matching_lines("new", path, old)

    @cached_property
    def _by_kind(self) -> dict[str, list[Change]]:
        """All changes by record type. Changes that do not pass the requested filter are included."""
        return {kind: [*self._kind_changes(kind)] for kind in sorted(self.kinds)}

    def _kind_changes(self, kind: str) -> Iterator[Change]:
        return self._matched_diagnostics() if kind == "diagnostic" else compare_kind(self.trees, kind, self._tasks)

    def _is_requested(self, change: Change) -> bool:
        return (
            self._has_no_filter or self._passes(self.trees.old, change.old) or self._passes(self.trees.new, change.new)
        )

    def _passes(self, records: BatchRecords, record: ComparedRecord | None) -> bool:
        if record is None or self._has_no_filter:
            return record is not None
        return self._record_filter.matches(msgspec.to_builtins(record), records.languages_for(self._record_filter))

    def _matched_diagnostics(self) -> Iterator[Change]:
        with collector_paused():
            matching = match_findings(self.trees, *self._changed_findings)
        for pair in matching.pairs:
            old, new = pair.old.about, pair.new.about
            yield Change(matched_state(old, new, pair.by), old, new, pair.by)
        for finding, reason, is_suppressed in AbsenceReasons(
            self.trees, "old", matching.old, self._changed_findings[1]
        ).absences():
            is_file_gone = self.trees.new_path(finding.path) is None
            state = old_finding_state(reason, is_suppressed=is_suppressed, is_file_gone=is_file_gone)
            yield Change(state, finding.about, None, reason=reason)
        for finding, reason, _ in AbsenceReasons(self.trees, "new", matching.new, self._changed_findings[0]).absences():
            yield Change(new_finding_state(reason), None, finding.about, reason=reason)

    def _untouched_records(self) -> Iterator[Change]:
        """Yield the records of the newer batch that did not have to be compared, because they are equal in both.

        Of a duplicate group, only the first record is yielded.
        """
        for kind, changes in self._by_kind.items():
            if kind == "file":
                compared = {change.new.path_bytes for change in changes if change.new is not None}
                files = (tree_file_from_entry(entry) for entry in self.trees.new.items if entry.path not in compared)
                yield from (Change("unchanged", file, file) for file in files)
                continue
            present = Counter(map(_record_identity, (each.new for each in changes if not is_absent_record(each.new))))
            for task in self._tasks:
                for records in read_task_records(self.trees.new, task, _TYPES_BY_KIND[kind]).values():
                    for record in records:
                        identity = _record_identity(record)
                        if present[identity]:
                            present[identity] -= not isinstance(record, Duplicate)
                            continue
                        present[identity] += isinstance(record, Duplicate)
                        yield Change("unchanged", record, record, "line" if kind == "diagnostic" else None)

    @cached_property
    def _changed_findings(self) -> tuple[FindingsByPath, FindingsByPath]:
        """The findings of both batches by path, the older batch first.

        Only paths at which a task reported different findings in the two batches are included.
        """
        findings_by_path: tuple[dict[bytes, list[ReportedFinding]], dict[bytes, list[ReportedFinding]]] = (
            defaultdict(list),
            defaultdict(list),
        )
        for task in self._tasks:
            sides = differing_records(self.trees.old, self.trees.new, task, Diagnostic)
            for side, by_path in zip(findings_by_path, sides, strict=True):
                for path, diagnostics in by_path.items():
                    side[path] += [ReportedFinding(path, task, about) for about in diagnostics]
        return findings_by_path

    @property
    def _tasks(self) -> list[str]:
        """The names of the requested tasks that either batch has."""
        tasks = dict.fromkeys((*self.trees.old.task_names, *self.trees.new.task_names))
        return [task for task in tasks if self._task in (None, task)]


def _views(old: BatchRecords, new: BatchRecords, task: str | None) -> tuple[BatchRecords, BatchRecords]:
    if task is None:
        return merge_common_tasks(old, new)
    return restrict_to_task(old, task), restrict_to_task(new, task)


def _record_identity(record: ComparedRecord | None) -> object:
    """Return the record itself or, for a duplicate block, its group: groups are compared, not blocks."""
    return record.group if isinstance(record, Duplicate) else record


def compared_kinds(record_filter: RecordFilter) -> tuple[str, ...]:
    """Return the record types that a filter selects.

    A filter selects record types by name, or by a field that only some types have. Without either, it selects
    `diagnostic`.
    """
    return record_filter.named_kinds or ("diagnostic",)


def compares_only_files(kinds: Collection[str]) -> bool:
    """Return whether `file` is the only record type in `kinds`.

    Files can be compared without a batch, because a snapshot lists them.
    """
    return {*kinds} == {"file"}


def compare_batches(
    old: BatchQuery,
    new: BatchQuery,
    kinds: Collection[str] = ("diagnostic",),
    *,
    asked: RecordFilter | None = None,
    task: str | None = None,
) -> Comparison:
    """Compare two batches for some record types. `new` is the newer one. Raises InvalidInput or StoreCorrupt.

    The result has only the changes with a record that passes the filter `asked`. Call `refuse_unrelated_batches` with
    the result before using it.
    """
    refuse_unknown("kind", kinds, COMPARABLE_KINDS)
    record_filter = (asked or RecordFilter()).check()
    return Comparison(
        _comparison_completeness(old, kinds, task),
        _comparison_completeness(new, kinds, task),
        kinds,
        record_filter,
        task,
    )


def refuse_unrelated_batches(comparison: Comparison) -> None:
    """Raise InvalidInput if the batches are of different projects.

    Two batches are of different projects if both conditions are true: their trees have no file in common, and their
    commits are not of the same work tree.
    """
    old, new = comparison.old.question.batch, comparison.new.question.batch
    are_of_one_work_tree = old.about.sources == new.about.sources and bool(old.about.commit and new.about.commit)
    if comparison.trees.are_unrelated and not are_of_one_work_tree:
        raise InvalidInput(
            f"{old.id} and {new.id} are of different projects: they have no file path and no file content in common",
            hint="list batches with their sources: codebatch batch list",
        )


def _comparison_completeness(question: BatchQuery, kinds: Collection[str], task: str | None) -> Answer[None]:
    """Return how complete the results of a batch are: only the results that a comparison of some record types reads."""
    records = question.records
    names = records.choose_tasks(task)
    kinds = [kind for kind in kinds if kind != "file"]
    check_kinds(lambda: question.catalogue, records, kinds)
    needed = () if not kinds else names if records.source.is_done else emitting_tasks(question.catalogue, names, kinds)
    return Answer(question=question, result=None, completeness=tasks_completeness(records, needed))
